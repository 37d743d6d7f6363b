# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flows on cables, compared with all paths of small graphs, and conserved on any graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.cables import Direction, Paths, busiest, loads
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.hops import Hop, Route, hops_of_order
from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.ports import HostPort, Ports
from tests.unit.builders.fabrics import Fabric, leafspine, rail

RING = Route("ring", "", "0")


def ports_of(fabric: Fabric) -> tuple[View, Ports]:
    view = View(fabric.graph(), fabric.expected())
    return view, Ports({"default": view}, {})


def port(ports: Ports, host: str, device: str = "mlx5_0") -> HostPort:
    found = ports.of_device(host, device, 1)
    assert isinstance(found, HostPort)
    return found


def all_paths(view: View, here: str, there: str, seen: tuple[str, ...] = ()) -> Iterator[list[Direction]]:
    """Every path without a loop."""
    if here == there:
        yield []
        return
    for link in view.links:
        for one, other in ((link.a, link.b), (link.b, link.a)):
            if one[0] == here and view.is_switch(other[0]) and other[0] not in (*seen, here):
                for rest in all_paths(view, other[0], there, (*seen, here)):
                    yield [(one, other), *rest]


def by_all_paths(view: View, here: str, there: str) -> dict[Direction, Fraction]:
    """The shares if each switch chooses among its first cables of the shortest paths."""
    paths = list(all_paths(view, here, there))
    shortest = [path for path in paths if len(path) == min(map(len, paths))]
    found: dict[Direction, Fraction] = defaultdict(Fraction)

    def spread(left: list[list[Direction]], share: Fraction) -> None:
        firsts = sorted({path[0] for path in left if path})
        for first in firsts:
            found[first] += share / len(firsts)
            spread([path[1:] for path in left if path and path[0] == first], share / len(firsts))

    spread(shortest, Fraction(1))
    return dict(found)


def test_shares_are_those_of_all_paths() -> None:
    fabric = leafspine(leaves=3, spines=2, hosts_per_leaf=1, cables=2)
    fabric.cut(("leaf1", 2))
    view, _ports = ports_of(fabric)
    paths = Paths(view)
    for here in view.switches:
        for there in view.switches:
            assert paths.shares(here, there) == by_all_paths(view, here, there), (view.name(here), view.name(there))


def test_shares_in_three_tiers() -> None:
    fabric = leafspine(leaves=2, spines=2, hosts_per_leaf=1, cables=1)
    fabric.node("leaf3", "switch")
    fabric.node("node9 mlx5_0", "host")
    fabric.join(("node9 mlx5_0", 1), ("leaf3", 1))
    for number in (1, 2, 3):
        fabric.node(f"core{number}", "switch")
        fabric.join(("spine1", 10 + number), (f"core{number}", 1))
        fabric.join((f"core{number}", 2), ("leaf3", 10 + number))
    fabric.join(("spine2", 11), ("core1", 3))
    view, _ports = ports_of(fabric)
    named = {view.name(guid): guid for guid in view.switches}
    shares = Paths(view).shares(named["leaf1"], named["leaf3"])
    assert shares == by_all_paths(view, named["leaf1"], named["leaf3"])
    assert shares is not None
    # Half of it takes spine2, which has only one cable up.
    assert shares[(named["core1"], 2), (named["leaf3"], 11)] == Fraction(1, 2) + Fraction(1, 6)


def test_no_path_is_unknown() -> None:
    fabric = leafspine(leaves=2, spines=1, hosts_per_leaf=1, cables=1)
    fabric.cut(("leaf2", 2))
    view, ports = ports_of(fabric)
    found, unknown = loads([Hop(RING, port(ports, "node1"), port(ports, "node2"))], {"default": Paths(view)})
    assert found == {}
    assert [(each.what, each.why) for each in unknown] == [
        ("ring 0, node1 to node2", "the graph of plane default has no path from leaf1 to leaf2")
    ]


def test_a_ring_of_a_hostfile() -> None:
    view, ports = ports_of(rail(hosts=4, rails=2, spines=2, cables=1, per_leaf=2))
    hops = hops_of_order(["node1", "node3", "node2", "node4"], ports, ["default"])
    assert (len(hops.hops), hops.between, hops.unknown) == (8, 8, ())
    found, unknown = loads(hops.hops, {"default": Paths(view)})
    load = found["default"]
    assert (load.hops, load.away, unknown) == (8, 8, [])
    named = {view.name(guid): guid for guid in view.switches}
    assert load.crossings[Route("ring", "", "rail1")] == {named["spine1"]: 2, named["spine2"]: 2}
    worst = busiest(load, view)
    assert worst is not None
    assert (worst.flows, worst.mean, worst.loaded) == (1, 1, 16)


@given(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2)), st.lists(st.integers(0, 30)), st.data())
def test_flows_are_conserved(shape: tuple[int, int, int, int], cut: list[int], data: st.DataObject) -> None:
    fabric = leafspine(*shape)
    leaves, _spines, hosts, _cables = shape
    uplinks = [end for end in fabric.cables if end[0].startswith("spine")]
    for number in cut:
        if number < len(uplinks) and uplinks[number] in fabric.cables:
            fabric.cut(uplinks[number])
    view, ports = ports_of(fabric)
    names = [f"node{number}" for number in range(1, leaves * hosts + 1)]
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda pair: pair[0] != pair[1])))
    hops = [Hop(RING, port(ports, one), port(ports, other)) for one, other in pairs] if len(names) > 1 else []
    paths = Paths(view)
    found, unknown = loads(hops, {"default": paths})
    flows = found["default"].flows if found else {}
    lost = [pair for pair in pairs if paths.shares(port(ports, pair[0]).switch_end[0], port(ports, pair[1]).switch_end[0]) is None]
    assert len({f"ring 0, {one} to {other}" for one, other in lost}) == len(unknown)
    # The sum of all loads is the sum of the lengths of the paths, times their shares.
    lengths = (
        2 + sum(shares.values())
        for one, other in pairs
        if (shares := paths.shares(port(ports, one).switch_end[0], port(ports, other).switch_end[0])) is not None
    )
    assert sum(flows.values()) == sum(lengths)
    for guid in view.switches:
        into = sum(load for (_here, there), load in flows.items() if there[0] == guid)
        out = sum(load for (here, _there), load in flows.items() if here[0] == guid)
        assert into == out
