# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of a host's facts tree, in the same shape: those that Ansible keeps, and those that hosts are compared by.

Roles act on the plan of a host and checks judge it; both are made from the whole tree, which is stored in the run folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

DEVICE = ("driver", "software", "firmware", "board_id", "node_guid", "node_type", "numa_node", "function")
PCI = ("address", "speed_gtps", "width", "narrowest")
PORT = ("state", "physical_state", "link_layer", "rate_gbps", "width", "netdev", "rocev2")
#: The values of a port that limit a measurement, besides its rate.
PORT_LIMITS = ("speed", "active_mtu_bytes")
LINK = ("address", "speed_gtps", "width")
#: Meaningless on Ethernet. The P_Keys determine which ports a port reaches.
INFINIBAND = ("lid", "sm_lid", "pkeys")
NETDEV = ("driver", "mac", "mtu_bytes", "carrier", "admin_up", "dev_port", "pci", "function", "ipv4", "ipv6")
NETDEV_LIMITS = ("max_mtu_bytes", "numa_node")
MODULE = ("version", "srcversion")
STACK = ("kind", "kernel")
DISTRIBUTION = ("id", "version_id", "like", "packages", "family")
#: A busy host has many queue pairs.
LOAD = ("gpu_processes", "jobs")
#: The host's time of day, and the control node's before and after it was read.
CLOCK = ("clock_seconds", "between_seconds")
#: The clocks that are compared: also the grandmaster of PTP.
CLOCKS = (*CLOCK, "ptp")


def digest(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that Ansible keeps of a host, as ansible_facts.rdma: at most 10 KB of JSON for a host with 8 NICs."""
    stack = facts["stack"]
    return {
        **_kept(facts, ("schema", "boot", "units")),
        "load": facts.get("load") and _kept(facts["load"], LOAD),
        "devices": {name: _device(device) for name, device in facts["devices"].items()},
        "netdevs": {name: _kept(netdev, NETDEV) for name, netdev in facts["netdevs"].items()},
        **_vlans(facts),
        **_bonds(facts),
        "stack": None if stack is None else _stack(stack),
        **_session(facts),
    }


def _vlans(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the VLANs by which rails are found; nothing without any."""
    found = {name: _kept(vlan, ("parent", "id")) for name, vlan in (facts.get("vlans") or {}).items() if name in facts["netdevs"]}
    return {"vlans": found} if found else {}


def _bonds(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bonds by which rails are found, with their members; nothing without any."""
    found = {
        name: {**_kept(bond, ("mode",)), "members": {member: _kept(each, ("up",)) for member, each in bond["members"].items()}}
        for name, bond in (facts.get("bonds") or {}).items()
        if name in facts["netdevs"]
    }
    return {"bonds": found} if found else {}


def _stack(stack: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_kept(stack, STACK),
        "distribution": {**_kept(stack["distribution"], DISTRIBUTION), **_asked(stack["distribution"])},
        "modules": {name: _kept(module, MODULE) for name, module in stack["modules"].items()},
    }


def _session(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the address of Ansible's session, and the name or address that reaches the host; nothing without a session."""
    session = facts.get("session") or {}
    return {**_kept(facts, ("session", "reached_at"))} if session.get("address") else {}


def comparable(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the digest and all values that are compared between hosts, or determine the limits of a pair.

    For each interface: its speed, its maximum speed, its largest MTU and whether its NIC has priorities. For each port: speed ("NDR") and
    active_mtu_bytes, on InfiniBand its P_Keys. For each device: its MRRS and the bridges ("hops") shared with another one. Also the host's
    clock and ptp4l's report; GPUs, their distance to each device, and the paths of GPUDirect; NCCL, its files and the session that its
    sockets follow; the addresses of all interfaces, without 127.0.0.0/8.
    """
    kept = digest(facts)
    for name, netdev in facts["netdevs"].items():
        kept["netdevs"][name].update(_kept(netdev, NETDEV_LIMITS), ethtool=_speeds(netdev.get("ethtool") or {}))
    shared = _shared_hops(facts["devices"])
    for name, device in facts["devices"].items():
        for number, port in device["ports"].items():
            kept["devices"][name]["ports"][number].update(_kept(port, PORT_LIMITS))
        if device["pci"]:
            hops = [_kept(hop, LINK) for hop in device["pci"].get("hops") or () if hop["address"] in shared]
            kept["devices"][name]["pci"].update(_kept(device["pci"], ("mrrs_bytes",)), **({"hops": hops} if hops else {}))
    if facts.get("distances"):
        kept["distances"] = facts["distances"]
    gpus, nccl, qos = facts.get("gpus"), facts.get("nccl"), facts.get("qos")
    return {
        **kept,
        **_kept(facts, ("gpudirect", "files", "session", "reached_at")),
        "gpus": gpus and [_kept(gpu, ("address",)) for gpu in gpus],
        "nccl": _without_none(nccl) if nccl is not None else None,
        "iommu": _without_none(_kept(facts.get("iommu") or {}, ("virtual_machine",))),
        "qos": qos and {name: _kept(state, ("backend",)) for name, state in qos.items()},
        "interfaces": _addresses(facts.get("interfaces") or {}),
        "time": _kept(facts.get("time") or {}, CLOCKS),
    }


def _addresses(interfaces: Mapping[str, Any]) -> dict[str, Any]:
    """Return the interfaces with addresses, without addresses that other hosts also have on lo."""
    found = {
        name: {
            "ipv4": [address for address in each.get("ipv4") or () if not address.startswith("127.")],
            "ipv6": list(each.get("ipv6") or ()),
        }
        for name, each in interfaces.items()
    }
    return {name: {key: texts for key, texts in each.items() if texts} for name, each in found.items() if any(each.values())}


def _speeds(ethtool: Mapping[str, Any]) -> dict[str, Any]:
    speeds = ethtool.get("supported_speeds_mbps") or []
    return {**_kept(ethtool, ("speed_mbps",)), "supported_speeds_mbps": [max(speeds)] if speeds else []}


def _shared_hops(devices: Mapping[str, Any]) -> set[str]:
    """Return the addresses of the bridges above several devices."""
    paths = [device["pci"].get("hops") or () for device in devices.values() if device["pci"]]
    users = Counter(hop["address"] for hops in paths for hop in hops)
    return {address for address, count in users.items() if count > 1}


def _device(device: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_kept(device, DEVICE),
        "pci": device["pci"] and _kept(device["pci"], PCI),
        "ports": {number: _port(port) for number, port in device["ports"].items()},
    }


def _port(port: Mapping[str, Any]) -> dict[str, Any]:
    """Return a port. Of the GIDs of an InfiniBand port, only the first is kept, which has its GUID."""
    if port["link_layer"] != "InfiniBand":
        return _kept(port, PORT)
    first = [_kept(gid, ("index", "gid")) for gid in port.get("gids") or () if gid["index"] == 0]
    return {**_kept(port, (*PORT, *INFINIBAND)), **({"gids": first} if first else {})}


def _asked(distribution: Mapping[str, Any]) -> dict[str, Any]:
    """Return the installed ones of the requested packages."""
    asked = distribution.get("asked")
    return {} if asked is None else {"asked": _without_none(asked)}


def _without_none(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value is not None}


def _kept(item: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: item[name] for name in names if name in item}
