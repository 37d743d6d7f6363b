# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The equal paths that BGP finds in a plane whose paths go up and then down, never down and up again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LEAF, SPINE, CORE = TIERS = ("leaf", "spine", "core")
#: The tier of a host that speaks BGP, below the leaves. It passes nothing on.
HOST = "host"
RANKS = (HOST, *TIERS)


@dataclass(frozen=True)
class Node:
    """A switch, or a host with BGP, as its neighbors see it.

    cables: the name of the neighbor at the other end of each cable that carries a session.
    """

    tier: str
    asn: int
    cables: tuple[str, ...]


def equal_paths(nodes: Mapping[str, Node]) -> dict[str, dict[str, int]]:
    """Return switch or host → switch → the number of equal paths: the cables to all neighbors that have the shortest path to it.

    A switch announces what it has learned from below to all neighbors, and what it has learned from above only to those below. Switches
    that cannot be reached in this way are not in the result.
    """
    rank = {name: RANKS.index(node.tier) for name, node in nodes.items()}
    by_tier = [[name for name in nodes if rank[name] == tier] for tier in range(len(RANKS))]
    above = {name: Counter(each for each in node.cables if rank[each] > rank[name]) for name, node in nodes.items()}
    below = {name: Counter(each for each in node.cables if rank[each] < rank[name]) for name, node in nodes.items()}
    found: dict[str, dict[str, int]] = {name: {} for name in nodes}
    for destination in (name for name, node in nodes.items() if node.tier != HOST):
        # Switch → its next switches, and the length of these paths.
        via: dict[str, set[str]] = {destination: set()}
        length = {destination: 0}
        for tier in by_tier[rank[destination] + 1 :]:
            for name in tier:
                if hops := {each for each in below[name] if each in via}:
                    via[name], length[name] = hops, 1 + min(length[each] for each in hops)
        for tier in reversed(by_tier):
            for name in tier:
                hops = set() if name in via else {each for each in above[name] if each in via and not _loops(nodes, name, via[each])}
                if hops:
                    length[name] = 1 + min(length[each] for each in hops)
                    via[name] = {each for each in hops if length[each] + 1 == length[name]}
        for name, hops in via.items():
            if name != destination:
                found[name][destination] = sum((above[name] + below[name])[each] for each in hops)
    return found


def _loops(nodes: Mapping[str, Node], name: str, hops: Iterable[str]) -> bool:
    """Return whether BGP refuses a path because it has the switch's own ASN: one core later it is back in the pod of the switch."""
    return any(nodes[each].asn == nodes[name].asn for each in hops)
