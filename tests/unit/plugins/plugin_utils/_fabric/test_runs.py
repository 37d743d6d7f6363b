# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs show of each other: counters as rates, load over spines, and change."""

from __future__ import annotations

import copy
import json

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Reporter, by_host
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.judge import Asked, Judged, judge
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.fabric import check_balance
from tests.unit.builders.fabrics import Fabric, leafspine

UPLINK = ("leaf1", 9)


def of(check: str, judged: Judged) -> list[Finding]:
    return [finding for finding in judged.findings if finding.check == check]


def counting(**counters: int) -> Fabric:
    fabric = leafspine()
    fabric.count(UPLINK, **counters)
    return fabric


def counters(before: dict[str, int], after: dict[str, int], hours: float = 1.0) -> list[Finding]:
    first = judge(counting(**before).graph(), Asked(seconds=1.0, run="7"))
    baseline = json.loads(json.dumps(first.baseline))
    return of("fabric.counters", judge(counting(**after).graph(), Asked(baseline=baseline, seconds=1.0 + hours * 3600, run="8")))


def test_the_first_run_says_that_it_is_the_first() -> None:
    (finding,) = of("fabric.counters", judge(counting(SymbolErrorCounter=900).graph(), Asked(seconds=1.0, run="7")))
    assert (finding.status, finding.observed) == (
        "not_applicable", "no earlier run to compare with; this run is the baseline for the next one"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "before", "after", "hours", "status"),
    [
        ("SymbolErrorCounter", 900, 999, 1.0, "ok"),
        ("SymbolErrorCounter", 900, 1000, 1.0, "error"),
        ("SymbolErrorCounter", 900, 1000, 2.0, "ok"),
        ("SymbolErrorCounter", 0, 9, 0.01, "ok"),
        ("LinkDownedCounter", 2, 4, 0.1, "ok"),
        ("LinkDownedCounter", 2, 5, 0.1, "error"),
        ("LocalLinkIntegrityErrors", 0, 12, 1.0, "error"),
        ("PortXmitDiscards", 0, 5000, 1.0, "warning"),
        ("PortRcvConstraintErrors", 0, 200, 0.1, "warning"),
        ("PortRcvRemotePhysicalErrors", 0, 200, 1.0, "error"),
        ("SymbolErrorCounter", 0, 0xFFFF, 100000.0, "warning"),
    ],
    ids=range(11),
)
def test_a_counter_is_judged_by_its_rate(name: str, before: int, after: int, hours: float, status: str) -> None:
    (finding,) = counters({name: before}, {name: after}, hours)
    assert finding.status == status
    if status in ("error", "warning"):
        assert f"{name} " in finding.observed


def test_a_counter_that_was_cleared_counts_from_nought() -> None:
    (finding,) = counters({"PortRcvErrors": 9000}, {"PortRcvErrors": 400})
    assert (finding.status, "PortRcvErrors 400 at leaf1 port 9 (400 an hour, cleared since)" in finding.observed) == ("error", True)


def test_waiting_is_congestion_where_it_is_longer_than_sending() -> None:
    (finding,) = counters({"PortXmitWait": 0, "PortXmitData": 0}, {"PortXmitWait": 9000, "PortXmitData": 100})
    assert (finding.status, finding.subject) == ("warning", "congestion")
    assert counters({"PortXmitWait": 0, "PortXmitData": 0}, {"PortXmitWait": 9000, "PortXmitData": 9000})[0].status == "ok"


def test_both_ends_of_a_bad_cable_are_one_finding() -> None:
    fabric = leafspine()
    for end in (UPLINK, fabric.cables[UPLINK]):
        fabric.count(end, SymbolErrorCounter=0)
    first = judge(fabric.graph(), Asked(seconds=1.0, run="7"))
    for end in (UPLINK, fabric.cables[UPLINK]):
        fabric.count(end, SymbolErrorCounter=800)
    (finding,) = of("fabric.counters", judge(fabric.graph(), Asked(baseline=first.baseline, seconds=3601.0, run="8")))
    assert "SymbolErrorCounter 800 at leaf1 port 9" in finding.observed
    assert "SymbolErrorCounter 800 at spine1 port 1" in finding.observed


def loaded(shares: dict[tuple[str, str], float]) -> list[Finding]:
    """Ten seconds in which each uplink carried 200 Gb/s, times its share; shares: (leaf, spine) → share."""
    before, after = leafspine(), leafspine()
    for end, there in before.cables.items():
        if end[0].startswith("leaf") and there[0].startswith("spine"):
            words = int(200e9 * 10 / 8 / 4 * shares.get((end[0], there[0]), 1.0))
            before.count(end, PortXmitData=1000, PortRcvData=1000)
            after.count(end, PortXmitData=1000 + words, PortRcvData=1000 + words)
    return [cause.finding for cause in check_balance(Reporter(View(after.graph())), before.graph(), 10.0)]


def test_an_even_load_is_well() -> None:
    (finding,) = loaded({})
    assert (finding.status, finding.observed) == ("ok", "8 groups of uplinks")
    assert loaded({("leaf1", "spine1"): 0.85})[0].status == "ok"


def test_a_spine_that_carries_less_is_reported_once() -> None:
    (finding,) = loaded({(f"leaf{leaf}", "spine2"): 0.2 for leaf in range(1, 5)})
    assert (finding.check, finding.status, finding.subject) == ("fabric.balance", "warning", "spine2")
    assert "spine2 carries 75% less than the others, for 4 leaves" in finding.observed


def test_a_leaf_of_uneven_load_is_reported_by_its_ports() -> None:
    (finding,) = loaded({("leaf1", "spine1"): 1.5})
    assert (finding.subject, finding.observed) == (
        "leaf1",
        "leaf1: port 9 to spine1 +33% up, port 9 to spine1 +33% down, port 10 to spine1 +33% up, port 10 to spine1 +33% down",
    )


def test_an_idle_fabric_has_no_balance() -> None:
    finding = check_balance(Reporter(View(leafspine().graph())), leafspine().graph(), 10.0)[0].finding
    assert finding.status == "not_applicable"
    assert loaded({(f"leaf{leaf}", f"spine{spine}"): 0.001 for leaf in range(1, 5) for spine in range(1, 5)})[0].status == "not_applicable"


def test_what_went_is_reported_when_it_comes_back() -> None:
    whole, cut = leafspine(), leafspine()
    cut.cut(UPLINK)
    second = judge(cut.graph(), Asked(before=whole.graph(), before_run="1"))
    assert [(each.status, each.observed) for each in of("fabric.change", second)] == [
        ("warning", "no link: leaf1 port 9 to spine1 port 1 since run 1")
    ]
    history = json.loads(json.dumps(second.history))
    third = judge(cut.graph(), Asked(before=cut.graph(), before_run="2", history=history))
    assert [each.status for each in of("fabric.change", third)] == ["ok"]
    fourth = judge(whole.graph(), Asked(before=cut.graph(), before_run="3", history=third.history))
    answer = {each.observed for each in of("fabric.change", fourth) if each.status == "ok"}
    assert "leaf1 port 9 to spine1 port 1 is back; last seen in run 1" in answer
    assert fourth.history["gone"] == {}


def test_slower_and_faster_are_distinguished() -> None:
    before, after = leafspine(), leafspine()
    for fabric, spine in ((before, "spine3"), (after, "spine4")):
        for end in [end for end in fabric.cables if end[0] == spine]:
            fabric.slow(end, 4, "HDR")
    after.slow(UPLINK, 4, "HDR")
    found = of("fabric.change", judge(after.graph(), Asked(before=before.graph(), before_run="1")))
    assert {each.status for each in found if each.observed.endswith("faster")} == {"ok"}
    assert not any(each.observed.endswith("slower") for each in found), "fabric.link reports those already"


def test_an_earlier_run_that_was_not_complete_reports_nothing() -> None:
    before = leafspine()
    before.complete = False
    (finding,) = of("fabric.change", judge(leafspine().graph(), Asked(before=before.graph(), before_run="1")))
    assert finding.status == "not_applicable"


def test_findings_go_to_their_hosts_and_those_of_switches_to_the_plane() -> None:
    fabric = copy.deepcopy(leafspine())
    fabric.slow(("node4 mlx5_0", 1), 2)
    fabric.slow(UPLINK, 2)
    hosts, others = by_host(judge(fabric.graph(), Asked()).findings, ["node4", "node5"])
    assert [each.subject for each in hosts["node4"]] == ["node4 mlx5_0 to leaf1 port 4"]
    assert hosts["node5"] == []
    assert {each.host for each in others} == {"plane default"}
