# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ethernet planes of what hosts received by LLDP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.lldp import Neighbor, lldp_graph, parse_lldpcli
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.gate import SILENT, FabricGate, ethernet_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.clos import settings
from tests.unit.builders.known import known_of
from tests.unit.plugins.plugin_utils._fabric.test_gate import no_plan


def known(count: int) -> dict[str, Any]:
    rail = {"name": "rail0", "nic": {"pci": "0000:01:00.0"}, "link_layer": "roce", "plane": "eth", "soft": False, "rate_gbps": None}
    port = {"netdev": "ens1", "physical_state": "LinkUp", "state": "ACTIVE"}
    facts = {
        "netdevs": {"ens1": {"pci": "0000:01:00.0"}},
        "devices": {"mlx5_0": {"node_guid": "0002:c903:00f9:bfa0", "pci": {"address": "0000:01:00.0"}, "ports": {"1": port}}},
    }
    planes = {"eth": {"ratio": None, "plan": None}}
    return {f"n{number}": {"intent": {"rails": [rail], "fabric": {"planes": planes}}, "facts": facts} for number in range(1, count + 1)}


def neighbors(host: str, port: str, interface: str = "ens1", leaf: int = 1) -> Graph:
    text = (
        f'{{"lldp": {{"interface": {{"{interface}": {{"via": "LLDP", "chassis": {{"leaf{leaf}": {{"id": {{"type": "mac", "value": '
        f'"0c:42:a1:00:00:0{leaf}"}}, "capability": {{"type": "Bridge", "enabled": true}}}}}}, "port": {{"id": {{"type": "ifname", '
        f'"value": "{port}"}}}}}}}}}}}}'
    )
    return lldp_graph("lldp", {host: parse_lldpcli(text)})


def read(folder: RunFolder, host: str, graph: Graph) -> None:
    reading = {"graph": graph.to_dict(), "subnet_managers": None, "no_subnet_manager": None, "read_at": 7.0}
    folder.write_json(f"lldp/{host}.json", reading)


def silent(why: str) -> Graph:
    return Graph("lldp", {}, [], "lldp", False, [why])


#: The interface of a neighbor, by whether it is a rail's.
AT = {"silent": "eno1", "well": "ens1"}
PLAN = "{switches: {leaf1: {tier: leaf}}, links: [{from: leaf1/1, to: n1 mlx5_0}]}"


def judge(folder: RunFolder, hosts: dict[str, Any], plan: str | None = None) -> dict[str, list[tuple[str, str, str]]]:
    """plan: the text of any plan of cables; without it there is no file."""
    found = FabricGate(folder, known_of(hosts), "R1", no_plan if plan is None else lambda _name: plan).judge()
    by = {**found.hosts, **found.planes}
    return {name: [(each.check, each.status, each.observed) for each in of if each.status != "ok"] for name, of in by.items()}


def test_hosts_on_one_leaf(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for number in (1, 2):
        read(folder, f"n{number}", neighbors(f"n{number}", f"swp{number}"))
    plane = ethernet_planes(folder, known_of(known(2)))["eth"]
    assert plane.graph is not None
    assert (plane.graph.complete, len(plane.graph.links), plane.read_at) == (True, 2, 7.0)
    answer = judge(folder, known(2))
    assert answer["n1"] == answer["n2"] == []
    assert {status for _check, status, _observed in answer["eth"]} == {"not_applicable"}


def test_a_mesh_of_cables_between_hosts_has_no_switch(tmp_path: Path) -> None:
    folder, hosts = RunFolder(tmp_path), known(2)
    for host, other in (("n1", "n2"), ("n2", "n1")):
        mac, able = f"52:54:00:00:00:0{other[1]}", {"Bridge": False, "Router": False, "Station": True}
        near = Neighbor("ens1", "mac", mac, other, None, "mac", mac, "ens1", able, [], None, "LLDP")
        read(folder, host, lldp_graph("lldp", {host: [near]}))
    assert judge(folder, hosts)["eth"][0] == ("fabric.graph", "unknown", "found 2 HCAs, but no switch")
    for its in hosts.values():
        its["intent"]["fabric"]["topology"] = "mesh"
    answer = judge(folder, hosts)
    assert answer["n1"] == answer["n2"] == []
    assert {status for _check, status, _observed in answer["eth"]} == {"not_applicable"}
    assert [each.observed for each in FabricGate(folder, known_of(hosts), "R1", no_plan).judge().hosts["n1"]] == ["rail0 on n2 ens1"]


def test_other_interfaces_are_none_of_the_planes(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for number in (1, 2):
        read(folder, f"n{number}", neighbors(f"n{number}", f"swp{number}", "eno1"))
    plane = ethernet_planes(folder, known_of(known(2)))["eth"]
    assert (plane.graph, plane.why_not) == (None, SILENT)
    assert judge(folder, known(2))["n1"] == [("fabric.graph", "not_applicable", SILENT)]


def test_without_lldp_it_does_not_apply_and_says_why(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for number in (1, 2):
        read(folder, f"n{number}", silent("lldpcli is not installed on this host: install lldpd"))
    answer = judge(folder, known(2))
    assert answer == {
        host: [("fabric.graph", "not_applicable", "lldpcli is not installed on this host: install lldpd")] for host in ("n1", "n2")
    }


def test_where_some_report_and_some_do_not_the_plane_is_unknown(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    read(folder, "n1", neighbors("n1", "swp1"))
    read(folder, "n2", silent("lldpcli is not installed on this host: install lldpd"))
    answer = judge(folder, known(3))
    assert ("fabric.graph", "unknown", "2 hosts do not report LLDP neighbors: n2, n3") in answer["eth"]
    assert answer["n1"] == []
    assert {status for _check, status, _observed in answer["n3"]} == {"not_applicable"}
    assert answer["n3"][-1] == ("fabric.graph", "not_applicable", "its LLDP neighbors were not read")


def test_a_plane_whose_neighbors_are_silent_is_a_warning_and_unknown_where_the_intent_needs_it(tmp_path: Path) -> None:
    folder, hosts = RunFolder(tmp_path), known(2)
    for number in (1, 2):
        read(folder, f"n{number}", neighbors(f"n{number}", f"swp{number}", "eno1"))
    assert judge(folder, hosts)["eth"] == [("fabric.graph", "warning", SILENT)]
    for its in hosts.values():
        its["intent"]["fabric"]["planes"]["eth"]["plan"] = "cables.yml"
    (found,) = judge(folder, hosts, plan=PLAN)["eth"]
    assert found == ("fabric.graph", "unknown", f"{SILENT}; rdma_fabric.planes.eth.plan cannot be checked")


def test_without_lldp_a_planned_ratio_is_unknown(tmp_path: Path) -> None:
    folder, hosts = RunFolder(tmp_path), known(1)
    read(folder, "n1", silent("lldpcli is not installed on this host: install lldpd"))
    assert "eth" not in judge(folder, hosts)
    hosts["n1"]["intent"]["fabric"]["planes"]["eth"]["ratio"] = 1.0
    (found,) = judge(folder, hosts)["eth"]
    assert found[:2] == ("fabric.graph", "unknown")


def test_one_silent_host_among_others_is_missed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    read(folder, "n1", neighbors("n1", "swp1"))
    read(folder, "n2", neighbors("n2", "swp2", "eno1"))
    assert ("fabric.cabling", "error", "n2 ens1 (rail0) is not in the fabric") in judge(folder, known(2))["n2"]


@pytest.mark.parametrize("asked", ["nobody", "no lldpd", "silent", "well"])
@pytest.mark.parametrize("text", [None, "links: [1", "", "links: []"], ids=["missing", "no YAML", "empty", "no cable"])
def test_a_plan_that_cannot_be_read_is_an_error_whichever_host_was_asked(tmp_path: Path, asked: str, text: str | None) -> None:
    folder, hosts = RunFolder(tmp_path), known(1)
    if asked != "nobody":
        read(folder, "n1", silent("lldpcli is not installed") if asked == "no lldpd" else neighbors("n1", "swp1", AT[asked]))
    hosts["n1"]["intent"]["fabric"]["planes"]["eth"]["plan"] = "/fleet/cables.yml"
    found = [each for each in judge(folder, hosts, plan=text)["eth"] if each[1] == "error"]
    assert [check for check, _status, _observed in found] == ["intent.value"]
    assert "/fleet/cables.yml" in found[0][2]


@pytest.mark.parametrize(("soft", "needed"), [(True, ""), (False, "rdma_fabric.planes.eth.plan cannot be checked")])
def test_the_plan_of_routers_between_soft_rails_needs_no_graph(tmp_path: Path, *, soft: bool, needed: str) -> None:
    """fabric.bgp compares their cables."""
    folder, hosts = RunFolder(tmp_path), known(1)
    hosts["n1"]["intent"]["rails"][0].update(soft=soft, mtu_bytes=9000)
    hosts["n1"]["facts"] = {"netdevs": {}, "devices": {}}
    hosts["n1"]["intent"]["fabric"]["management"] = None
    hosts["n1"]["intent"]["fabric"]["planes"].update(eth={"ratio": None, "plan": "cables.yml", "routing": settings()})
    found = [observed for check, _status, observed in judge(folder, hosts, plan=PLAN)["eth"] if check == "fabric.graph"]
    assert [each.rpartition("; ")[2] for each in found] == [needed] * bool(needed)


@pytest.mark.parametrize("why", ["soft", "no NIC", "no facts"])
def test_a_plan_or_ratio_of_a_plane_that_cannot_be_discovered_is_unknown(tmp_path: Path, why: str) -> None:
    folder, hosts = RunFolder(tmp_path), known(1)
    if why == "soft":
        hosts["n1"]["intent"]["rails"][0]["soft"] = True
    else:
        hosts["n1"]["facts"] = {"netdevs": {}, "devices": {}} if why == "no NIC" else None
    assert "eth" not in judge(folder, hosts)
    hosts["n1"]["intent"]["fabric"]["planes"].update(eth={"ratio": 1.0, "plan": "cables.yml"}, unused={"ratio": 1.0, "plan": None})
    answer = judge(folder, hosts, plan=PLAN)
    assert "unused" not in answer
    (found,) = answer["eth"]
    assert found[:2] == ("fabric.graph", "unknown")
    assert found[2].endswith("rdma_fabric.planes.eth.plan and rdma_fabric.planes.eth.ratio cannot be checked")
    assert [check for check, _status, _observed in judge(folder, hosts)["eth"]] == ["intent.value", "fabric.graph"]


def test_a_plan_of_a_plane_without_rails_is_read_too(tmp_path: Path) -> None:
    folder, hosts = RunFolder(tmp_path), known(1)
    hosts["n1"]["intent"]["fabric"]["planes"]["storage"] = {"ratio": None, "plan": "storage.yml"}
    assert [each[:2] for each in judge(folder, hosts)["storage"]] == [("intent.value", "error")]
    assert "storage" not in judge(folder, hosts, plan=PLAN)


def test_a_ratio_of_leaves_whose_uplinks_nobody_reports_is_unknown(tmp_path: Path) -> None:
    folder, hosts = RunFolder(tmp_path), known(2)
    for number in (1, 2):
        read(folder, f"n{number}", neighbors(f"n{number}", "swp1", leaf=number))
    assert {status for _check, status, _observed in judge(folder, hosts)["eth"]} == {"not_applicable"}
    for its in hosts.values():
        its["intent"]["fabric"]["planes"]["eth"]["ratio"] = 1.0
    assert ("fabric.ratio", "unknown", "no switches above the leaves") in judge(folder, hosts)["eth"]
    read(folder, "n2", neighbors("n2", "swp2"))
    assert "unknown" not in {status for _check, status, _observed in judge(folder, hosts)["eth"]}
