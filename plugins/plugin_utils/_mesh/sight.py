# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The discovered cables: the other end of each port, from the neighbors that answered an echo, else from LLDP.

A host is believed about its own MAC addresses and its own ports only. A MAC address that two hosts claim identifies none of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import HOST, Graph
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.link_peers import PortPeers
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import CableEnd
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.answers import Answer
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.plan import Cable, sorted_cables

CABLE, SWITCH, NO_LINK, UNKNOWN = "cable", "switch", "no link", "unknown"


@dataclass(frozen=True)
class Sight:
    """What one port sees. kind: one of the constants above. far: the other end of its cable. words: for a person."""

    kind: str
    words: str
    far: CableEnd | None = None


@dataclass(frozen=True)
class Sights:
    """ends: named port → what it sees. netdevs: named port → its interface, if known."""

    ends: dict[CableEnd, Sight] = field(default_factory=dict)
    netdevs: dict[CableEnd, str] = field(default_factory=dict)

    @property
    def cables(self) -> list[Cable]:
        """The cables between named ports of different hosts, in order."""
        pairs = ((end, sight.far) for end, sight in self.ends.items() if sight.far is not None)
        found = {frozenset(pair): pair for pair in pairs if pair[1] in self.ends and pair[0].host != pair[1].host}
        return sorted_cables(found.values())

    @property
    def without_cable(self) -> dict[str, list[str]]:
        """Host → its named NICs without a known cable between named ports."""
        found: dict[str, list[str]] = defaultdict(list)
        joined = {end for cable in self.cables for end in cable}
        for end in self.ends:
            if end not in joined:
                found[end.host].append(end.nic)
        return dict(found)

    @property
    def notes(self) -> list[str]:
        """A sentence for each named port without a known cable."""
        return [
            f"{self.end(CableEnd(host, nic))}: {self._why(CableEnd(host, nic))}. Its rail stays as it is."
            for host, nics in self.without_cable.items()
            for nic in nics
        ]

    def _why(self, end: CableEnd) -> str:
        far = self.ends[end].far
        if far is None:
            return self.ends[end].words
        return f"its cable ends at {far}, which is {'the same host' if far.host == end.host else 'not a NIC of rdma_rails'}"

    def end(self, end: CableEnd) -> str:
        """Return words for a port: "spark1 enp1s0f0np0 (0000:01:00.0)"."""
        netdev = self.netdevs.get(end)
        return f"{end.host} {end.nic}" if netdev is None else f"{end.host} {netdev} ({end.nic})"


def sights(answers: Mapping[str, Answer], named: Mapping[str, Iterable[str]], lldp: Mapping[str, Graph] | None = None) -> Sights:
    """Return what the named ports see. named: host → its NICs as the intent names them. lldp: host → the graph of its LLDP neighbors."""
    places = _Places(answers)
    ports = {CableEnd(host, nic): _port(answers.get(host), nic) for host, nics in named.items() for nic in nics}
    own = {end: _sight(port, answers.get(end.host), places) for end, port in ports.items()}
    netdevs = {end: port.netdev for end, port in ports.items() if port is not None and port.netdev is not None}
    from_lldp = {end: far for end in own if own[end].kind == UNKNOWN and (far := _lldp_far(end, netdevs, places, lldp or {})) is not None}
    own.update({end: Sight(CABLE, "by LLDP", far) for end, far in from_lldp.items()})
    return Sights(_agreed(own), netdevs)


class _Places:
    """The ports of all hosts that answered, by MAC address and by interface; a port has the name that the host was asked by, if any."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.owners: dict[str, list[CableEnd]] = defaultdict(list)
        self.by_netdev: dict[tuple[str, str], CableEnd] = {}
        self.named: set[CableEnd] = set()
        for host, answer in answers.items():
            if answer.peers is None:
                continue
            asked = {port.netdev: nic for nic, port in answer.peers.ports.items()}
            self.named |= {CableEnd(host, nic) for nic in answer.peers.ports}
            for netdev, nic in answer.peers.nics.items():
                end = CableEnd(host, asked.get(netdev) or nic.pci or nic.mac or netdev)
                self.by_netdev[host, netdev] = end
                if nic.mac is not None:
                    self.owners[nic.mac].append(end)


def _port(answer: Answer | None, nic: str) -> PortPeers | None:
    return answer.peers.ports.get(nic) if answer is not None and answer.peers is not None else None


def _sight(port: PortPeers | None, answer: Answer | None, places: _Places) -> Sight:
    if port is None:
        return Sight(UNKNOWN, (answer.why_not if answer else "") or "its neighbors were not read")
    if port.error or port.carrier is False:
        return Sight(UNKNOWN, port.error) if port.error else Sight(NO_LINK, "no link")
    if len(port.neighbors) == 1:
        return _of_neighbor(port.neighbors[0], places)
    words = f"{len(port.neighbors)} neighbors answer: a switch is behind it"
    return Sight(SWITCH, words) if port.neighbors else Sight(UNKNOWN, "it has a link, but no neighbor answers")


def _of_neighbor(mac: str, places: _Places) -> Sight:
    owners = places.owners.get(mac, [])
    hosts = sorted({each.host for each in owners})
    if len(hosts) != 1:
        words = f"is claimed by {', '.join(hosts)}" if hosts else "is not a NIC of a host of this run"
        return Sight(UNKNOWN, f"its neighbor {mac} {words}")
    # Functions of one port may share its address: the one that the intent names counts.
    return Sight(CABLE, "by an echo", next((each for each in owners if each in places.named), owners[0]))


def _lldp_far(end: CableEnd, netdevs: Mapping[CableEnd, str], places: _Places, lldp: Mapping[str, Graph]) -> CableEnd | None:
    """Return the other end of a port by its LLDP neighbor, if that is a port of a host of this run under its name in the inventory."""
    graph, netdev = lldp.get(end.host), netdevs.get(end)
    peer = graph.peer(f"{end.host} {netdev}", 1) if graph is not None and netdev is not None else None
    node = graph.nodes.get(peer[0]) if graph is not None and peer is not None else None
    if node is None or node.kind != HOST or node.device is None:
        return None
    far = places.by_netdev.get((node.name, node.device))
    return None if far is None or far.host == end.host else far


def _agreed(own: Mapping[CableEnd, Sight]) -> dict[CableEnd, Sight]:
    """Return the sights after both ends of each cable were compared.

    Two ends that see each other are right. One end that sees the other is enough if no other port claims either of them.
    """
    far = {end: sight.far for end, sight in own.items() if sight.far is not None}
    mutual = {end: other for end, other in far.items() if far.get(other) == end}
    single = {end: other for end, other in far.items() if end not in mutual}
    claims = Counter(each for cable in single.items() for each in cable)
    alone = {end: other for end, other in single.items() if claims[end] == claims[other] == 1 and other not in mutual}
    back = {other: end for end, other in alone.items()}
    found = dict(own)
    for end, sight in own.items():
        if end in mutual or end in alone:
            continue
        if end in single:
            found[end] = Sight(UNKNOWN, f"the hosts contradict each other: it sees {single[end]}, which sees another port")
        elif end in back and sight.kind == UNKNOWN:
            found[end] = Sight(CABLE, "seen from the other end", back[end])
    return found
