# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of rings from the folder of an earlier run, and the playbook with real Ansible."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.action import ring_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.fabric_runs import of_host
from tests.unit.builders.fabrics import rail
from tests.unit.builders.ring_texts import RingJob

ROOT = Path(__file__).parents[4]
BUILD, OWN = "20261126T100000Z-1", "20261126T110000Z-2"
SWAPPED = ["node1", "node3", "node2", "node4"]


class Run:
    """A run with facts and graph, and a later plan. Four hosts with two rails, two hosts a leaf."""

    def __init__(self, base: Path) -> None:
        fabric = rail(hosts=4, rails=2, spines=2, cables=1, per_leaf=2)
        self.base, self.hosts = base, [f"node{number}" for number in range(1, 5)]
        for run in (BUILD, OWN):
            (base / run).mkdir()
        build, self.folder = RunFolder(base / BUILD), RunFolder(base / OWN)
        self.graph = build.write_json("fabric/default/graph.json", fabric.graph().to_dict())
        for host in self.hosts:
            intent, facts = of_host(fabric, host)
            build.write_json(build.host_file("facts", host), {**facts, "boot": {**facts["boot"], "hostname": f"{host}-gpu"}})
            self.folder.write_json(self.folder.host_file("intent", host), intent)

    def plan(self, **options: Any) -> dict[str, Any]:
        action = ring_plan.ActionModule.__new__(ring_plan.ActionModule)
        action.folder, action._templar = self.folder, SimpleNamespace(template=lambda value: value)
        action.variables = {"ansible_play_hosts": self.hosts, "inventory_hostname": self.hosts[0], "hostvars": {}}
        return action.work({"log": None, "hostfile": None, "hosts": {}, **options})

    def file(self, name: str, text: str) -> str:
        (self.base / name).write_text(text)
        return str(self.base / name)

    def hostfile(self) -> str:
        return (self.folder.path / "plan/rings/hostfile").read_text()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def log_of(hosts: list[str]) -> str:
    return "".join(RingJob(hosts).lines())


def test_a_log_with_the_hosts_own_names(run: Run) -> None:
    done = run.plan(log=run.file("job.log", log_of([f"{host}-gpu" for host in SWAPPED])))
    assert (done["unknown"], done["out_of_order"]) == ([], ["node2"]), done
    assert f"graph of run {BUILD}" in done["explained"]
    assert run.hostfile() == "node1\nnode2\nnode3\nnode4\n"
    stored = json.loads((run.folder.path / "plan/rings/rings.json").read_text())
    assert (stored["hops_between_hosts"], stored["hops_mapped"]) == (20, 20)


def test_a_hostfile_keeps_its_lines(run: Run) -> None:
    given = run.file("hosts", "".join(f"{host}.example.org slots=2\n" for host in SWAPPED) + "other slots=2\n")
    done = run.plan(hostfile=given)
    assert done["unknown"] == [{"what": "host other", "why": "it is not in the play; map its name in rdma_job_hosts"}]
    assert run.hostfile().split("\n")[1:] == ["node2.example.org slots=2", "node3.example.org slots=2", "node4.example.org slots=2",
                                              "other slots=2", ""]  # fmt: skip


def test_the_best_order_writes_no_hostfile(run: Run) -> None:
    done = run.plan(hostfile=run.file("hosts", "\n".join(run.hosts)))
    assert done["out_of_order"] == []
    assert not (run.folder.path / "plan/rings/hostfile").exists()


def test_names_of_containers(run: Run) -> None:
    text = log_of([f"trainer-{number}" for number in range(4)])
    names = {f"trainer-{number}": host for number, host in enumerate(run.hosts)}
    assert run.plan(log=run.file("job.log", text), hosts=names)["unknown"] == []
    assert run.plan(log=run.file("job.log", text), hosts={"trainer-0": "nodeX"})["msg"] == (
        "rdma_job_hosts maps names to hosts that are not in the play: trainer-0: nodeX"
    )


def test_what_is_refused(run: Run) -> None:
    assert run.plan()["msg"].startswith("Name the log of the job (-e rdma_job_log=FILE)")
    assert "has no communicator of NCCL. Run the job with" in run.plan(log=run.file("job.log", "hello\n"))["msg"]
    assert "has no host of the play" in run.plan(hostfile=run.file("hosts", "other\n"))["msg"]
    assert "line 1 of the hostfile starts with '-x'" in run.plan(hostfile=run.file("hosts", "-x\n"))["msg"]
    run.graph.unlink()
    assert run.plan(hostfile=run.file("hosts", "node1\n"))["msg"].startswith("No run has stored a complete graph of plane default. 1. Run")


def test_the_playbook(tmp_path: Path) -> None:
    fabric = rail(hosts=4, rails=1, spines=1, cables=1, per_leaf=2)
    folder = tmp_path / "artifacts" / BUILD / "fabric/default"
    folder.mkdir(parents=True)
    (folder / "graph.json").write_text(json.dumps(fabric.graph().to_dict()))
    (tmp_path / "job.log").write_text("".join(RingJob(SWAPPED, gpus=1, channels=1).lines()))
    given = {"rdma_rails": [{"name": "rail0", "nic": {"pci": "0000:21:00.0"}, "link_layer": "infiniband"}]}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": dict.fromkeys(sorted(SWAPPED)), "vars": given}}))
    words = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_TIMEOUT": "1"}
    program = str(Path(sys.executable).parent / "ansible-playbook")
    argv = [program, "-i", "hosts.yml", str(ROOT / "playbooks/plan.yml"), "--tags", "rings", "-e", "ansible_host=192.0.2.1"]
    argv += ["-e", "rdma_job_log=job.log"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **words})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 4 hosts is out of order: node2." in done.stdout
    assert (tmp_path / "artifacts/latest/plan/rings/hostfile").read_text() == "node1\nnode2\nnode3\nnode4\n"
