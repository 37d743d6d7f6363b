# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data plane: a network namespace with one bridge for each rail, and one cable (a bridge port) for each NIC.

In a mesh, and in a lab whose switches route, each cable is a bridge with two ports, which passes every frame and answers none.
Machines use TAPs, containers use veth pairs.
Cables are cut, slowed down or made lossy here, outside the host, and their byte counters are independent of the host.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lab.errors import LabError
from lab.plan import MTU_BYTES, Plan, Rail
from lab.shell import run

CLONE_NEWNET = 0x40000000
# linux/if_tun.h
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
#: Room for the Ethernet header and a VLAN tag above the hosts' MTU.
SWITCH_MTU_BYTES = MTU_BYTES + 216
#: It learns no address, and passes the frames that a bridge keeps to itself: LLDP and LACP reach the other end.
LIKE_A_CABLE = ("ageing_time", "0", "group_fwd_mask", "0xfff8")

Result = TypeVar("Result")


def path(namespace: str) -> Path:
    return Path("/run/netns") / namespace


def exists(namespace: str) -> bool:
    return path(namespace).exists()


def ip(namespace: str, *words: str) -> str:
    return run(["ip", "-n", namespace, *words])


def inside(namespace: str, work: Callable[[], Result]) -> Result:
    """Return the result of `work`, called with this process inside the namespace (setns(2))."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(descriptor: int) -> None:
        if libc.setns(descriptor, CLONE_NEWNET):
            raise LabError(f"Cannot enter network namespace {namespace}: {os.strerror(ctypes.get_errno())}.")

    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(path(namespace), os.O_RDONLY)
    try:
        enter(there)
        try:
            return work()
        finally:
            enter(home)
    finally:
        os.close(there)
        os.close(home)


def create(plan: Plan) -> None:
    """Create the namespace and its bridges; the cables are added with the nodes."""
    run(["ip", "netns", "add", plan.namespace])
    ip(plan.namespace, "link", "set", "lo", "up")
    for bridge in plan.bridges:
        ip(plan.namespace, "link", "add", bridge, "type", "bridge", "mcast_snooping", "0", "forward_delay", "0")
        if plan.is_cabled:
            ip(plan.namespace, "link", "set", bridge, "type", "bridge", *LIKE_A_CABLE)
            silence(plan.namespace, bridge)
        ip(plan.namespace, "link", "set", bridge, "mtu", str(SWITCH_MTU_BYTES), "up")


def silence(namespace: str, link: str) -> None:
    """Give a link no IPv6 address: nothing in a cable answers an echo to all nodes."""
    ip(namespace, "link", "set", link, "addrgenmode", "none")


def add_tap(plan: Plan, rail: Rail) -> None:
    """Add a machine's cable, a TAP. It outlives the machine, like a real cable."""
    ip(plan.namespace, "tuntap", "add", rail.cable, "mode", "tap", "vnet_hdr")
    plug(plan, rail)


def plug(plan: Plan, rail: Rail) -> None:
    """Plug the cable of a rail into its bridge."""
    if plan.is_cabled:
        silence(plan.namespace, rail.cable)
    ip(plan.namespace, "link", "set", rail.cable, "mtu", str(SWITCH_MTU_BYTES), "master", rail.bridge, "up")


def plugged_into(namespace: str, cable: str) -> str:
    """Return the bridge into which a cable is plugged now."""
    return str(json.loads(ip(namespace, "-j", "link", "show", "dev", cable))[0]["master"])


def cables_in(namespace: str, bridge: str) -> list[str]:
    """Return the cables that are plugged into a bridge now."""
    return [str(link["ifname"]) for link in json.loads(ip(namespace, "-j", "link", "show", "master", bridge) or "[]")]


def open_tap(namespace: str, cable: str) -> int:
    """Open a TAP of the namespace. The descriptor also works in a process outside the namespace."""

    def attach() -> int:
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        request = struct.pack("16sH22x", cable.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR)
        fcntl.ioctl(descriptor, TUNSETIFF, request)
        os.set_inheritable(descriptor, True)
        return descriptor

    return inside(namespace, attach)


def delete(namespace: str) -> None:
    """Delete the namespace and all links in it. Links come first, because the kernel deletes the namespace itself later."""
    if not exists(namespace):
        return
    for link in json.loads(ip(namespace, "-j", "link", "show") or "[]"):
        if link["ifname"] != "lo":
            # A veth is already gone if its other end was deleted.
            run(["ip", "-n", namespace, "link", "delete", link["ifname"]], check=False)
    run(["ip", "netns", "delete", namespace])


def counters(namespace: str) -> dict[str, dict[str, int]]:
    """Return bytes and packets of every cable end, seen from the switch: {"n1r0": {"to_node_bytes": …, "from_node_bytes": …}}."""
    found = {}
    for link in json.loads(ip(namespace, "-j", "-s", "link", "show")):
        if link["ifname"].startswith("n") and "master" in link:
            stats = link["stats64"]
            found[link["ifname"]] = {
                "to_node_bytes": stats["tx"]["bytes"],
                "from_node_bytes": stats["rx"]["bytes"],
                "to_node_packets": stats["tx"]["packets"],
                "from_node_packets": stats["rx"]["packets"],
            }
    return found
