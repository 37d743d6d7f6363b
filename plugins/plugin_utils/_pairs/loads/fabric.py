# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each plane under the load of the pairs stage: its changes, and the balance of its uplinks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.change import UNDER_LOAD, check_under_load
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.wanted import of_graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Cause, Reporter
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.expected import expected_hcas
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import GRAPHS, LOADED, best_graph, folder_of, readings
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.repaired import TIERS
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Doubt
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Port as PlannedPort
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import PLANE, RunFolder, natural

declare(
    {
        "fabric.balance": Check(
            "pairs",
            "the traffic of each uplink of a leaf while pairs were measured, against the mean of similar uplinks",
            "`ibqueryerrors --counters` before and after the load",
            "check routing engine and adaptive routing; use more queue pairs",
            sources=(reads.result("graph under load"),),
        ),
    }
)

STAGE = "pairs"
AGAIN = "1. Check in the fabric stage which host could read the plane. 2. Rerun with `-e rdma_measure=true`."
NOT_BEFORE = "the fabric stage of this run did not read the plane, so there is nothing to compare with"
BALANCE_CHECK = "fabric.balance"
#: The allowed deviation of a port from the mean of its group.
OFF = 0.20
#: A group whose mean is below this share of its ports' rate was not under load.
LEAST_LOAD = 0.01
#: Octets in a word of PortXmitData and PortRcvData. The classic counters stop at 32 bits.
WORD_BYTES = 4
FULL = 0xFFFFFFFF
BALANCED = f"all uplinks of a leaf carry the same traffic, within {OFF:.0%}"
DIRECTIONS = {"PortXmitData": "up", "PortRcvData": "down"}


@dataclass(frozen=True)
class Odd:
    """An unbalanced uplink. off: its deviation from the mean, negative if below."""

    leaf: str
    spine: str
    end: End
    direction: str
    off: float


def check_balance(reporter: Reporter, before: Graph, seconds: float) -> list[Cause]:
    """Return the findings fabric.balance. The view's graph was read after the load, `seconds` after `before`.

    If most leaves are unbalanced to the same spine, that is one cause, and so are the uplinks of one leaf.
    """
    groups = list(_groups(reporter.view, before))
    loaded = [group for group in groups if _loaded(reporter.view, group, seconds)]
    if not loaded:
        return [reporter.skip(BALANCE_CHECK, "no data counters on uplinks" if not groups else "the uplinks were not under load", BALANCED)]
    odd = [each for group in loaded for each in _odd(reporter.view, group)]
    if not odd:
        return [reporter.well(BALANCE_CHECK, f"{len(loaded)} groups of uplinks", BALANCED)]
    leaves = {each.leaf for each in odd} | {reporter.view.name(end[0]) for group in loaded for _direction, end in group}
    return list(_causes(reporter, odd, len(leaves)))


Group = Mapping[tuple[str, End], int]


def _groups(view: View, before: Graph) -> Iterator[Group]:
    """Yield the bytes that each uplink carried, by leaf and direction."""
    found: dict[tuple[str, str], dict[tuple[str, End], int]] = defaultdict(dict)
    for (guid, number), (other, _port) in sorted(view.peers.items()):
        tier, above = view.tiers.get(guid), view.tiers.get(other)
        if tier not in TIERS or above not in TIERS or TIERS.index(above) != TIERS.index(tier) + 1:
            continue
        for counter, direction in DIRECTIONS.items():
            count = _carried(before.nodes[guid].ports.get(number) if guid in before.nodes else None, view.port((guid, number)), counter)
            if count is not None:
                found[guid, direction][direction, (guid, number)] = count
    yield from (group for group in found.values() if len(group) > 1)


def _carried(before: Port | None, after: Port | None, counter: str) -> int | None:
    then, now = (port.counters.get(counter) if port is not None else None for port in (before, after))
    if then is None or now is None or now < then or now == FULL:
        return None
    return (now - then) * WORD_BYTES


def _loaded(view: View, group: Group, seconds: float) -> bool:
    gbps = [link.rate_gbps for _direction, end in group if (link := view.link_at.get(end)) is not None]
    rate = sum(each for each in gbps if each is not None)
    return seconds > 0 and sum(group.values()) * 8 / seconds / 1e9 >= LEAST_LOAD * rate and any(group.values())


def _odd(view: View, group: Group) -> Iterator[Odd]:
    """Yield unbalanced ports. Ports are compared with the mean of their group in proportion to their rates."""
    rates = {key: (link.rate_gbps if (link := view.link_at.get(key[1])) is not None else None) or 1.0 for key in group}
    share = sum(group.values()) / sum(rates.values())
    for (direction, end), count in group.items():
        off = count / (share * rates[direction, end]) - 1
        if abs(off) > OFF:
            yield Odd(view.name(end[0]), view.name(view.peers[end][0]), end, direction, off)


def _causes(reporter: Reporter, odd: Sequence[Odd], leaves: int) -> Iterator[Cause]:
    by_spine: dict[tuple[str, bool], list[Odd]] = defaultdict(list)
    for each in odd:
        by_spine[each.spine, each.off > 0].append(each)
    taken: set[str] = set()
    most = [
        (those, key)
        for key, those in by_spine.items()
        if len({each.leaf for each in those}) > 1 and 2 * len({e.leaf for e in those}) > leaves
    ]
    lows = [(those, key) for those, key in most if not key[1]] or most
    for those, (spine, high) in sorted(lows, key=lambda item: natural(item[1][0])):
        mean = sum(each.off for each in those) / len(those)
        observed = (
            f"{spine} carries {abs(mean):.0%} {'more' if high else 'less'} than the others, for {len({each.leaf for each in those})} leaves"
        )
        yield _cause(reporter, spine, observed, those)
        taken |= {each.leaf for each in those}
    by_leaf: dict[str, list[Odd]] = defaultdict(list)
    for each in odd:
        if each.leaf not in taken:
            by_leaf[each.leaf].append(each)
    for leaf, those in sorted(by_leaf.items(), key=lambda item: natural(item[0])):
        worst = sorted(those, key=lambda each: (-abs(each.off), natural(each.spine), each.end[1]))
        names = some([f"port {each.end[1]} to {each.spine} {each.off:+.0%} {each.direction}" for each in worst])
        yield _cause(reporter, leaf, f"{leaf}: {names}", those)


def _cause(reporter: Reporter, subject: str, observed: str, odd: Sequence[Odd]) -> Cause:
    remedy = (
        "1. Check the routing engine, whether it uses all spines, and adaptive routing. "
        "2. A few large flows have the same effect: use more queue pairs (NCCL_IB_QPS_PER_CONNECTION)."
    )
    return reporter.cause(BALANCE_CHECK, WARNING, subject, observed, BALANCED, remedy, ends=[each.end for each in odd])


def judge_load(folder: RunFolder, known: Mapping[str, Known]) -> list[Doubt]:
    """Return the findings of the pairs stage on each plane that was read after load in this run; their host is "plane NAME".

    below: the planned ports on the named elements, by the graph before the load. around: all planned ports of the plane.
    """
    found = []
    for name, expected in expected_hcas(known).items():
        after = best_graph(readings(folder, folder_of(LOADED, name)))
        if after is not None:
            before = best_graph(readings(folder, folder_of(GRAPHS, name)))
            around = frozenset((each.host, each.rail) for each in expected)
            earlier = None if before is None else View(before[0], expected)
            for cause in _load_causes(View(after[0], expected), before, after[1]):
                finding = replace(cause.finding, stage=STAGE, host=f"{PLANE}{name}")
                found.append(Doubt(finding, frozenset() if earlier is None else _below(earlier, cause), around))
    return found


def _load_causes(view: View, before: tuple[Graph, float] | None, read_at: float) -> Iterator[Cause]:
    if before is None:
        yield _not_compared(NOT_APPLICABLE, NOT_BEFORE)
    elif not (before[0].complete and view.graph.complete):
        when, partial = ("after", view.graph) if before[0].complete else ("before", before[0])
        why = f": {partial.problems[0]}" if partial.problems else ""
        yield _not_compared(UNKNOWN, f"the reading {when} the load does not cover the whole plane{why}", AGAIN)
    else:
        reporter = Reporter(view)
        yield from check_under_load(reporter, before[0], of_graph(before[0], view))
        yield from check_balance(reporter, before[0], read_at - before[1])


def _not_compared(status: str, observed: str, remedy: str = "") -> Cause:
    return Cause(Finding(STAGE, UNDER_LOAD.check, "", "discovery", status, observed, UNDER_LOAD.expected, remedy))


def _below(before: View, cause: Cause) -> frozenset[PlannedPort]:
    """Return the planned ports of the cables that a cause names, and of the switches at cables between switches."""
    hcas = set[str]()
    for cable in ((end[0], before.peers[end][0]) for end in cause.ends if end in before.peers):
        hcas.update([guid for guid in cable if before.is_host(guid)] or _hcas_on(before, cable))
    planned = (before.planned(guid) for guid in hcas)
    return frozenset((each.host, each.rail) for each in planned if each is not None)


def _hcas_on(view: View, switches: Iterable[str]) -> Iterator[str]:
    for guid in switches:
        peers = (view.peers[guid, number][0] for number in view.linked.get(guid, ()))
        yield from (peer for peer in peers if view.is_host(peer))
