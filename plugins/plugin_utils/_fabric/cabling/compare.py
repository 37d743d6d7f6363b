# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare wanted with found cables: the fewest causes that explain all differences, a switch before its cables, a swap before two moves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.wanted import Wanted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, View

Pair = tuple[End, End]
Kind = Literal[
    "cut off",
    "switch gone",
    "host gone",
    "leaf empty",
    "replaced",
    "exchanged",
    "missing",
    "swapped",
    "moved",
    "ports",
    "extra node",
    "extra",
]
#: With at least this many cables, a fault of most cables of a node counts as a fault of the node.
SEVERAL = 3


@dataclass(frozen=True)
class Difference:
    """One cause. nodes: the affected nodes, the main one first. wanted: missing cables. found: the cables in their place."""

    kind: Kind
    nodes: tuple[str, ...]
    wanted: tuple[Pair, ...] = ()
    found: tuple[Pair, ...] = ()

    @property
    def ends(self) -> set[End]:
        return {end for pair in (*self.wanted, *self.found) for end in pair}


@dataclass
class Comparison:
    """Compares step by step. Each step removes the differences that it explains."""

    wanted: Wanted
    view: View
    differences: list[Difference] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.peers = dict(self.wanted.peers)
        self.cables = _cables(self.peers)
        self.switches = set(self.wanted.switches)
        self.hosts = dict(self.wanted.hosts)
        self.known = set(self.wanted.names)
        self.gone = {key for key in self.known if key not in self.view.nodes}

    def run(self) -> list[Difference]:
        """Return all differences; an empty list if exactly the wanted cables are found."""
        if self._cut_off():
            return self.differences
        self._renamed()
        self._gone()
        wrong = _pairs({a: b for a, b in self.peers.items() if self.view.peers.get(a) != b and not {a[0], b[0]} & self.gone})
        odd = _pairs({a: b for a, b in self.view.peers.items() if self.peers.get(a) != b})
        odd = self._extra_nodes(odd)
        wrong, odd = self._bundles(wrong, odd)
        wrong, odd = self._swaps(wrong, odd)
        wrong, odd = self._moves(wrong, odd)
        self._missing(wrong)
        self._extra(odd)
        return self.differences

    def _add(self, kind: Kind, nodes: Iterable[str], wanted: Iterable[Pair] = (), found: Iterable[Pair] = ()) -> None:
        self.differences.append(Difference(kind, tuple(dict.fromkeys(nodes)), tuple(wanted), tuple(found)))

    def cables_of(self, node: str) -> list[Pair]:
        """Return the wanted cables of a node, its own end first."""
        return self.cables.get(node, [])

    def _cut_off(self) -> bool:
        """Return whether so few switches are found that the discovering host must be cut off."""
        gone = sorted(self.gone & self.switches, key=lambda key: self.wanted.names[key])
        if len(gone) < SEVERAL or 2 * len(gone) <= len(self.switches):
            return False
        self._add("cut off", gone, [pair for node in gone for pair in self.cables_of(node)])
        return True

    def _renamed(self) -> None:
        """Find nodes in the place of others: a replaced node, or two switches in each other's place."""
        places: dict[str, Counter[str]] = defaultdict(Counter)
        for node in sorted(self.known):
            for a, b in self.cables_of(node):
                there = self.view.peers.get(b)
                if there is not None and there[0] != node and (there[1] == a[1] or node not in self.switches):
                    places[node][there[0]] += 1
        taken = {node: self._replacement(node, places[node]) for node in places}
        swap: dict[str, str] = {}
        for node, new in taken.items():
            if new is None or node in swap:
                continue
            if node in self.gone and new not in self.known and new not in swap.values():
                self._add("replaced", (node, new), self.cables_of(node))
                swap[node] = new
            elif taken.get(new) == node and {node, new} <= self.switches and len(self.cables_of(node)) >= SEVERAL:
                self._add("exchanged", (node, new), [*self.cables_of(node), *self.cables_of(new)])
                swap[node], swap[new] = new, node
        if swap:
            self.peers = {(swap.get(a, a), at): (swap.get(b, b), to) for (a, at), (b, to) in self.peers.items()}
            self.cables = _cables(self.peers)
            self.known |= set(swap.values())
            self.gone -= set(swap)
            self.switches |= {new for node, new in swap.items() if node in self.switches}
            self.hosts.update({new: self.hosts[node] for node, new in swap.items() if node in self.hosts})

    def _replacement(self, node: str, seen: Counter[str]) -> str | None:
        other, count = min(seen.items(), key=lambda item: (-item[1], item[0]))
        same_kind = self.view.is_switch(other) == (node in self.switches)
        return other if same_kind and 2 * count > len(self.cables_of(node)) else None

    def _gone(self) -> None:
        switches = self.gone & self.switches
        hcas = self.gone - switches
        lost = {hca for hca in hcas if (cables := self.cables_of(hca)) and all(b[0] in switches for _a, b in cables)}
        for switch in self._sorted(switches):
            self._add(
                "switch gone", (switch, *self._sorted(b[0] for _a, b in self.cables_of(switch) if b[0] in lost)), self.cables_of(switch)
            )
        self._hosts_gone(hcas - lost)

    def _hosts_gone(self, hcas: set[str]) -> None:
        """Report a leaf that has lost all its hosts as one cause, and a host that has lost several HCAs as one."""
        for leaf in self._sorted(self.switches - self.gone):
            below = [b[0] for _a, b in self.cables_of(leaf) if b[0] in self.hosts]
            if len(set(below)) >= SEVERAL and set(below) <= hcas:
                self._add("leaf empty", (leaf, *self._sorted(below)), [(a, b) for a, b in self.cables_of(leaf) if b[0] in hcas])
                hcas = hcas - set(below)
        by_host: dict[str, list[str]] = defaultdict(list)
        for hca in self._sorted(hcas):
            by_host[self.hosts.get(hca, self.wanted.names[hca])].append(hca)
        for of_host in by_host.values():
            self._add("host gone", of_host, [pair for hca in of_host for pair in self.cables_of(hca)])

    def _sorted(self, nodes: Iterable[str]) -> list[str]:
        return sorted(set(nodes), key=lambda node: (self._name(node), node))

    def _name(self, node: str) -> str:
        return self.wanted.names.get(node) or (self.view.name(node) if node in self.view.nodes else node)

    def _owner(self, node: str) -> str:
        """Return the host of an HCA, or the switch itself."""
        return self.hosts.get(node) or (self.view.host(node) if self.view.is_host(node) else node)

    def _extra_nodes(self, odd: list[Pair]) -> list[Pair]:
        """Report unplanned nodes, if nodes of their kind are planned. Return the cables that remain unexplained."""
        plans = {"switch": bool(self.switches), "host": bool(self.hosts)}
        by_owner: dict[str, list[str]] = defaultdict(list)
        for guid in (*self.view.switches, *self.view.hcas):
            if guid not in self.known and plans[self.view.nodes[guid].kind]:
                by_owner[self._owner(guid)].append(guid)
        extra = {guid for nodes in by_owner.values() for guid in nodes}
        at: dict[str, set[Pair]] = defaultdict(set)
        for pair in odd:
            for node, _port in pair:
                at[node].add(pair)
        for nodes in by_owner.values():
            self._add("extra node", nodes, (), sorted(set[Pair]().union(*(at[node] for node in nodes))))
        unplanned = {guid for guid in self.view.nodes if guid not in self.known}
        return [pair for pair in odd if not {pair[0][0], pair[1][0]} & (extra | unplanned)]

    def _bundles(self, wrong: list[Pair], odd: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        """Report cables between the right switches, on other ports than wanted."""
        seen = _by_nodes(odd)
        wanted: list[Pair] = []
        found: list[Pair] = []
        for nodes, cables in _by_nodes(wrong).items():
            if not set(nodes) <= self.switches or nodes not in seen:
                continue
            linked = sorted(cables, key=lambda pair: (not any(end in self.view.peers for end in pair), pair))
            count = min(len(linked), len(seen[nodes]))
            self._add("ports", nodes, linked[:count], seen[nodes][:count])
            wanted += linked[:count]
            found += seen[nodes][:count]
        return _without(wrong, wanted), _without(odd, found)

    def _swaps(self, wrong: list[Pair], odd: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        """Report two cables that each have an end of the other. Those of the same two hosts or switches are one cause."""
        groups: dict[tuple[str, ...], tuple[list[Pair], list[Pair]]] = {}
        taken: set[End] = set()
        for a, b in wrong:
            x, y = self.view.peers.get(a), self.view.peers.get(b)
            if x is None or y is None or self.peers.get(x) != y or taken & {a, b, x, y}:
                continue
            taken |= {a, b, x, y}
            cables, instead = groups.setdefault(self._swappers(a, b, x, y), ([], []))
            cables += [_pair(a, b), _pair(x, y)]
            instead += [_pair(a, x), _pair(b, y)]
        for owners, (cables, instead) in groups.items():
            self._add("swapped", owners, cables, instead)
        return (
            _without(wrong, [pair for cables, _found in groups.values() for pair in cables]),
            _without(odd, [pair for _wrong, found in groups.values() for pair in found]),
        )

    def _swappers(self, *ends: End) -> tuple[str, ...]:
        hcas = [node for node, _port in ends if node not in self.switches]
        return tuple(self._sorted({self._owner(node) for node in hcas} or {node for node, _port in ends}))

    def _moves(self, wrong: list[Pair], odd: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        """Report cables with one end in its planned place and the other end elsewhere. Those of one host are one cause."""
        free = {end: pair for pair in odd for end in pair}
        groups: dict[str, tuple[list[str], list[Pair], list[Pair]]] = {}
        for pair in wrong:
            a, b = sorted(pair, key=lambda end: end[0] in self.switches)
            at = a if a in free else b if b in free and a[0] in self.switches else None
            if at is None:
                continue
            cable = free[at]
            for end in cable:
                free.pop(end, None)
            nodes, cables, instead = groups.setdefault(self._owner(at[0]) + ("" if at[0] in self.hosts else str(at[1])), ([], [], []))
            nodes.append(at[0])
            cables.append((at, b if at == a else a))
            instead.append((at, self.view.peers[at]))
        for nodes, cables, instead in groups.values():
            self._add("moved", nodes, cables, instead)
        moved = [(_pair(*pair), _pair(*other)) for _n, cables, found in groups.values() for pair, other in zip(cables, found, strict=True)]
        return _without(wrong, [pair for pair, _other in moved]), _without(odd, [other for _cable, other in moved])

    def _missing(self, wrong: list[Pair]) -> None:
        """Report cables without a hint at either end. Most cables of one switch are one cause, and so are those between two switches."""
        while wrong:
            by_switch: dict[str, list[Pair]] = defaultdict(list)
            for pair in wrong:
                for node, _port in pair:
                    if node in self.switches:
                        by_switch[node].append(pair)
            most = [
                (len(cables), node)
                for node, cables in by_switch.items()
                if 2 * len(cables) > len(self.cables_of(node)) and len({end[0] for pair in cables for end in pair} - {node}) >= SEVERAL
            ]
            if not most:
                break
            _count, node = min(most, key=lambda item: (-item[0], self._name(item[1])))
            self._add("missing", (node,), by_switch[node])
            wrong = _without(wrong, by_switch[node])
        groups: dict[tuple[str, ...], list[Pair]] = defaultdict(list)
        for pair in wrong:
            hosts = [self._owner(node) for node, _port in pair if node in self.hosts]
            groups[tuple(hosts) or tuple(node for node, _port in pair)].append(pair)
        for cables in groups.values():
            self._add("missing", [end[0] for pair in cables for end in sorted(pair, key=lambda end: end[0] in self.switches)], cables)

    def _extra(self, odd: list[Pair]) -> None:
        planned = {tuple(sorted("switch" if end[0] in self.switches else "host" for end in pair)) for pair in self.wanted.peers.items()}
        by_nodes = _by_nodes(odd)
        for nodes, cables in by_nodes.items():
            if tuple(sorted("switch" if node in self.switches else "host" for node in nodes)) in planned:
                self._add("extra", nodes, (), cables)


def differences(wanted: Wanted, view: View) -> Iterator[Difference]:
    """Yield the differences between the wanted cables and a discovered graph, as causes."""
    yield from Comparison(wanted, view).run()


def _cables(peers: dict[End, End]) -> dict[str, list[Pair]]:
    found: dict[str, list[Pair]] = defaultdict(list)
    for a, b in sorted(peers.items()):
        found[a[0]].append((a, b))
    return found


def _pair(a: End, b: End) -> Pair:
    return (a, b) if a <= b else (b, a)


def _pairs(peers: dict[End, End]) -> list[Pair]:
    return sorted({_pair(a, b) for a, b in peers.items()})


def _by_nodes(pairs: Iterable[Pair]) -> dict[tuple[str, str], list[Pair]]:
    found: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for a, b in pairs:
        found[min(a[0], b[0]), max(a[0], b[0])].append((a, b))
    return found


def _without(pairs: list[Pair], taken: Iterable[Pair]) -> list[Pair]:
    gone = {_pair(*pair) for pair in taken}
    return [pair for pair in pairs if pair not in gone]
