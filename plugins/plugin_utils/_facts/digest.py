# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The digest of a host's facts: what roles, templates, proofs and comparisons between hosts use of the whole tree.

At most 12 KB of JSON for a host with 8 NICs, because Ansible keeps it for every host. The checks on one host read the whole tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import brief_files
from ansible_collections.rdma.cluster.plugins.module_utils._driver.secure_boot import LOCKED_DOWN
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning.acs import brief, pcie_state
from ansible_collections.rdma.cluster.plugins.module_utils._qos.dcb import PRIORITIES
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import NP_PARAMETERS, RP_PARAMETERS

_SAME = ("backend", "dcbx", "trust", "priority_to_tc", "tsa", "bandwidth_percent", "cable_length_m", "traffic_class", "rdma_cm")
DSCPS = 64
_FLAGS = ("pfc", "ecn_np", "ecn_rp")
_PARAMETERS = {"np": tuple(NP_PARAMETERS), "rp": tuple(RP_PARAMETERS)}


def pack_states(qos: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any] | None:
    """Interface → as_tree of its QosState: as {"states": [...], "netdevs": {interface: its state's number}}; None for None."""
    if qos is None:
        return None
    states: list[dict[str, Any]] = []
    netdevs = {}
    for name, state in qos.items():
        packed = _pack(state)
        if packed not in states:
            states.append(packed)
        netdevs[name] = states.index(packed)
    return {"states": states, "netdevs": netdevs}


def unpack_states(packed: Mapping[str, Any] | None) -> dict[str, dict[str, Any]] | None:
    """Interface → what differences compares of its state; None where it was not read."""
    return None if packed is None else {name: _unpack(packed["states"][number]) for name, number in packed["netdevs"].items()}


def _pack(state: Mapping[str, Any]) -> dict[str, Any]:
    packed = {key: state.get(key) for key in _SAME}
    packed.update({key: _bits(state[key]) for key in _FLAGS if state.get(key) is not None})
    packed.update({key: [state[key].get(name) for name in names] for key, names in _PARAMETERS.items() if state.get(key)})
    codes = state.get("dscp_to_priority")
    if codes is not None:
        packed["dscp"] = {code: priority for code, priority in codes.items() if priority != int(code) >> 3}
        packed["dscp_default"] = sum(1 << int(code) for code, priority in codes.items() if priority == int(code) >> 3)
    packed["pause"] = state.get("pause") if any((state.get("pause") or {}).values()) else None
    packed["settable"] = state.get("traffic_class_settable") or None
    return {key: value for key, value in packed.items() if value is not None}


def _unpack(packed: Mapping[str, Any]) -> dict[str, Any]:
    state = {key: packed.get(key) for key in _SAME}
    state.update({key: _flags(packed[key]) for key in _FLAGS if key in packed})
    for key, names in _PARAMETERS.items():
        state[key] = {name: value for name, value in zip(names, packed.get(key) or (), strict=False) if value is not None}
    return {
        **state,
        "pause": packed.get("pause"),
        "dscp_to_priority": _codes(packed),
        "traffic_class_settable": bool(packed.get("settable")),
    }


def _codes(packed: Mapping[str, Any]) -> dict[str, int] | None:
    """Entries of a DSCP's upper three bits, which are most, are kept as one number; a DSCP without an entry is in neither."""
    if "dscp" not in packed:
        return None
    defaults = {str(code): code >> 3 for code in range(DSCPS) if packed["dscp_default"] >> code & 1}
    return {**defaults, **packed["dscp"]}


def _bits(flags: Sequence[bool]) -> int:
    return sum(1 << priority for priority, flag in enumerate(flags) if flag)


def _flags(bits: int) -> Iterable[bool]:
    return [bool(bits >> priority & 1) for priority in range(PRIORITIES)]


DEVICE = ("driver", "software", "firmware", "board_id", "node_guid", "node_type", "numa_node", "function")
PCI = ("address", "speed_gtps", "width", "narrowest")
PORT = ("state", "physical_state", "link_layer", "rate_gbps", "width", "netdev", "rocev2")
#: Of a port, what bounds a measurement besides its rate.
PORT_LIMITS = ("speed", "active_mtu_bytes")
LINK = ("address", "speed_gtps", "width")
#: Meaningless on Ethernet; the P_Keys tell whom a port reaches.
INFINIBAND = ("lid", "sm_lid", "pkeys")
NETDEV = ("driver", "mac", "mtu_bytes", "carrier", "admin_up", "dev_port", "pci", "function", "ipv4")
#: A list in this order.
RINGS = ("rx", "tx", "rx_max", "tx_max")
MODULE = ("version", "srcversion")
STACK = ("kind", "kernel")
DISTRIBUTION = ("id", "version_id", "like", "packages", "family")
#: Taken as they are.
WHOLE = ("schema", "boot", "units", "gpudirect", "firmware")
IOMMU = ("virtual_machine",)
#: The host's time of day, and the control node's before and after it was read.
CLOCK = ("clock_seconds", "between_seconds")
#: Of what logins get, and of services that run, only checks judge.
LIMITS = ("service_memlock", "service_open_files", "remove_ipc")
#: Queue pairs of a host at work are many; the checks and plans that need them read the whole tree.
LOAD = ("gpu_processes", "jobs")
PARTLY = (("limits", LIMITS), ("load", LOAD), ("time", ("chrony",)))


def digest(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The digest of the tree of to_dict; what was not read is not in it."""
    stack = facts["stack"]
    return {
        **_kept(facts, WHOLE),
        **{name: facts[name] and _kept(facts[name], kept) for name, kept in PARTLY if name in facts},
        "devices": {name: _device(device) for name, device in facts["devices"].items()},
        "netdevs": {name: _netdev(netdev) for name, netdev in facts["netdevs"].items()},
        "stack": {
            **_kept(stack, STACK),
            **(_kept(stack, ("lockdown",)) if stack.get("lockdown") in LOCKED_DOWN else {}),
            "distribution": {**_kept(stack["distribution"], DISTRIBUTION), **_asked(stack["distribution"])},
            "modules": {name: _kept(module, MODULE) for name, module in stack["modules"].items()},
        },
        "files": brief_files(facts["files"]) if facts.get("files") is not None else None,
        "cpu": _cpu(facts.get("cpu")),
        "sysctl": _sysctl(facts.get("sysctl")),
        "gpus": [gpu["address"] for gpu in facts.get("gpus") or ()],
        "qos": pack_states(facts.get("qos")),
        "pcie": brief(pcie_state(facts)),
        "nccl": _told(facts["nccl"]) if facts.get("nccl") is not None else None,
        **_session(facts),
        "iommu": _told(_kept(facts.get("iommu") or {}, IOMMU)),
    }


def _session(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Where our session comes in, and by which name or address the control node reaches the host; nothing without a session."""
    session = facts.get("session") or {}
    return {**_kept(facts, ("session", "reached_at"))} if session.get("address") else {}


def rings_of(netdev: Mapping[str, Any]) -> Mapping[str, Any]:
    """The rings of an interface, of the whole tree or of a digest; {} where they are not told."""
    packed = netdev.get("rings")
    return dict(zip(RINGS, packed, strict=False)) if packed else (netdev.get("ethtool") or {}).get("rings") or {}


def comparable(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The digest and what else is compared between hosts, or tells what a pair of them can reach.

    Of each interface its speed, the most that it can do, and its largest MTU; of each port speed ("NDR") and active_mtu_bytes, on
    InfiniBand its P_Keys; of each device the bridges ("hops") that it shares with another one; the host's clock; how far each GPU is from
    each device, if there are GPUs; the addresses of all interfaces, without 127.0.0.0/8.
    """
    kept = digest(facts)
    for name, netdev in facts["netdevs"].items():
        kept["netdevs"][name].update(max_mtu_bytes=netdev.get("max_mtu_bytes"), numa_node=netdev.get("numa_node"))
        kept["netdevs"][name]["ethtool"] = _speeds(netdev.get("ethtool") or {})
    shared = _shared_hops(facts["devices"])
    for name, device in facts["devices"].items():
        for number, port in device["ports"].items():
            kept["devices"][name]["ports"][number].update(_kept(port, PORT_LIMITS))
        if device["pci"]:
            hops = [_kept(hop, LINK) for hop in device["pci"].get("hops") or () if hop["address"] in shared]
            kept["devices"][name]["pci"].update({"hops": hops} if hops else {})
    if facts.get("distances"):
        kept["distances"] = facts["distances"]
    interfaces = {name: _of_hosts(each.get("ipv4") or ()) for name, each in (facts.get("interfaces") or {}).items()}
    addresses = {name: found for name, found in interfaces.items() if found}
    reached = {"session": facts.get("session"), "reached_at": facts.get("reached_at")}
    return {**kept, **reached, "addresses": addresses, **_clock(facts.get("time") or {})}


def _of_hosts(addresses: Iterable[str]) -> list[str]:
    """Without those that each host has on lo."""
    return [address for address in addresses if not address.startswith("127.")]


def _clock(time: Mapping[str, Any]) -> dict[str, Any]:
    return {"clock": _kept(time, CLOCK)} if time.get("clock_seconds") is not None else {}


def _speeds(ethtool: Mapping[str, Any]) -> dict[str, Any]:
    speeds = ethtool.get("supported_speeds_mbps") or []
    return {**_kept(ethtool, ("speed_mbps",)), "supported_speeds_mbps": [max(speeds)] if speeds else []}


def _shared_hops(devices: Mapping[str, Any]) -> set[str]:
    """The addresses of the bridges that several devices have above them."""
    paths = [device["pci"].get("hops") or () for device in devices.values() if device["pci"]]
    users = Counter(hop["address"] for hops in paths for hop in hops)
    return {address for address, count in users.items() if count > 1}


def _cpu(cpu: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Each idle state as a list, in the order of IdleState's fields."""
    if cpu is None:
        return None
    return {**cpu, "idle_states": {name: list(state.values()) for name, state in cpu["idle_states"].items()}}


def _sysctl(sysctl: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Without the files that the values at boot come from."""
    if sysctl is None:
        return None
    return {"live": sysctl["live"], "boot": {key: boot and {"value": boot["value"]} for key, boot in sysctl["boot"].items()}}


def _netdev(netdev: Mapping[str, Any]) -> dict[str, Any]:
    rings = (netdev.get("ethtool") or {}).get("rings")
    return {**_kept(netdev, NETDEV), **({"rings": [rings[key] for key in RINGS]} if rings else {})}


def _device(device: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_kept(device, DEVICE),
        "pci": device["pci"] and _kept(device["pci"], PCI),
        "ports": {
            number: _kept(port, (*PORT, *INFINIBAND) if port["link_layer"] == "InfiniBand" else PORT)
            for number, port in device["ports"].items()
        },
    }


def _asked(distribution: Mapping[str, Any]) -> dict[str, Any]:
    """Of the packages that were asked for, those that are installed."""
    asked = distribution.get("asked")
    return {} if asked is None else {"asked": _told(asked)}


def _told(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value is not None}


def _kept(item: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: item[name] for name in names if name in item}
