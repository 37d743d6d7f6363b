# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""RDMA between machines behind a routed Clos network of the lab, and what leaf1 sends to the spines meanwhile."""

from __future__ import annotations

from lab import clos, remote
from lab.clos import Clos
from lab.cluster import Lab
from lab.plan import Node
from lab.remote import RemoteResult
from tests.verify.nodes import say

#: Uplink of leaf1 → the spine that it leads to.
UPLINKS = {"leaf1/5": "spine1", "leaf1/6": "spine2"}
#: A queue pair: messages of 64 KiB for so long; a lost packet is repeated after 1 s, up to 7 times.
WRITE = "ib_write_bw -d rxe_rail0 -x {gid} -s 65536 -q 1 -u 18 -D {seconds} -F --report_gbits {peer}"


def gid_index(lab: Lab, node: Node) -> int:
    """Return the index of the GID of rail 0's IPv4 address."""
    parts = [int(part) for part in node.rails[0].address.partition("/")[0].split(".")]
    wanted = f"ffff:{parts[0]:02x}{parts[1]:02x}:{parts[2]:02x}{parts[3]:02x}"
    listed = say(lab, node, "cd /sys/class/infiniband/rxe_rail0/ports/1/gids; grep . * 2>/dev/null || true")
    [line] = [line for line in listed.splitlines() if line.endswith(wanted)]
    return int(line.partition(":")[0])


def write(lab: Lab, name: str, peer: str = "", seconds: int = 40) -> RemoteResult:
    """Run ib_write_bw on rail 0 of a node: the server, or with the address of a peer the client."""
    node = lab.plan.node(name)
    command = WRITE.format(gid=gid_index(lab, node), seconds=seconds, peer=peer)
    return remote.execute(node, lab.folder, command, timeout_seconds=seconds + 90)


def sent(network: Clos) -> dict[str, int]:
    """Return uplink of leaf1 → bytes that it has sent."""
    counted = clos.counters(network)
    return {link: counted[link]["sent_bytes"] for link in UPLINKS}
