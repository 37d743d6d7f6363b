# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host says of itself that like hosts should say the same of, by its intent and the digest of its facts.

What was not read is not said, nor what is not up or does not reach what is planned for it: that is the finding of another check.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, rail_ip, resolve

PACKAGES = ("perftest", "rdma-core")
#: A port is as fast as something if it lacks less than this of it: sysfs rounds.
RATE_TOLERANCE = 0.03
#: What a host says: (what it is compared within, its subject, its value).
Said = tuple[Hashable, str, str]


@dataclass(frozen=True)
class Host:
    """A host of which intent and facts are known."""

    name: str
    intent: Mapping[str, Any]
    facts: Mapping[str, Any]

    @cached_property
    def is_compute(self) -> bool:
        return any(rail["role"] == "compute" for rail in self.intent["rails"])

    @cached_property
    def rails(self) -> list[ResolvedRail]:
        return resolve(self.intent["rails"], self.facts)

    @cached_property
    def stack(self) -> Mapping[str, Any]:
        return self.facts.get("stack") or {}

    def place(self, rail: ResolvedRail) -> Hashable:
        """What a rail is compared with: the rail of this name, or in this place, on like hosts."""
        mesh = self.intent["fabric"]["topology"] == "mesh"
        return self.is_compute, rail.index if mesh else rail.name

    def device(self, rail: ResolvedRail) -> Mapping[str, Any]:
        return self.facts["devices"][rail.device] if rail.device is not None else {}

    def port(self, rail: ResolvedRail) -> Mapping[str, Any]:
        port: Mapping[str, Any] = self.device(rail)["ports"][rail.port] if rail.device is not None and rail.port is not None else {}
        return port


def firmware(host: Host) -> Iterator[Said]:
    """Of all NICs that are the same board, wherever they are: NVIDIA's firmware is made for one PSID."""
    for rail in host.rails:
        device = host.device(rail)
        if device.get("board_id") and device.get("firmware"):
            yield device["board_id"], rail.subject, f"{device['firmware']} on board {device['board_id']}"


def board(host: Host) -> Iterator[Said]:
    for rail in host.rails:
        if host.device(rail).get("board_id"):
            yield host.place(rail), rail.subject, host.device(rail)["board_id"]


def driver(host: Host) -> Iterator[Said]:
    """The version of ib_core and of the rails' drivers; the kernel's own have none, and are compared where the kernel is the same."""
    modules = host.stack.get("modules") or {}
    drivers = {str(host.device(rail).get("driver")) for rail in host.rails}
    loaded = [(name, modules[name]) for name in ("ib_core", *sorted(drivers - {"ib_core"})) if name in modules]
    kind = f"{host.stack['kind']}: " if host.stack.get("kind") else ""
    if loaded:
        yield host.is_compute, "driver", kind + ", ".join(f"{name} {_version(module)}" for name, module in loaded)
    own = [f"{name} {module['srcversion']}" for name, module in loaded if not module.get("version") and module.get("srcversion")]
    if own:
        yield (host.is_compute, host.stack.get("kernel")), "driver", f"srcversion of {', '.join(own)}"


def _version(module: Mapping[str, Any]) -> str:
    if not module.get("version"):
        return "of the kernel"
    return f"{module['version']} ({module['srcversion']})" if module.get("srcversion") else str(module["version"])


def kernel(host: Host) -> Iterator[Said]:
    if host.stack.get("kernel"):
        yield host.is_compute, "kernel", host.stack["kernel"]


def packages(host: Host) -> Iterator[Said]:
    installed = (host.stack.get("distribution") or {}).get("packages")
    if installed is not None:
        yield host.is_compute, "packages", ", ".join(f"{name} {installed.get(name) or 'not installed'}" for name in PACKAGES)


def nccl(host: Host) -> Iterator[Said]:
    """Of what is installed on the host; what frameworks bring is theirs."""
    there = host.facts.get("nccl")
    database_read = (host.stack.get("distribution") or {}).get("packages") is not None
    if there is not None and database_read and not there.get("tests_unread"):
        said = {
            "NCCL": there.get("version") or there.get("library"),
            "nccl-tests": (there.get("tests") or {}).get("version"),
            "Open MPI": there.get("openmpi"),
        }
        yield host.is_compute, "NCCL", ", ".join(f"{name} {version or 'not installed'}" for name, version in said.items())


def distribution(host: Host) -> Iterator[Said]:
    said = host.stack.get("distribution") or {}
    if said.get("id"):
        yield host.is_compute, "distribution", " ".join(filter(None, (said["id"], said.get("version_id"))))


def rate(host: Host) -> Iterator[Said]:
    """Of ports that are up, and of which link.rate finds no fault: it judges by the plan, or by what the NIC can do.

    Within one kind of board: of two kinds the slower one is no fault, and `alike.board` tells of them.
    """
    for rail in host.rails:
        port = host.port(rail)
        rate_gbps = port.get("rate_gbps")
        if rate_gbps is None or port.get("state") != "ACTIVE" or host.device(rail).get("software") or rail.rail["rate_gbps"] is not None:
            continue
        most_gbps = _most_gbps(host, rail)
        if most_gbps is None or rate_gbps >= most_gbps * (1 - RATE_TOLERANCE):
            width = f" ({port['width']}x)" if port.get("width") else ""
            yield (host.place(rail), host.device(rail).get("board_id")), rail.subject, f"{rate_gbps:g} Gb/s{width}"


def _most_gbps(host: Host, rail: ResolvedRail) -> float | None:
    """What an Ethernet NIC says that it can do: link.rate judges by that where no rate is planned."""
    if rail.rail["link_layer"] == "infiniband":
        return None
    netdev = (host.facts.get("netdevs") or {}).get(rail.netdev) or {}
    speeds = (netdev.get("ethtool") or {}).get("supported_speeds_mbps") or ()
    return max(speeds) / 1000 if speeds else None


def names(host: Host) -> Iterator[Said]:
    for rail in host.rails:
        if rail.device is not None:
            yield host.place(rail), rail.subject, ", ".join(filter(None, (rail.device, rail.netdev)))


def pcie(host: Host) -> Iterator[Said]:
    for rail in host.rails:
        pci = host.device(rail).get("pci") or {}
        if pci.get("speed_gtps") and pci.get("width"):
            yield host.place(rail), rail.subject, f"{pci['speed_gtps']:g} GT/s x{pci['width']}"


def mtu(host: Host) -> Iterator[Said]:
    """Of rails whose interface keeps its MTU; network.mtu judges the others by the plan. The ends of a cable are compared in a mesh."""
    mesh = host.intent["fabric"]["topology"] == "mesh"
    for rail in host.rails:
        mtu_bytes = ((host.facts.get("netdevs") or {}).get(rail.netdev) or {}).get("mtu_bytes")
        if rail.rail["mtu_bytes"] is None and mtu_bytes is not None:
            yield rail.name if mesh else host.place(rail), rail.subject, f"{mtu_bytes} bytes"


def gid_index(host: Host) -> Iterator[Said]:
    for rail in host.rails:
        if rail.rail["link_layer"] == "roce" and rail.rail["address"]:
            address = rail_ip(rail.rail)
            index = (host.port(rail).get("rocev2") or {}).get(address)
            if index is not None:
                yield host.place(rail), rail.subject, str(index)
