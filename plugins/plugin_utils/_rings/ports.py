# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ports of hosts in the graphs of the planes, by the names that NCCL and the intent have for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts

COMPUTE = "compute"


@dataclass(frozen=True)
class HostPort:
    """A port of a host in a plane, with a cable to a switch. label: its rail, or its device if no rail is planned for it."""

    plane: str
    host: str
    label: str
    end: End
    switch_end: End


class Ports:
    """The ports of all hosts. views: plane → its graph. facts: host → its facts, None if there are none."""

    def __init__(self, views: Mapping[str, View], facts: Mapping[str, RunFacts | None]) -> None:
        self._views, self._facts = views, facts
        self._of_node: dict[tuple[str, str], list[HostPort]] = {}
        self._known: dict[tuple[str, str, int | None], HostPort | str] = {}
        self._labelled: dict[tuple[str, str, str], HostPort] = {}
        for plane, view in views.items():
            for port in _ports(plane, view):
                self._of_node.setdefault((plane, port.end[0]), []).append(port)
                self._labelled.setdefault((plane, port.host, port.label), port)

    def of_device(self, host: str, device: str, number: int | None) -> HostPort | str:
        """Return the port of an adapter as NCCL names it ("mlx5_0", or an interface), or why it is unknown."""
        key = host, device, number
        if key not in self._known:
            self._known[key] = self._find(host, device, number)
        return self._known[key]

    def _find(self, host: str, device: str, number: int | None) -> HostPort | str:
        nodes = [(plane, guid) for plane, view in self._views.items() for guid in self._nodes(view, host, device, number)]
        if not nodes:
            return f"{device} of {host} is in no graph"
        found = [port for plane, guid in nodes if (port := self._with_link(plane, guid, number)) is not None]
        if not found:
            return f"{device} of {host} has no cable to a switch in the graph"
        return found[0] if len(found) == 1 else f"{device} of {host} is in the graphs of {len(found)} planes"

    def same_on(self, port: HostPort, host: str) -> HostPort | None:
        """Return the port of the same rail or device of another host, None if it has none."""
        return self._labelled.get((port.plane, host, port.label))

    def rails(self, plane: str) -> dict[str, dict[str, HostPort]]:
        """Return rail → host → its port, of the plane's compute rails; without any planned rail, of all devices."""
        view, found = self._views[plane], dict[str, dict[str, HostPort]]()
        of_plane = (port for (name, _guid), ports in self._of_node.items() if name == plane for port in ports)
        for port in of_plane:
            planned = view.planned(port.end[0])
            if (planned is None and not view.expected) or (planned is not None and planned.role == COMPUTE):
                found.setdefault(port.label, {}).setdefault(port.host, port)
        return found

    def _nodes(self, view: View, host: str, device: str, number: int | None) -> Iterator[str]:
        """Yield the nodes of a device: an HCA of InfiniBand has its name, a port of Ethernet the name of its interface."""
        netdev = self._netdev(host, device, number)
        for guid in view.of_host.get(host, ()):
            planned = view.planned(guid)
            names = {view.nodes[guid].device, planned.device if planned is not None else None} - {None}
            if names & {device, netdev}:
                yield guid

    def _netdev(self, host: str, device: str, number: int | None) -> str | None:
        facts = self._facts.get(host)
        known = facts.devices.get(device) if facts is not None and facts.devices else None
        port = known.ports.get(str(number or 1)) if known is not None else None
        return port.netdev if port is not None and port.link_layer == "Ethernet" else None

    def _with_link(self, plane: str, guid: str, number: int | None) -> HostPort | None:
        infiniband = self._views[plane].graph.source == "ibnetdiscover"
        return next(
            (port for port in self._of_node.get((plane, guid), ()) if not infiniband or number is None or port.end[1] == number), None
        )


def _ports(plane: str, view: View) -> Iterator[HostPort]:
    for host, guids in view.of_host.items():
        for guid in guids:
            label = view.rail(guid) or view.nodes[guid].device or guid
            for number in view.linked.get(guid, ()):
                there = view.peers[guid, number]
                if view.is_switch(there[0]):
                    yield HostPort(plane, host, label, (guid, number), there)
