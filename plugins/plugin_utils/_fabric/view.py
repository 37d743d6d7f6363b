# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fabric's graph as the findings use it: the links, the host and rail of each HCA, and readable names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.build import SOURCE as IBNETDISCOVER
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph, Link, Node, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.rate import SPEEDS
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.tiers import tiers
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

#: A port of a node: its GUID and port number.
End = tuple[str, int]
#: Lanes, and the speed of each: (4, "NDR").
Rate = tuple[int, str]
#: The nodes of the cabling. The SHARP aggregation node is a device inside a switch.
CABLED = ("switch", "host", "router")


@dataclass(frozen=True)
class Expected:
    """A planned rail of a host and its HCA. guid: as in the graph; None, like device, if the facts do not show it."""

    host: str
    rail: str
    guid: str | None = None
    device: str | None = None
    port: int = 1
    rate_gbps: float | None = None
    plane: str = "default"
    role: str = "compute"

    @property
    def words(self) -> str:
        return f"{self.host} {self.device} ({self.rail})" if self.device else f"{self.host} {self.rail}"


class View:
    """One graph, indexed. expected: the hosts' rails in this plane. planned_tiers: switch GUID → tier of the plan.

    mesh: whether the graph has cables between hosts and no switch.
    """

    def __init__(
        self, graph: Graph, expected: Sequence[Expected] = (), planned_tiers: Mapping[str, str] | None = None, *, mesh: bool = False
    ) -> None:
        self.graph, self.mesh = graph, mesh
        self.nodes: Mapping[str, Node] = {guid: node for guid, node in graph.nodes.items() if node.kind in CABLED}
        self.links: list[Link] = sorted(
            (link for link in graph.links if link.a[0] in self.nodes and link.b[0] in self.nodes), key=lambda link: (link.a, link.b)
        )
        self.link_at: dict[End, Link] = {end: link for link in self.links for end in (link.a, link.b)}
        self.peers: dict[End, End] = {here: there for link in self.links for here, there in ((link.a, link.b), (link.b, link.a))}
        self.expected = {each.guid: each for each in expected if each.guid is not None}
        devices = [each for each in expected if each.device is not None]
        self._by_device: dict[tuple[str, str | None], Expected] = {(each.host, each.device): each for each in devices}
        self.planned_tiers = dict(planned_tiers or {})
        self._names: dict[str, str] = {}

    @property
    def plane(self) -> str:
        """Return the readable name of the plane, which replaces the host in findings on switches."""
        return f"plane {self.graph.plane}"

    @property
    def whole(self) -> bool:
        """Return whether the discovery finished and found a fabric. Otherwise, missing elements may exist.

        In an InfiniBand mesh, each cable is a subnet, and the tools see only one of them.
        """
        return self.graph.complete and not self.graph.problems and self.seen and not (self.mesh and self.graph.source == IBNETDISCOVER)

    @property
    def seen(self) -> bool:
        """Return whether the graph has a switch, or in a mesh a cable."""
        return bool(self.switches) or (self.mesh and bool(self.links))

    @cached_property
    def switches(self) -> list[str]:
        return sorted(
            (guid for guid, node in self.nodes.items() if node.kind == "switch"), key=lambda guid: (natural(self.name(guid)), guid)
        )

    @cached_property
    def hcas(self) -> list[str]:
        return sorted((guid for guid, node in self.nodes.items() if node.kind == "host"), key=lambda guid: (natural(self.name(guid)), guid))

    @cached_property
    def of_host(self) -> dict[str, list[str]]:
        """Host → its HCAs, in order."""
        found: dict[str, list[str]] = defaultdict(list)
        for guid in self.hcas:
            found[self.host(guid)].append(guid)
        return dict(found)

    @cached_property
    def _switch_names(self) -> Counter[str]:
        return Counter(node.name for node in self.nodes.values() if node.kind == "switch")

    def is_switch(self, guid: str) -> bool:
        return guid in self.nodes and self.nodes[guid].kind == "switch"

    def is_host(self, guid: str) -> bool:
        return guid in self.nodes and self.nodes[guid].kind == "host"

    def planned(self, guid: str) -> Expected | None:
        """Return the planned rail of an HCA, if the intent has it."""
        node = self.nodes.get(guid)
        return self.expected.get(guid) or (self._by_device.get((node.name, node.device)) if node is not None else None)

    def host(self, guid: str) -> str:
        """The host of an HCA."""
        planned = self.planned(guid)
        return planned.host if planned is not None else self.nodes[guid].name

    def rail(self, guid: str) -> str | None:
        """Return the rail of an HCA: that of the intent, or the device name if no rail is planned at all."""
        planned = self.planned(guid)
        if planned is not None or self._by_device or self.expected:
            return planned.rail if planned is not None else None
        return self.nodes[guid].device

    def name(self, guid: str) -> str:
        """ "leaf3", "node17 mlx5_3"; a switch with a duplicate name has its GUID appended."""
        if guid not in self._names:
            self._names[guid] = self._name(self.nodes[guid], guid)
        return self._names[guid]

    def _name(self, node: Node, guid: str) -> str:
        if node.kind == "switch":
            return node.name if self._switch_names[node.name] == 1 else f"{node.name} ({guid})"
        if node.kind != "host":
            return node.name
        planned = self.planned(guid)
        device = node.device or (planned.device if planned is not None else None) or rest_of(node)
        return f"{self.host(guid)} {device}" if device else self.host(guid)

    def end(self, end: End) -> str:
        """ "leaf3 port 14", "node17 mlx5_3"."""
        guid, number = end
        if self.is_host(guid) and number == 1:
            return self.name(guid)
        return f"{self.name(guid)} port {self.graph.port_name(guid, number)}"

    def port(self, end: End) -> Port | None:
        return self.nodes[end[0]].ports.get(end[1]) if end[0] in self.nodes else None

    @cached_property
    def tiers(self) -> dict[str, str]:
        """Switch → "leaf", "spine" or "core"."""
        return tiers_of(self.peers.items(), self, {})

    @cached_property
    def usual_rates(self) -> dict[tuple[str, ...], Rate]:
        """The rate of more than half of the links of a kind."""
        kinds: dict[tuple[str, ...], Counter[Rate]] = defaultdict(Counter)
        for link in self.links:
            if (rate := rate_of(link)) is not None:
                kinds[self.kind(link)][rate] += 1
        most = {kind: max(counts.items(), key=lambda item: item[1]) for kind, counts in kinds.items()}
        return {kind: rate for kind, (rate, count) in most.items() if 2 * count > sum(kinds[kind].values())}

    @cached_property
    def usual_gbps(self) -> dict[tuple[str, ...], float]:
        """The same in Gb/s."""
        usual = self.usual_rates
        rates = ((self.kind(link), link) for link in self.links)
        return {kind: link.rate_gbps for kind, link in rates if link.rate_gbps is not None and rate_of(link) == usual.get(kind)}

    @cached_property
    def linked(self) -> dict[str, list[int]]:
        """Node → its ports with a link."""
        found: dict[str, list[int]] = defaultdict(list)
        for guid, number in sorted(self.peers):
            found[guid].append(number)
        return found

    def kind(self, link: Link) -> tuple[str, ...]:
        """Return the kind of a link: the tiers of its ends, ("host", "leaf")."""
        return tuple(sorted("host" if not self.is_switch(guid) else self.tiers.get(guid, "switch") for guid, _number in (link.a, link.b)))


def rate_of(link: Link) -> Rate | None:
    """Return lanes and speed of a link, if both are known."""
    return (link.width, link.speed) if link.width is not None and link.speed in SPEEDS else None


def tiers_of(pairs: Iterable[tuple[End, End]], view: View, others: Mapping[str, str]) -> dict[str, str]:
    """Return the tiers for some links, each given in both directions. others: switches that are not in the graph, with their names."""
    neighbors: dict[str, set[str]] = {guid: set() for guid in (*view.switches, *others)}
    hosts: Counter[str] = Counter()
    for (guid, _number), (other, _port) in pairs:
        if guid not in neighbors:
            continue
        if other in neighbors:
            neighbors[guid].add(other)
        elif other not in view.nodes or view.is_host(other):
            hosts[guid] += 1
    names = {guid: others.get(guid) or view.nodes[guid].name for guid in neighbors}
    return tiers({guid: sorted(found) for guid, found in neighbors.items()}, hosts, names, view.planned_tiers)


def rest_of(node: Node) -> str:
    """Return the rest of an HCA's description after the host name: "HCA-4"."""
    description = node.description or ""
    rest = description.removeprefix(node.name).strip()
    return rest if description.startswith(node.name) and " " not in rest else ""
