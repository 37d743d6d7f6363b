# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook that explains hosts, with real Ansible on this machine: what it prints and leaves, and what does not stop it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import WIDTH
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.lock import claim, lock_file
from tests.unit.builders.hosts import lab_rails

ROOT = Path(__file__).parents[4]
TITLE = "{}: what matters to RDMA and NCCL"
INTENT_ALONE = [{"name": "Test", "hosts": "all", "gather_facts": False, "tasks": [{"name": "Read", "rdma.cluster.intent": None}]}]


def write_inventory(folder: Path, **hosts: dict[str, Any]) -> Path:
    """hosts: the variables of each host beside its rails, of which there are two that this machine does not have."""
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = {"all": {"hosts": {name: {**local, "rdma_rails": lab_rails(), **variables} for name, variables in hosts.items()}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    return folder / "hosts.yml"


def play(folder: Path, playbook: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1", **environment}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", str(playbook), *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=known)


def explain(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return play(folder, ROOT / "playbooks/explain.yml", *words, **environment)


def explained(folder: Path, host: str) -> str:
    return (folder / f"artifacts/latest/explain/{host}.txt").read_text(encoding="utf-8")


def run_beside(folder: Path, inventory: Path) -> str:
    """Let another run, this process, hold the lock of an inventory; the id of that run."""
    run = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
    claim(lock_file([str(inventory)]), run, [str(inventory)], folder)
    return run


def test_each_host_is_printed_and_stored_also_one_with_a_bad_intent(tmp_path: Path) -> None:
    write_inventory(tmp_path, node1={}, node2={"rdma_rails": [{"name": "rail0", "nic": {"pcu": "0000:21:00.0"}}]})
    done = explain(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    recap = re.findall(r"^(node\d) .*?changed=(\d+) +unreachable=0 +failed=(\d+)", done.stdout, re.M)
    assert recap == [("node1", "0", "0"), ("node2", "0", "0")], done.stdout
    for host in ("node1", "node2"):
        text = explained(tmp_path, host)
        assert text.startswith(TITLE.format(host))
        assert f"\n{text}" in done.stdout
        assert max(map(len, text.splitlines())) <= WIDTH
        assert f"  kernel        {os.uname().release}" in text
    assert "!   device  no NIC with pci 0000:21:00.0; there are " in explained(tmp_path, "node1")
    problem = "    rdma_rails[0].nic has no key 'pcu': did you mean 'pci'? (hosts.yml:"
    assert f"\n! There is no intent to compare with, because of these problems:\n{problem}" in explained(tmp_path, "node2")
    # Read on the way, so that the evidence has what the text was made of.
    for host in ("node1", "node2"):
        assert json.loads((tmp_path / f"artifacts/latest/facts/{host}.json").read_text())["stack"]["kernel"] == os.uname().release


def test_a_run_that_builds_does_not_keep_it_from_explaining(tmp_path: Path) -> None:
    run = run_beside(tmp_path, write_inventory(tmp_path, node1={}))
    (tmp_path / "play.yml").write_text(yaml.safe_dump(INTENT_ALONE))
    refused = play(tmp_path, tmp_path / "play.yml")
    assert refused.returncode == 2
    assert f"Run {run} of " in refused.stdout
    done = explain(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert TITLE.format("node1") in done.stdout


def test_an_explanation_does_not_keep_a_run_from_building(tmp_path: Path) -> None:
    inventory = write_inventory(tmp_path, node1={})
    assert explain(tmp_path).returncode == 0
    assert not lock_file([str(inventory)]).exists()


def test_in_check_mode_it_is_the_same(tmp_path: Path) -> None:
    write_inventory(tmp_path, node1={})
    done = explain(tmp_path, "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{explained(tmp_path, 'node1')}" in done.stdout


def test_limit_explains_one_host(tmp_path: Path) -> None:
    write_inventory(tmp_path, node1={}, node2={})
    assert TITLE.format("node2") not in explain(tmp_path, "--limit", "node1").stdout
    assert [path.name for path in (tmp_path / "artifacts/latest/explain").iterdir()] == ["node1.txt"]


@pytest.mark.parametrize("connection", [{"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}])
def test_a_host_that_cannot_be_read_is_not_explained(tmp_path: Path, connection: dict[str, Any]) -> None:
    bad_intent = {"rdma_rails": []}
    write_inventory(tmp_path, node1=connection, node2={**connection, **bad_intent}, node3={})
    done = explain(tmp_path)
    assert done.returncode == 4, done.stdout
    assert [path.name for path in (tmp_path / "artifacts/latest/explain").iterdir()] == ["node3.txt"]
