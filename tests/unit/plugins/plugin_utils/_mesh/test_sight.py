# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The other end of each port, from what both ends answered; what one host says of another is not believed."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.lldp import Neighbor, lldp_graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import CableEnd
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.answers import Answer
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.sight import CABLE, NO_LINK, SWITCH, UNKNOWN, Sights, sights
from tests.unit.builders.mesh import asked, end, mac, named


def seen(answers: dict[str, Answer], **more: Any) -> Sights:
    return sights(answers, named(answers), **more)


def cables(found: Sights) -> list[str]:
    return [f"{a.host}.{a.nic[6]}-{b.host}.{b.nic[6]}" for a, b in found.cables]


def test_a_cable_is_seen_from_both_ends() -> None:
    found = seen(asked(a=["b1", "c1"], b=["a1", "c2"], c=["a2", "b2"]))
    assert cables(found) == ["a.1-b.1", "a.2-c.1", "b.2-c.2"]
    assert {sight.kind for sight in found.ends.values()} == {CABLE}
    assert found.end(end("a1")) == "a ens1 (0000:01:00.0)"
    assert (found.without_cable, found.notes) == ({}, [])


def test_one_end_is_enough_if_the_other_hears_nothing() -> None:
    found = seen(asked(a=["b1"], b=[""]))
    assert cables(found) == ["a.1-b.1"]
    assert found.ends[end("b1")].words == "seen from the other end"


def test_no_link_a_silent_port_and_a_switch() -> None:
    found = seen(asked(a=["-", "", "b1 c1", "!"], b=["a3 c1"], c=["a3 b1"]))
    assert [found.ends[end(f"a{number}")].kind for number in (1, 2, 3, 4)] == [NO_LINK, UNKNOWN, SWITCH, UNKNOWN]
    assert cables(found) == []
    assert found.notes[:4] == [
        "a ens1 (0000:01:00.0): no link. Its rail stays as it is.",
        "a ens2 (0000:02:00.0): it has a link, but no neighbor answers. Its rail stays as it is.",
        "a ens3 (0000:03:00.0): 2 neighbors answer: a switch is behind it. Its rail stays as it is.",
        "a ens4 (0000:04:00.0): the interface is down. Its rail stays as it is.",
    ]
    assert found.without_cable["a"] == [f"0000:0{number}:00.0" for number in (1, 2, 3, 4)]


def test_a_host_that_was_not_asked_is_known_from_the_other_end_only_by_its_nics() -> None:
    answers = asked(a=["b1"], b=["a1"])
    answers["b"] = Answer(None, "it is unreachable")
    found = sights(answers, {"a": ["0000:01:00.0"], "b": ["0000:01:00.0"]})
    assert found.ends[end("a1")].words == f"its neighbor {mac('b1')} is not a NIC of a host of this run"
    assert found.ends[end("b1")].words == "it is unreachable"


def test_an_address_that_two_hosts_claim_identifies_none() -> None:
    answers = asked(a=["b1"], b=["a1"], c=["a1"])
    peers = answers["c"].peers
    assert peers is not None
    peers.nics["ens9"] = peers.nics["ens1"].__class__(mac("b1"), "0000:09:00.0")
    found = sights(answers, {"a": ["0000:01:00.0"]})
    assert found.ends[end("a1")].words == f"its neighbor {mac('b1')} is claimed by b, c"


def test_two_ends_that_see_each_other_are_right_whatever_a_third_host_says() -> None:
    found = seen(asked(a=["b1"], b=["c1"], c=["b1"]))
    assert cables(found) == ["b.1-c.1"]
    assert found.ends[end("a1")].words == "the hosts contradict each other: it sees b/0000:01:00.0, which sees another port"


def test_hosts_that_contradict_each_other_are_unknown() -> None:
    found = seen(asked(a=["b1"], b=["c1"], c=[""]))
    assert [found.ends[end(name)].kind for name in ("a1", "b1", "c1")] == [UNKNOWN] * 3
    assert cables(found) == []
    assert cables(seen(asked(a=["c1"], b=["c1"], c=[""]))) == []


def test_a_cable_back_into_the_same_host_is_none() -> None:
    found = seen(asked(a=["a2", "a1"]))
    assert cables(found) == []
    assert found.notes[0] == "a ens1 (0000:01:00.0): its cable ends at a/0000:02:00.0, which is the same host. Its rail stays as it is."


def test_a_cable_to_a_port_that_is_no_rail_is_named() -> None:
    answers = asked(a=["b2"], b=["", "a1"])
    found = sights(answers, {"a": ["0000:01:00.0"], "b": ["0000:01:00.0"]})
    assert found.ends[end("a1")].far == CableEnd("b", "0000:02:00.0")
    assert found.notes[0] == (
        "a ens1 (0000:01:00.0): its cable ends at b/0000:02:00.0, which is not a NIC of rdma_rails. Its rail stays as it is."
    )


def lldp(host: str, netdev: str, system: str, port: str) -> Any:
    able = {"Bridge": False, "Router": False, "Station": True}
    near = Neighbor(netdev, "mac", "52:54:00:00:00:01", system, None, "ifname", port, port, able, [], None, "LLDP")
    return lldp_graph("lldp", {host: [near]})


def test_lldp_names_the_other_end_of_a_silent_port() -> None:
    answers = asked(a=[""], b=[""])
    assert cables(seen(answers, lldp={"a": lldp("a", "ens1", "b", "ens1")})) == ["a.1-b.1"]
    for system, port in (("x", "ens1"), ("b", "ens7"), ("a", "ens1")):
        assert cables(seen(answers, lldp={"a": lldp("a", "ens1", system, port)})) == []


def test_an_echo_counts_more_than_lldp_which_remembers() -> None:
    answers = asked(a=["c1"], b=[""], c=["a1"])
    assert cables(seen(answers, lldp={"a": lldp("a", "ens1", "b", "ens1")})) == ["a.1-c.1"]
