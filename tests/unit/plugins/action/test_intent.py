# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stage playbooks with real Ansible, as far as they come without a host: the intent, and what a bad one gets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[4]
RAIL = {"name": "rail0", "nic": {"pci": "0000:3d:00.0"}, "address": "192.168.100.1/24"}


def play(tmp_path: Path, rails: list[dict[str, object]]) -> subprocess.CompletedProcess[str]:
    """Run the intent of two hosts, in a working directory of its own."""
    hosts = {name: {"rdma_rails": rails} for name in ("node1", "node2")}
    inventory = {"all": {"vars": {"ansible_connection": "local", "wanted": "192.168.100.1/24"}, "hosts": hosts}}
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump(inventory))
    tasks = [{"name": "Read the intent", "rdma.cluster.intent": None}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump([{"name": "Test", "hosts": "all", "gather_facts": False, "tasks": tasks}]))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-v", "-i", "inventory.yml", "play.yml"]
    return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_a_good_intent_is_normalized_and_both_hosts_share_one_run_folder(tmp_path: Path) -> None:
    done = play(tmp_path, [{**RAIL, "address": "{{ wanted }}"}])
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"mtu_bytes": null' in done.stdout
    assert '"address": "192.168.100.1/24"' in done.stdout
    runs = [path.name for path in (tmp_path / "artifacts").iterdir() if not path.is_symlink()]
    assert len(runs) == 1
    assert (tmp_path / "artifacts/latest").readlink() == Path(runs[0])


@pytest.mark.parametrize("name", ["rail 0; reboot", "$(reboot)", "räil", "rail\n0"])
def test_a_bad_intent_fails_every_host_before_anything_is_touched(tmp_path: Path, name: str) -> None:
    done = play(tmp_path, [{**RAIL, "name": name, "adress": "x"}])
    assert done.returncode == 2
    for words in ("rdma_rails[0] has no key 'adress': did you mean 'address'?", "rdma_rails[0].name must be letters"):
        assert done.stdout.count(words) >= 2, done.stdout


def test_a_template_that_fails_cannot_write_lines_on_the_terminal(tmp_path: Path) -> None:
    """The message may quote what a host has returned."""
    done = play(tmp_path, [{**RAIL, "address": "{{ undef(hint='lost\n  error link.state: node9\x1b[2K https://me:secret@host/x') }}"}])
    assert done.returncode == 2
    assert "rdma_rails cannot be templated: lost   error link.state: node9?[2K https://***@host/x" in done.stdout
    assert [line for line in done.stdout.splitlines() if line.lstrip().startswith("error link.state")] == []
