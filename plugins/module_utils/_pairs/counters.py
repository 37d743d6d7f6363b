# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The counters of the ports that a sweep measures on this host, before it and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import read_boot
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import EthtoolPort
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool_ioctl import IoctlPort
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import read_netdev, read_netdevs
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import (
    PACKETS,
    of_netdev,
    of_port,
    packets_of,
    priority_counters,
    since,
    uncounted,
)
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, Port, read_devices

#: The fields of PriorityCounters that are kept for each priority.
PRIORITY_FIELDS = (
    *("rx_bytes", "tx_bytes", "rx_pause", "tx_pause"),
    *("rx_discards", "rx_buffer_discards", "rx_congestion_discards"),
)
#: Congestion notifications and their causes, which are not errors: ports/N/hw_counters of mlx5 and ionic.
CNPS = ("np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "rp_cnp_ignored")


@dataclass(frozen=True)
class Place:
    """The port with which a host takes part in a rail; port: its number, as facts name it ("1")."""

    rail: str
    device: str
    port: str


#: A snapshot of the counters of some places.
ReadCounters = Callable[[Sequence[Place]], dict[str, Any]]


def places_of(plan: Mapping[str, Any], host: str) -> list[Place]:
    """Return the places of a host in a plan of schema 2; rails without an endpoint of the host are left out. Raises ParseError."""
    try:
        position = plan["hosts"].index(host)
        profiles = [(rail["name"], rail["profiles"][position]) for rail in plan["rails"]]
        used = [(name, plan["profiles"][number]) for name, number in profiles if number is not None]
        return [Place(name, profile["device"], str(profile["port"])) for name, profile in used]
    except (KeyError, IndexError, TypeError, ValueError) as exc:
        raise ParseError(f"the plan does not say where {host} is: {type(exc).__name__} {exc}") from exc


def read_snapshot(places: Sequence[Place], sys: SysRoot, port: EthtoolPort) -> dict[str, Any]:
    """Return the current counters of the places, as a cut of the tree of facts that `since` compares.

    Counters that do not exist or that the driver does not report are left out. Raises ParseError and OSError as reading facts does.
    """
    devices = read_devices(sys, read_netdevs(sys), PciReader(sys))
    used = {place.device: devices[place.device] for place in places if place.device in devices}
    return {
        "boot": asdict(read_boot(sys)),
        "devices": {name: _device(device, _numbers(places, name)) for name, device in used.items()},
        "netdevs": {name: _netdev(sys, port, name) for name in sorted(_netdevs(places, used))},
    }


def read_live(places: Sequence[Place]) -> dict[str, Any]:
    """Return read_snapshot of the running system."""
    return read_snapshot(places, SysRoot(), IoctlPort())


def risen(places: Iterable[Place], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return rail → {"seconds": between the two snapshots, "risen": counter → increase, "netdev", "priorities", "cnps", and those below}.

    priorities: priority ("3") → increase of each of PRIORITY_FIELDS, None where the driver does not report it or it went down; empty where
    the driver counts no priorities, None where its interface cannot be compared. cnps: increase of each of CNPS that the driver reports.
    packets: the increase of those of PACKETS, None where one is missing or went down. counted: the number of compared counters.
    uncounted: the counters whose increase is not known, because they were cleared, disappeared or are full.
    A rail whose port cannot be compared (another boot, another card, removed) is not included.
    """
    found = since(before, after, "")
    if found is None:
        return {}
    rails = {}
    for place in places:
        rose = found["devices"].get(place.device, {}).get(place.port)
        if rose is not None:
            ports = [snapshot["devices"][place.device]["ports"][place.port] for snapshot in (before, after)]
            netdev = ports[1]["netdev"]
            # The counters of an interface that cannot be compared are then missing in the later reading.
            of_netdevs = [_of_interface(before, netdev), _of_interface(after, netdev) if netdev in found["netdevs"] else {}]
            readings = [{**of_interface, **port["counters"]} for of_interface, port in zip(of_netdevs, ports)]
            packets = [port.get("packets", {}) for port in ports]
            rails[place.rail] = {
                "seconds": found["seconds"],
                "risen": {**rose, **found["netdevs"].get(netdev, {})},
                "netdev": netdev,
                "priorities": _of_priorities(before["netdevs"][netdev], after["netdevs"][netdev]) if netdev in found["netdevs"] else None,
                "cnps": {name: by for name, by in _rose(*(port.get("cnps", {}) for port in ports)).items() if by is not None},
                "packets": {way: _by(packets[0].get(way), packets[1].get(way)) for way in PACKETS},
                "counted": len(readings[0].keys() & readings[1].keys()),
                "uncounted": uncounted(*readings),
            }
    return rails


def _of_interface(snapshot: Mapping[str, Any], netdev: str | None) -> dict[str, int]:
    """Return the counters of an interface in a snapshot; none if it is not there."""
    there = snapshot["netdevs"].get(netdev)
    return {} if there is None else of_netdev(there["ethtool"]["counters"], there["carrier_downs"])


def _of_priorities(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, int | None]] | None:
    if "priorities" not in before:
        return None
    return {priority: _rose(before["priorities"].get(priority, {}), counters) for priority, counters in after["priorities"].items()}


def _rose(before: Mapping[str, int | None], after: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return the increase of each counter; None for one that is missing in either reading, or went down."""
    return {name: _by(before.get(name), value) for name, value in after.items()}


def _by(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None or after < before else after - before


def _numbers(places: Iterable[Place], device: str) -> list[str]:
    return [place.port for place in places if place.device == device]


def _netdevs(places: Iterable[Place], devices: Mapping[str, Device]) -> set[str]:
    ports = (devices[place.device].ports.get(place.port) for place in places if place.device in devices)
    return {port.netdev for port in ports if port is not None and port.netdev is not None}


def _device(device: Device, numbers: Sequence[str]) -> dict[str, Any]:
    ports = {number: port for number, port in device.ports.items() if number in numbers}
    return {"node_guid": device.node_guid, "ports": {number: _port(port) for number, port in ports.items()}}


def _port(port: Port) -> dict[str, Any]:
    counters = port.hw_counters or {}
    cnps = {name: counters[name] for name in CNPS if counters.get(name) is not None}
    known, packets = of_port(port.counters, port.hw_counters), packets_of(port.counters, port.hw_counters)
    return {"netdev": port.netdev, "counters": known, "cnps": cnps, "packets": packets}


def _netdev(sys: SysRoot, port: EthtoolPort, name: str) -> dict[str, Any]:
    seen, statistics = read_netdev(sys, name), port.statistics(name) or {}
    known = of_netdev(statistics, seen.carrier_downs)
    priorities = {
        str(priority): {field: getattr(counters, field) for field in PRIORITY_FIELDS}
        for priority, counters in priority_counters(statistics).items()
    }
    return {"mac": seen.mac, "carrier_downs": seen.carrier_downs, "ethtool": {"counters": known}, "priorities": priorities}
