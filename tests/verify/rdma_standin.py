# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the RDMA device of a rail in a node of a Clos network: files in /sys/class/infiniband that follow the real interface.

The state of its port follows the carrier, and its GID table the addresses: a new address gets the first free entry, as in the kernel's
drivers/infiniband/core/cache.c. It transfers nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lab.clos import Clos
from tests.verify.clos import until

#: Arguments: the interface, and the folder of the stand-in's files.
FOLLOW = r"""
import ipaddress, pathlib, subprocess, sys
interface, device = sys.argv[1], pathlib.Path(sys.argv[2])
port = device / "ports/1"
for folder in ("gids", "gid_attrs/types", "gid_attrs/ndevs", "counters", "hw_counters"):
    (port / folder).mkdir(parents=True, exist_ok=True)
fixed = {"node_type": "1: CA", "node_guid": "0200:00ff:fe00:0001", "fw_ver": "", "parent": interface}
fixed |= {"ports/1/link_layer": "Ethernet", "ports/1/rate": "2.5 Gb/sec (1X SDR)", "ports/1/pkeys/0": "0xffff"}
(port / "pkeys").mkdir(exist_ok=True)
def write(name, text):
    new = device / (name + ".new")
    new.write_text(text + "\n")
    new.rename(device / name)
for name, text in fixed.items():
    write(name, text)
table = [None] * 8
def show():
    for index, address in enumerate(table):
        text = ipaddress.IPv6Address(0 if address is None else address).exploded
        write(f"ports/1/gids/{index}", text)
        write(f"ports/1/gid_attrs/types/{index}", "" if address is None else "RoCE v2")
        write(f"ports/1/gid_attrs/ndevs/{index}", "" if address is None else interface)
    try:
        up = pathlib.Path(f"/sys/class/net/{interface}/carrier").read_text().strip() == "1"
    except OSError:
        up = False
    write("ports/1/state", "4: ACTIVE" if up else "1: DOWN")
    write("ports/1/phys_state", "5: LinkUp" if up else "3: Disabled")
def follow(line):
    words = line.split()
    if "inet" in words:
        ipv4 = words[words.index("inet") + 1].partition("/")[0]
        gid = int(ipaddress.IPv6Address("::ffff:" + ipv4))
        if words[0] == "Deleted":
            table[:] = [None if each == gid else each for each in table]
        elif gid not in table:
            table[table.index(None)] = gid
monitor = subprocess.Popen(["ip", "-o", "monitor", "link", "address", "dev", interface], stdout=subprocess.PIPE, text=True)
table[0] = int(ipaddress.IPv6Address("fe80::200:ff:fe00:1"))
for line in subprocess.run(["ip", "-o", "-4", "address", "show", "dev", interface], capture_output=True, text=True).stdout.splitlines():
    follow(line)
show()
for line in monitor.stdout:
    follow(line)
    show()
"""
#: The reader's query for queue pairs, of which there are none. Any other use fails.
RDMA = """#!/bin/sh
[ "$*" = "-j resource show qp" ] && echo "[]"
"""
MOUNT = """
mkdir -p /run/standin/class/infiniband /run/standin/infiniband/rxe_rail0
if [ ! -d /sys/class/infiniband ]; then
    mount -t overlay overlay -o lowerdir=/run/standin/class:/sys/class /sys/class
    mount --bind /run/standin/infiniband /sys/class/infiniband
fi
systemctl is-active --quiet standin-rdma || systemd-run --quiet --unit=standin-rdma "$1" "$2" rail0 /run/standin/infiniband/rxe_rail0
"""
STATE = "/sys/class/infiniband/rxe_rail0/ports/1/state"


def install(network: Clos, folder: Path) -> None:
    """Give each host its device, for the rail rail0. folder: for the program."""
    program = folder / "follow.py"
    program.write_text(FOLLOW)
    for host in network.shape.host_names:
        network.run(host, "sh", "-euc", MOUNT, "mount", sys.executable, str(program))
        until(lambda host=host: "ACTIVE" in network.run(host, "cat", STATE, check=False), 20)  # type: ignore[misc]


def path_of(folder: Path) -> str:
    """Return a folder with a stand-in of `rdma`, for PATH."""
    folder.mkdir(exist_ok=True)
    (folder / "rdma").write_text(RDMA)
    (folder / "rdma").chmod(0o755)
    return str(folder)
