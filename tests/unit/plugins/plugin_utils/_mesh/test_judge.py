# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Discovered cables against planned ones: one finding for each cause, with its fix, and no guess about what is silent."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.judge import check_cables
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.known import known_of
from tests.unit.builders.mesh import asked, mac, nic

#: A ring of four hosts with a second cable between a and b. Port 1 leads to the next host, port 2 to the previous one.
RING = ("a1-b2", "b1-c2", "c1-d2", "d1-a2", "a3-b3")
WELL = {"a": ["b2", "d1", "b3"], "b": ["c2", "a1", "a3"], "c": ["d2", "b1"], "d": ["a2", "c1"]}


def mesh(cables: Any = RING, **changed: Any) -> dict[str, Any]:
    """Intent and facts of the hosts of planned cables; a cable "a1-b2" is a rail of this name on both hosts.

    changed: keys of rdma_fabric."""
    hosts: dict[str, Any] = {}
    fabric = {"topology": "mesh", "mesh": {"cables": "discover"}, **changed}
    for name in cables:
        for end in name.split("-"):
            host = hosts.setdefault(end[0], {"intent": {"rails": [], "fabric": fabric}, "facts": {"netdevs": {}, "devices": {}}})
            port = int(end[1:])
            host["intent"]["rails"].append({"name": name, "nic": {"pci": nic(port)}, "link_layer": "roce"})
            host["facts"]["netdevs"][f"ens{port}"] = {"pci": nic(port), "mac": mac(end).upper()}
    return hosts


def judge(folder: Path, seen: dict[str, list[str]], hosts: dict[str, Any] | None = None) -> dict[str, list[Finding]]:
    run = RunFolder(folder / "R1")
    for host, answer in asked(**seen).items():
        run.write_json(run.host_file("cables", host), answer.to_dict())
    return check_cables(known_of(hosts or mesh()), run)


def bad(found: dict[str, list[Finding]]) -> list[tuple[str, str, str]]:
    return [(each.host, each.status, each.observed) for of in found.values() for each in of if each.status != "ok"]


def ports(**changed: list[str]) -> dict[str, list[str]]:
    return {**WELL, **changed}


def test_cables_at_their_ports(tmp_path: Path) -> None:
    found = judge(tmp_path, WELL)
    assert bad(found) == []
    assert {host: [each.observed for each in of] for host, of in found.items()} == {
        "a": ["3 cables end at the planned ports"],
        "b": ["3 cables end at the planned ports"],
        "c": ["2 cables end at the planned ports"],
        "d": ["2 cables end at the planned ports"],
    }


def test_two_exchanged_cables_are_one_finding_with_both_ends_and_the_fix(tmp_path: Path) -> None:
    found = judge(tmp_path, ports(b=["c1", "a1", "a3"], c=["b1", "d2"], d=["a2", "c2"]))
    assert bad(found) == [
        (
            "c",
            "error",
            "the cables of ens1 (0000:01:00.0) and ens2 (0000:02:00.0) are exchanged on c: ens1 (0000:01:00.0) leads to b ens1 "
            "(0000:01:00.0), planned d ens2 (0000:02:00.0); ens2 (0000:02:00.0) leads to d ens2 (0000:02:00.0), planned b ens1 "
            "(0000:01:00.0)",
        )
    ]
    (finding,) = (each for each in found["c"] if each.status == "error")
    assert finding.subject == "cables of ens1 (0000:01:00.0) and ens2 (0000:02:00.0)"
    assert finding.remedy == (
        "1. Exchange the two plugs in ens1 (0000:01:00.0) and ens2 (0000:02:00.0) of c. "
        "2. Run `ansible-playbook rdma.cluster.fabric` on the control node."
    )
    # The cables that are right are not reported.
    assert [each.observed for each in found["a"]] == ["3 cables end at the planned ports"]


def test_an_exchange_that_only_one_end_of_each_cable_sees_is_the_same_finding(tmp_path: Path) -> None:
    assert len(bad(judge(tmp_path, ports(b=["", "a1", "a3"], c=["b1", "d2"], d=["a2", ""])))) == 1


def test_two_cables_between_the_same_hosts_can_be_exchanged_at_either_end(tmp_path: Path) -> None:
    found = judge(tmp_path, ports(a=["b3", "d1", "b2"], b=["c2", "a3", "a1"]))
    assert [(host, status) for host, status, _observed in bad(found)] == [("a", "error")]
    (finding,) = (each for each in found["a"] if each.status == "error")
    assert "of a. Both cables lead to b: you can also exchange them there. 2. Run" in finding.remedy


def test_three_rotated_plugs_of_one_host_are_moved_one_by_one(tmp_path: Path) -> None:
    found = judge(tmp_path, ports(a=["d1", "b3", "b2"], b=["c2", "a3", "a2"], d=["a1", "c1"]))
    assert [(host, status) for host, status, _observed in bad(found)] == [("a", "error")]
    (finding,) = (each for each in found["a"] if each.status == "error")
    assert finding.remedy.startswith(
        "1. Move the plugs: from a ens1 (0000:01:00.0) to a ens2 (0000:02:00.0); from a ens2 (0000:02:00.0) to a ens3 (0000:03:00.0); "
        "from a ens3 (0000:03:00.0) to a ens1 (0000:01:00.0). 2."
    )


def test_cables_exchanged_between_two_hosts(tmp_path: Path) -> None:
    """a1-b2 and c1-d2 are planned; the plugs of b2 and d2 are exchanged."""
    found = judge(tmp_path, ports(a=["d2", "d1", "b3"], b=["c2", "c1", "a3"], c=["b2", "b1"], d=["a2", "a1"]))
    ((host, status, observed),) = bad(found)
    assert (host, status) == ("a", "error")
    assert observed.startswith("the cables of a ens1 (0000:01:00.0) and c ens1 (0000:01:00.0) are exchanged: ")


def test_a_cable_without_a_link_is_missing(tmp_path: Path) -> None:
    found = judge(tmp_path, ports(c=["-", "b1"], d=["a2", "-"]))
    assert bad(found) == [("c", "error", "no cable to d ens2 (0000:02:00.0): the port has no link")]
    (finding,) = (each for each in found["c"] if each.status == "error")
    assert finding.subject == "rail 1 (c1-d2, 0000:01:00.0, ens1)"


def test_silent_ports_are_unknown_and_not_missing(tmp_path: Path) -> None:
    found = judge(tmp_path, ports(c=["", "b1"], d=["a2", ""]))
    words = "it has a link, but no neighbor answers"
    assert bad(found) == [("c", "unknown", f"c ens1 (0000:01:00.0): {words}; d ens2 (0000:02:00.0): {words}")]


def test_silent_ports_without_planned_cables_do_not_stop_the_gate(tmp_path: Path) -> None:
    found = judge(tmp_path, {host: [""] * 3 for host in "abcd"}, mesh(mesh=None))
    assert {each.status for of in found.values() for each in of} == {"warning"}
    assert len(bad(found)) == len(RING)


def test_one_silent_host_is_known_by_its_neighbors(tmp_path: Path) -> None:
    assert bad(judge(tmp_path, ports(d=["", ""]))) == []


def test_a_host_that_does_not_answer_is_named_by_the_addresses_of_its_facts(tmp_path: Path) -> None:
    seen = ports()
    del seen["d"]
    assert bad(judge(tmp_path, seen)) == []
    hosts = mesh()
    hosts["d"]["facts"] = None
    assert {(host, status) for host, status, _observed in bad(judge(tmp_path, seen, hosts))} == {("a", "unknown"), ("c", "unknown")}


def test_without_any_answer_nothing_is_well(tmp_path: Path) -> None:
    found = judge(tmp_path, {})
    assert {each.status for of in found.values() for each in of} == {"unknown"}
    assert {each[2] for each in bad(found)} >= {
        "a 0000:01:00.0: its neighbors were not read in this run; b 0000:02:00.0: its neighbors were not read in this run"
    }


def test_a_cable_in_a_wrong_port_and_one_that_is_missing_for_it(tmp_path: Path) -> None:
    """c1 leads to d1; d2 is empty, and so is a2, whose cable was in d1."""
    found = judge(tmp_path, ports(a=["b2", "-", "b3"], c=["d1", "b1"], d=["c1", "-"]))
    assert bad(found) == [
        ("a", "error", "no cable to d ens1 (0000:01:00.0): the port has no link"),
        (
            "d",
            "error",
            "c ens1 (0000:01:00.0) leads to d ens1 (0000:01:00.0), where the cable d1-a2 is planned; planned d ens2 (0000:02:00.0)",
        ),
    ]
    (finding,) = (each for each in found["d"] if each.status == "error")
    assert finding.remedy.startswith(
        "1. Move the plug from d ens1 (0000:01:00.0) to d ens2 (0000:02:00.0). 2. If the cables are right, plan"
    )


def test_a_switch_is_a_warning(tmp_path: Path) -> None:
    found = judge(tmp_path, ports(a=["b2", "d1 c1", "b3"], d=["a2 c1", "c1"]))
    assert bad(found) == [("a", "warning", "2 neighbors answer: a switch is behind it")]


def test_other_hosts_and_rails_are_not_judged(tmp_path: Path) -> None:
    hosts = mesh()
    for each in hosts.values():
        each["intent"]["fabric"]["topology"] = "switched"
    assert judge(tmp_path, WELL, hosts) == {}
    hosts = mesh()
    del hosts["d"]
    found = judge(tmp_path, {host: WELL[host] for host in "abc"}, hosts)
    assert {(host, status) for host, status, _observed in bad(found)} == {("a", "not_applicable"), ("c", "not_applicable")}


@given(st.integers(2, 5), st.randoms())
def test_any_exchange_of_plugs_is_explained_and_the_fix_leads_to_the_plan(tmp_path_factory: Any, hosts: int, chance: random.Random) -> None:
    """In a full mesh with any two plugs exchanged there is one error; with any permutation of plugs no cable is called well by mistake."""
    names = "abcde"[:hosts]
    pairs = [f"{a}{names.index(b) + 1}-{b}{names.index(a) + 1}" for a, b in itertools.combinations(names, 2)]
    plugs = [end for pair in pairs for end in pair.split("-")]
    chosen = chance.sample(plugs, min(len(plugs), 2))
    moved = dict(zip(chosen, reversed(chosen), strict=True))
    real = {moved.get(a, a): moved.get(b, b) for a, b in (pair.split("-") for pair in pairs)}
    real |= {b: a for a, b in real.items()}
    seen = {host: [real.get(f"{host}{number}", "-") for number in range(1, hosts + 1)] for host in names}
    found = bad(judge(tmp_path_factory.mktemp("run"), seen, mesh(pairs)))
    is_same_cable = f"{chosen[0]}-{chosen[1]}" in pairs or f"{chosen[1]}-{chosen[0]}" in pairs
    assert len(found) == (0 if is_same_cable else 1), (seen, found)
    assert all(status == "error" for _host, status, _observed in found)


@pytest.mark.parametrize("text", ["", "{", '{"peers": {"ports": 1}}'])
def test_a_damaged_answer_is_unknown(tmp_path: Path, text: str) -> None:
    run = RunFolder(tmp_path / "R1")
    for host in "ab":
        run.write(f"cables/{host}.json", text)
    found = check_cables(known_of(mesh(["a1-b1"])), run)
    assert [status for _host, status, _observed in bad(found)] == ["unknown"]
