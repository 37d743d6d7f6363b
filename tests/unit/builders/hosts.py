# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Intent and facts of a lab machine: the facts were read by rdma_facts on one (Debian 12, Linux 6.1, two rxe devices)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, described, with_block
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import host_program
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import render_nccl_conf
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize

if TYPE_CHECKING:
    from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

FIXTURES = Path(__file__).parents[1] / "fixtures"


def described_file(file: ManagedFile) -> dict[str, Any]:
    """What facts say of a file that was just written: one with a block had no lines of others."""
    if not file.block:
        return described(file.content or "", file.mode)
    block = hashlib.sha256(file.text.encode()).hexdigest()
    return {**described(with_block("", file.text), file.mode), "block": block, "others": {}}


@cache
def soft_links_program() -> dict[str, Any]:
    """What facts say of today's program of the Soft-RoCE devices; a recorded one differs by every change of a docstring."""
    return described(host_program("_rdma.soft_links_runner"), 0o755)


def lab_facts(node: int = 1) -> dict[str, Any]:
    """A fresh copy of the facts of node1. Another node's have its own names, addresses, MACs and GUIDs; its files are node1's."""
    text = (FIXTURES / "facts/lab-node1.json").read_text(encoding="utf-8")
    for rail in (0, 1):
        text = text.replace(f"192.168.{100 + rail}.1", f"192.168.{100 + rail}.{node}")
        text = text.replace(f"c0a8:{100 + rail:02x}01", f"c0a8:{100 + rail:02x}{node:02x}")
        text = text.replace(f"fe1a:{rail:02x}01", f"fe1a:{rail:02x}{node:02x}").replace(f":1a:{rail:02x}:01", f":1a:{rail:02x}:{node:02x}")
    facts: dict[str, Any] = json.loads(text)
    facts["interfaces"] = all_interfaces(facts)
    newer_parts(facts)
    # A port of the control node is forwarded to each lab machine.
    facts["reached_at"] = "127.0.0.1"
    # The recorded facts are older than the managed block, too.
    block = ManagedFile("/etc/nccl.conf", render_nccl_conf(facts["nccl_files"]["/etc/nccl.conf"]), block=True)
    facts["files"][block.path] = described_file(block)
    facts["files"]["/usr/local/lib/rdma-cluster/soft_links.pyz"] = dict(soft_links_program())
    facts.update(host_parts(facts))
    if node != 1:
        facts["boot"].update(hostname=f"node{node}", machine_id=f"{node:032x}")
    return facts


def hard(of: Mapping[str, Any]) -> None:
    """Give lab machines cards of 100 Gb/s behind Gen3 x16 in the place of Soft-RoCE. of: host → {"facts", "intent"}."""
    for each in of.values():
        for rail, device in enumerate(each["facts"]["devices"].values()):
            link = {"address": f"0000:{2 * rail + 2}1:00.0", "speed_gtps": 8.0, "width": 16}
            device.update(software=False, driver="mlx5_core", node_type="CA", pci={**link, "narrowest": link})
            device["ports"]["1"].update(rate_gbps=100.0, width=4, speed="EDR", active_mtu_bytes=4096)
        for rail in each["intent"]["rails"]:
            rail["soft"] = False


def newer_parts(facts: dict[str, Any]) -> None:
    """What rdma_facts reads of such a machine now: the recorded facts are older than these parts."""
    facts["load"].update(qps=[], qps_error=None)
    facts["planes"].update(services=[], listeners=[], way_error=None, multipath=[], hash_policy=0)
    for rail, name in enumerate(("ens1", "ens2")):
        facts["devices"][f"rxe_rail{rail}"]["ports"]["1"].update(active_mtu_bytes=4096, active_mtu_error=None)
        file = f"/etc/systemd/network/60-rdma-rail{rail}.network"
        values = {"mtu": ("9000", 6), "address": (facts["netdevs"][name]["ipv4"][0], 14)}
        lines = {key: {"value": value, "where": f"{file}:{line}"} for key, (value, line) in values.items()}
        boot = {"file": file, "mtu": lines["mtu"], "addresses": [lines["address"]], "others": [], "undecided": []}
        facts["netdevs"][name]["boot"] = boot


def host_parts(facts: dict[str, Any]) -> dict[str, Any]:
    """What the recorded facts are too old to have, as a machine of the lab has it: memory, /dev/shm, the clock and its source."""
    shm = {"free_bytes": 392 * 2**20, "size_bytes": 392 * 2**20, "free_inodes": 100000, "inodes": 100400}
    clock = {"clock_seconds": 1_800_000_000.5, "between_seconds": [1_800_000_000.0, 1_800_000_001.0]}
    source = {"clocksource": {"current": "tsc", "available": ["tsc", "hpet", "acpi_pm"]}}
    return {
        "memory": {
            "total_bytes": 784 * 2**20,
            "available_bytes": 560 * 2**20,
            "shared_bytes": 2**20,
            "huge_bytes": 0,
            "huge_free_bytes": 0,
        },
        "filesystems": {**(facts.get("filesystems") or {}), "/dev/shm": shm},
        "time": {**(facts.get("time") or {}), **clock, **source},
        "stack": {**facts["stack"], "arch": "x86_64", "lockdown": "none"},
    }


def all_interfaces(facts: dict[str, Any], **others: dict[str, Any]) -> dict[str, Any]:
    """What facts say of all interfaces of a host that has lo, its NICs and these others; the recorded facts are older than that part."""
    lo = {"admin_up": True, "ipv4": ["127.0.0.1/8"]}
    return {"lo": lo, **{name: {key: netdev[key] for key in lo} for name, netdev in facts["netdevs"].items()}, **others}


def lab_rails(node: int = 1) -> list[dict[str, Any]]:
    """The normalized rails of a lab machine."""
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
    """The whole normalized intent of a lab machine. sections: rdma_ variables beside the rails, without their prefix."""
    return normalize({"rdma_rails": lab_rails(node), **{f"rdma_{name}": value for name, value in sections.items()}})


def run_with(folder: Path, intent: dict[str, Any], host: str = "node1") -> RunFolder:
    """A run's folder in which the intent action has left the intent of a host."""
    # It needs Ansible, and the tests of what runs on hosts import this file under Pythons that Ansible does not know.
    from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

    run = RunFolder(folder)
    run.write_json(run.host_file("intent", host), intent)
    return run


def on_host(files: Iterable[ManagedFile]) -> dict[str, Any]:
    """What facts say of a host that has these files."""
    return {file.path: described_file(file) for file in files if file.content is not None}
