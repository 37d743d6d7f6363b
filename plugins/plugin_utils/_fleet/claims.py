# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The properties of a host that should be equal on like hosts, from its intent and its facts.

Values that were not read are omitted, as are ports that are not up or below their plan: other checks report these.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import Module
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, Port
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, rail_ip, resolve, rocev2_gid_index
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts

PACKAGES = ("perftest", "rdma-core")
#: The relative difference up to which rates count as equal, because sysfs rounds.
RATE_TOLERANCE = 0.03
#: A claim of a host: (the group it is compared in, its subject, its value).
Claimed = tuple[Hashable, str, str]


@dataclass(frozen=True)
class Host:
    """A host with known intent and facts."""

    name: str
    intent: Intent
    facts: RunFacts

    @cached_property
    def is_compute(self) -> bool:
        return any(rail["role"] == "compute" for rail in self.intent["rails"])

    @cached_property
    def rails(self) -> list[ResolvedRail]:
        return resolve(self.intent["rails"], self.facts)

    def place(self, rail: ResolvedRail) -> Hashable:
        """The group in which a rail is compared: rails of this name, or in a mesh with this index, on like hosts."""
        mesh = self.intent["fabric"]["topology"] == "mesh"
        return self.is_compute, rail.index if mesh else rail.name

    @property
    def devices(self) -> Iterator[tuple[ResolvedRail, Device]]:
        """The rails that have a device."""
        return ((rail, self.facts.devices[rail.device]) for rail in self.rails if rail.device is not None)

    @property
    def ports(self) -> Iterator[tuple[ResolvedRail, Device, Port]]:
        """The rails that have a port."""
        return ((rail, device, device.ports[rail.port]) for rail, device in self.devices if rail.port is not None)

    @property
    def packages(self) -> Mapping[str, str | None] | None:
        """The packages of the host; None if the package database was not read."""
        return self.facts.stack.distribution.packages if self.facts.stack else None


def firmware(host: Host) -> Iterator[Claimed]:
    """The firmware of each NIC, compared among all NICs of the same board: NVIDIA's firmware is made for one PSID."""
    for rail, device in host.devices:
        if device.board_id and device.firmware:
            yield device.board_id, rail.subject, f"{device.firmware} on board {device.board_id}"


def board(host: Host) -> Iterator[Claimed]:
    for rail, device in host.devices:
        if device.board_id:
            yield host.place(rail), rail.subject, device.board_id


def driver(host: Host) -> Iterator[Claimed]:
    """The version of ib_core and the rails' drivers; the kernel's own have none and are compared only between equal kernels.

    A host whose rails have no devices claims nothing: driver.module reports the driver that is not loaded.
    """
    stack = host.facts.stack
    if stack is None:
        return
    drivers = {str(device.driver) for _rail, device in host.devices}
    if host.rails and not drivers:
        return
    loaded = [(name, stack.modules[name]) for name in ("ib_core", *sorted(drivers - {"ib_core"})) if name in stack.modules]
    kind = f"{stack.kind}: " if stack.kind else ""
    if loaded:
        yield host.is_compute, "driver", kind + ", ".join(f"{name} {_version(module)}" for name, module in loaded)
    own = [f"{name} {module.srcversion}" for name, module in loaded if not module.version and module.srcversion]
    if own:
        yield (host.is_compute, stack.kernel), "driver", f"srcversion of {', '.join(own)}"


def _version(module: Module) -> str:
    if not module.version:
        return "of the kernel"
    return f"{module.version} ({module.srcversion})" if module.srcversion else module.version


def kernel(host: Host) -> Iterator[Claimed]:
    if host.facts.stack and host.facts.stack.kernel:
        yield host.is_compute, "kernel", host.facts.stack.kernel


def packages(host: Host) -> Iterator[Claimed]:
    if host.packages is not None:
        yield host.is_compute, "packages", ", ".join(f"{name} {host.packages.get(name) or 'not installed'}" for name in PACKAGES)


def nccl(host: Host) -> Iterator[Claimed]:
    """The versions installed on the host, without those that frameworks bring."""
    there = host.facts.nccl
    if there is not None and host.packages is not None and not there.tests_unread:
        versions = {
            "NCCL": there.version or there.library,
            "nccl-tests": there.tests.version if there.tests else None,
            "Open MPI": there.openmpi,
        }
        yield host.is_compute, "NCCL", ", ".join(f"{name} {version or 'not installed'}" for name, version in versions.items())


def distribution(host: Host) -> Iterator[Claimed]:
    system = host.facts.stack.distribution if host.facts.stack else None
    if system and system.id:
        yield host.is_compute, "distribution", " ".join(filter(None, (system.id, system.version_id)))


def rate(host: Host) -> Iterator[Claimed]:
    """The rate of each port that is up and whose rate link.rate cannot check against the plan or the NIC's maximum.

    Rates are compared within one kind of board: another kind may be slower, and `alike.board` reports it.
    """
    for rail, device, port in host.ports:
        if port.rate_gbps is None or port.state != "ACTIVE" or device.software or rail.rail["rate_gbps"] is not None:
            continue
        most_gbps = _most_gbps(host, rail)
        if most_gbps is None or port.rate_gbps >= most_gbps * (1 - RATE_TOLERANCE):
            width = f" ({port.width}x)" if port.width else ""
            yield (host.place(rail), device.board_id), rail.subject, f"{port.rate_gbps:g} Gb/s{width}"


def _most_gbps(host: Host, rail: ResolvedRail) -> float | None:
    """The maximum rate that an Ethernet NIC reports, which link.rate uses if no rate is planned."""
    if rail.rail["link_layer"] == "infiniband":
        return None
    netdev = host.facts.netdevs.get(rail.netdev or "")
    speeds = netdev.ethtool.supported_speeds_mbps if netdev and netdev.ethtool else ()
    return max(speeds) / 1000 if speeds else None


def names(host: Host) -> Iterator[Claimed]:
    """The names of each rail's device and interface. In a mesh, the name of a Soft-RoCE device is that of the cable."""
    mesh = host.intent["fabric"]["topology"] == "mesh"
    for rail, _device in host.devices:
        device = None if mesh and rail.rail["soft"] else rail.device
        yield host.place(rail), rail.subject, ", ".join(filter(None, (device, rail.netdev)))


def pcie(host: Host) -> Iterator[Claimed]:
    for rail, device in host.devices:
        if device.pci and device.pci.speed_gtps and device.pci.width:
            yield host.place(rail), rail.subject, f"{device.pci.speed_gtps:g} GT/s x{device.pci.width}"


def mtu(host: Host) -> Iterator[Claimed]:
    """The MTU of each rail without a planned MTU; network.mtu checks the others. In a mesh, the ends of a cable are compared."""
    mesh = host.intent["fabric"]["topology"] == "mesh"
    for rail in host.rails:
        netdev = host.facts.netdevs.get(rail.netdev or "")
        if rail.rail["mtu_bytes"] is None and netdev and netdev.mtu_bytes is not None:
            yield rail.name if mesh else host.place(rail), rail.subject, f"{netdev.mtu_bytes} bytes"


def gid_index(host: Host) -> Iterator[Claimed]:
    for rail, _device, port in host.ports:
        if rail.rail["link_layer"] == "roce":
            index = rocev2_gid_index(port, rail_ip(rail.rail))
            if index is not None:
                yield host.place(rail), rail.subject, str(index)
