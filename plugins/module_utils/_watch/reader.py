# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the counters of all RDMA ports and their interfaces once a second, and writes each reading as a line of JSON.

The control node sends the program over SSH to Python's standard input; no file is written on the host. It ends when its input ends,
which is when SSH closes, when nobody reads its output, or after some time.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import time
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner, SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.queue_pairs import parse_rdma_qps
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool_ioctl import IoctlPort
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import COUNTERS, Statistics, of_netdev, priority_counters
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.sysfs import CLASS, port_folders

NET = "/sys/class/net"
#: The longest run of a reader, and by default, in seconds.
LONGEST_SECONDS, SECONDS = 86_400.0, 3600.0
#: The queue pairs and the drivers' counters, which cost more, are read this seldom.
SLOW_SECONDS = 5.0
#: The most processes of a host that are reported.
MOST_PROCESSES = 64
#: Traffic and notifications, by the names of sysfs: InfiniBand's own, mlx5's, rxe's.
_TRAFFIC = frozenset(
    {
        *("port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets", "port_xmit_wait"),
        *("np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "sent_pkts", "rcvd_pkts"),
    }
)
_WANTED = COUNTERS | _TRAFFIC
_WAYS = ("rx_bytes", "tx_bytes", "rx_packets", "tx_packets")
QPS = ("rdma", "-j", "resource", "show", "qp")


class PortReader:
    """Reads a host. The ports and their interfaces are found again only if the devices change."""

    def __init__(self, root: str, statistics: Statistics, runner: Runner | None) -> None:
        self._root, self._statistics, self._runner = root, statistics, runner
        self._devices: list[str] = []
        self._ports: list[tuple[str, str, str | None]] = []

    def quick(self) -> dict[str, Any]:
        """Return port ("mlx5_0/1") → state, rate, interface, and counters by their names in sysfs."""
        sys_root = SysRoot(self._root)
        self._find(sys_root)
        return {name: self._port(sys_root, path, netdev) for name, path, netdev in self._ports}

    def _find(self, sys_root: SysRoot) -> None:
        devices = sys_root.list_dir(CLASS)
        if devices != self._devices:
            self._devices = devices
            self._ports = [(name, path, self._netdev(sys_root, path)) for name, path in port_folders(sys_root, devices)]

    @staticmethod
    def _netdev(sys_root: SysRoot, path: str) -> str | None:
        """Return the interface of a port: that of its first GID."""
        return next((text.strip() for _index, text in sorted(sys_root.read_files(f"{path}/gid_attrs/ndevs").items()) if text.strip()), None)

    @staticmethod
    def _port(sys_root: SysRoot, path: str, netdev: str | None) -> dict[str, Any]:
        counters: dict[str, int] = {}
        for folder in ("counters", "hw_counters"):
            for name in _WANTED.intersection(sys_root.list_dir(f"{path}/{folder}")):
                _read(sys_root, f"{path}/{folder}", name, counters)
        for way in _WAYS if netdev is not None else ():
            _read(sys_root, f"{NET}/{netdev}/statistics", way, counters)
        return {"state": sys_root.text(f"{path}/state"), "rate": sys_root.text(f"{path}/rate"), "netdev": netdev, "counters": counters}

    def slow(self) -> dict[str, Any]:
        """Return "netdevs" (interface → counters of its driver) and "qps" (port → process → number), None if they cannot be read."""
        netdevs = sorted({netdev for _name, _path, netdev in self._ports if netdev is not None})
        return {"netdevs": {name: self._driver(name) for name in netdevs}, "qps": self._queue_pairs()}

    def _driver(self, name: str) -> dict[str, int]:
        found = self._statistics(name) or {}
        pauses = priority_counters(found).values()
        sums = {
            way: [each for each in (getattr(priority, way) for priority in pauses) if each is not None] for way in ("rx_pause", "tx_pause")
        }
        kept = {way: sum(values) for way, values in sums.items() if values}
        phy = {way: found[way] for way in ("rx_bytes_phy", "tx_bytes_phy", "rx_packets_phy", "tx_packets_phy") if way in found}
        return {**of_netdev(found, None), **phy, **kept}

    def _queue_pairs(self) -> dict[str, dict[str, int]] | None:
        """Return port → "PID NAME" → number of its queue pairs. Those of the kernel count as "kernel"."""
        try:
            done = self._runner.run(QPS, timeout_seconds=5.0) if self._runner is not None else None
            found = parse_rdma_qps(done.stdout) if done is not None and done.rc == 0 and done.stdout.strip() else None
        except (CommandError, ParseError):
            return None
        if found is None:
            return None
        ports: dict[str, dict[str, int]] = {}
        for qp in found:
            owner = "kernel" if qp.pid is None else f"{qp.pid} {qp.owner or '?'}"
            owners = ports.setdefault(f"{qp.device}/{qp.port or 1}", {})
            if owner in owners or len(owners) < MOST_PROCESSES:
                owners[owner] = owners.get(owner, 0) + 1
        return ports


def _read(sys_root: SysRoot, folder: str, name: str, counters: dict[str, int]) -> None:
    """Add the counter of this name; without a number in its file it is missing."""
    text = sys_root.text(f"{folder}/{name}")
    if text is not None and text.isascii() and text.isdigit():
        counters[name] = int(text)


def main() -> int:
    """Write readings until the input or the time ends."""
    parser = argparse.ArgumentParser(description="Write the counters of this host's RDMA ports as lines of JSON.")
    parser.add_argument("--root", default="/", help="of /sys")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between readings")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--count", type=int, default=0, help="readings, 0 for no limit")
    given = parser.parse_args()
    live = given.root == "/"
    reader = PortReader(given.root, IoctlPort().statistics if live else lambda _name: None, SubprocessRunner() if live else None)
    interval, end = max(given.interval, 0.05), time.monotonic() + min(given.seconds, LONGEST_SECONDS)
    boot = SysRoot(given.root).text("/proc/sys/kernel/random/boot_id") or "unknown"
    due, slow_due, number = time.monotonic(), 0.0, 0
    while time.monotonic() < end and (not given.count or number < given.count):
        line: dict[str, Any] = {"mono": round(time.monotonic(), 3), "boot": boot}
        try:
            line["ports"] = reader.quick()
            if time.monotonic() >= slow_due:
                line["slow"] = {"mono": round(time.monotonic(), 3), **reader.slow()}
                slow_due = time.monotonic() + max(SLOW_SECONDS, interval)
        except (OSError, ParseError) as error:
            line = {**line, "ports": {}, "error": str(error)[:200]}
        try:
            sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
            sys.stdout.flush()
        except OSError:
            return 0
        number += 1
        due = max(due + interval, time.monotonic())
        if _input_ended(due - time.monotonic()):
            return 0
    return 0


def _input_ended(seconds: float) -> bool:
    """Wait some seconds; return at once, and True, if the standard input ends."""
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        ready, _write, _errors = select.select([0], [], [], max(left, 0.0))
        if ready and not os.read(0, 4096):
            return True
        if left <= 0:
            return False
