# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The digest of a host's facts: what roles, templates, proofs and comparisons between hosts use of the whole tree.

At most 10 KB of JSON for a host with 8 NICs, because Ansible keeps it for every host. The checks on one host read the whole tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DEVICE = ("driver", "software", "firmware", "board_id", "node_guid", "node_type", "numa_node")
PCI = ("address", "speed_gtps", "width", "narrowest")
PORT = ("state", "physical_state", "link_layer", "rate_gbps", "width", "netdev", "rocev2")
#: Meaningless on Ethernet.
LIDS = ("lid", "sm_lid")
NETDEV = ("driver", "mac", "mtu_bytes", "carrier", "admin_up", "dev_port", "pci", "function", "ipv4")
MODULE = ("version", "srcversion")
STACK = ("kind", "kernel", "distribution")
#: Taken as they are.
WHOLE = ("schema", "boot", "limits", "sysctl", "files", "units", "load", "gpudirect")


def digest(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The digest of the tree of to_dict; what was not read is not in it."""
    stack = facts["stack"]
    return {
        **_kept(facts, WHOLE),
        "devices": {name: _device(device) for name, device in facts["devices"].items()},
        "netdevs": {name: _kept(netdev, NETDEV) for name, netdev in facts["netdevs"].items()},
        "stack": {**_kept(stack, STACK), "modules": {name: _kept(module, MODULE) for name, module in stack["modules"].items()}},
        "gpus": [gpu["address"] for gpu in facts.get("gpus") or ()],
    }


def comparable(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The digest and what else is compared between hosts: how fast each interface can be, and its largest MTU."""
    kept = digest(facts)
    for name, netdev in facts["netdevs"].items():
        speeds = (netdev.get("ethtool") or {}).get("supported_speeds_mbps") or []
        kept["netdevs"][name]["max_mtu_bytes"] = netdev.get("max_mtu_bytes")
        kept["netdevs"][name]["ethtool"] = {"supported_speeds_mbps": [max(speeds)] if speeds else []}
    return kept


def _device(device: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_kept(device, DEVICE),
        "pci": device["pci"] and _kept(device["pci"], PCI),
        "ports": {
            number: _kept(port, (*PORT, *LIDS) if port["link_layer"] == "InfiniBand" else PORT) for number, port in device["ports"].items()
        },
    }


def _kept(item: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: item[name] for name in names if name in item}
