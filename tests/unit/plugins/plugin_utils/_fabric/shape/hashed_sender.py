# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run in a network namespace of its own: the loads of equal paths, veth devices, as the kernel hashes UDP flows to port 4791.

Usage: unshare --net python hashed_sender.py PATHS RUNS FLOWS… Prints {"ports" | "addresses": {flows: [[packets of each path] of a run]}}.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
from pathlib import Path

ROCE_PORT, PEER = 4791, "10.99.0.9"
POLICY = Path("/proc/sys/net/ipv4/fib_multipath_hash_policy")


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


def sent(names: list[str]) -> list[int]:
    links = {each["ifname"]: each["stats64"]["tx"]["packets"] for each in json.loads(ip("-json", "-statistics", "link", "show"))}
    return [links[name] for name in names]


def build(paths: int) -> list[str]:
    """Make the paths: a veth device each, with a router behind it that has a fixed MAC address."""
    names, hops = [f"path{number}" for number in range(paths)], []
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    for number, name in enumerate(names):
        router = f"10.98.{number}.2"
        ip("link", "add", name, "type", "veth", "peer", "name", f"far{number}")
        ip("addr", "add", f"10.98.{number}.1/24", "dev", name)
        for each in (name, f"far{number}"):
            ip("link", "set", each, "up")
        ip("neigh", "add", router, "lladdr", "02:00:00:00:00:01", "dev", name, "nud", "permanent")
        hops += ["nexthop", "via", router, "dev", name]
    ip("addr", "add", "10.99.1.1/32", "dev", "lo")
    ip("link", "set", "lo", "up")
    ip("route", "add", f"{PEER}/32", "src", "10.99.1.1", *hops)
    return names


def run(names: list[str], flows: int) -> list[int]:
    """Send one packet of each flow, each from its own source port."""
    before = sent(names)
    for port in random.sample(range(49152, 65536), flows):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flow:
            flow.bind(("10.99.1.1", port))
            flow.sendto(bytes(100), (PEER, ROCE_PORT))
    return [after - was for was, after in zip(before, sent(names), strict=True)]


def main() -> None:
    paths, runs, *flows = (int(word) for word in sys.argv[1:])
    names = build(paths)
    POLICY.write_text("1")
    ports = {count: [run(names, count) for _run in range(runs)] for count in flows}
    POLICY.write_text("0")
    print(json.dumps({"ports": ports, "addresses": {64: [run(names, 64)]}}))


if __name__ == "__main__":
    main()
