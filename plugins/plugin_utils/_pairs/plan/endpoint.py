# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ends of a pair: the limits of a rail's port and PCIe path, and whether pairs are equal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, UNKNOWN
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._pci.distance import DISTANCES
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciFunction, PciHop, PciLink
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import payload_gbps
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import LINK_LAYERS, ResolvedRail, rail_ip
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort, rail_port
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.gpudirect import DMABUF, gpudirect_path

ROCE, INFINIBAND = LINK_LAYERS["roce"], LINK_LAYERS["infiniband"]
#: The kernel names the older InfiniBand speeds by signaling rate: 8b/10b up to QDR, 64b/66b of 14.0625 Gb/s for FDR's "14".
DATA_SHARES = {"SDR": 0.8, "DDR": 0.8, "QDR": 0.8, "FDR": 14.0625 * 64 / 66 / 14}
#: The speed of a lane by its rate, if the kernel did not print it: kernels before 5.6 do not print SDR.
SPEEDS_OF_LANES = {2.5: "SDR", 5.0: "DDR", 14.0: "FDR"}
SOFTWARE = {"rdma_rxe": "Soft-RoCE", "siw": "Soft-iWARP"}


@dataclass(frozen=True)
class NoLimit:
    """Why there is no limit. status: NOT_APPLICABLE for software, which is compared with its fleet; else UNKNOWN, which is not ok.

    end: the affected end of a pair (0, 1), None for both.
    """

    status: str
    reason: str
    end: int | None = None

    def named(self, one: str, other: str) -> NoLimit:
        """The same, with the host in its reason: "node3: mlx5_0/1 reports no rate"."""
        return replace(self, reason=f"{whose(self.end, one, other)}: {self.reason}")


@dataclass(frozen=True)
class Endpoint:
    """The limits of one end of a pair; equal for equal rails of equal hosts. None: unknown or missing.

    why_not: why there is no limit. rate_gbps: data, after line coding. pcie: the link with the least capacity. pcie_gbps: its payload for
    this rail. shared_with: the rails that get the rest. ipv6: whether RoCE uses an IPv6 address, which has a longer header. vlan: whether
    each packet has a tag. members: of its bond, 0 without one; rate_gbps is then that of one member, which carries a flow alone.
    """

    why_not: NoLimit | None = None
    link_layer: str | None = None
    rate_gbps: float | None = None
    mtu_bytes: int | None = None
    pcie: PciLink | None = None
    pcie_gbps: float = math.inf
    shared_with: tuple[str, ...] = ()
    ipv6: bool = False
    vlan: bool = False
    members: int = 0


def endpoints(rails: Sequence[ResolvedRail], facts: Facts) -> list[Endpoint]:
    """Return an end for each of a host's rails that are measured at the same time, and so share PCIe links. facts: of comparable()."""
    ports = [rail_port("pairs", "", rail, facts) for rail in rails]
    return [_endpoint(port, facts, ports) for port in ports]


def common_mtu_bytes(one: Endpoint, other: Endpoint, asked_bytes: int | None = None) -> int | None:
    """Return the MTU of the queue pairs of two ends: the smaller of theirs, or the requested one (perftest's -m) if it is lower."""
    if not one.mtu_bytes or not other.mtu_bytes:
        return None
    return min(one.mtu_bytes, other.mtu_bytes, asked_bytes or one.mtu_bytes)


def whose(end: int | None, one: str, other: str) -> str:
    """Return the affected host or hosts of a pair."""
    return f"{one} and {other}" if end is None else (one, other)[end]


def pcie_words(link: PciLink) -> str:
    """Return a readable link: "16 GT/s x8"."""
    return f"{link.speed_gtps:g} GT/s x{link.width}"


def _endpoint(port: RailPort, facts: Facts, together: Sequence[RailPort]) -> Endpoint:
    link_layer, mtu_bytes = (port.port.link_layer, port.port.active_mtu_bytes or None) if port.port else (None, None)
    rate_gbps = _data_gbps(port)
    if port.software:
        software = port.device.driver or "" if port.device else ""
        why_not = NoLimit(NOT_APPLICABLE, f"{SOFTWARE.get(software, 'a software device')} has no line rate")
        return Endpoint(why_not, link_layer, rate_gbps, mtu_bytes)
    reason = _unknown(port, rate_gbps, mtu_bytes)
    virtual = facts.iommu is not None and facts.iommu.virtual_machine is True
    link, gbps, others = _pcie(port, [] if virtual else together, virtual=virtual)
    ipv6 = link_layer == ROCE and is_ipv6(rail_ip(port.rail.rail) or "")
    vlan = port.rail.rail.get("vlan") is not None
    unknown, members = NoLimit(UNKNOWN, reason) if reason else None, len(port.rail.members)
    return Endpoint(unknown, link_layer, rate_gbps, mtu_bytes, link, gbps, others, ipv6, vlan, members)


def _unknown(port: RailPort, rate_gbps: float | None, mtu_bytes: int | None) -> str | None:
    """Return why no limit is known; None if it is."""
    if port.not_judged is not None:
        return port.not_judged
    if port.device and port.device.node_type == "RNIC":
        return f"{port.name} is iWARP, which is not a rail"
    if not port.port or port.port.link_layer not in (ROCE, INFINIBAND):
        return f"{port.name} reports no link layer"
    if rate_gbps is None:
        return f"{port.name} reports no rate"
    return None if mtu_bytes else f"the active MTU of {port.name} is unknown (ibv_devinfo shows it)"


def _data_gbps(port: RailPort) -> float | None:
    """Return a port's rate after line coding: 54.5 for the kernel's 56 of 4X FDR. On Ethernet, it is the nominal rate."""
    gbps = port.rate_gbps
    if not gbps or not port.port or not port.infiniband:
        return gbps or None
    lane_gbps = gbps / port.port.width if port.port.width else 0.0
    return gbps * DATA_SHARES.get(port.port.speed or SPEEDS_OF_LANES.get(lane_gbps, ""), 1.0)


def _pcie(port: RailPort, together: Sequence[RailPort], *, virtual: bool) -> tuple[PciLink | None, float, tuple[str, ...]]:
    """Return the link with the least capacity for a rail, that capacity, and the rails that share it; (None, inf, ()) if unknown."""
    found: list[tuple[float, tuple[str, ...], PciLink]] = []
    links: Sequence[PciFunction | PciHop | PciLink | None] = ()
    if port.pci:
        links = [port.pci] if virtual else [port.pci.narrowest, *port.pci.hops]
    for link in links:
        if link and link.speed_gtps and link.width:
            users = [other for other in together if other is not port and other.up and _goes_through(other, link.address)]
            gbps = payload_gbps(link.speed_gtps, link.width)
            wanted = sum(other.rate_gbps or 0.0 for other in (port, *users))
            short = bool(users) and bool(port.rate_gbps) and wanted > gbps
            left = gbps * (port.rate_gbps or 0.0) / wanted if short else gbps
            names = tuple(other.rail.name for other in users) if short else ()
            found.append((left, names, PciLink(link.address, link.speed_gtps, link.width)))
    if not found:
        return None, math.inf, ()
    left, names, least = min(found, key=lambda each: each[0])
    return least, left, names


def _goes_through(port: RailPort, address: str) -> bool:
    return port.pci is not None and any(hop.address == address for hop in port.pci.hops)


Gpu = dict[str, Any]
"""{"bus_id", "dmabuf"}: perftest's --use_cuda_bus_id, and whether it registers the memory through DMA-BUF, not through nvidia_peermem."""


def gpus_of(rails: Sequence[ResolvedRail], intent: Intent, facts: Facts) -> dict[str, Gpu]:
    """Return rail → its GPU; {} for a host without GPUs, or whose NICs are not planned or able to reach them. facts: of comparable().

    Equally near GPUs are used equally often, in the order of their addresses: rails do not share one while another is idle. A GPU with
    unknown distance counts as farthest.
    """
    path = gpudirect_path(intent, facts)["path"]
    distances = facts.distances or {}
    if path is None or not distances:
        return {}
    taken = Counter[str]()
    found = {}
    for rail in rails:
        if rail.device is not None:
            gpu = min(sorted(distances), key=lambda address: (_far(distances[address].get(str(rail.device))), taken[address]))
            taken[gpu] += 1
            found[rail.name] = {"bus_id": gpu, "dmabuf": path == DMABUF}
    return found


def _far(distance: str | None) -> int:
    return DISTANCES.index(distance) if distance in DISTANCES else len(DISTANCES)
