# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook that plans, with real Ansible and hosts that nobody can reach."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.lock import lock_file

ROOT = Path(__file__).parents[4]
ROCE = ROOT / "inventories/roce/hosts.yml"


def plan(folder: Path, inventory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """An address that nobody answers, and a second to notice: a host that is asked makes the run fail."""
    nobody = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_TIMEOUT": "1"}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(inventory), str(ROOT / "playbooks/plan.yml"), *words]
    argv += ["-e", "ansible_host=192.0.2.1"]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **nobody})


def write_inventory(folder: Path, **hosts: dict[str, Any]) -> Path:
    rails = [{"name": "rail0", "nic": {"pci": "0000:21:00.0"}, "address": "192.168.100.1/24"}]
    inventory = {"all": {"hosts": {name: {"rdma_rails": rails, **variables} for name, variables in hosts.items()}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    return folder / "hosts.yml"


@pytest.mark.parametrize("words", [("--tags", "roce"), ("--tags", "roce", "--check")], ids=["roce", "roce in check mode"])
def test_the_example_is_planned_without_its_hosts(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = plan(tmp_path, ROCE, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("unreachable=0") == 4
    assert done.stdout.count("changed=0") == 4, done.stdout
    folder = tmp_path / "artifacts/latest/plan"
    assert sorted(path.name for path in folder.iterdir()) == [
        "roce.json", "roce.txt", "switch-leaf-a.nv", "switch-leaf-a.ports.csv", "switch-leaf-a.sheet.txt", "switch-leaf-b.nv",
        "switch-leaf-b.ports.csv", "switch-leaf-b.sheet.txt", "switch-spine1.ports.csv", "switch-spine1.sheet.txt", "switch-spine1.txt",
    ]  # fmt: skip
    text = (folder / "roce.txt").read_text()
    assert f"\n{text}" in done.stdout
    for name in ("switch-leaf-a.nv", "switch-spine1.txt"):
        assert all(f"| {line}".rstrip() in text for line in (folder / name).read_text().splitlines())
    (entry,) = json.loads((folder / "roce.json").read_text())
    assert entry["hosts"] == ["gpu01", "gpu02", "gpu03", "gpu04"]
    assert entry["profile"]["traffic_class"] == 106
    # Looking is free: no lock was taken that a run which builds would find.
    assert not Path(lock_file([str(ROCE)])).exists()


def test_hosts_that_disagree_on_a_switch_are_named(tmp_path: Path) -> None:
    switches = {"leaf1": {"syntax": "nvue", "ports": ["swp1"]}}
    inventory = write_inventory(
        tmp_path, node1={"rdma_roce": {"switches": switches}}, node2={"rdma_roce": {"ecn": False, "switches": switches}}
    )
    done = plan(tmp_path, inventory)
    assert done.returncode == 2
    assert "leaf1 has 2 different settings: one from node1; one from node2" in done.stdout
    assert not (tmp_path / "artifacts/latest/plan").exists()


def test_an_intent_with_a_contradiction_is_reported_and_the_others_are_planned(tmp_path: Path) -> None:
    inventory = write_inventory(tmp_path, node1={"rdma_roce": {"cnp_priority": 3}}, node2={"rdma_roce": {}})
    done = plan(tmp_path, inventory)
    assert done.returncode == 2
    assert "congestion notifications would be paused with RDMA" in done.stdout
    assert json.loads((tmp_path / "artifacts/latest/plan/roce.json").read_text())[0]["hosts"] == ["node2"]


CABLES = """
switches: {leaf1: , leaf2: , spine1: , spine2: }
links:
  - {from: node1 mlx5_0, to: leaf1/1}
  - {from: node1 mlx5_1, to: leaf1/2}
  - {from: node2 mlx5_0, to: leaf2/1}
  - {from: node2 mlx5_1, to: leaf2/2}
  - {from: leaf1/11, to: spine1/1}
  - {from: leaf1/12, to: spine2/1}
  - {from: leaf2/11, to: spine1/2}
  - {from: leaf2/12, to: spine2/2}
"""


def test_a_cabling_plan_shows_the_queue_pairs_that_it_takes(tmp_path: Path) -> None:
    (tmp_path / "cables.yml").write_text(CABLES)
    fabric = {"planes": {"default": {"plan": "cables.yml"}}}
    inventory = write_inventory(tmp_path, node1={"rdma_fabric": fabric, "rdma_roce": {}}, node2={"rdma_fabric": fabric, "rdma_roce": {}})
    done = plan(tmp_path, inventory)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "artifacts/latest/plan/roce.txt").read_text()
    assert "  leaf1, leaf2: 2 ports over 2 equal paths to 2 spines\n    1: 75% (75%); 2: 81% (73%); 4: 86% (79%)" in text
    assert "Queue pairs per connection (NCCL_IB_QPS_PER_CONNECTION)" in done.stdout


def test_a_cabling_plan_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    fabric = {"planes": {"default": {"plan": "cables.yml"}}}
    done = plan(tmp_path, write_inventory(tmp_path, node1={"rdma_fabric": fabric}))
    assert done.returncode == 2
    assert "rdma_fabric.planes.default.plan, cables.yml: cables.yml cannot be read" in done.stdout
