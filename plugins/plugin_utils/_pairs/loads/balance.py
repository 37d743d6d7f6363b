# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Load over the spines under test: what each uplink of a leaf carried between two snapshots, against the mean of its like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.mended import TIERS
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.told import Cause, Teller
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

CHECK = "fabric.balance"
#: How far from the mean of its group a port may be.
OFF = 0.20
#: A group whose mean is below this share of its ports' rate was not under test.
LEAST_LOAD = 0.01
#: Octets in a word of PortXmitData and PortRcvData; the classic ones stop at 32 bits.
WORD_BYTES = 4
FULL = 0xFFFFFFFF
EXPECTED = f"each uplink of a leaf carries what the others do, {OFF:.0%} more or less"
DIRECTIONS = {"PortXmitData": "up", "PortRcvData": "down"}


@dataclass(frozen=True)
class Odd:
    """An uplink that is off. off: its share above the mean, negative below."""

    leaf: str
    spine: str
    end: End
    direction: str
    off: float


def check_balance(teller: Teller, before: Graph, seconds: float) -> list[Cause]:
    """Findings fabric.balance: the view's graph was read after load, seconds after `before`, which was read before it.

    Most leaves off at the same spine are one cause, and so are the uplinks of one leaf.
    """
    groups = list(_groups(teller.view, before))
    loaded = [group for group in groups if _loaded(teller.view, group, seconds)]
    if not loaded:
        return [teller.skip(CHECK, "no data counters of uplinks" if not groups else "the uplinks were not under load", EXPECTED)]
    odd = [each for group in loaded for each in _odd(teller.view, group)]
    if not odd:
        return [teller.well(CHECK, f"{len(loaded)} groups of uplinks", EXPECTED)]
    leaves = {each.leaf for each in odd} | {teller.view.name(end[0]) for group in loaded for _direction, end in group}
    return list(_causes(teller, odd, len(leaves)))


Group = Mapping[tuple[str, End], int]


def _groups(view: View, before: Graph) -> Iterator[Group]:
    """Of each leaf and direction the bytes that each uplink carried."""
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
    """Ports are held against the mean of their like, by their rates: a link of half the rate should carry half."""
    rates = {key: (link.rate_gbps if (link := view.link_at.get(key[1])) is not None else None) or 1.0 for key in group}
    share = sum(group.values()) / sum(rates.values())
    for (direction, end), count in group.items():
        off = count / (share * rates[direction, end]) - 1
        if abs(off) > OFF:
            yield Odd(view.name(end[0]), view.name(view.peers[end][0]), end, direction, off)


def _causes(teller: Teller, odd: Sequence[Odd], leaves: int) -> Iterator[Cause]:
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
        yield _cause(teller, spine, observed, those)
        taken |= {each.leaf for each in those}
    by_leaf: dict[str, list[Odd]] = defaultdict(list)
    for each in odd:
        if each.leaf not in taken:
            by_leaf[each.leaf].append(each)
    for leaf, those in sorted(by_leaf.items(), key=lambda item: natural(item[0])):
        worst = sorted(those, key=lambda each: (-abs(each.off), natural(each.spine), each.end[1]))
        names = some([f"port {each.end[1]} to {each.spine} {each.off:+.0%} {each.direction}" for each in worst])
        yield _cause(teller, leaf, f"{leaf}: {names}", those)


def _cause(teller: Teller, subject: str, observed: str, odd: Sequence[Odd]) -> Cause:
    remedy = (
        "See routing (which engine, whether it has been told of all spines, adaptive routing); few large flows do it too: more queue pairs "
        "(NCCL_IB_QPS_PER_CONNECTION) spread them."
    )
    return teller.cause(CHECK, WARNING, subject, observed, EXPECTED, remedy, ends=[each.end for each in odd])
