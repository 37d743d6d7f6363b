# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cut, slow down and restore cables, from outside the hosts.

A cable is a bridge port. A rate is a token bucket in each direction; traffic from the node goes through an IFB, because only outgoing
traffic can be shaped. Loss is a random drop in the bridge's forward chain. A mark sets congestion experienced (ECN) above a rate in that
chain, like a switch with a long queue. A cut cable has no carrier at either end. Two swapped cable ends have changed their bridges.
"""

from __future__ import annotations

from lab import namespace
from lab.errors import LabError
from lab.plan import Node, Plan, Rail
from lab.shell import run

TABLE = "lab_cables"
MARKS = "lab_marks"


def set_rate(plan: Plan, rail: Rail, rate: str) -> None:
    """Limit both directions to `rate`, in the units of tc(8): 20mbit, 1gbit."""
    shaper = f"i{rail.cable}"
    _forget_rate(plan, rail)
    bucket = ["tbf", "rate", rate, "burst", "64kb", "latency", "50ms"]
    _tc(plan, "qdisc", "add", "dev", rail.cable, "root", *bucket)
    namespace.ip(plan.namespace, "link", "add", shaper, "type", "ifb")
    namespace.ip(plan.namespace, "link", "set", shaper, "mtu", str(namespace.SWITCH_MTU_BYTES), "up")
    _tc(plan, "qdisc", "add", "dev", shaper, "root", *bucket)
    _tc(plan, "qdisc", "add", "dev", rail.cable, "ingress")
    everything = ["protocol", "all", "u32", "match", "u32", "0", "0"]
    _tc(plan, "filter", "add", "dev", rail.cable, "parent", "ffff:", *everything, "action", "mirred", "egress", "redirect", "dev", shaper)


def set_loss(plan: Plan, rail: Rail, percent: int) -> None:
    """Drop `percent` of the frames in each direction at random."""
    _forget_loss(plan, rail)
    if not percent:
        return
    drop = f"numgen random mod 100 < {percent} counter drop"
    rules = [
        f"add table bridge {TABLE}_{rail.cable}",
        f"add chain bridge {TABLE}_{rail.cable} forward {{ type filter hook forward priority 0 ; }}",
        f"add rule bridge {TABLE}_{rail.cable} forward iifname {rail.cable} {drop}",
        f"add rule bridge {TABLE}_{rail.cable} forward oifname {rail.cable} {drop}",
    ]
    _nft(plan, "\n".join(rules))


def set_mark(plan: Plan, rail: Rail, mbit: int) -> None:
    """Mark ECN-capable packets (ECT(0)) to the node that exceed `mbit` Mbit/s; 0 marks none."""
    _forget_table(plan, f"{MARKS}_{rail.cable}")
    if not mbit:
        return
    over = f"limit rate over {mbit * 125000} bytes/second burst 65536 bytes"
    rules = [
        f"add table bridge {MARKS}_{rail.cable}",
        f"add chain bridge {MARKS}_{rail.cable} forward {{ type filter hook forward priority 0 ; }}",
        f"add rule bridge {MARKS}_{rail.cable} forward oifname {rail.cable} ip ecn ect0 {over} ip ecn set ce",
    ]
    _nft(plan, "\n".join(rules))


def set_mtu(plan: Plan, rail: Rail, mtu_bytes: int) -> None:
    """Drop larger frames to the node, like a switch port with this MTU."""
    namespace.ip(plan.namespace, "link", "set", rail.cable, "mtu", str(mtu_bytes))


def nics(plan: Plan, rail: Rail) -> list[tuple[Node, Rail]]:
    """Return the NICs at a cable: the rail's own one, and in a mesh the one at the other end."""
    if not plan.mesh:
        return [plan.end(rail.cable)]
    return [plan.end(cable) for cable in namespace.cables_in(plan.namespace, namespace.plugged_into(plan.namespace, rail.cable))]


def swap(plan: Plan, one: Rail, other: Rail) -> None:
    """Exchange the plugs of two rails. Raises LabError if both are at the same bridge, where nothing would change."""
    bridges = [namespace.plugged_into(plan.namespace, rail.cable) for rail in (one, other)]
    if bridges[0] == bridges[1]:
        what = "are the two ends of one cable" if plan.mesh else "are at the same switch"
        raise LabError(f"{one.cable} and {other.cable} {what}: to exchange them changes nothing.")
    for rail, bridge in zip((one, other), reversed(bridges), strict=True):
        namespace.ip(plan.namespace, "link", "set", rail.cable, "master", bridge)


def cut(plan: Plan, rail: Rail) -> None:
    for end in filter(None, (rail.cable, rail.uplink)):
        namespace.ip(plan.namespace, "link", "set", end, "down")


def restore(plan: Plan, rail: Rail) -> None:
    """Make a cable as good as new: full rate, no loss, no marks, full MTU, carrier at both ends."""
    _forget_rate(plan, rail)
    _forget_loss(plan, rail)
    set_mark(plan, rail, 0)
    set_mtu(plan, rail, namespace.SWITCH_MTU_BYTES)
    for end in filter(None, (rail.cable, rail.uplink)):
        namespace.ip(plan.namespace, "link", "set", end, "up")


def _forget_rate(plan: Plan, rail: Rail) -> None:
    # Each of these fails if there is nothing to remove.
    for words in (["root"], ["ingress"]):
        run(["tc", "-n", plan.namespace, "qdisc", "delete", "dev", rail.cable, *words], check=False)
    run(["ip", "-n", plan.namespace, "link", "delete", f"i{rail.cable}"], check=False)


def _forget_loss(plan: Plan, rail: Rail) -> None:
    _forget_table(plan, f"{TABLE}_{rail.cable}")


def _forget_table(plan: Plan, name: str) -> None:
    _nft(plan, f"add table bridge {name}\ndelete table bridge {name}")


def _tc(plan: Plan, *words: str) -> None:
    run(["tc", "-n", plan.namespace, *words])


def _nft(plan: Plan, commands: str) -> None:
    run(["ip", "netns", "exec", plan.namespace, "nft", "-f", "-"], stdin=commands)
