# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The search finds the cheapest layout: compared with all layouts of small switches, each one checked on the graph of its cables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from math import comb

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate, Design
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.bisection import bisection
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.build import build
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import NoPlanError, plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.layout import CORE, POD, Layout
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.search import Cost, Search, layout_cost, most_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import CablePrices, PlanRequest, Survive, SwitchModel
from tests.unit.builders.fabric_plans import brute_worst, physical_ports, plane_cables, problems, switch_graph


def all_layouts(request: PlanRequest, rails: int, spread: bool, levels: int) -> Iterator[Layout]:
    """Every layout whose numbers are at most those of a switch, whether it fits or not."""
    ports, hosts = request.switch.ports, request.hosts_later
    wide = rails if spread else 1
    for per_leaf in range(1, min(hosts, ports) + 1):
        leaves = -(-hosts // per_leaf) * wide
        for spines in range(1, ports):
            for links in range(1, ports // spines + 1):
                base = Layout(hosts, rails, spread, per_leaf, request.nic_gbps, request.switch.gbps, spines, links, leaves, reach=POD)
                if levels == 2:
                    yield base
                    continue
                for groups in range(1, leaves // wide):
                    for cores in range(1, ports):
                        for up in range(1, ports // cores + 1):
                            yield replace(base, pod_leaves=groups * wide, cores=cores, core_links=up, reach=CORE)


def fits(request: PlanRequest, layout: Layout) -> bool:  # noqa: PLR0911 (one return for each bound)
    """Whether a design holds the request, from its cables: ports, ratios of each switch, spare ports, equal links."""
    if layout.leaves < 2 or (layout.reach == CORE and layout.pods < 2):
        return False
    design = build(request, "any", layout, 1)
    if any(problems(design, request.switch.ports, 1)):
        return False
    used = physical_ports(design, 1)
    down: Counter[str] = Counter()
    up: Counter[str] = Counter()
    for cable in design.cables:
        up[cable.a.node] += 1
        down[cable.b.node] += 1
    for switch in design.switches:
        if switch.tier == "leaf":
            # A leaf that is not full yet keeps the ports of later hosts.
            reserved = layout.down - down[switch.name]
            if used[switch.name] + reserved > request.switch.ports - request.spare_ports:
                return False
            if layout.down * request.nic_gbps > request.oversubscription * up[switch.name] * request.switch.gbps + 1e-9:
                return False
        if switch.tier == "spine" and layout.reach == CORE and layout.pod_leaves * layout.links > up[switch.name]:
            return False
    survive = request.survive
    if survive.spines or survive.links:
        wanted = layout.nics // 2 * request.nic_gbps / request.oversubscription
        return bisection(layout, survive.spines, survive.links) >= survive.min_bisection * wanted - 1e-9
    return True


#: Failures that a test tries one by one. The rest is left to tests of smaller fabrics.
MOST_CHOICES = 40
#: Prices of a switch, of a copper cable, and of what is between switches. The last ones make cables dear, so that switches save them.
PRICES = {
    "none": (None, CablePrices()),
    "switches dear": (1000.0, CablePrices(dac=1.0, aoc=2.0)),
    "cables dear": (1.0, CablePrices(dac=1.0, aoc=50.0)),
    "optics dear": (10.0, CablePrices(dac=1.0, optic=20.0, fiber=5.0)),
}
BOUNDS = pytest.mark.parametrize(
    ("ports", "hosts", "ratio", "spare", "survive"),
    [
        (4, 5, 1.0, 0, Survive()),
        (4, 8, 1.0, 0, Survive()),
        (5, 6, 2.0, 0, Survive()),
        (5, 7, 1.5, 1, Survive()),
        (6, 9, 1.0, 0, Survive(1, 0, 0.5)),
        (6, 7, 2.0, 1, Survive(0, 1, 0.9)),
        (6, 7, 1.0, 0, Survive(1, 1, 0.4)),
        # Three pods of three leaves: two cores of a column need four cables of each spine, three cores only three.
        (7, 27, 1.0, 0, Survive()),
    ],
)


def cheapest(request: PlanRequest, rails: int, spread: bool, levels: int) -> Cost | None:
    """The cost of the cheapest of all layouts whose cables hold the request."""
    candidates = [layout for layout in all_layouts(request, rails, spread, levels) if _may_fit(layout, request.switch.ports)]
    candidates.sort(key=lambda layout: layout_cost(request, layout))
    return next((layout_cost(request, layout) for layout in candidates if fits(request, layout)), None)


@pytest.mark.parametrize("prices", PRICES)
@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize(("rails", "spread"), [(1, False), (2, False), (2, True)])
@BOUNDS
def test_no_cheaper_layout_is_missed(
    *, levels: int, rails: int, spread: bool, ports: int, hosts: int, ratio: float, spare: int, survive: Survive, prices: str
) -> None:
    price, cables = PRICES[prices]
    model = SwitchModel("switch", ports, 100, price=price)
    request = PlanRequest(hosts, hosts, 8, rails, 100, model, oversubscription=ratio, spare_ports=spare, survive=survive, cables=cables)
    best = cheapest(request, rails, spread, levels)
    search = Search(request, rails, spread)
    found = search.two_levels() if levels == 2 else search.three_levels()
    assert (None if found is None else layout_cost(request, found)) == best
    assert found is None or fits(request, found)


def _may_fit(layout: Layout, ports: int) -> bool:
    """Leave out layouts with more cables on a switch than it has ports, before their cables are built."""
    below = min(layout.pod_leaves, layout.leaves) * layout.links
    return layout.down + layout.uplinks <= ports and below + layout.spine_up <= ports and layout.pods * layout.core_links <= ports


@pytest.mark.parametrize("prices", PRICES)
@BOUNDS
def test_no_cheaper_rail_planes_are_missed(*, ports: int, hosts: int, ratio: float, spare: int, survive: Survive, prices: str) -> None:
    """The planes of the rails are the cheapest of one, two and three levels, each plane as many times as there are rails."""
    rails, (price, cables) = 2, PRICES[prices]
    model = SwitchModel("switch", ports, 100, price=price)
    request = PlanRequest(hosts, hosts, 8, rails, 100, model, "rail_planes", "infiniband", 1, 1, ratio, spare, survive, cables)
    found = [cost for levels in (2, 3) if (cost := cheapest(request, 1, False, levels)) is not None]
    if hosts <= ports - spare:
        found.append(layout_cost(request, Layout(hosts, 1, False, hosts, 100, 100)))
    candidates = planned(request)
    if isinstance(candidates, NoPlanError):
        assert found == []
        return
    (chosen,) = [candidate for candidate in candidates if candidate.chosen]
    assert chosen.measures is not None
    least_price, switches, cable_count = min(found)
    assert (chosen.measures.switch_count, chosen.measures.cable_count) == (switches * rails, cable_count * rails)
    assert chosen.cost == (None if price is None else least_price * rails)


@pytest.mark.parametrize(("ports", "levels"), [(4, 2), (5, 2), (6, 2), (4, 3), (5, 3)])
def test_the_most_hosts_are_planned_and_one_more_is_not(ports: int, levels: int) -> None:
    model = SwitchModel("switch", ports, 100)
    most = most_hosts(PlanRequest(2, 2, 8, 1, 100, model), 1, False, levels)

    def search(hosts: int) -> Layout | None:
        found = Search(PlanRequest(hosts, hosts, 8, 1, 100, model), 1, False)
        return found.two_levels() if levels == 2 else found.three_levels()

    full = search(most)
    assert full is not None
    assert fits(PlanRequest(most, most, 8, 1, 100, model), full)
    assert search(most + 1) is None


REQUESTS = st.builds(
    lambda hosts, later, nics, ports, nic, ratio, spare, spines, links, share, split, up, prices, topology: PlanRequest(
        hosts,
        hosts + later,
        8,
        nics,
        nic,
        SwitchModel("switch", ports, 400, (1, 2, 4), price=PRICES[prices][0]),
        topology,
        host_parts=split if 400 / split >= nic else 1,
        uplink_parts=up,
        oversubscription=ratio,
        spare_ports=min(spare, ports - 2),
        survive=Survive(spines, links, share),
        cables=PRICES[prices][1],
    ),
    st.integers(2, 60),
    st.integers(0, 40),
    st.integers(1, 8),
    st.integers(4, 40),
    st.sampled_from([100, 200, 400]),
    st.sampled_from([1.0, 1.25, 2.0]),
    st.integers(0, 3),
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from([0.25, 0.5, 0.75]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 1, 2]),
    st.sampled_from(sorted(PRICES)),
    st.sampled_from(["auto", "leaf_spine", "fat_tree", "rail", "rail_planes", "dragonfly_plus"]),
)


def planned(request: PlanRequest) -> list[Candidate] | NoPlanError:
    """The plan, or the refusal."""
    try:
        return plan(request)
    except NoPlanError as error:
        return error


@given(request=REQUESTS)
@settings(deadline=None)
def test_every_plan_holds_its_request(request: PlanRequest) -> None:
    candidates = planned(request)
    if isinstance(candidates, NoPlanError):
        assert str(candidates).startswith("No plan holds the request. ")
        assert not any(candidate.chosen for candidate in candidates.candidates)
        return
    (chosen,) = [candidate for candidate in candidates if candidate.chosen]
    assert all(candidate.chosen or candidate.why_not for candidate in candidates)
    costs = [later_cost(request, each) for each in candidates if each.measures_later and request.topology in {"auto", each.family}]
    assert later_cost(request, chosen) == min(costs)
    holds(request, chosen)


def later_cost(request: PlanRequest, candidate: Candidate) -> tuple[float, int, int]:
    """The compared cost with all later hosts, from the counted parts."""
    measures = candidate.measures_later
    assert measures is not None
    price, cables = request.switch.price, request.cables
    if price is None:
        assert candidate.cost is None
        return 0.0, measures.switch_count, measures.cable_count
    between = cables.aoc if cables.aoc is not None else 2 * (cables.optic or 0) + (cables.fiber or 0)
    to_hosts = sum(number for kind, number in measures.cables.items() if kind in {"host-leaf", "host-host"})
    total = measures.switch_count * price + to_hosts * (cables.dac or 0) + (measures.cable_count - to_hosts) * between
    assert candidate.cost == pytest.approx(total)
    return total, measures.switch_count, measures.cable_count


@given(
    hosts=st.integers(3, 6),
    nics=st.integers(1, 2),
    ports=st.integers(4, 8),
    survive=st.builds(Survive, st.integers(0, 2), st.integers(0, 2), st.sampled_from([0.0, 0.25, 0.5, 1.0])),
    ratio=st.sampled_from([1.0, 1.5, 2.0]),
    family=st.sampled_from(["leaf_spine", "fat_tree", "rail", "rail_planes", "dragonfly_plus"]),
)
@settings(deadline=None, max_examples=30)
def test_the_bisection_after_joint_failures_is_that_of_the_graph(
    *, hosts: int, nics: int, ports: int, survive: Survive, ratio: float, family: str
) -> None:
    """All choices of failed switches together with failed cables, each with a maximum flow over all halves."""
    model = SwitchModel("switch", ports, 100)
    request = PlanRequest(hosts, hosts, 8, nics, 100, model, family, oversubscription=ratio, survive=survive)
    candidates = planned(request)
    if isinstance(candidates, NoPlanError):
        return
    (chosen,) = [candidate for candidate in candidates if candidate.chosen]
    assert chosen.design is not None
    assert chosen.measures is not None
    if choices(chosen.design, survive) > MOST_CHOICES:
        return
    worst = brute_worst(chosen.design, chosen.design.planes[0], survive.spines, survive.links)
    assert chosen.measures.worst_gbps == worst
    assert worst >= survive.min_bisection * chosen.measures.wanted_gbps - 1e-9


def choices(design: Design, survive: Survive) -> int:
    """The number of failures to try in a plane."""
    upper = sum(switch.plane == design.planes[0] and switch.tier != "leaf" for switch in design.switches)
    between = sum(cable.a.rail is None for cable in plane_cables(design, design.planes[0]))
    return comb(upper, survive.spines) * comb(between, survive.links)


def holds(request: PlanRequest, chosen: Candidate) -> None:
    """The bounds of the request, from the cables of the design."""
    design, measures = chosen.design, chosen.measures
    assert design is not None
    assert measures is not None
    ports, parts = request.switch.ports, max(request.host_parts, request.uplink_parts)
    assert list(problems(design, ports, parts)) == []
    assert len(design.hosts) == request.hosts
    assert measures.cable_count == len(design.cables)
    assert dict(measures.switches) == dict(Counter(switch.tier for switch in design.switches))
    if not design.switches:
        return
    _each_nic_has_one_cable(request, design)
    _free_ports(request, design, parts, dict(measures.free_ports))
    _links(request, design)
    survive = request.survive
    if "spine" in measures.switches:
        assert measures.worst_gbps >= survive.min_bisection * measures.wanted_gbps - 1e-6


def _each_nic_has_one_cable(request: PlanRequest, design: Design) -> None:
    ends = [(cable.a.node, cable.a.rail) for cable in design.cables if cable.a.rail is not None]
    assert sorted(ends) == sorted((host, rail) for host in design.hosts for rail in request.rails)
    planes = {switch.name: switch.plane for switch in design.switches}
    for plane in design.planes:
        graph = switch_graph([cable for cable in design.cables if planes[cable.b.node] == plane])
        assert nx.is_connected(graph)
    if len(design.planes) > 1:
        assert all(planes[cable.b.node] == cable.a.rail for cable in design.cables if cable.a.rail is not None)


def _free_ports(request: PlanRequest, design: Design, parts: int, free: dict[str, int]) -> None:
    used = physical_ports(design, parts)
    by_tier: defaultdict[str, list[int]] = defaultdict(list)
    for switch in design.switches:
        by_tier[switch.tier].append(request.switch.ports - used[switch.name])
    assert {tier: min(numbers) for tier, numbers in by_tier.items()} == free
    assert min(by_tier["leaf"]) >= request.spare_ports


def _links(request: PlanRequest, design: Design) -> None:
    """Each leaf has equal numbers of cables to the spines that it reaches, and enough of them; a spine has them to the cores."""
    tiers = {switch.name: switch.tier for switch in design.switches}
    below: Counter[str] = Counter()
    above: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for cable in design.cables:
        if cable.a.rail is not None:
            below[cable.b.node] += 1
        else:
            above[cable.a.node][cable.b.node] += 1
            if tiers[cable.b.node] != tiers[cable.a.node] and tiers[cable.b.node] == "spine":
                below[cable.b.node] += 1
    for name, spines in above.items():
        assert len(set(spines.values())) == 1
        if tiers[name] == "leaf":
            assert (
                below[name] * request.nic_gbps
                <= request.oversubscription * sum(spines.values()) * request.switch.gbps / request.uplink_parts + 1e-6
            )
        elif all(tiers[other] == "core" for other in spines):
            assert below[name] <= sum(spines.values())
