# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small fabric with the real opensm: its managers, its partitions, and the fabric stage under real Ansible."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.read import read_fabric
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.smpquery import parse_pkeys
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import SILENT_MANAGER, SILENT_RECORDS, Asked
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.partitions_conf import (
    Partition,
    PartitionPort,
    render_partitions,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.pkey import check_pkeys
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.judge import Asked as Judging
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.judge import judge
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.managers import Seen, check_managers
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from lab import fabric, fabric_faults, opensm
from lab.fabric import Fabric, FabricRequest
from lab.fabric_plan import Shape
from tests.unit.builders.known import known_of
from tests.verify.fabric import Meanwhile, OnFabric, known, managers
from tests.verify.patience import until

NAME = "mfabric2"
ROOT = Path(__file__).parents[3]
#: How soon one that stands by takes over, instead of after 40 s.
QUICK = {"sminfo_polling_timeout": "500", "polling_retry_number": "2"}
TENANT = {"red": {"key": 0x101, "members": ["node1", "node2"], "membership": "full", "shared": False}}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """Four hosts; two of them are in a partition, by our own partitions.conf."""
    file = tmp_path_factory.mktemp("opensm") / "partitions.conf"
    options = {"partition_config_file": str(file), "sm_priority": "14", **QUICK}
    fabric.up(NAME, Shape("leafspine", 4, 1), FabricRequest(options=options))
    there = fabric.load(NAME)
    ports = [PartitionPort(f"{there.plan.guid(f'{host} mlx5_0') + 1:#018x}", "full", host) for host in TENANT["red"]["members"]]
    fabric.down(NAME)
    file.write_text(render_partitions("default", [Partition("red", 0x101, ports)]))
    fabric.up(NAME, Shape("leafspine", 4, 1), FabricRequest(options=options))
    yield fabric.load(NAME)
    fabric.down(NAME)


def lids(there: Fabric, field: str = "Lid") -> dict[str, int]:
    """Host → its LID, or SMLid: that of its master."""
    found = {}
    for hca in there.plan.hcas:
        answer = OnFabric(there, hca.name).run(["smpquery", "portinfo", "-D", "0", "1"]).stdout
        found[hca.name.split()[0]] = int(answer.split(f"\n{field}:")[1].split("\n")[0].strip(". "))
    return found


def fleet(there: Fabric, manager: dict[str, Any]) -> dict[str, Any]:
    """The hosts with the LIDs that their ports have been given, and those of their master."""
    hosts, of, masters = known(there, subnet_manager=manager), lids(there), lids(there, "SMLid")
    for host, its in hosts.items():
        its["facts"]["devices"]["mlx5_0"]["ports"]["1"].update(lid=of[host], sm_lid=masters[host])
    return hosts


def sm(there: Fabric, *hosts: str, runner: OnFabric | None = None) -> list[tuple[str, str, str, str]]:
    """What link.sm says that is not ok, where these hosts are to run the managers."""
    seen = managers(there, runner)
    found = check_managers(known_of(fleet(there, {"kind": "hosts", "hosts": list(hosts)})), {"default": Seen(seen.known, seen.why_not)})
    return [(each.host, each.status, each.subject, each.observed) for of in found.values() for each in of if each.status != "ok"]


def keys(there: Fabric, host: str, intent: dict[str, Any]) -> list[tuple[str, str]]:
    """What link.pkey says of a host whose port has the table that the real opensm has given it."""
    table = parse_pkeys(OnFabric(there, f"{host} mlx5_0").run(["smpquery", "pkeys", "-D", "0", "1"]).stdout)
    facts = known(there)[host]["facts"]
    pkeys = {str(at): each.key | (0x8000 if each.full else 0) for at, each in enumerate(table) if each.key}
    facts["devices"]["mlx5_0"]["ports"]["1"].update(pkeys=pkeys, gids=[])
    return [(each.status, each.observed) for each in check_pkeys(host, intent, from_dict(facts)) if each.check == "link.pkey"]


def intent_of(there: Fabric, host: str, members: list[str]) -> dict[str, Any]:
    intent = known(there, subnet_manager={"kind": "hosts", "hosts": ["node1"]})[host]["intent"]
    return {**intent, "partitions": {"red": {**TENANT["red"], "members": members}}}


def test_keys_are_where_they_were_planned(small: Fabric) -> None:
    for host in ("node1", "node2", "node3", "node4"):
        assert [status for status, _observed in keys(small, host, intent_of(small, host, ["node1", "node2"]))] == ["ok"], host


@pytest.mark.fault("wrong-partition")
def test_a_wrong_partition_is_reported_of_each_port_that_has_it(small: Fabric) -> None:
    """The intent has node3 in it instead of node2."""
    answer = {host: keys(small, host, intent_of(small, host, ["node1", "node3"])) for host in ("node1", "node2", "node3", "node4")}
    assert [status for (status, _observed) in answer["node1"] + answer["node4"]] == ["ok", "ok"]
    assert answer["node2"] == [("error", "in red (0x0101), but it is not a planned member")]
    assert answer["node3"] == [("error", "not in red (0x0101)")]


def test_one_manager_as_planned_and_a_second_one_that_nobody_planned(small: Fabric) -> None:
    assert sm(small, "node1") == []
    assert sm(small, "node1", "node2") == [("node1", "error", "plane default, node2", "no subnet manager answers there")]
    fabric.second_manager(NAME, "node2 mlx5_0", {"sm_priority": "13", **QUICK})
    assert sm(small, "node1", "node2") == []
    lid = lids(small)["node2"]
    assert sm(small, "node1") == [("node1", "error", f"plane default, node2 (LID {lid})", "STANDBY, priority 13")]


def wait_for_master(there: Fabric, number: int) -> None:
    log = there.folder.manager(number)
    until(lambda: opensm.role_of(opensm.read_log(log)) == "master", 20, f"opensm{number} as the master")


@pytest.mark.fault("opensm-dies")
def test_a_master_that_dies_between_two_questions_is_named(small: Fabric) -> None:
    """And its successor, once it has taken over; two managers run since the test before."""
    dies = Meanwhile(small, "saquery", lambda: fabric.stop_manager(NAME, 1, kill=True), node="node3 mlx5_0")
    assert sm(small, "node1", "node2", runner=dies) == [
        ("node1", "error", "plane default", f"node1 (LID {lids(small)['node1']}), which no longer answers")
    ]
    wait_for_master(small, 2)
    assert sm(small, "node1", "node2", runner=OnFabric(small, "node3 mlx5_0")) == [
        ("node1", "error", "plane default", f"node2 (LID {lids(small)['node2']})")
    ]


def test_the_first_one_is_the_master_again_when_it_is_back(small: Fabric) -> None:
    fabric.start_manager(NAME, 1)
    assert sm(small, "node1", "node2") == []
    fabric.stop_manager(NAME, 2)


def test_without_anybody_to_take_over_the_dead_one_is_named_and_no_graph_is_whole(small: Fabric) -> None:
    fabric.stop_manager(NAME, 1, kill=True)
    try:
        assert sm(small, "node1") == [("node1", "error", "plane default", f"node1 (LID {lids(small)['node1']}), which no longer answers")]
        facts = read_fabric(OnFabric(small), SysRoot("/"), Asked("default", data=True))
    finally:
        fabric.start_manager(NAME, 1)
    assert not facts.graph.complete
    assert [each.partition(" ibqueryerrors")[0] for each in facts.graph.problems] == [SILENT_RECORDS] * 2
    assert sm(small, "node1") == []


def test_a_master_that_dies_while_the_graph_is_read_leaves_it_unknown(small: Fabric) -> None:
    dies = Meanwhile(small, "iblinkinfo", lambda: fabric.stop_manager(NAME, 1, kill=True), node="node3 mlx5_0")
    try:
        facts = read_fabric(dies, SysRoot("/"), Asked("default", data=True))
    finally:
        fabric.start_manager(NAME, 1)
    assert not facts.graph.complete
    assert facts.managers.why_not == f"{SILENT_MANAGER} at LID {lids(small)['node1']}"
    found = judge(facts.graph, Judging()).findings
    assert [(each.check, each.status, each.subject) for each in found if each.status in ("error", "unknown", "warning")] == [
        ("fabric.graph", "unknown", "discovery")
    ]


def stage(there: Fabric, folder: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """The tasks of playbooks/fabric.yml, with facts that are written instead of read, on tools that see the fabric from each host."""
    hosts = known(there)
    inventory: dict[str, Any] = {}
    for host, its in hosts.items():
        # ibsim gives every node a device of this name.
        devices = its["facts"]["devices"]
        devices["ibsim0"] = devices.pop("mlx5_0")
        _argv, environment = fabric.tool(there, [], node=f"{host} mlx5_0")
        stack = {"kind": "inbox", "kernel": "6.1.0-28-amd64", "distribution": {}, "modules": {}}
        (folder / f"{host}.json").write_text(json.dumps({"netdevs": {}, "devices": devices, "schema": 1, "stack": stack}))
        rails = [{key: value for key, value in rail.items() if key != "plane"} for rail in its["intent"]["rails"]]
        inventory[host] = {
            "rdma_rails": rails,
            "simulated": {key: environment[key] for key in ("LD_PRELOAD", "IBSIM_SOCKNAME", "SIM_HOST")},
        }
    plan = str(there.folder.cabling)
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    everybody = {**local, "rdma_fabric": {"planes": {"default": {"plan": plan}}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": everybody, "hosts": inventory}}))
    facts = f"{{{{ lookup('file', '{folder}/' ~ inventory_hostname ~ '.json') | from_json }}}}"
    run = "{{ __begun.run_folder }}"
    tasks = [
        {"name": "Begin", "rdma.cluster.intent": {"stage": "fabric"}, "register": "__begun"},
        {
            "name": "Make a place for facts",
            "ansible.builtin.file": {"path": f"{run}/facts", "state": "directory", "mode": "0755"},
            "run_once": True,
        },
        {
            "name": "Lay facts there",
            "ansible.builtin.file": {
                "src": f"{folder}/{{{{ inventory_hostname }}}}.json",
                "dest": f"{run}/facts/{{{{ inventory_hostname }}}}.json",
                "state": "link",
            },
        },
        {"name": "Know them", "ansible.builtin.set_fact": {"rdma": facts, "cacheable": True}},
        {
            "name": "Read the fabric",
            "ansible.builtin.import_tasks": str(ROOT / "playbooks/tasks/fabric_read.yml"),
            "vars": {"__fabric_read_what": "graphs"},
            "environment": "{{ simulated }}",
        },
        {"name": "Gate", "ansible.builtin.import_tasks": str(ROOT / "playbooks/tasks/gate.yml")},
    ]
    play = {"name": "Fabric", "hosts": "all", "gather_facts": False, "vars": {"rdma_stage": "fabric"}, "tasks": tasks}
    (folder / "play.yml").write_text(json.dumps([play]))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", "play.yml", "-v"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=environment)
    return done, json.loads((folder / "artifacts/latest/gates/fabric.json").read_text()) if (
        folder / "artifacts/latest/gates"
    ).exists() else {}


def test_the_stage_under_ansible(small: Fabric, tmp_path: Path) -> None:
    done, decision = stage(small, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (decision["out"], decision["planes"], decision["hosts"]) == ({}, {}, 4)
    run = tmp_path / "artifacts/latest"
    assert [path.name for path in (run / "fabric/default/graphs").iterdir()] == ["node1.json"]
    assert {path.name for path in (run / "fabric/default").iterdir()} == {"graphs", "graph.json", "baseline.json", "history.json"}
    fabric_faults.cut(NAME, "leaf1/3")
    try:
        done, decision = stage(small, tmp_path)
    finally:
        fabric_faults.restore(NAME, "leaf1/3")
    assert done.returncode == 2, done.stdout
    assert decision["out"] == {}
    assert list(decision["planes"]) == ["plane default"]
    assert "fabric.cabling" in decision["planes"]["plane default"]
    assert "The build stops" in done.stdout + done.stderr
