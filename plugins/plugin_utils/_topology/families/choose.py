# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The comparison of the families, and the choice of the cheapest one that holds all bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate, Design, Measures
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.build import build, keeps_all
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.direct import (
    MESH,
    RING,
    build_direct,
    cables_of_pair,
    measure_direct,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.figures import later, measure
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.layout import Layout
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.search import (
    EPSILON,
    Cost,
    Keeps,
    Ports,
    Search,
    cost_of,
    layout_cost,
    most_hosts,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

SINGLE, LEAF_SPINE, FAT_TREE, RAIL, PLANES, DRAGONFLY = "single", "leaf_spine", "fat_tree", "rail", "rail_planes", "dragonfly_plus"
#: In the order of preference at equal cost. A rail before leaves with all NICs of a host, because NCCL sends within a rail.
FAMILIES = (SINGLE, RAIL, LEAF_SPINE, PLANES, FAT_TREE, MESH, RING, DRAGONFLY)
AUTO = "auto"


class NoPlanError(ValueError):
    """No design holds the request. The message says what is short, by how much, and which plans are nearest."""

    def __init__(self, message: str, candidates: list[Candidate]) -> None:
        super().__init__(message)
        self.candidates = candidates


@dataclass(frozen=True)
class _Found:
    """A family that holds all bounds. layout: for hosts_later, None without switches."""

    family: str
    cost: Cost
    layout: Layout | None = None
    planes: int = 1


@dataclass(frozen=True)
class _Short:
    """A family that does not. why: the reason. hosts: the most hosts of the family if they are the reason."""

    why: str
    hosts: int | None = None


def plan(request: PlanRequest, existing: Design | None = None) -> list[Candidate]:
    """Return all compared families; the chosen one has chosen=True and its design.

    existing: a design whose cables must all be kept. Raises NoPlanError if no family, or not the requested one, holds all bounds.
    """
    results = {family: _evaluate(request, family, existing) for family in FAMILIES}
    fit = [result for result in results.values() if isinstance(result, _Found)]
    eligible = [each for each in fit if request.topology in (AUTO, each.family)]
    if not eligible:
        raise NoPlanError(
            _refusal(request, results, existing), [_candidate(request, family, each, None) for family, each in results.items()]
        )
    chosen = min(eligible, key=lambda each: each.cost)
    return [_candidate(request, family, each, chosen) for family, each in results.items()]


def _evaluate(request: PlanRequest, family: str, existing: Design | None = None) -> _Found | _Short:
    if existing is not None and existing.family != family:
        return _Short(f"the existing fabric is {existing.family}")
    if family in (MESH, RING):
        return _direct(request, family, existing)
    if family == DRAGONFLY and request.topology != family:
        return _Short("not compared: request it by name. This collection does not set up its routing")
    if family in (RAIL, PLANES) and request.nics_per_host == 1:
        return _Short("a host has one NIC, so there is one rail")
    planes = request.nics_per_host if family == PLANES else 1
    searches = _searches(request, family, planes, _keeper(request, planes, existing))
    found = [layout for search in searches if (layout := search()) is not None]
    if not found:
        return _why_short(request, family, existing)
    best = min(found, key=lambda layout: layout_cost(request, layout))
    price, switches, cables = layout_cost(request, best)
    return _Found(family, (price * planes, switches * planes, cables * planes), best, planes)


def _searches(request: PlanRequest, family: str, planes: int, keeps: Keeps | None) -> list[Callable[[], Layout | None]]:
    """Return the searches of a family, one for each number of levels."""
    rails = 1 if planes > 1 else request.nics_per_host

    def search() -> Search:
        return Search(request, rails, family == RAIL, keeps)

    return {
        SINGLE: [search().single],
        LEAF_SPINE: [search().two_levels],
        FAT_TREE: [search().three_levels],
        RAIL: [search().two_levels, search().three_levels],
        PLANES: [search().single, search().two_levels, search().three_levels],
        DRAGONFLY: [search().dragonfly],
    }[family]


def _keeper(request: PlanRequest, planes: int, existing: Design | None) -> Keeps | None:
    """Return the test whether a layout keeps all cables of an existing design; None without one."""
    if existing is None:
        return None
    kept = frozenset(existing.cables)
    at = {end: cable for cable in kept for end in (cable.a, cable.b)}
    tiers = Counter(switch.tier for switch in existing.switches)

    def keeps(layout: Layout) -> bool:
        part = later(layout, min(layout.hosts, len(existing.hosts)))
        counts = {tier: count * planes for tier, count in part.switches.items()}
        if any(counts.get(tier, 0) < count for tier, count in tiers.items()):
            return False
        if planes * (part.nics + part.leaf_spine_cables + part.upper_cables) < len(kept):
            return False
        return keeps_all(request, part, planes, at, len(kept))

    return keeps


def _direct(request: PlanRequest, family: str, existing: Design | None) -> _Found | _Short:
    hosts, nics = request.hosts_later, request.nics_per_host
    needed = hosts - 1 if family == MESH else min(2, hosts - 1)
    if nics < needed:
        return _Short(f"each host needs {needed} NICs and has {nics}: {needed - nics} short", nics + 1 if family == MESH else 2)
    if family == RING and request.hosts_later > request.hosts:
        return _Short("a ring cannot grow without moving a cable: plan it for the later hosts", None)
    measures = measure_direct(request, family)
    wanted = measures.wanted_gbps
    if request.topology != family and measures.bisection_gbps < wanted - EPSILON:
        return _Short(
            f"its bisection is {measures.bisection_gbps:g} Gb/s, requested are {wanted:g}: {wanted - measures.bisection_gbps:g} short"
        )
    least = request.survive.min_bisection * min(wanted, measures.bisection_gbps)
    if measures.worst_gbps < least - EPSILON:
        return _Short(f"{measures.worst_gbps:g} Gb/s of bisection remain after {request.survive.links} failed links, expected {least:g}")
    design = build_direct(request, family)
    if existing is not None and not set(existing.cables) <= set(design.cables):
        return _Short("a cable of the existing fabric would have to move")
    return _Found(family, cost_of(request, 0, cables_of_pair(request, family) and len(design.cables), 0))


def _why_short(request: PlanRequest, family: str, existing: Design | None) -> _Short:
    """Return why a family with switches has no design: too many hosts, a host that is too wide, one leaf only, or failures."""
    planes = request.nics_per_host if family == PLANES else 1
    rails = 1 if planes > 1 else request.nics_per_host
    levels = {SINGLE: 1, LEAF_SPINE: 2}.get(family, 3)
    ports, switch = Ports(request), request.switch
    most = most_hosts(request, rails, family == RAIL, levels)
    if request.hosts_later > most:
        over = request.hosts_later - most
        words = f"holds at most {most} hosts ({most * request.nics_per_host} NICs) with {switch.ports}-port switches"
        return _Short(f"{words}; {request.hosts_later} are planned: {over} too many", most)
    if existing is not None:
        return _Short("no layout keeps all cables of the existing fabric and holds all bounds")
    if family == LEAF_SPINE and request.hosts_later * rails <= ports.most_nics() and rails > ports.most_nics() // 2:
        return _Short("one leaf holds all hosts: use single")
    survive = request.survive
    if survive.spines or survive.links:
        failed = f"switches above the leaves: {survive.spines}, cables between switches: {survive.links}"
        return _Short(f"no layout keeps {survive.min_bisection:.0%} of the requested bisection after the worst failures ({failed})")
    return _Short("no layout of at least two leaves (fat_tree: two pods) holds all bounds")


def _candidate(request: PlanRequest, family: str, result: _Found | _Short, chosen: _Found | None) -> Candidate:
    """Return a row of the comparison. Only the chosen one has a design and the N-1 table."""
    if isinstance(result, _Short):
        return Candidate(family, why_not=result.why, hosts_at_most=result.hosts)
    is_chosen = result is chosen
    measures, grown = _measures(request, result, True)
    return Candidate(
        family,
        design=_design(request, result) if is_chosen else None,
        measures=measures,
        measures_later=grown,
        cost=None if request.prices_not_given else result.cost[0],
        chosen=is_chosen,
        why_not=None if is_chosen or chosen is None else _dearer(request, result, chosen),
    )


def _measures(request: PlanRequest, found: _Found, with_failures: bool) -> tuple[Measures, Measures]:
    if found.layout is None:
        return measure_direct(request, found.family), measure_direct(replace(request, hosts=request.hosts_later), found.family)
    now = measure(request, later(found.layout, request.hosts), found.planes, with_failures=with_failures)
    return now, now if request.hosts == request.hosts_later else measure(request, found.layout, found.planes)


def _design(request: PlanRequest, found: _Found) -> Design:
    if found.layout is None:
        return build_direct(request, found.family)
    return build(request, found.family, later(found.layout, request.hosts), found.planes)


def _dearer(request: PlanRequest, found: _Found, chosen: _Found) -> str:
    """Return how much more a family costs than the chosen one."""
    if request.topology not in (AUTO, found.family):
        return f"{chosen.family} is requested"
    (price, switches, cables), (least, fewest, least_cables) = found.cost, chosen.cost
    if price != least:
        return f"{price - least:g} dearer than {chosen.family}"
    if switches != fewest:
        return f"{switches - fewest} more switches than {chosen.family}"
    if cables > least_cables:
        return f"{cables - least_cables} more cables than {chosen.family}"
    return f"as many parts as {chosen.family}{_rail_reason(found, chosen)}"


def _rail_reason(found: _Found, chosen: _Found) -> str:
    """Return why rail is preferred to a family of the same cost, "" if another family is chosen."""
    if chosen.family != RAIL or found.layout is None or chosen.layout is None or found.layout.per_leaf >= chosen.layout.per_leaf:
        return ""
    near, far = chosen.layout.per_leaf, found.layout.per_leaf
    return f", where {near} hosts instead of {far} share the leaf of a rail: NCCL sends within a rail"


def _refusal(request: PlanRequest, results: Mapping[str, _Found | _Short], existing: Design | None) -> str:
    """Return the message for a request without a plan, with the nearest plans that work."""
    shown = [request.topology] if request.topology != AUTO else [family for family in results if family != DRAGONFLY]
    reasons = [f"{family}: {result.why}." for family in shown if isinstance(result := results[family], _Short)]
    nearest = [] if existing is not None else _nearest(request, results)
    steps = [f"{number}. {step}." for number, step in enumerate(nearest[:3], 1)]
    return " ".join(["No plan holds the request.", *reasons, *(["Nearest plans:", *steps] if steps else [])])


def _nearest(request: PlanRequest, results: Mapping[str, _Found | _Short]) -> list[str]:
    """Return changes of the request that lead to a plan, each one tried."""
    found = []
    fit = [result for result in results.values() if isinstance(result, _Found)]
    if fit:
        best = min(fit, key=lambda each: each.cost)
        found.append(f"topology: {best.family} ({best.cost[1]} switches, {best.cost[2]} cables)")
    family = request.topology
    relaxed = {
        "spare_ports: 0": replace(request, spare_ports=0),
        "oversubscription: 2": replace(request, oversubscription=2.0),
        "survive: {spines: 0, links: 0}": replace(request, survive=replace(request.survive, spines=0, links=0)),
        **{
            f"switch.breakout: {parts}": replace(request, host_parts=parts)
            for parts in request.switch.breakout
            if parts > request.host_parts and request.switch.gbps / parts >= request.nic_gbps
        },
        **{
            f"switch.uplink_breakout: {parts}": replace(request, uplink_parts=parts)
            for parts in request.switch.breakout
            if parts > request.uplink_parts
        },
    }
    most = max((result.hosts or 0 for name, result in results.items() if isinstance(result, _Short) and family in (AUTO, name)), default=0)
    if 2 <= most < request.hosts_later:
        relaxed[f"at most {most} hosts"] = replace(request, hosts=min(request.hosts, most), hosts_later=most)
    for words, changed in relaxed.items():
        if changed == request:
            continue
        tried = {name: _evaluate(changed, name) for name in ([family] if family != AUTO else FAMILIES)}
        works = [result for result in tried.values() if isinstance(result, _Found)]
        if works:
            best = min(works, key=lambda each: each.cost)
            found.append(f"{words}: {best.family} with {best.cost[1]} switches and {best.cost[2]} cables")
    return found
