# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a link is well, for findings and for the drawing, which differ only in what they leave out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import AGGREGATION, Link, Node, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.draw.marks import bad_links
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.faults import Faults, faults
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.links import judge
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import Expected, View
from tests.unit.builders.fabrics import Fabric, leafspine

HOST, UP1 = ("node1 mlx5_0", 1), ("leaf1", 9)
Change = Callable[[Fabric], object]


def fabric(change: Change) -> Fabric:
    found = leafspine()
    change(found)
    return found


def link_of(view: View, found: Fabric, end: tuple[str, int]) -> Link:
    return view.link_at[found.guid(end[0]), end[1]]


def state(**reported: str) -> Change:
    return lambda found: found.ports.setdefault(UP1, {}).update(reported)


@pytest.mark.parametrize(
    ("change", "expected", "finding", "mark"),
    [
        (lambda found: None, Faults(), None, ""),
        (
            lambda found: found.slow(UP1), Faults(usual=(4, "NDR")),
            "runs at 2X NDR, most similar links (leaf to spine) at 4X NDR", "2X NDR (200 Gb/s), similar links run at 400 Gb/s",
        ),
        (
            lambda found: found.slow(UP1, could_be=(4, None)), Faults(could_be=(4, "NDR"), usual=(4, "NDR")),
            "runs at 2X NDR, both ends support 4X NDR",
            "2X NDR, both ends support 4X NDR; 2X NDR (200 Gb/s), similar links run at 400 Gb/s",
        ),
        (lambda found: found.slow(UP1, 4, could_be=(12, None)), Faults(), None, ""),
        (
            lambda found: found.slow(UP1, 2, "XDR"), Faults(usual=(4, "NDR")),
            "runs at 2X XDR, most similar links (leaf to spine) at 4X NDR", "",
        ),
        (
            state(state="INIT", physical="LinkUp"), Faults(not_up=((UP1, Port(9, state="INIT", physical="LinkUp")),)),
            "not active: leaf1 port 9 is INIT", "leaf1 port 9 is INIT",
        ),
        (
            state(state="DOWN", physical="Polling"), Faults(not_up=((UP1, Port(9, state="DOWN", physical="Polling")),)),
            None, "leaf1 port 9 is DOWN/Polling",
        ),
    ],
    ids=["well", "slower", "could be", "lanes that no cable has", "as fast on fewer lanes", "not active", "down"],
)  # fmt: skip
def test_one_judge_for_findings_and_drawing(change: Change, expected: Faults, finding: str | None, mark: str) -> None:
    found = fabric(change)
    graph = found.graph()
    view = View(graph)
    link = link_of(view, found, UP1)
    named = tuple(((found.guid(name), number), port) for (name, number), port in expected.not_up)
    assert faults(view, link) == replace(expected, not_up=named)
    bad = judge(view, link)
    assert (bad and bad.words) == finding
    assert bad_links(graph).get((link.a, link.b), "") == mark


def test_a_plan_counts_before_the_like() -> None:
    found = fabric(lambda each: each.slow(HOST))
    graph, (name, _port) = found.graph(), HOST
    for planned, expected in ((400.0, Faults(planned_gbps=400.0)), (200.0, Faults())):
        view = View(graph, [Expected("node1", "rail0", found.guid(name), "mlx5_0", rate_gbps=planned)])
        assert faults(view, link_of(view, found, HOST)) == expected


def test_a_plan_counts_before_what_both_ends_could_do() -> None:
    """A cable for HDR between ports for NDR."""
    found = fabric(lambda each: each.slow(HOST, 4, "HDR", (None, "NDR")))
    graph, (name, _port) = found.graph(), HOST
    better = (4, "NDR")
    for planned, expected in ((200.0, Faults()), (400.0, Faults(could_be=better, planned_gbps=400.0))):
        view = View(graph, [Expected("node1", "rail0", found.guid(name), "mlx5_0", rate_gbps=planned)])
        assert faults(view, link_of(view, found, HOST)) == expected
    view = View(graph)
    assert faults(view, link_of(view, found, HOST)).could_be == better


def test_what_most_could_be_is_a_finding_and_no_mark() -> None:
    def change(each: Fabric) -> None:
        for leaf in range(1, 5):
            for port in range(9, 17):
                each.slow((f"leaf{leaf}", port), 4, could_be=(None, "XDR"))

    found = fabric(change)
    view = View(found.graph())
    assert faults(view, link_of(view, found, UP1)) == Faults(could_be=(4, "XDR"))
    assert judge(view, link_of(view, found, UP1)) is not None
    assert bad_links(found.graph()) == {}


def test_a_device_inside_a_switch_has_no_like() -> None:
    found = leafspine()
    graph = found.graph()
    sharp = Node("0x9", AGGREGATION, "leaf1 aggregation", ports={1: Port(1)})
    inside = Link(*sorted([("0x9", 1), (found.guid("leaf1"), 41)]), 1, "SDR")
    more = replace(graph, nodes={**graph.nodes, "0x9": sharp}, links=[*graph.links, inside])
    assert faults(View(more), inside) == Faults()
    assert bad_links(more) == {}
