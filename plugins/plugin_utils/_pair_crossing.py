# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sample of pairs that crosses spines first: partners under different leaves, and some below one leaf at the end.

The rounds are those of a plan's schedule of kind "meetings": rail → round → [server, client], positions of the plan's hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ansible_collections.rdma.cluster.plugins.module_utils._pair_schedule import serves

#: Of the rounds so many are below single leaves: without them a leaf cannot be told from its uplinks.
BELOW = 0.25
#: Pairings that are tried for a round; the one with the most new pairs is taken.
TRIES = 8

Round = list[list[int]]


def crossing_rounds(leaves: Sequence[str | None], partners: int, seed: int) -> list[Round]:
    """The rounds of one rail: each endpoint meets about that many others, at first under other leaves, none twice.

    leaves: of each host, None for one that has no endpoint on the rail or is not in the graph; such hosts meet nobody.
    """
    members: dict[str, list[int]] = {}
    for host, leaf in enumerate(leaves):
        if leaf is not None:
            members.setdefault(leaf, []).append(host)
    chance, met = Random(seed), set[frozenset[int]]()  # noqa: S311
    below = 0 if len(members) < 2 and partners else min(partners // 2, max(1, round(BELOW * partners)))
    if len(members) < 2:
        below = partners
    rounds = []
    for number in range(partners):
        pairs = _below(members, chance, met) if number >= partners - below else _across(members, chance, met)
        if pairs:
            met |= {frozenset(pair) for pair in pairs}
            rounds.append([list(pair) if serves(*pair) else [pair[1], pair[0]] for pair in sorted(pairs)])
    return rounds


def _across(members: dict[str, list[int]], chance: Random, met: set[frozenset[int]]) -> list[tuple[int, int]]:
    """Hosts leaf by leaf, each with the one half of all hosts further on: under another leaf, unless one leaf has more than half."""
    leaf_of = {host: leaf for leaf, hosts in members.items() for host in hosts}
    best: list[tuple[int, int]] = []
    for _try in range(TRIES):
        leaves = chance.sample(sorted(members), len(members))
        order = [host for leaf in leaves for host in chance.sample(members[leaf], len(members[leaf]))]
        half = len(order) // 2
        pairs = [(min(pair), max(pair)) for pair in zip(order[:half], order[half:], strict=False)]
        new = [pair for pair in pairs if frozenset(pair) not in met and leaf_of[pair[0]] != leaf_of[pair[1]]]
        best = max(best, new, key=len)
    return best


def _below(members: dict[str, list[int]], chance: Random, met: set[frozenset[int]]) -> list[tuple[int, int]]:
    """Hosts of one leaf with one another."""
    best: list[tuple[int, int]] = []
    for _try in range(TRIES):
        orders = (chance.sample(hosts, len(hosts)) for _leaf, hosts in sorted(members.items()))
        pairs = [(min(pair), max(pair)) for order in orders for pair in zip(order[::2], order[1::2], strict=False)]
        best = max(best, [pair for pair in pairs if frozenset(pair) not in met], key=len)
    return best
