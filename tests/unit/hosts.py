# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Intent and facts of a lab machine: the facts were read by rdma_facts on one (Debian 12, Linux 6.1, two rxe devices)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._files import ManagedFile, described
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent import normalise

FIXTURES = Path(__file__).parent / "fixtures"


def lab_facts(node: int = 1) -> dict[str, Any]:
    """A fresh copy of the facts of node1. Another node's have its own names, addresses, MACs and GUIDs; its files are node1's."""
    text = (FIXTURES / "facts/lab-node1.json").read_text(encoding="utf-8")
    for rail in (0, 1):
        text = text.replace(f"192.168.{100 + rail}.1", f"192.168.{100 + rail}.{node}")
        text = text.replace(f"c0a8:{100 + rail:02x}01", f"c0a8:{100 + rail:02x}{node:02x}")
        text = text.replace(f"fe1a:{rail:02x}01", f"fe1a:{rail:02x}{node:02x}").replace(f":1a:{rail:02x}:01", f":1a:{rail:02x}:{node:02x}")
    facts: dict[str, Any] = json.loads(text)
    facts["interfaces"] = all_interfaces(facts)
    if node != 1:
        facts["boot"].update(hostname=f"node{node}", machine_id=f"{node:032x}")
    return facts


def all_interfaces(facts: dict[str, Any], **others: dict[str, Any]) -> dict[str, Any]:
    """What facts say of all interfaces of a host that has lo, its NICs and these others; the recorded facts are older than that part."""
    lo = {"admin_up": True, "ipv4": ["127.0.0.1/8"]}
    return {"lo": lo, **{name: {key: netdev[key] for key in lo} for name, netdev in facts["netdevs"].items()}, **others}


def lab_rails(node: int = 1) -> list[dict[str, Any]]:
    """The normalised rails of a lab machine."""
    return [
        {
            "name": f"rail{rail}",
            "nic": {"pci": pci},
            "link_layer": "roce",
            "rate_gbps": None,
            "plane": "lab",
            "role": "compute",
            "address": f"192.168.{100 + rail}.{node}/24",
            "mtu_bytes": 9000,
            "soft": True,
        }
        for rail, pci in enumerate(("0000:21:00.0", "0000:41:00.0"))
    ]


def lab_intent(node: int = 1, **sections: Any) -> dict[str, Any]:
    """The whole normalised intent of a lab machine. sections: rdma_ variables beside the rails, without their prefix."""
    return normalise({"rdma_rails": lab_rails(node), **{f"rdma_{name}": value for name, value in sections.items()}})


def on_host(files: Iterable[ManagedFile]) -> dict[str, Any]:
    """What facts say of a host that has these files."""
    return {file.path: described(file.content, file.mode) for file in files if file.content is not None}
