# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The limits set by the shape of a fabric: oversubscription, symmetry, redundancy and bisection, judged as if known faults were fixed."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.lldp import SOURCE
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Cause, Reporter
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.networkx import nx
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.repaired import TIERS, Shape, matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some

declare(
    {
        "fabric.symmetry": Check(
            "fabric",
            "uplinks: equally many and equally fast from each leaf to each spine, and at least two paths",
            "the graph, with known faults counted as repaired",
            "check the cables and ports of the leaf or spine that the finding names",
            sources=(reads.GRAPH,),
        ),
        "fabric.ratio": Check(
            "fabric",
            "the oversubscription of each leaf, and of each spine below core switches, against the intended one (default 1)",
            "the graph, with known faults counted as repaired; `rdma_fabric.planes.NAME.ratio`",
            "add uplinks, move hosts, or set `ratio` to the intended value",
            sources=(reads.GRAPH,),
        ),
    }
)

RATIO, SYMMETRY = "fabric.ratio", "fabric.symmetry"
#: The tolerance above the intended ratio.
RATIO_TOLERANCE = 0.03
#: The tolerance without an intended ratio: a few storage or management servers on a leaf do not mean planned oversubscription.
UNPLANNED_TOLERANCE = 0.15
#: If at least this share of pairs is connected, all of them should be.
DENSE = 0.75
EVEN = "the same number and rate of links from each leaf to each spine, at least two paths"


def check_symmetry(shape: Shape, reporter: Reporter, planned: Collection[str] = ()) -> list[Cause]:
    """Return the findings fabric.symmetry: uneven uplinks, and single points of failure.

    planned: switches with planned cables to other switches. Their uneven uplinks are intended, and no more than a warning.
    """
    causes = list(_all_uneven(shape, reporter))
    if causes and planned:
        uneven = {cause.finding.subject for cause in _all_uneven(_by_number(shape), reporter) if cause.nodes <= set(planned)}
        causes = [_meant(cause) if cause.finding.subject in uneven else cause for cause in causes]
    named = {name for cause in causes for name in cause.nodes}
    causes += _single(shape, named, reporter)
    if causes:
        return causes
    if not shape.of_tier("spine"):
        return [reporter.skip(SYMMETRY, "no spines", EVEN)]
    return [reporter.well(SYMMETRY, f"{len(shape.of_tier('leaf'))} leaves, {len(shape.of_tier('spine'))} spines, all alike", EVEN)]


def _all_uneven(shape: Shape, reporter: Reporter) -> Iterator[Cause]:
    for lower in TIERS[:-1]:
        for rows, columns in matrix(shape, lower):
            yield from _uneven(shape, rows, columns, reporter)


def _by_number(shape: Shape) -> Shape:
    """Return the shape as if all cables between switches had the same rate, because a plan has no rates."""
    joined = {switch: {other: (1.0,) * len(rates) for other, rates in others.items()} for switch, others in shape.joined.items()}
    return replace(shape, joined=joined)


def _meant(cause: Cause) -> Cause:
    if cause.finding.status != ERROR:
        return cause
    remedy = f"This matches the plan. If it is not intended, correct the plan: {cause.finding.subject} is the bottleneck of its tier."
    return replace(cause, finding=replace(cause.finding, status=WARNING, remedy=remedy))


def _uneven(shape: Shape, rows: Sequence[str], columns: Sequence[str], reporter: Reporter) -> Iterator[Cause]:
    cells = {(row, column): shape.joined.get(row, {}).get(column, ()) for row in rows for column in columns}
    if not columns or sum(bool(links) for links in cells.values()) < DENSE * len(cells):
        return
    majority = {row: _majority([cells[row, column] for column in columns]) for row in rows}
    known = [links for links in majority.values() if links is not None]
    even = [links for row in rows if (links := _even([cells[row, column] for column in columns])) is not None]
    of_all = _most(known or even or list(cells.values()))
    # A row without a majority counts as one with the usual uplinks: its cables are in wrong columns, which is a fault of single cells.
    usual = {row: of_all if links is None else links for row, links in majority.items()}
    odd_rows: dict[tuple[float, ...], list[str]] = defaultdict(list)
    for row in rows:
        if usual[row] != of_all:
            odd_rows[usual[row]].append(row)
    for links, those_rows in odd_rows.items():
        less = sum(links) < sum(of_all)
        observed = f"{some(those_rows)}: {_links(links)} to each of {len(columns)}, the others {_links(of_all)}"
        yield _of(reporter, ERROR if less else WARNING, some(those_rows), observed, those_rows)
    # A column is odd only if most rows have the same unusual links to it. More to one row and fewer to another are faults of the rows.
    alike = {column: Counter(cells[row, column] for row in rows if cells[row, column] != usual[row]) for column in columns}
    odd_columns = [column for column in columns if len(rows) > 1 and any(2 * count > len(rows) for count in alike[column].values())]
    for column in odd_columns:
        links = _most([cells[row, column] for row in rows])
        observed = f"{column}: {_links(links)} to each of {len(rows)}, the others above them {_links(of_all)}"
        yield _of(reporter, ERROR, column, observed, [column, *rows])
    odd = {row: [column for column in columns if column not in odd_columns and cells[row, column] != usual[row]] for row in rows}
    off = {row: tuple((column, sum(cells[row, column]) - sum(usual[row])) for column in those) for row, those in odd.items() if those}
    for row in list(off):
        if row not in off:
            continue
        those = off.pop(row)
        other = next((other for other, its in off.items() if its == tuple((column, -gbps) for column, gbps in those)), None)
        off.pop(other or "", None)
        together = [row, *([other] if other is not None else [])]
        observed = "; ".join(
            _cells(each, {column: cells[each, column] for column in odd[each]}, usual[each], len(columns)) for each in together
        )
        yield _of(reporter, ERROR, f"{' and '.join(together)} to {some(odd[row])}", observed, [*together, *odd[row]])


def _cells(row: str, odd: Mapping[str, tuple[float, ...]], usual: tuple[float, ...], columns: int) -> str:
    found = some([f"{_links(links)} to {column}" for column, links in odd.items()])
    rest = f"and {_links(usual)} to each other one" if len(odd) < columns else f"instead of {_links(usual)} to each"
    return f"{row} has {found}, {rest}"


def _of(reporter: Reporter, status: str, subject: str, observed: str, names: Sequence[str]) -> Cause:
    remedy = f"Check the cables and ports of {subject}: its remaining links are a bottleneck."
    return reporter.cause(SYMMETRY, status, subject, observed, EVEN, remedy, nodes=names, absence=True)


def _most(values: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Return the most common value; among equally common ones, the greatest."""
    return max(Counter(values).items(), key=lambda item: (item[1], sum(item[0]), item[0]))[0]


def _majority(values: Sequence[tuple[float, ...]]) -> tuple[float, ...] | None:
    """Return the value of more than half of them, if any."""
    most = _most(values)
    return most if 2 * sum(value == most for value in values) > len(values) else None


def _even(values: Sequence[tuple[float, ...]]) -> tuple[float, ...] | None:
    """Return the value of each if the same links were spread evenly; None if that is impossible."""
    rates = [gbps for links in values for gbps in links]
    each, rest = divmod(len(rates), len(values))
    return None if rest or len(set(rates)) != 1 else (rates[0],) * each


def _links(rates: Sequence[float]) -> str:
    if not rates:
        return "no link"
    kinds = " and ".join(f"{count} × {gbps:g} Gb/s" for gbps, count in sorted(Counter(rates).items(), reverse=True))
    return kinds if any(rates) else f"{len(rates)} links"


def _single(shape: Shape, named: Collection[str], reporter: Reporter) -> Iterator[Cause]:
    """Yield switches and cables that are the only path between leaves with hosts."""
    graph: nx.Graph[str] = nx.Graph((switch, other) for switch, others in shape.joined.items() for other in others)
    ends = {switch for switch, rates in shape.hosts.items() if rates}
    cut = sorted(node for node in nx.articulation_points(graph) if node not in named and _splits(graph, node, ends))
    for node in cut:
        observed = f"{node} is the only path between leaves"
        yield reporter.cause(
            SYMMETRY, WARNING, node, observed, EVEN, f"Connect the leaves below {node} by a second path.", nodes=[node], absence=True
        )
    for a, b in sorted(tuple(sorted(pair)) for pair in nx.bridges(graph)):
        if len(shape.joined[a][b]) == 1 and not {a, b} & {*cut, *named} and not _hangs(graph, a, b, ends):
            observed = f"a single cable connects {a} and {b}"
            remedy = f"Connect {a} and {b} with a second cable."
            yield reporter.cause(SYMMETRY, WARNING, f"{a} to {b}", observed, EVEN, remedy, nodes=[a, b], absence=True)


def _splits(graph: nx.Graph[str], node: str, ends: Collection[str]) -> bool:
    rest = graph.subgraph(other for other in graph if other != node)
    return sum(any(other in ends for other in part) for part in nx.connected_components(rest)) > 1


def _hangs(graph: nx.Graph[str], a: str, b: str, ends: Collection[str]) -> bool:
    """Return whether one end of a bridge leads to no host."""
    rest: nx.Graph[str] = nx.Graph(graph)
    rest.remove_edge(a, b)
    return any(not set(nx.node_connected_component(rest, end)) & set(ends) for end in (a, b))


def check_ratio(shape: Shape, intended: float | None, named: Collection[str], reporter: Reporter, *, compute: bool = True) -> list[Cause]:
    """Return the findings fabric.ratio: bandwidth to the hosts divided by bandwidth to the next tier, for each leaf and spine.

    It is compared with the intended ratio. Without one, oversubscription on a plane with compute rails is a warning; a storage plane is
    measured but not judged. named: switches that another finding already names. compute: whether the plane has compute rails.
    """
    key = f"rdma_fabric.planes.{reporter.view.graph.plane}.ratio"
    expected = f"an oversubscription of at most {intended:g}" if intended is not None else f"no oversubscription, or the one set in {key}"
    most = intended * (1 + RATIO_TOLERANCE) if intended is not None else 1 + UNPLANNED_TOLERANCE
    ratios = dict(_ratios(shape))
    why_not = "no switches above the leaves" if not ratios else "" if shape.known else "some links have no known rate"
    if why_not and intended is not None and (ratios or _uplinks_unseen(shape, reporter)):
        remedy = f"{key} cannot be checked. Configure the switches to report their uplinks and rates by LLDP, or remove it."
        return [reporter.cause(RATIO, UNKNOWN, reporter.view.plane, why_not, expected, remedy)]
    if why_not:
        return [reporter.skip(RATIO, why_not, expected)]
    worse: dict[tuple[str, float, float], list[str]] = defaultdict(list)
    for switch, (down, up) in ratios.items():
        if switch not in named and down > most * up:
            worse[shape.tier[switch], down, up].append(switch)
    if worse and intended is not None:
        return [_worse(rates, switches, expected, reporter) for rates, switches in worse.items()]
    if worse and compute:
        return [_unplanned(rates, switches, expected, reporter, key) for rates, switches in worse.items()]
    shares = {switch: down / up for switch, (down, up) in ratios.items() if up and switch not in named}
    figures = [f"{tier} {_range([shares[switch] for switch in shares if shape.tier[switch] == tier])}" for tier in TIERS[:-1]]
    observed = ", ".join(figure for figure in figures if not figure.endswith(" "))
    if intended is None and worse:
        return [reporter.skip(RATIO, f"{key} is not set, and the plane has no compute rail; measured: {observed}", expected)]
    return [reporter.well(RATIO, observed or "every switch is named by another finding", expected)]


def _uplinks_unseen(shape: Shape, reporter: Reporter) -> bool:
    """Return whether the graph cannot show links between switches.

    That is so if hosts report only their own LLDP neighbors, and the plane has several leaves.
    """
    return reporter.view.graph.source == SOURCE and len(shape.tier) > 1


def _ratios(shape: Shape) -> Iterator[tuple[str, tuple[float, float]]]:
    for lower, upper in itertools.pairwise(TIERS):
        if not shape.of_tier(upper):
            return
        for switch in shape.of_tier(lower):
            down = sum(shape.hosts.get(switch, ())) + shape.gbps(switch, shape.below(switch) if lower != "leaf" else ())
            if down:
                yield switch, (down, shape.gbps(switch, shape.above(switch)))


def _unplanned(rates: tuple[str, float, float], switches: Sequence[str], expected: str, reporter: Reporter, key: str) -> Cause:
    """Return a warning on oversubscription without an intended ratio. A switch without an uplink is an error: no ratio can be meant."""
    _tier, down, up = rates
    if not up:
        return _worse(rates, switches, expected, reporter)
    remedy = f"If this is intended, set {key}: {math.ceil(100 * down / up) / 100:g}. If not, add uplinks, or move hosts to other leaves."
    return reporter.cause(RATIO, WARNING, some(switches), _figures(rates, switches), expected, remedy, nodes=switches, absence=True)


def _figures(rates: tuple[str, float, float], switches: Sequence[str]) -> str:
    _tier, down, up = rates
    ratio = f"{down / up:.3g}" if up else "without an uplink"
    return f"{some(switches)}: {down:g} Gb/s from below, {up:g} Gb/s up: {ratio}"


def _worse(rates: tuple[str, float, float], switches: Sequence[str], expected: str, reporter: Reporter) -> Cause:
    observed = _figures(rates, switches)
    remedy = "Add uplinks, or move hosts to other leaves. If this is intended, correct `ratio`."
    return reporter.cause(RATIO, ERROR, some(switches), observed, expected, remedy, nodes=switches, absence=True)


def _range(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"


def named_of(causes: Sequence[Cause], names: Mapping[str, str]) -> set[str]:
    """Return the names of the switches in troubles."""
    return {names.get(node, node) for cause in causes if cause.is_trouble for node in cause.nodes}
