# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What partners saw of an address: which cables end on which rail, and what is no evidence of it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.probes import (
    Probe,
    answering,
    crossed_cables,
    crossing_words,
    parse_probes,
)

MACS = {("a", "rail0"): "02:00:00:00:00:a0", ("a", "rail1"): "02:00:00:00:00:a1", ("b", "rail0"): "02:00:00:00:00:b0"}
A0, A1 = MACS["a", "rail0"], MACS["a", "rail1"]


def seen(rail: str, arp: dict[str, str | None], observer: str = "b", target: str = "a") -> Probe:
    return Probe(observer, target, rail, False, arp)


EXCHANGED = [seen("rail0", {"rail0": None, "rail1": A0}), seen("rail1", {"rail0": A1, "rail1": None})]


def test_two_nics_that_answer_on_each_other_s_rail() -> None:
    crossed = crossed_cables("a", EXCHANGED, MACS)
    assert crossed == {"rail0": "rail1", "rail1": "rail0"}
    words = crossing_words("a", crossed)
    assert words is not None
    assert words[0].startswith("the cables of rail0 and rail1 of a are swapped")
    assert words[1].startswith("At a: swap the cables of rail0 and rail1")


def test_one_nic_that_answers_on_another_rail() -> None:
    words = crossing_words("a", crossed_cables("a", EXCHANGED[:1], MACS))
    assert words is not None
    assert words[0].startswith("the cable of rail0 of a ends on rail1")


@pytest.mark.parametrize(
    "probes",
    [
        [],
        [seen("rail0", {"rail0": None, "rail1": None})],
        [seen("rail0", {"rail0": A0, "rail1": A0})],
        [seen("rail0", {"rail0": None, "rail1": A1})],
        [seen("rail0", {"rail0": None, "rail1": "02:00:00:00:00:ff"})],
        [seen("rail0", {"rail0": None, "rail1": A0, "rail2": A0})],
        [seen("rail0", {"rail0": None, "rail1": A0}, observer="c")],
        [seen("rail9", {"rail0": None, "rail1": A0})],
    ],
    ids=["none", "silent", "one network", "its other NIC answers", "a stranger", "on several", "a suspect saw it", "no such rail"],
)
def test_what_is_no_evidence(probes: list[Probe]) -> None:
    crossed = crossed_cables("a", probes, MACS, accused=["a", "c"])
    assert crossed == {}
    assert crossing_words("a", crossed) is None


def failure(**changes: Any) -> dict[str, Any]:
    probe = {"echo": True, "arp": {"rail0": "02:00:00:00:00:A0", "rail1": None}}
    return {"role": "client", "server": "a", "client": "b", "rail": "rail0", "probe": probe, **changes}


def test_the_client_saw_the_server_and_the_server_the_client() -> None:
    (by_client,) = parse_probes([failure()])
    (by_server,) = parse_probes([failure(role="server")])
    assert (by_client.observer, by_client.target, by_client.arp) == ("b", "a", {"rail0": A0, "rail1": None})
    assert (by_server.observer, by_server.target) == ("a", "b")
    assert answering([by_client]) == {("rail0", "a")}


@pytest.mark.parametrize("garbled", [{"probe": None}, {"probe": "x"}, {"probe": {"echo": True}}, {"role": None}, {"probe": {"arp": []}}])
def test_what_is_no_probe_is_left_out(garbled: dict[str, Any]) -> None:
    assert list(parse_probes([failure(**garbled), {}])) == []


def test_an_address_that_was_not_asked_does_not_answer() -> None:
    assert answering(parse_probes([failure(probe={"echo": None, "arp": {}}), failure(probe={"echo": False, "arp": {}})])) == frozenset()
