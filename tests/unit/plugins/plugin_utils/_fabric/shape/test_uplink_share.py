# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a graph leaves to each of many pairs, on fabrics whose figures can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.uplink_share import Pair, allowed_shares
from tests.unit.builders.fabrics import Fabric, leafspine, rail


def pairs(fabric: Fabric, *between: tuple[int, int], device: int = 0) -> list[Pair]:
    """Sender and receiver, by the numbers of hosts."""
    return [((fabric.guid(f"node{one} mlx5_{device}"), 1), (fabric.guid(f"node{other} mlx5_{device}"), 1)) for one, other in between]


def halves(fabric: Fabric, hosts: int, device: int = 0) -> list[Pair]:
    return pairs(fabric, *((number, number + hosts // 2) for number in range(1, hosts // 2 + 1)), device=device)


@pytest.mark.parametrize(
    ("fabric", "share"),
    [
        (leafspine(4, 4, 8, 2), 1.0),
        (leafspine(4, 4, 8, 1), 0.5),
        (leafspine(2, 2, 6, 1), 1 / 3),
        (leafspine(4, 4, 4, 4), 1.0),
    ],
    ids=["1:1", "2:1", "3:1", "more up than down"],
)
def test_the_uplinks_of_a_leaf_are_shared(fabric: Fabric, share: float) -> None:
    hosts = sum(its["kind"] == "host" for its in fabric.nodes.values())
    assert allowed_shares(fabric.graph(), {"rail0": halves(fabric, hosts)}) == {"rail0": pytest.approx(share)}


def test_few_pairs_have_enough() -> None:
    fabric = leafspine(4, 4, 8, 1)
    assert allowed_shares(fabric.graph(), {"rail0": pairs(fabric, (1, 17), (2, 25))}) == {"rail0": 1.0}


def test_rails_on_one_leaf_share_its_uplinks() -> None:
    fabric = leafspine(2, 2, 4, 1)
    one, other = pairs(fabric, (1, 5), (2, 6)), pairs(fabric, (3, 7), (4, 8))
    assert allowed_shares(fabric.graph(), {"rail0": one}) == {"rail0": 1.0}
    assert allowed_shares(fabric.graph(), {"rail0": one, "rail1": other}) == {"rail0": 0.5, "rail1": 0.5}


@pytest.mark.parametrize("leaf", ["leaf1", "leaf3"], ids=["sends", "receives"])
def test_a_rail_with_leaves_of_its_own_has_its_own_share(leaf: str) -> None:
    fabric = rail(8, 2, 2, 2, per_leaf=4)
    for port in (5, 6):
        fabric.cut((leaf, port))
    both = {f"rail{number}": halves(fabric, 8, number) for number in range(2)}
    assert allowed_shares(fabric.graph(), both) == {"rail0": 0.5, "rail1": 1.0}


def test_it_is_the_mean_of_pairs_that_have_more_and_less() -> None:
    fabric = leafspine(4, 2, 4, 2)
    for port in (5, 6, 7):
        fabric.cut(("leaf1", port))
    # Four of eight pairs send by one uplink instead of four.
    assert allowed_shares(fabric.graph(), {"rail0": halves(fabric, 16)}) == {"rail0": pytest.approx((4 * 0.25 + 4) / 8)}


def pods(core_cables: int) -> Fabric:
    """Two pods of two leaves with four hosts and two spines, nothing short within them; a core switch joins the spines."""
    fabric = leafspine(4, 0, 4, 0)
    for number in range(1, 5):
        fabric.node(f"spine{number}", "switch")
    fabric.node("core1", "switch")
    for leaf in range(1, 5):
        for cable in range(4):
            spine = (leaf - 1) // 2 * 2 + cable % 2 + 1
            fabric.join((f"leaf{leaf}", 5 + cable), (f"spine{spine}", 4 * leaf + cable))
    for spine in range(1, 5):
        for cable in range(core_cables):
            fabric.join((f"spine{spine}", 33 + cable), ("core1", 8 * spine + cable))
    return fabric


@pytest.mark.parametrize(("core_cables", "share"), [(4, 1.0), (2, 0.5), (1, 0.25)])
def test_what_lies_beyond_the_spines_counts(core_cables: int, share: float) -> None:
    fabric = pods(core_cables)
    assert allowed_shares(fabric.graph(), {"rail0": halves(fabric, 16)}) == {"rail0": pytest.approx(share)}
    within = pairs(fabric, *((number, number + 4) for number in (*range(1, 5), *range(9, 13))))
    assert allowed_shares(fabric.graph(), {"rail0": within}) == {"rail0": 1.0}


def test_a_card_that_is_slower_than_the_others_asks_for_less() -> None:
    fabric = leafspine(2, 1, 2, 1)
    fabric.slow(("node1 mlx5_0", 1))
    # 200 and 400 Gb/s by an uplink of 400.
    assert allowed_shares(fabric.graph(), {"rail0": halves(fabric, 4)}) == {"rail0": pytest.approx(2 / 3)}


def partial(graph: Graph) -> Graph:
    return replace(graph, complete=False)


def no_rates(graph: Graph) -> Graph:
    return replace(graph, links=[replace(link, speed=None) for link in graph.links])


def no_way(graph: Graph) -> Graph:
    return replace(
        graph, links=[link for link in graph.links if {graph.nodes[end[0]].kind for end in (link.a, link.b)} == {"host", "switch"}]
    )


def not_there(graph: Graph) -> Graph:
    return replace(graph, links=[link for link in graph.links if all(graph.nodes[end[0]].name != "node1" for end in (link.a, link.b))])


@pytest.mark.parametrize("change", [partial, no_rates, no_way, not_there])
def test_what_the_graph_does_not_report_is_not_made_up(change: object) -> None:
    fabric = leafspine()
    assert callable(change)
    assert allowed_shares(change(fabric.graph()), {"rail0": halves(fabric, 32)}) == {"rail0": None}
