# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""lldpd in the nodes of a routed Clos network: it reports to the other end of each cable, and reads what that reports.

The program is the one of this machine, with its defaults: it names a port by its MAC, and describes it by the interface. `lldpcli` works
inside a node, because each has its own /run. Only the times are shorter: a report is sent each second and forgotten after 2 s, instead of
30 s and 120 s.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from lab import process
from lab.clos import Clos
from lab.clos_cabling import HOST_PORT, SWITCH_PORT
from lab.clos_daemon import Daemon
from lab.errors import LabError

LLDPD = "/usr/sbin/lldpd"
#: The ports of switches and hosts, without the loopback interface.
PORTS = f"{SWITCH_PORT}*,{HOST_PORT}*"
SETTINGS = "configure lldp tx-interval 1\nconfigure lldp tx-hold 2\nupdate\n"


def start(clos: Clos) -> None:
    """Start lldpd in each node. Raises LabError if it runs already."""
    nodes = clos.shape.namespaces
    if running := [node for node in nodes if (clos.folder.node(node) / "lldpd.pid").exists()]:
        raise LabError(f"lldpd runs already in {', '.join(running)}.")
    for each in [_start(clos, node) for node in nodes]:
        each.wait()
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(lambda node: clos.run(node, "lldpcli", stdin=SETTINGS), nodes))


def stop(clos: Clos) -> None:
    """End the lldpd of each node."""
    for node in clos.shape.namespaces:
        process.end(clos.folder.node(node) / "lldpd.pid", "lldpd")


def _start(clos: Clos, node: str) -> Daemon:
    """Start lldpd as a child (-d). It ends with the network."""
    home = clos.folder.node(node)
    (home / "system/lldpd").mkdir(exist_ok=True)
    argv = clos.argv(node, [LLDPD, "-d", "-I", PORTS])
    started = Daemon.start(f"lldpd of {node}", argv, home / "system/lldpd.socket", home / "lldpd.out")
    (home / "lldpd.pid").write_text(f"{started.process.pid}\n")
    return started
