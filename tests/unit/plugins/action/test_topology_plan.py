# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a fabric with real Ansible, without an inventory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from tests.unit.builders.fabrics import leafspine

ROOT = Path(__file__).parents[4]


def plan(folder: Path, request: dict[str, Any] | None, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), str(ROOT / "playbooks/plan.yml"), "--tags", "topology", *words]
    if request is not None:
        (folder / "request.yml").write_text(yaml.safe_dump({"rdma_plan": request}))
        argv += ["-e", "@request.yml"]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_a_fabric_is_planned_and_its_files_are_read(tmp_path: Path) -> None:
    request: dict[str, Any] = {"hosts": 32, "nic_gbps": 400, "switch": {"model": "qm9700"}, "hosts_later": 64, "topology": "rail"}
    done = plan(tmp_path, request)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Plan for 32 hosts with 8 NICs of 400 Gb/s each: 256 NICs" in done.stdout
    assert "changed=0" in done.stdout
    folder = tmp_path / "artifacts/latest/plan"
    names = [
        "bom.csv", "cables.csv", "cables.html", "cabling", "drawings", "inventory.yml", "ports", "summary.html", "summary.md",
        "topology.json", "topology.txt",
    ]  # fmt: skip
    assert sorted(path.name for path in folder.iterdir()) == names
    assert f"\n{(folder / 'topology.txt').read_text()}" in done.stdout
    read = parse_plan((folder / "cabling/fabric.yml").read_text())
    stored = json.loads((folder / "topology.json").read_text())
    assert len(read.links) == len(stored["design"]["cables"])
    # The same fabric with the later hosts keeps all cables. The plan is that of the run before, or in a file.
    (tmp_path / "before.json").write_text(json.dumps(stored))
    for existing in ("latest", str(tmp_path / "before.json")):
        request = {"hosts": 64, "switch": {"model": "qm9700"}, "topology": "rail", "existing": existing}
        later = plan(tmp_path, request)
        assert later.returncode == 0, later.stdout + later.stderr
        after = json.loads((tmp_path / "artifacts/latest/plan/topology.json").read_text())
        assert set(stored["design"]["cables"]) < set(after["design"]["cables"])
        added = len(after["design"]["cables"]) - len(stored["design"]["cables"])
        assert "  must move: none" in later.stdout
        assert (tmp_path / "artifacts/latest/plan/growth.csv").read_text().count("\nadd,") == added
    # It cannot grow further than its switches allow.
    refused = plan(tmp_path, {"hosts": 600, "switch": {"model": "qm9700"}, "topology": "rail", "existing": "latest"})
    assert refused.returncode == 2
    assert "hosts without moving a cable; 600 are planned:" in refused.stdout + refused.stderr


def test_a_wrong_key_is_named_with_its_line(tmp_path: Path) -> None:
    done = plan(tmp_path, {"hosts": 32, "switch": {"model": "qm970"}})
    assert done.returncode == 2
    assert "rdma_plan.switch.model 'qm970' is not known: did you mean 'qm9700'?" in done.stdout + done.stderr


def test_a_request_without_a_plan_fails_with_the_nearest_plans(tmp_path: Path) -> None:
    done = plan(tmp_path, {"hosts": 512, "switch": {"model": "qm9700"}, "topology": "leaf_spine"})
    assert done.returncode == 2
    nearest = "512 are planned: 256 too many. Nearest plans: 1. topology: rail_planes (192 switches, 8192 cables)."
    assert nearest in done.stdout + done.stderr
    assert not (tmp_path / "artifacts/latest/plan").exists()


def test_a_damaged_file_of_the_existing_fabric_is_named(tmp_path: Path) -> None:
    (tmp_path / "before.json").write_text("{}")
    done = plan(tmp_path, {"hosts": 4, "switch": {"model": "qm9700"}, "existing": str(tmp_path / "before.json")})
    assert done.returncode == 2
    assert "before.json cannot be read: it is not a plan/topology.json of this collection" in done.stdout + done.stderr


def test_without_a_request_nothing_is_planned(tmp_path: Path) -> None:
    done = plan(tmp_path, None)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rdma_plan is not set: there is no request for a plan." in done.stdout


def test_without_a_stored_graph_there_is_nothing_to_compare(tmp_path: Path) -> None:
    done = plan(tmp_path, {"from_fabric": True})
    assert done.returncode == 2
    assert "No run has stored a complete graph of a fabric. 1. Run `ansible-playbook rdma.cluster.fabric`." in done.stdout + done.stderr


def test_a_stored_fabric_is_compared_with_the_best_plan(tmp_path: Path) -> None:
    run = tmp_path / "artifacts/20261122T120000Z-1/fabric/default"
    run.mkdir(parents=True)
    (run / "graph.json").write_text(json.dumps(leafspine(leaves=2, spines=2).graph().to_dict()))
    done = plan(tmp_path, {"from_fabric": True})
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (
        "Plane default, graph of run 20261122T120000Z-1",
        "oversubscription of the leaves: 2:1",
        "links between leaves and spines: imbalance 1 (largest / smallest number)",
        "single points of failure, which cut hosts or halves: leaf1, leaf2",
        "one more spine: not possible, because a leaf has no free port",
        "best plan for this hardware: leaf_spine with",
        "differs: oversubscription of a leaf 2:1, planned 1:1",
    ):
        assert words in done.stdout
    folder = tmp_path / "artifacts/latest/plan"
    assert sorted(path.name for path in folder.iterdir()) == ["found.html", "found.md", "found.txt"]
