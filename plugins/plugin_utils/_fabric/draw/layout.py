# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The positions of switches and hosts in the drawing of a fabric: tiers are rows, and hosts are below the leaves that they share."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.tiers import Ways
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

#: Sizes in pixels: a box, the space between boxes, between groups, and between tiers.
WIDTH, HEIGHT, GAP, GROUP_GAP, TIER_GAP = 62, 22, 6, 28, 110
MARGIN, HEAD = 24, 84
#: The leaves of a group per row; hosts have at most twice as many columns. In a fabric with many groups, both are narrower.
LEAF_COLUMNS, NARROW = 4, 2
MANY_GROUPS = 8
#: Lines between tiers need more room the wider the drawing is.
STEEP = 0.05


@dataclass(frozen=True)
class Box:
    """The upper left corner of a box of WIDTH × HEIGHT."""

    x: float
    y: float

    @property
    def top(self) -> tuple[float, float]:
        return self.x + WIDTH / 2, self.y

    @property
    def bottom(self) -> tuple[float, float]:
        return self.x + WIDTH / 2, self.y + HEIGHT


@dataclass(frozen=True)
class Group:
    """Hosts (names, in order) with the same leaves (GUIDs, in order), and the frame of the hosts: x, y, width, height."""

    leaves: tuple[str, ...]
    hosts: tuple[str, ...]
    frame: tuple[float, float, float, float]


@dataclass(frozen=True)
class Layout:
    """switches: GUID → position. hosts: name → position. tiers: rows of switches from the top, each with its y."""

    width: float
    height: float
    switches: dict[str, Box]
    hosts: dict[str, Box]
    groups: list[Group]
    tiers: list[tuple[float, int]]


def host_names(graph: Graph) -> dict[str, list[str]]:
    """Return host name → the GUIDs of its HCAs, both in natural order."""
    found = graph.hosts()
    return {
        name: sorted((node.guid for node in found[name]), key=lambda guid: (natural(graph.nodes[guid].device or ""), guid))
        for name in sorted(found, key=natural)
    }


def lay_out(graph: Graph) -> Layout:
    """Return the positions of all nodes; the same for the same fabric, independent of the order of its nodes."""
    tiers, beside = Ways(graph).tiers(), _beside(graph)
    leaves = tiers[0] if tiers else []
    groups = _groups(graph, leaves, beside)
    upper = list(reversed(tiers[1:]))
    most = NARROW if len(groups) > MANY_GROUPS else LEAF_COLUMNS
    widths = [_columns(len(of), len(names), most) for of, names in groups]
    total = sum(_span(columns) for columns in widths) + GROUP_GAP * max(0, len(groups) - 1)
    width = max(total, *(min(_span(len(tier)), 2400) for tier in upper), 640.0) if upper else max(total, 640.0)
    switches: dict[str, Box] = {}
    rows: list[tuple[float, int]] = []
    y = float(HEAD)
    for tier in upper:
        rows.append((y, len(tier)))
        y = _row(switches, _ordered(graph, tier), (MARGIN, y, width)) + TIER_GAP + STEEP * width
    if leaves:
        rows.append((y, len(leaves)))
    placed, hosts, bottom = _place_groups(groups, widths, most, switches, (MARGIN + (width - total) / 2, y))
    return Layout(width + 2 * MARGIN, bottom + MARGIN, switches, hosts, placed, rows)


def _groups(graph: Graph, leaves: Sequence[str], beside: Mapping[str, frozenset[str]]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return (leaves, hosts) for hosts that share leaves. A host that shares leaves with a group joins it; each leaf is in one group."""
    known = frozenset(leaves)
    by_leaves: dict[frozenset[str], list[str]] = defaultdict(list)
    for name, guids in host_names(graph).items():
        by_leaves[frozenset().union(*(beside[guid] for guid in guids)) & known].append(name)
    main: dict[frozenset[str], list[str]] = {}
    for there, names in sorted(by_leaves.items(), key=lambda item: (-len(item[1]) * len(item[0]), natural(item[1][0]))):
        near = max(main, key=lambda each: (len(each & there), -len(each)), default=frozenset[str]())
        main.setdefault(near if near & there else there, []).extend(names)
    owner: dict[str, frozenset[str]] = {}
    for there in main:
        owner.update({leaf: there for leaf in there if leaf not in owner})
    for leaf in leaves:
        if leaf not in owner:
            owner[leaf] = next((there for other, there in _by_leaf(by_leaves, main) if other == leaf), frozenset())
            main.setdefault(owner[leaf], [])
    found = [(tuple(_ordered(graph, [leaf for leaf in owner if owner[leaf] == there])), _by_name(names)) for there, names in main.items()]
    return sorted(found, key=lambda each: (not each[0], natural(each[1][0] if each[1] else graph.nodes[each[0][0]].name)))


def _by_leaf(
    by_leaves: Mapping[frozenset[str], Sequence[str]], main: Mapping[frozenset[str], Sequence[str]]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield (leaf, the group that its hosts have joined)."""
    group_of = {name: there for there, names in main.items() for name in names}
    for there, names in by_leaves.items():
        yield from ((leaf, group_of[names[0]]) for leaf in sorted(there))


def _beside(graph: Graph) -> dict[str, frozenset[str]]:
    """Return node → the nodes that it has a link to."""
    found: dict[str, set[str]] = {guid: set() for guid in graph.nodes}
    for link in graph.links:
        for one, other in ((link.a[0], link.b[0]), (link.b[0], link.a[0])):
            found.setdefault(one, set()).add(other)
    return {guid: frozenset(of) for guid, of in found.items()}


def _by_name(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=natural))


def _ordered(graph: Graph, guids: Sequence[str]) -> list[str]:
    return sorted(guids, key=lambda guid: (natural(graph.nodes[guid].name), guid))


def _columns(leaves: int, hosts: int, most: int) -> int:
    """Return the width of a group in boxes: roughly a square of hosts, at least its leaves, at most the available space."""
    return max(1, min(most, leaves), min(2 * most if most == LEAF_COLUMNS else most, math.ceil(math.sqrt(hosts))))


def _span(columns: int) -> float:
    return columns * (WIDTH + GAP) - GAP


def _row(into: dict[str, Box], guids: Sequence[str], place: tuple[float, float, float], most: int | None = None) -> float:
    """Place switches in rows, each in the middle of the space (x, y, width). Return where the last row ends."""
    x, y, width = place
    most = most or max(1, int((width + GAP) // (WIDTH + GAP)))
    for number in range(0, len(guids), most):
        row = guids[number : number + most]
        step = WIDTH + GAP if len(row) == most else max(WIDTH + GAP, min(width / len(row), 3 * WIDTH))
        start = x + (width - (len(row) - 1) * step - WIDTH) / 2
        into.update({guid: Box(start + at * step, y) for at, guid in enumerate(row)})
        y += HEIGHT + GAP
    return y - GAP


def _place_groups(
    groups: Sequence[tuple[tuple[str, ...], tuple[str, ...]]],
    widths: Sequence[int],
    most: int,
    switches: dict[str, Box],
    start: tuple[float, float],
) -> tuple[list[Group], dict[str, Box], float]:
    """Place the groups side by side, and add their leaves to switches. Return the groups, the positions of hosts, and the lowest end."""
    x, y = start
    hosts: dict[str, Box] = {}
    rows = max((math.ceil(len(leaves) / most) for leaves, _hosts in groups), default=0)
    below = y + rows * (HEIGHT + GAP) + TIER_GAP / 2
    placed, bottom = [], below
    for (leaves, names), columns in zip(groups, widths, strict=True):
        wide = _span(columns)
        _row(switches, leaves, (x, y, wide), most=min(most, columns))
        hosts.update({name: Box(x + at % columns * (WIDTH + GAP), below + at // columns * (HEIGHT + GAP)) for at, name in enumerate(names)})
        high = math.ceil(len(names) / columns) * (HEIGHT + GAP) - GAP
        placed.append(Group(leaves, names, (x - GAP, below - GAP, wide + 2 * GAP, max(high, 0) + 2 * GAP)))
        bottom = max(bottom, below + high + GAP)
        x += wide + GROUP_GAP
    return placed, hosts, bottom
