# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The numbers of a plan with real Ansible: without an inventory, and with requests that cannot be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[4]
REQUEST: dict[str, Any] = {
    "hosts": 32,
    "training": {"model": "seven", "parameters_billions": 7, "compute_seconds": 2, "overlap": 0, "nvlink_gbytes_per_s": 450},
    "uplink": {"ingest_gbytes_per_s_per_gpu": 1, "parameters_billions": 70, "link_gbps": [25, 400], "max_links": 16},
}


def numbers(folder: Path, request: dict[str, Any], tags: str) -> subprocess.CompletedProcess[str]:
    (folder / "request.yml").write_text(yaml.safe_dump({"rdma_plan": request}))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), str(ROOT / "playbooks/plan.yml"), "--tags", tags]
    argv += ["-e", f"@{folder / 'request.yml'}"]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_both_are_computed_without_an_inventory(tmp_path: Path) -> None:
    done = numbers(tmp_path, REQUEST, "uplink,training")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "changed=0" in done.stdout
    folder = tmp_path / "artifacts/latest/plan"
    assert sorted(path.name for path in folder.iterdir()) == ["training.json", "training.txt", "uplink.json", "uplink.txt"]
    training, uplink = (json.loads((folder / f"{kind}.json").read_text()) for kind in ("training", "uplink"))
    assert training["gradient_bytes"] == 14e9
    assert training["steps"]["ring"]["without_overlap"]["utilization"] == pytest.approx(2 / (2 + 0.0719), abs=1e-3)
    assert uplink["needed_gbps"] == 256 * 8 / 0.8
    assert uplink["chosen"]["link_gbps"] == 400
    assert uplink["not_given"] == ["checkpoint", "inference", "burst"]
    for kind in ("training", "uplink"):
        assert (folder / f"{kind}.txt").read_text().rstrip() in done.stdout


@pytest.mark.parametrize(
    ("request_", "tags", "words"),
    [
        ({"hosts": 32}, "training", "rdma_plan.training is not given: there is nothing to compute."),
        ({**REQUEST, "uplink": {"ingest": 4}}, "uplink", "rdma_plan.uplink has no key 'ingest'"),
        ({**REQUEST, "uplink": {"flows": 4}}, "uplink", "rdma_plan.uplink: no load is given."),
    ],
)
def test_a_request_that_cannot_be_used_is_refused(tmp_path: Path, request_: dict[str, Any], tags: str, words: str) -> None:
    done = numbers(tmp_path, request_, tags)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stdout + done.stderr
    assert not (tmp_path / "artifacts/latest/plan").exists()
