# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the switches and cables of a design from its layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import FABRIC, Cable, Design, Plug, Switch
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.layout import CORE, DIRECT, Layout
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest


def host_names(hosts: int) -> tuple[str, ...]:
    """Return node1, node2, …"""
    return tuple(f"node{number}" for number in range(1, hosts + 1))


def build(request: PlanRequest, family: str, layout: Layout, planes: int) -> Design:
    """Return the design of a layout. planes: 1 for one fabric, else the number of rails, each of which is a plane of this layout."""
    built = _planes(request, layout, planes)
    return Design(
        family,
        host_names(layout.hosts),
        tuple(plane.name for plane in built),
        tuple(switch for plane in built for switch in plane.switches()),
        tuple(cable for plane in built for cable in plane.cables()),
    )


def keeps_all(request: PlanRequest, layout: Layout, planes: int, at: Mapping[Plug, Cable], count: int) -> bool:
    """Return whether a layout has all cables of an existing design. at: each end of them → its cable. count: their number.

    It stops at the first cable that moves. Cables between switches come first, because few layouts agree in them.
    """
    found = 0
    for plane in _planes(request, layout, planes):
        for cable in chain(plane.upper_cables(), plane.host_cables()):
            for end in (cable.a, cable.b):
                if at.get(end, cable) != cable:
                    return False
            found += cable.a in at
    return found == count


def _planes(request: PlanRequest, layout: Layout, planes: int) -> list[_Plane]:
    names = (FABRIC,) if planes == 1 else request.rails
    return [_Plane(request, layout, name, "" if planes == 1 else f"{name}-", rail) for rail, name in enumerate(names)]


class _Plane:
    """One plane. rail: the rail of its NICs if it has one only."""

    def __init__(self, request: PlanRequest, layout: Layout, name: str, prefix: str, rail: int) -> None:
        self.request = request
        self.layout = layout
        self.name = name
        self.prefix = prefix
        self.rail = rail
        #: The numbers of ports that one physical port takes.
        self.parts = max(request.host_parts, request.uplink_parts)
        self.host_ports = -(-layout.down // request.host_parts)

    def switches(self) -> Iterator[Switch]:
        for tier, count in self.layout.switches.items():
            for number in range(1, count + 1):
                yield Switch(f"{self.prefix}{tier}{number}", tier, self.name, number, self.request.switch.name)

    def cables(self) -> Iterator[Cable]:
        yield from self.host_cables()
        yield from self.upper_cables()

    def upper_cables(self) -> Iterator[Cable]:
        if self.layout.spines:
            yield from self._leaf_cables()
            yield from self._core_cables() if self.layout.reach == CORE else self._direct_cables()

    def _port(self, index: int, parts: int, first: int = 0) -> int:
        """Return the number of a port. index: counts ports of `parts` parts from 0, after `first` physical ports."""
        return (first + index // parts) * self.parts + index % parts + 1

    def _up(self, switch: str, index: int, first: int = 0) -> Plug:
        return Plug(f"{self.prefix}{switch}", self._port(index, self.request.uplink_parts, first))

    def host_cables(self) -> Iterator[Cable]:
        layout = self.layout
        for host in range(layout.hosts):
            group, slot = divmod(host, layout.per_leaf)
            for nic in range(layout.rails):
                rail = nic if layout.rails > 1 else self.rail
                leaf = group * layout.rails + nic if layout.spread else group
                index = slot if layout.spread else slot * layout.rails + nic
                plug = Plug(f"{self.prefix}leaf{leaf + 1}", self._port(index, self.request.host_parts))
                yield Cable(Plug(f"node{host + 1}", rail + 1, f"rail{rail}"), plug, layout.nic_gbps)

    def _leaf_cables(self) -> Iterator[Cable]:
        layout = self.layout
        for leaf in range(layout.leaves):
            pod, place = divmod(leaf, layout.pod_leaves)
            for spine in range(layout.spines):
                for link in range(layout.links):
                    low = self._up(f"leaf{leaf + 1}", spine * layout.links + link, self.host_ports)
                    high = self._up(f"spine{pod * layout.spines + spine + 1}", place * layout.links + link)
                    yield Cable(low, high, layout.link_gbps)

    def _core_cables(self) -> Iterator[Cable]:
        layout = self.layout
        below = layout.pod_leaves * layout.links
        for pod in range(layout.pods):
            for column in range(layout.spines):
                for core in range(layout.cores):
                    for link in range(layout.core_links):
                        low = self._up(f"spine{pod * layout.spines + column + 1}", below + core * layout.core_links + link)
                        high = self._up(f"core{column * layout.cores + core + 1}", pod * layout.core_links + link)
                        yield Cable(low, high, layout.link_gbps)

    def _direct_cables(self) -> Iterator[Cable]:
        layout = self.layout
        below = layout.pod_leaves * layout.links
        if layout.reach != DIRECT:
            return
        for pod in range(layout.pods):
            for other in range(pod + 1, layout.pods):
                for column in range(layout.spines):
                    for link in range(layout.core_links):
                        low = self._up(f"spine{pod * layout.spines + column + 1}", below + (other - 1) * layout.core_links + link)
                        high = self._up(f"spine{other * layout.spines + column + 1}", below + pod * layout.core_links + link)
                        yield Cable(low, high, layout.link_gbps)
