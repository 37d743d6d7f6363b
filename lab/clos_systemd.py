# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd as process 1 of the nodes of a routed Clos network, with FRR as its service on the switches.

The program is the one of this machine. Its units are ours: a target that needs nothing, and the distribution's own frr.service. So timers
and transient units are real, and nothing else starts.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from lab.clos import Clos, end_init, stop_daemons
from lab.errors import LabError
from lab.shell import ENVIRONMENT, run

BOOT = Path(__file__).parent / "clos_boot"
FRR_SERVICE = Path("/lib/systemd/system/frr.service")
#: The daemons that frr.service starts; zebra needs no line.
DAEMONS = 'bgpd=yes\nbfdd=yes\nvtysh_enable=yes\nzebra_options="  -A 127.0.0.1 -s 90000000"\nbgpd_options="   -A 127.0.0.1"\n'
TARGETS = ("node", "sysinit", "basic", "timers", "shutdown", "network", "network-pre")
START_SECONDS = 20.0


def boot(clos: Clos) -> None:
    """Start systemd in each node, and FRR as its service on each switch that has a frr.conf. Daemons of the lab end before."""
    for switch in clos.shape.switches:
        stop_daemons(clos, switch)
    started = {node: _start(clos, node) for node in (*clos.shape.switches, *clos.shape.host_names)}
    for node, process in started.items():
        _await(clos, node, process)
    routers = [switch for switch in clos.shape.switches if (clos.folder.node(switch) / "etc/frr.conf").exists()]
    running = {switch: subprocess.Popen(clos.argv(switch, ["systemctl", "start", "frr.service"]), env=ENVIRONMENT) for switch in routers}
    if failed := [switch for switch, each in running.items() if each.wait(timeout=60)]:
        raise LabError(f"frr.service does not start on {', '.join(failed)}: lab clos run {failed[0]} -- systemctl status frr")


def _start(clos: Clos, node: str) -> subprocess.Popen[bytes]:
    home = clos.folder.node(node)
    units = home / "units"
    units.mkdir(exist_ok=True)
    for target in TARGETS:
        (units / f"{target}.target").write_text("[Unit]\nDefaultDependencies=no\n")
    (units / "frr.service").write_text(FRR_SERVICE.read_text())
    (home / "etc/daemons").write_text(DAEMONS)
    words = [str(BOOT), f"rdma-clos-{clos.name}-{node}", str(home)]
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=ENVIRONMENT
    )


def _await(clos: Clos, node: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the systemd of a node answers, and record its process. Raises LabError."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        # `unshare --fork` has one child: process 1 of the node.
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children and "systemd" in Path(f"/proc/{children[0]}/comm").read_text():
            (clos.folder.node(node) / "init.pid").write_text(children[0])
            if "running" in run(clos.argv(node, ["systemctl", "is-system-running"]), check=False):
                return
        time.sleep(0.05)
    end_init(clos.folder.node(node))
    raise LabError(f"systemd of {node} did not start within {START_SECONDS:.0f} s.")
