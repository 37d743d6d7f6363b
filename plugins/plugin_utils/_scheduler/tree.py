# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tree of a plane for schedulers: groups of hosts on the same leaves, and the switches that join these groups."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.rails import leaf_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.networkx import nx
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.tiers import TIERS
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

#: Two leaves are one group if they share more than this fraction of the hosts of the smaller one: a single wrong cable joins nothing.
SHARED = 0.5
#: A Kubernetes label has at most 63 characters; a number may follow.
LONGEST_NAME = 58


@dataclass(frozen=True)
class Element:
    """A node of the tree: one or more switches that a scheduler sees as one.

    tier: "leaf" | "spine" | "core". switches: their GUIDs; after: the one whose name it has, "" without switches. children: the names of
    elements below; hosts: of a leaf, in natural order.
    """

    name: str
    tier: str
    switches: tuple[str, ...]
    after: str = ""
    children: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tree:
    """The tree of a plane. levels: the elements of each level, leaves first. names: GUID → readable name of each switch.

    strays: host → why it is not entirely in one group. without_port: hosts without a compute port in the graph.
    """

    plane: str
    levels: tuple[tuple[Element, ...], ...]
    names: Mapping[str, str]
    strays: Mapping[str, str]
    without_port: tuple[str, ...]

    @property
    def elements(self) -> list[Element]:
        return [element for level in self.levels for element in level]

    @property
    def groups(self) -> tuple[Element, ...]:
        """The leaves, in the order of the tree."""
        return self.levels[0] if self.levels else ()

    @property
    def hosts(self) -> list[str]:
        """All hosts, those of one leaf together."""
        return [host for group in self.groups for host in group.hosts]

    @property
    def roots(self) -> tuple[Element, ...]:
        """The elements of the highest level: more than one if fabrics have no cable between them."""
        return self.levels[-1] if self.levels else ()

    def paths(self) -> dict[str, list[str]]:
        """Return host → the names of the elements above it, its leaf first."""
        above = {child: each.name for each in self.elements for child in each.children}
        found = {}
        for group in self.groups:
            path = [group.name]
            while path[-1] in above:
                path.append(above[path[-1]])
            found.update(dict.fromkeys(group.hosts, path))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the names of the elements as JSON, for the names of the next plan."""
        return {each.name: {"tier": each.tier, "switches": list(each.switches), "after": each.after} for each in self.elements}


def tree_of(view: View, hosts: Collection[str], before: Mapping[str, Any] | None = None) -> Tree:
    """Return the tree of a plane for these hosts. before: Tree.to_dict of the last plan, whose names are kept.

    All hosts of the graph decide which leaves are one group, so that a host without a proof does not change the tree of the others.
    """
    leaves = {host: found for host in view.of_host if (found := _leaves(view, host))}
    grouped = _grouped(leaves)
    home, strays = {}, {}
    for host in sorted(set(hosts) & leaves.keys(), key=natural):
        counts = Counter(grouped[leaf] for leaf in leaves[host])
        home[host] = min(counts, key=lambda group: (-counts[group], [natural(view.name(guid)) for guid in group]))
        if len(counts) > 1:
            away = sorted({view.name(leaf) for leaf in leaves[host] if grouped[leaf] != home[host]}, key=natural)
            strays[host] = f"{sum(counts.values()) - counts[home[host]]} of its {len(leaves[host])} ports are on {', '.join(away)}"
    names = _Names(view, before or {})
    return Tree(
        view.graph.plane,
        _levels(view, home, names),
        {guid: view.name(guid) for guid in view.switches},
        strays,
        tuple(sorted(set(hosts) - leaves.keys(), key=natural)),
    )


def _leaves(view: View, host: str) -> list[str]:
    """Return the leaf of each compute port of a host. Without a planned rail, every port counts."""
    hcas = view.of_host[host]
    planned = [guid for guid in hcas if view.planned(guid) is not None]
    chosen = [guid for guid in planned if (each := view.planned(guid)) is not None and each.role == "compute"] if planned else hcas
    return [place[1][0] for guid in chosen if (place := leaf_of(view, guid)) is not None]


#: The GUIDs of the leaves of one group, in order.
Group = tuple[str, ...]


def _grouped(leaves: Mapping[str, Sequence[str]]) -> dict[str, Group]:
    """Return leaf → the group of leaves to which it belongs: in a rail-optimized fabric, the same hosts are on one leaf of each rail."""
    hosts, shared = Counter[str](), Counter[tuple[str, str]]()
    for its in leaves.values():
        own = sorted(set(its))
        hosts.update(own)
        shared.update(combinations(own, 2))
    graph: Any = nx.Graph()
    graph.add_nodes_from(hosts)
    graph.add_edges_from(pair for pair, count in shared.items() if count > SHARED * min(hosts[pair[0]], hosts[pair[1]]))
    return {leaf: tuple(sorted(group)) for group in nx.connected_components(graph) for leaf in group}


def _levels(view: View, home: Mapping[str, Group], names: _Names) -> tuple[tuple[Element, ...], ...]:
    members: dict[Group, list[str]] = defaultdict(list)
    for host, group in home.items():
        members[group].append(host)
    if not members:
        return ()
    named = names.of("leaf", list(members))
    levels = [_sorted(Element(*name, hosts=tuple(hosts)) for name, hosts in zip(named, members.values(), strict=True))]
    cover = {each.name: set(each.switches) for each in levels[0]}
    for number, tier in enumerate(TIERS[1:], start=1):
        parts = _joined(view, cover, TIERS[: number + 1])
        if len(parts) == len(cover):
            continue
        own = [tuple(sorted(guid for guid in switches if view.tiers.get(guid) == tier)) for _inner, switches in parts]
        named = names.of(tier, own, [f"{inner[0]}-{tier}" for inner, _switches in parts])
        levels.append(_sorted(Element(*name, children=tuple(inner)) for name, (inner, _switches) in zip(named, parts, strict=True)))
        cover = {name[0]: switches.union(*(cover[child] for child in inner)) for name, (inner, switches) in zip(named, parts, strict=True)}
    return tuple(_in_order(levels))


def _joined(view: View, cover: Mapping[str, Collection[str]], tiers: Collection[str]) -> list[tuple[list[str], set[str]]]:
    """Return the elements that cables of these tiers join, in natural order, each time with the other switches of the part.

    cover: element → all switches in it and below it.
    """
    owner = {guid: name for name, guids in cover.items() for guid in guids}
    usable = {guid for guid in view.switches if guid in owner or view.tiers.get(guid) in tiers}
    graph: Any = nx.Graph()
    graph.add_nodes_from(cover)
    ends = ((link.a[0], link.b[0]) for link in view.links)
    graph.add_edges_from((owner.get(one, one), owner.get(other, other)) for one, other in ends if one in usable and other in usable)
    parts = [(sorted(set(part) & set(cover), key=natural), set(part) - set(cover)) for part in nx.connected_components(graph)]
    return sorted((part for part in parts if part[0]), key=lambda part: natural(part[0][0]))


def _sorted(elements: Iterable[Element]) -> tuple[Element, ...]:
    return tuple(sorted(elements, key=lambda each: natural(each.name)))


def _in_order(levels: Sequence[tuple[Element, ...]]) -> list[tuple[Element, ...]]:
    """Return the levels with the elements of one parent together."""
    found = [levels[-1]]
    for level in reversed(levels[:-1]):
        by_name = {each.name: each for each in level}
        found.insert(0, tuple(by_name[name] for parent in found[0] for name in parent.children))
    return found


class _Names:
    """Names of elements: unique, of characters that Slurm and Kubernetes allow, and as in the last plan if it is the same element."""

    def __init__(self, view: View, before: Mapping[str, Any]) -> None:
        self._view, self._before = view, before
        self._used: set[str] = set()

    def of(self, tier: str, elements: Sequence[Group], others: Sequence[str] = ()) -> list[tuple[str, str, Group, str]]:
        """Return name, tier, switches and the switch with the name of each element of a level. others: names of those without a switch.

        The name is the one in the last plan if more than half of the switches are the same, unless the switch has another name now. Else
        it is the name of the first switch.
        """
        kept = [self._kept(tier, set(switches)) for switches in elements]
        found = []
        for at, switches in enumerate(elements):
            name, after = kept[at] or (("", self._first(switches)) if switches else (others[at], ""))
            found.append((name if kept[at] else self._free(name or self._safe(after)), tier, switches, after))
        return found

    def _kept(self, tier: str, own: set[str]) -> tuple[str, str] | None:
        for name, each in self._before.items():
            then, after = set(each["switches"]), str(each["after"])
            same = each["tier"] == tier and 2 * len(then & own) > max(len(then), len(own))
            if same and name not in self._used and (after not in own or name.startswith(self._safe(after))):
                self._used.add(name)
                return name, after
        return None

    def _safe(self, guid: str) -> str:
        return safe_name(self._view.name(guid))

    def _first(self, switches: Group) -> str:
        return min(switches, key=lambda guid: (natural(self._view.name(guid)), guid))

    def _free(self, name: str) -> str:
        number, free = 2, name
        while free in self._used:
            free, number = f"{name}-{number}", number + 1
        self._used.add(free)
        return free


def safe_name(name: str) -> str:
    """Return a switch's name as Slurm and Kubernetes allow it: letters, digits and _ . - inside, at most LONGEST_NAME characters."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name)[:LONGEST_NAME].strip("-_.") or "switch"
