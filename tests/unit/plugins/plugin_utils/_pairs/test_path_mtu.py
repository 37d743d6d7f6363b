# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is probed of the path MTU, and which host's port is named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.path_mtu import (
    FOLDER,
    PLAN,
    check_path_mtu,
    offsets,
    path_mtu_plan,
    rails_to_probe,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.builders.known import known_of

SIZE = 9000
#: (from, to) → the largest size that passes.
Lost = Mapping[tuple[int, int], int]


def fleet(nodes: int, **fabric: Any) -> Fleet:
    hosts = {f"node{node}": {"intent": lab_intent(node), "facts": comparable(lab_facts(node))} for node in range(1, nodes + 1)}
    for each in hosts.values():
        each["intent"]["fabric"] = {**(each["intent"].get("fabric") or {}), **fabric}
    return Fleet.of(known_of(hosts))


def probed(
    path: Path, nodes: int, lost: Lost, *, udp: bool = True, silent: tuple[int, ...] = (), hops: Mapping[int, Any] | None = None
) -> RunFolder:
    """A run whose hosts have probed rail0. udp: whether the direction is known; silent: hosts that answer nothing."""
    folder, here = RunFolder(path), fleet(nodes)
    folder.write_json(PLAN, path_mtu_plan(here, {}))
    numbers = range(1, nodes + 1)
    for one in numbers:
        bad: dict[str, Any] = {}
        for other in numbers:
            ways = [way for way in ((one, other), (other, one)) if way in lost]
            if other in silent and other != one:
                bad[f"node{other}"] = {"bytes": 0, "sent": None, "hop": None}
            elif ways:
                sent = (one, other) not in lost if udp else None
                bad[f"node{other}"] = {"bytes": min(lost[way] for way in ways), "sent": sent, "hop": (hops or {}).get(other)}
        well = {"peers": nodes - 1, "bad": {}, "unstable": [], "error": ""}
        folder.write_json(folder.host_file(FOLDER, f"node{one}"), {"rail0": {**well, "bad": bad}, "rail1": well})
    return folder


def judged(folder: RunFolder, nodes: int) -> dict[str, Finding]:
    """Host → its finding on rail0."""
    return {each.finding.host: each.finding for each in check_path_mtu(folder, fleet(nodes)) if each.finding.subject == "rail0"}


def to_all(host: int, nodes: int, size: int = 4000) -> dict[tuple[int, int], int]:
    return {(other, host): size for other in range(1, nodes + 1) if other != host}


def from_all(host: int, nodes: int, size: int = 4000) -> dict[tuple[int, int], int]:
    return {(one, other): size for other, one in to_all(host, nodes, size)}


def test_each_rail_is_planned_with_the_interface_its_address_and_its_mtu() -> None:
    plan = path_mtu_plan(fleet(2), {})
    assert plan["rail1"]["node2"] == {"netdev": "ens2", "address": "192.168.101.2", "bytes": SIZE}
    assert list(plan) == ["rail0", "rail1"]


def test_the_path_of_rdma_is_probed_where_partners_meet_elsewhere() -> None:
    here = fleet(2)
    for of in here.endpoints.values():
        of["rail0"]["gid_address"] = "2001:db8:100::1"  # type: ignore[index]
    assert path_mtu_plan(here, {})["rail0"]["node2"]["address"] == "2001:db8:100::1"


def test_one_host_has_nobody_to_probe() -> None:
    assert path_mtu_plan(fleet(1), {}) == {}


def test_each_host_begins_with_another_partner_and_the_smaller_mtu_counts() -> None:
    plan = path_mtu_plan(fleet(3), {})
    plan["rail0"]["node3"]["bytes"] = 1500
    rail0, _rail1 = rails_to_probe(plan, "node2")
    assert [(peer["host"], peer["bytes"]) for peer in rail0["peers"]] == [("node3", 1500), ("node1", SIZE)]
    assert rails_to_probe(plan, "node9") == []


def test_proven_hosts_outside_of_the_play_are_probed_and_do_not_probe() -> None:
    plan = path_mtu_plan(fleet(1), {"node8": {"rail0": {"address": "192.168.100.8"}}, "node9": {"rail7": {"address": "192.168.107.9"}}})
    assert list(plan) == ["rail0"]
    assert rails_to_probe(plan, "node1")[0]["peers"] == [{"host": "node8", "address": "192.168.100.8", "bytes": SIZE}]
    assert rails_to_probe(plan, "node8") == []


def test_in_a_mesh_only_the_other_end_of_the_cable_is_probed() -> None:
    plan = path_mtu_plan(fleet(3, topology="mesh"), {})
    assert {peer["host"] for peer in rails_to_probe(plan, "node1")[0]["peers"]} == {"node2", "node3"}
    plan["rail0"]["node3"]["address"] = "192.168.7.3"
    assert [peer["host"] for peer in rails_to_probe(plan, "node1")[0]["peers"]] == ["node2"]


def test_without_a_probe_there_is_no_finding(tmp_path: Path) -> None:
    assert list(check_path_mtu(RunFolder(tmp_path), fleet(2))) == []


def test_all_is_well(tmp_path: Path) -> None:
    found = judged(probed(tmp_path, 4, {}), 4)
    assert {finding.status for finding in found.values()} == {OK}
    assert found["node1"].observed == "packets of up to 9000 bytes pass to and from 3 hosts"


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        (to_all(3, 4), "packets of 9000 bytes from node1, node2, node4 do not arrive; the largest that passes has 4000 bytes"),
        (from_all(3, 4), "packets of 9000 bytes to node1, node2, node4 do not arrive; the largest that passes has 4000 bytes"),
        (
            {**to_all(3, 4, 1500), **from_all(3, 4, 1500)},
            "packets of 9000 bytes from node1, node2, node4 do not arrive, and those to node1, node2, node4 do not arrive; "
            "the largest that passes has 1500 bytes",
        ),
    ],
    ids=["to it", "from it", "both"],
)
def test_a_switch_port_is_named_with_its_direction_and_no_other_host(tmp_path: Path, lost: Lost, words: str) -> None:
    found = judged(probed(tmp_path, 4, lost), 4)
    assert found["node3"].status == ERROR
    assert found["node3"].observed == words
    assert "1. On the switch, read and correct the MTU of the switch port of node3: it needs room for 9000 bytes" in found["node3"].remedy
    assert {host for host, finding in found.items() if finding.status != OK} == {"node3"}
    assert found["node1"].observed == "packets of up to 9000 bytes pass to and from 2 hosts; not with node3: the finding there explains it"


def test_a_single_path_is_reported_at_both_ends(tmp_path: Path) -> None:
    found = judged(probed(tmp_path, 4, {(1, 2): 1500}), 4)
    assert {host for host, finding in found.items() if finding.status == ERROR} == {"node1", "node2"}
    assert found["node1"].observed.startswith("packets of 9000 bytes to node2 do not arrive")
    assert found["node2"].observed.startswith("packets of 9000 bytes from node1 do not arrive")
    assert "the links between switches on the path from node1 to node2, and of the ports of these hosts" in found["node1"].remedy


def test_of_two_hosts_both_are_named(tmp_path: Path) -> None:
    found = judged(probed(tmp_path, 2, {(1, 2): 1500}), 2)
    assert {finding.status for finding in found.values()} == {ERROR}


def test_a_loss_that_only_one_end_reports_accuses_nobody(tmp_path: Path) -> None:
    """A request and its reply cross both directions, so a limit would show at both ends."""
    folder = probed(tmp_path, 4, to_all(3, 4))
    file = folder.host_file(FOLDER, "node3")
    folder.write_json(file, {**folder.read_json(file), "rail0": {"peers": 3, "bad": {}, "unstable": [], "error": ""}})
    found = judged(folder, 4)
    assert {finding.status for finding in found.values()} == {OK, WARNING}
    assert found["node1"].observed == "packets of any size get lost now and then, or only in one direction, with node3"


def test_where_large_packets_arrive_both_ways_only_echo_is_treated_differently(tmp_path: Path) -> None:
    folder = probed(tmp_path, 2, {(1, 2): 1500})
    for one, other in (("node1", "node2"), ("node2", "node1")):
        bad = {other: {"bytes": 1500, "sent": True, "hop": None}}
        folder.write_json(folder.host_file(FOLDER, one), {"rail0": {"peers": 1, "bad": bad, "unstable": [], "error": ""}})
    assert {finding.status for finding in judged(folder, 2).values()} == {WARNING}


def test_packets_that_get_lost_now_and_then_are_a_warning(tmp_path: Path) -> None:
    folder = probed(tmp_path, 2, {})
    folder.write_json(folder.host_file(FOLDER, "node1"), {"rail0": {"peers": 1, "bad": {}, "unstable": ["node2"], "error": ""}})
    found = judged(folder, 2)
    assert (found["node1"].status, found["node2"].status) == (WARNING, OK)


def test_a_limit_above_the_packets_of_rdma_is_a_warning(tmp_path: Path) -> None:
    found = judged(probed(tmp_path, 4, to_all(3, 4, 4192)), 4)
    assert found["node3"].status == WARNING
    assert judged(probed(tmp_path / "less", 4, to_all(3, 4, 4191)), 4)["node3"].status == ERROR


def test_half_of_the_paths_is_no_fault_of_a_host_port(tmp_path: Path) -> None:
    """Two leaves, and the links between them have a small MTU."""
    across = {(one, other): 1500 for one in range(1, 7) for other in range(1, 7) if (one <= 3) != (other <= 3)}
    found = judged(probed(tmp_path, 6, across), 6)
    assert {finding.status for finding in found.values()} == {ERROR}
    assert all("the links between switches" in finding.remedy or "every switch port" in finding.remedy for finding in found.values())


def test_two_bad_ports_of_three_do_not_accuse_the_third(tmp_path: Path) -> None:
    found = judged(probed(tmp_path, 3, {**to_all(2, 3), **to_all(3, 3)}), 3)
    assert {host for host, finding in found.items() if finding.status == ERROR} == {"node2", "node3"}


def test_a_culprit_outside_of_the_play_is_reported_by_the_hosts_of_the_play(tmp_path: Path) -> None:
    folder = probed(tmp_path, 4, to_all(4, 4))
    found = {each.finding.host: each.finding for each in check_path_mtu(folder, fleet(3)) if each.finding.subject == "rail0"}
    assert {finding.status for finding in found.values()} == {ERROR}
    assert found["node1"].observed.startswith("packets of 9000 bytes to node4 do not arrive")


@pytest.mark.parametrize("hosts", [2, 65, 66, 128, 129, 1000, 2001])
def test_partners_are_mutual_and_not_too_many(hosts: int) -> None:
    found = offsets(hosts)
    assert len(found) == min(hosts - 1, len(found)) <= 64
    assert len(found) >= min(hosts - 1, 60)
    assert {(hosts - each) % hosts for each in found} == set(found)
    assert 0 not in found


def test_a_whole_rail_is_named_as_such(tmp_path: Path) -> None:
    everything = {(one, other): 1500 for one in range(1, 5) for other in range(1, 5) if one != other}
    found = judged(probed(tmp_path, 4, everything), 4)
    assert {finding.status for finding in found.values()} == {ERROR}
    assert all("every switch port of the rail" in finding.remedy for finding in found.values())


def test_without_udp_the_direction_is_not_known_and_the_host_is(tmp_path: Path) -> None:
    found = judged(probed(tmp_path, 4, to_all(3, 4), udp=False), 4)
    assert {host for host, finding in found.items() if finding.status == ERROR} == {"node3"}
    assert "to or from node1, node2, node4 do not arrive (the direction is not known" in found["node3"].observed


def test_a_router_that_reports_a_smaller_mtu_is_named(tmp_path: Path) -> None:
    found = judged(probed(tmp_path, 3, to_all(3, 3, 1500), hops={3: ["10.0.0.254", 1500]}), 3)
    assert found["node3"].observed.endswith("the largest that passes has 1500 bytes; 10.0.0.254 reports an MTU of 1500 bytes")


def test_a_silent_partner_is_no_matter_of_sizes(tmp_path: Path) -> None:
    found = judged(probed(tmp_path, 3, {}, silent=(3,)), 3)
    assert found["node1"].status == OK
    assert found["node1"].observed.endswith("no answer of any size from node3")


def test_where_nobody_answers_the_path_mtu_is_not_known(tmp_path: Path) -> None:
    found = judged(probed(tmp_path, 2, {}, silent=(1, 2)), 2)
    assert {finding.status for finding in found.values()} == {WARNING}


def test_a_host_that_did_not_probe_is_unknown_and_still_named_by_others(tmp_path: Path) -> None:
    folder = probed(tmp_path, 4, to_all(3, 4))
    (folder.path / folder.host_file(FOLDER, "node2")).unlink()
    (folder.path / folder.host_file(FOLDER, "node3")).unlink()
    found = judged(folder, 4)
    assert found["node2"].status == UNKNOWN
    assert found["node2"].observed == "it was not probed"
    # Both partners that probed have seen it.
    assert {host for host, finding in found.items() if finding.status == ERROR} == {"node3"}


def test_a_host_without_a_neighbor_on_the_rail_has_nothing_to_probe(tmp_path: Path) -> None:
    folder = probed(tmp_path, 2, {})
    nothing = {"peers": 0, "bad": {}, "unstable": [], "error": ""}
    folder.write_json(folder.host_file(FOLDER, "node1"), {"rail0": nothing, "rail1": nothing})
    assert judged(folder, 2)["node1"].status == NOT_APPLICABLE


def test_an_error_of_the_socket_is_unknown(tmp_path: Path) -> None:
    folder = probed(tmp_path, 2, {})
    broken = {"peers": 1, "bad": {}, "unstable": [], "error": "cannot send from 192.168.100.1 on ens1: [Errno 1] Operation not permitted"}
    folder.write_json(folder.host_file(FOLDER, "node1"), {"rail0": broken, "rail1": broken})
    found = judged(folder, 2)
    assert (found["node1"].status, found["node1"].observed) == (UNKNOWN, broken["error"])


def test_a_port_with_an_error_is_not_proven(tmp_path: Path) -> None:
    doubts = list(check_path_mtu(probed(tmp_path, 4, to_all(3, 4)), fleet(4)))
    assert [doubt.below for doubt in doubts if doubt.below] == [frozenset({("node3", "rail0")})]
