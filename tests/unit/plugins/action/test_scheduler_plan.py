# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan for schedulers from the folders of earlier runs: graph, facts and proofs; and the playbook with real Ansible."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.action import scheduler_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.fabric_runs import of_host
from tests.unit.builders.fabrics import Fabric, rail

ROOT = Path(__file__).parents[4]
BUILD, FIRST, SECOND = "20261126T100000Z-1", "20261126T110000Z-2", "20261126T120000Z-3"


class Runs:
    """A build with its fabric and pairs stages, and later plans. Eight hosts with two rails, four hosts a leaf."""

    def __init__(self, base: Path) -> None:
        self.base, self.fabric = base, rail(hosts=8, rails=2, spines=2, per_leaf=4)
        self.hosts = sorted({its["name"] for its in self.fabric.nodes.values() if its["kind"] == "host"})
        self.intents: dict[str, Any] = {}
        build, endpoints = self.folder(BUILD), {}
        for host in self.hosts:
            self.intents[host], facts = of_host(self.fabric, host)
            build.write_json(build.host_file("facts", host), facts)
            rails = proofs.bases(self.intents[host], from_dict(facts))
            endpoints[host] = {name: proofs.Proof(basis, time.time(), BUILD, 7, {}, 1.0) for name, basis in rails.items()}
        build.write_json(proofs.FILE, proofs.write(endpoints))
        build.write_json("fabric/default/graph.json", self.fabric.graph().to_dict())

    def folder(self, run: str) -> RunFolder:
        path = self.base / run
        path.mkdir(parents=True, exist_ok=True)
        return RunFolder(path)

    def plan(self, run: str) -> dict[str, Any]:
        folder = self.folder(run)
        for host, intent in self.intents.items():
            folder.write_json(folder.host_file("intent", host), intent)
        action = scheduler_plan.ActionModule.__new__(scheduler_plan.ActionModule)
        action.folder, action._templar = folder, SimpleNamespace(template=lambda value: value)
        action.variables = {"ansible_play_hosts": self.hosts, "inventory_hostname": self.hosts[0], "hostvars": {}}
        return action.work({})  # type: ignore[no-any-return]

    def text(self, run: str, name: str) -> str:
        return (self.base / run / "plan/scheduler" / name).read_text()


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def test_proven_hosts_of_the_stored_graph(runs: Runs) -> None:
    done = runs.plan(FIRST)
    assert done["left_out"] == {}, done
    assert "8 of 8 hosts" in done["explained"]
    assert f"graph of run {BUILD}" in done["explained"]
    assert "Nodes=node[1-4]" in runs.text(FIRST, "topology.conf")
    assert len(done["stored"]) == 8


def test_a_changed_nic_has_no_valid_proof(runs: Runs) -> None:
    folder = runs.folder(BUILD)
    name = folder.host_file("facts", "node2")
    facts = folder.read_json(name)
    facts["devices"]["mlx5_0"]["firmware"] = "28.99.0"
    folder.write_json(name, facts)
    assert runs.plan(FIRST)["left_out"] == {"node2": "rail0: changed since it was measured: firmware"}
    assert "Nodes=node[1,3-4]" in runs.text(FIRST, "topology.conf")


def test_a_host_whose_facts_no_run_has(runs: Runs) -> None:
    (runs.base / BUILD / "facts/node3.json").unlink()
    assert runs.plan(FIRST)["left_out"] == {"node3": "no run has read its facts"}


def test_the_next_plan_shows_its_difference(runs: Runs) -> None:
    runs.plan(FIRST)
    assert f"No difference from the plan of run {FIRST}." in runs.plan(SECOND)["explained"]
    data = json.loads((runs.base / "proofs/pairs.json").read_text())
    del data["endpoints"]["node8"]
    (runs.base / "proofs/pairs.json").write_text(json.dumps(data))
    again = runs.plan("20261126T130000Z-4")
    assert f"Difference from the plan of run {SECOND}:" in again["explained"]
    assert "Nodes=node[5-7]" in runs.text("20261126T130000Z-4", "scheduler.diff")


def test_a_newer_graph_with_a_lost_leaf_keeps_the_names(runs: Runs) -> None:
    runs.plan(FIRST)
    before = runs.text(FIRST, "hostfile")
    later: Fabric = runs.fabric
    later.remove("leaf1")
    runs.folder("20261126T113000Z-9").write_json("fabric/default/graph.json", later.graph().to_dict())
    runs.plan(SECOND)
    assert runs.text(SECOND, "hostfile") == before


def test_without_a_stored_graph(runs: Runs) -> None:
    (runs.base / BUILD / "fabric/default/graph.json").unlink()
    assert runs.plan(FIRST)["msg"].startswith("No run has stored a complete graph of plane default. 1. Run")


def test_the_playbook(tmp_path: Path) -> None:
    fabric = rail(hosts=2, rails=1, spines=1)
    folder = tmp_path / "artifacts" / BUILD / "fabric/default"
    folder.mkdir(parents=True)
    (folder / "graph.json").write_text(json.dumps(fabric.graph().to_dict()))
    given = {
        "rdma_rails": [{"name": "rail0", "nic": {"pci": "0000:21:00.0"}, "link_layer": "infiniband"}],
        "rdma_scheduler": {"unproven": "include"},
    }
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"node1": None, "node2": None}, "vars": given}}))
    words = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_TIMEOUT": "1"}
    program = str(Path(sys.executable).parent / "ansible-playbook")
    argv = [program, "-i", "hosts.yml", str(ROOT / "playbooks/plan.yml"), "--tags", "scheduler", "-e", "ansible_host=192.0.2.1"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **words})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("changed=0") == 2
    assert "Topology for schedulers: 2 of 2 hosts" in done.stdout
    assert (tmp_path / "artifacts/latest/plan/scheduler/hostfile").read_text() == "node1\nnode2\n"
