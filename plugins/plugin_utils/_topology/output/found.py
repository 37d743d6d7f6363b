# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fabric that exists, from its stored graph: its figures, what one failure costs, and the best plan for the same hardware."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.build import SOURCE as IBNETDISCOVER
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.bisection import bisection
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.repaired import Shape, shape
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate, Measures
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.figures import WORST
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.page import Page, Section, Table
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.table import TIERS, table

FAILURE_HEAD = ("", "failed", "hosts cut", "ports cut", "left Gb/s", "left", "ratio then")


@dataclass(frozen=True)
class Cut:
    """The cost of one failure in a found fabric. hosts_cut: without any port left. gbps: the bisection left, None if it is not known.

    ratio: the worst oversubscription of a leaf then; None without uplinks.
    """

    part: str
    hosts_cut: int
    ports_cut: int
    gbps: float | None
    ratio: float | None


@dataclass(frozen=True)
class FoundPlane:
    """A found plane. ports: host ports with a cable. free_ports: leaf → ports without a cable. cuts: the worst failures, the worst first.

    gbps: bisection between two halves of the leaves; share: of what the hosts of the smaller half can send. Both None if not known.
    ratio: the lowest and highest oversubscription of a leaf, None without uplinks. imbalance: the largest / smallest number of links
    between a leaf and a spine, None if a leaf has no link to a spine that others have. more_gbps: the bisection with one more spine, and
    its links to each leaf; None if a leaf has no free port.
    """

    name: str
    hosts: int
    ports: int
    ports_per_host: int
    port_gbps: float | None
    switches: Mapping[str, int]
    switch_ports: int
    switch_gbps: float | None
    fabric: str
    gbps: float | None
    share: float | None
    ratio: tuple[float, float] | None
    imbalance: float | None
    single: tuple[str, ...]
    cuts: tuple[Cut, ...]
    more: tuple[int, float] | None
    free_ports: int


def found_plane(view: View, worst: int = WORST) -> FoundPlane:
    """Return the figures of a graph. worst: rows of the failures. Raises ParseError if it is not whole, or has no switch with hosts."""
    if not view.whole or not view.switches:
        raise ParseError(f"the stored graph of {view.plane} is not complete, or has no switch. Run the fabric stage again.")
    its = shape(view)
    leaves = [leaf for leaf in its.of_tier("leaf") if its.hosts.get(leaf)]
    attached = _attached(view)
    per_host = Counter(host for ports in attached.values() for host in ports)
    if not per_host:
        raise ParseError(f"the stored graph of {view.plane} has no host at a switch.")
    host_rates = [rate for leaf in leaves for rate in its.hosts[leaf]]
    cabled = [rate for others in its.joined.values() for rates in others.values() for rate in rates]
    ports = {view.name(guid): _port_count(view, guid) for guid in view.switches}
    used = {view.name(guid): len(view.linked.get(guid, [])) for guid in view.switches}
    free = {leaf: ports[leaf] - used[leaf] for leaf in leaves}
    whole = bisection(its)
    spare = min(free.values(), default=0)
    cuts = sorted(_cuts(its, attached), key=_cost)
    return FoundPlane(
        view.graph.plane,
        len(per_host),
        sum(per_host.values()),
        Counter(per_host.values()).most_common(1)[0][0],
        max(host_rates, default=None) if its.known else None,
        {tier: len(names) for tier in TIERS if (names := its.of_tier(tier))},
        max(ports.values()),
        max([*cabled, *host_rates], default=None) if its.known else None,
        "infiniband" if view.graph.source == IBNETDISCOVER else "ethernet",
        None if whole is None else whole.gbps,
        None if whole is None or not whole.hosts_gbps else min(1.0, whole.gbps / whole.hosts_gbps),
        _ratios(its, leaves),
        _imbalance(its, leaves),
        tuple(cut.part for cut in cuts if cut.hosts_cut or cut.gbps == 0),
        tuple(cuts[:worst]),
        _one_more(its, leaves, spare),
        spare,
    )


def _port_count(view: View, guid: str) -> int:
    """Return the ports of a switch: the highest number, because the graph has each port up to it."""
    ports = [number for number in view.nodes[guid].ports if number]
    return max(len(ports), max(ports, default=0) if view.graph.source == IBNETDISCOVER else 0)


def _attached(view: View) -> dict[str, list[str]]:
    """Return leaf → the host of each of its cables to hosts."""
    found: dict[str, list[str]] = {}
    for (guid, _port), (other, _far) in view.peers.items():
        if view.is_switch(guid) and view.is_host(other):
            found.setdefault(view.name(guid), []).append(view.host(other))
    return found


def _cost(cut: Cut) -> tuple[int, float, int, list[tuple[str, int]]]:
    return -cut.hosts_cut, cut.gbps if cut.gbps is not None else 0.0, -cut.ports_cut, natural(cut.part)


def _cuts(its: Shape, attached: Mapping[str, list[str]]) -> Iterator[Cut]:
    """Yield the cost of the failure of each switch, and of one cable between each two switches."""
    total = Counter(host for hosts in attached.values() for host in hosts)
    for switch in its.tier:
        lost = Counter(attached.get(switch, []))
        gone = sum(count == total[host] for host, count in lost.items())
        yield _cut(switch, without_switch(its, switch), gone, sum(lost.values()))
    for low, others in its.joined.items():
        for high in others:
            if TIERS.index(its.tier[low]) < TIERS.index(its.tier[high]):
                yield _cut(f"{low} to {high}, one cable", without_cable(its, low, high), 0, 0)


def _cut(part: str, left: Shape, hosts: int, ports: int) -> Cut:
    found = bisection(left)
    leaves = [leaf for leaf in left.of_tier("leaf") if left.hosts.get(leaf)]
    ratios = _ratios(left, leaves)
    isolated = len(leaves) > 1 and any(not left.above(leaf) for leaf in leaves)
    gbps = 0.0 if isolated else None if found is None else found.gbps
    return Cut(part, hosts, ports, gbps, None if ratios is None else ratios[1])


def without_switch(its: Shape, switch: str) -> Shape:
    """Return the shape after a switch has failed."""
    joined = {
        each: {other: rates for other, rates in others.items() if other != switch} for each, others in its.joined.items() if each != switch
    }
    return replace(
        its,
        tier={each: tier for each, tier in its.tier.items() if each != switch},
        joined=joined,
        hosts={each: rates for each, rates in its.hosts.items() if each != switch},
    )


def without_cable(its: Shape, low: str, high: str) -> Shape:
    """Return the shape after one cable between two switches, the fastest, has failed."""

    def less(each: str, other: str, rates: tuple[float, ...]) -> tuple[float, ...]:
        return rates[:-1] if {each, other} == {low, high} else rates

    joined = {
        each: {other: kept for other, rates in others.items() if (kept := less(each, other, rates))} for each, others in its.joined.items()
    }
    return replace(its, joined=joined)


def _ratios(its: Shape, leaves: list[str]) -> tuple[float, float] | None:
    found = [sum(its.hosts[leaf]) / up for leaf in leaves if (up := its.gbps(leaf, its.above(leaf)))]
    return (min(found), max(found)) if found else None


def _imbalance(its: Shape, leaves: list[str]) -> float | None:
    counts = [len(its.joined.get(leaf, {}).get(spine, ())) for leaf in leaves for spine in its.of_tier("spine")]
    if its.of_tier("core"):
        counts = [count for count in counts if count]
    return None if not counts or not min(counts) else max(counts) / min(counts)


def _one_more(its: Shape, leaves: list[str], spare: int) -> tuple[int, float] | None:
    """Return the links to each leaf and the bisection with one more spine, which is as well connected as the others if ports allow it."""
    spines = its.of_tier("spine")
    if not spines or its.of_tier("core"):
        return None
    rates = [its.joined.get(leaf, {}).get(spine, ()) for leaf in leaves for spine in spines]
    links = min(spare, max(map(len, rates), default=0))
    rate = max((rate for each in rates for rate in each), default=0.0)
    if not links or not rate:
        return None
    name = "one more spine"
    joined: dict[str, dict[str, tuple[float, ...]]] = {each: dict(others) for each, others in its.joined.items()}
    joined[name] = {}
    for leaf in leaves:
        joined.setdefault(leaf, {})[name] = joined[name][leaf] = (rate,) * links
    more = bisection(Shape({**its.tier, name: "spine"}, joined, its.hosts, its.known))
    return None if more is None else (links, more.gbps)


def wishes_of(plane: FoundPlane, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return rdma_plan for the same hosts and switches. given: keys of the user, which have priority.

    Raises ParseError if the rates are not known.
    """
    if plane.port_gbps is None or plane.switch_gbps is None:
        raise ParseError(f"rates of the links of plane {plane.name} are not known, so no plan can be compared with it.")
    found = {
        "hosts": max(2, plane.hosts),
        "nics_per_host": plane.ports_per_host,
        "nic_gbps": plane.port_gbps,
        "fabric": plane.fabric,
        "switch": {"ports": plane.switch_ports, "gbps": max(plane.switch_gbps, plane.port_gbps)},
    }
    return {**found, **given}


def difference(plane: FoundPlane, best: Candidate | None, why_not: str = "") -> list[str]:
    """Return what is found and what differs from the best plan, a sentence each. why_not: why there is no plan."""
    lines = [
        f"{plane.hosts} hosts with {plane.ports} ports, {_counts(plane.switches)} with {plane.switch_ports} ports; "
        f"{plane.free_ports} free ports on the fullest leaf",
        f"bisection: {_gbps(plane.gbps)} per direction between two halves of the leaves"
        + ("" if plane.share is None else f", {plane.share:.0%} of what their hosts can send"),
    ]
    if plane.ratio is not None:
        low, high = plane.ratio
        lines.append(f"oversubscription of the leaves: {low:.3g}:1" + (f" to {high:.3g}:1" if round(high - low, 3) else ""))
    if "spine" in plane.switches:
        lines.append(
            "links between leaves and spines: not each leaf is connected to each spine"
            if plane.imbalance is None
            else f"links between leaves and spines: imbalance {plane.imbalance:g} (largest / smallest number)"
        )
    lines.append(f"single points of failure, which cut hosts or halves: {first_of(plane.single, WORST) or 'none'}")
    if plane.more is not None:
        links, gbps = plane.more
        gain = "no gain" if plane.gbps is None or gbps <= plane.gbps else f"{gbps - plane.gbps:,.0f} Gb/s more"
        lines.append(f"one more spine with {links} cables to each leaf: bisection {_gbps(gbps)}, {gain}")
    elif "spine" in plane.switches and "core" not in plane.switches:
        lines.append("one more spine: not possible, because a leaf has no free port")
    if best is None or best.measures is None:
        lines.append(f"best plan for this hardware: none. {why_not}".rstrip())
        return lines
    measures = best.measures
    lines.append(
        f"best plan for this hardware: {best.family} with {_counts(measures.switches)}, bisection {_gbps(measures.bisection_gbps)}"
    )
    lines += [f"differs: {words}" for words in _differs(plane, measures)] or ["it differs in nothing that is compared"]
    return lines


def _differs(plane: FoundPlane, measures: Measures) -> Iterator[str]:
    for tier in TIERS:
        here, there = plane.switches.get(tier, 0), measures.switches.get(tier, 0)
        if here != there:
            more = "more" if here > there else "fewer"
            yield f"{abs(here - there)} {more} switches of tier {tier} than the plan ({here}, planned {there})"
    planned = measures.ratio.get("leaf")
    full = 1 / max(1.0, planned or 1.0)
    if plane.share is not None and plane.share < full * 0.99:
        yield f"half of the hosts send {plane.share:.0%} of their rate to the other half, planned {full:.0%}"
    if plane.ratio is not None and planned is not None and plane.ratio[1] > planned * 1.01:
        yield f"oversubscription of a leaf {plane.ratio[1]:.3g}:1, planned {planned:.3g}:1"
    if "spine" in plane.switches and plane.imbalance != 1:
        yield "unequal links between leaves and spines, planned equal"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {tier}" for tier, count in counts.items())


def _gbps(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.0f} Gb/s"


def failure_rows(plane: FoundPlane) -> list[tuple[str, ...]]:
    """Return the cells of the N-1 table, the head first."""

    def left(cut: Cut) -> str:
        return "-" if cut.gbps is None or not plane.gbps else f"{cut.gbps / plane.gbps:.1%}"

    return [
        FAILURE_HEAD,
        *(
            (
                "", cut.part, str(cut.hosts_cut), str(cut.ports_cut), "-" if cut.gbps is None else f"{cut.gbps:,.0f}", left(cut),
                "-" if cut.ratio is None else f"{cut.ratio:.3g}:1",
            )
            for cut in plane.cuts
        ),
    ]  # fmt: skip


def found_text(planes: Mapping[str, tuple[FoundPlane, list[str], str]]) -> str:
    """Return the text for a person. planes: name → figures, lines of difference(), and the run that stored the graph."""
    parts = []
    for name, (plane, lines, run) in planes.items():
        rows = failure_rows(plane)
        parts.append(
            "\n".join([f"Plane {name}, graph of run {run}", *(f"  {line}" for line in lines), "", "One failure costs:", *table(rows)])
        )
    return "\n\n".join(parts)


def found_page(planes: Mapping[str, tuple[FoundPlane, list[str], str]]) -> Page:
    """Return the same as a page."""
    sections = []
    for name, (plane, lines, run) in planes.items():
        head, *rows = failure_rows(plane)
        sections += [
            Section(f"Plane {name}, graph of run {run}", lines),
            Section(f"The cost of one failure in plane {name}", tables=[Table(head, rows)]),
        ]
    return Page("The found fabrics and the best plans for their hardware", sections)
