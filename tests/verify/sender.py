# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in of a transfer on a container whose HCAs are stand-ins: it moves the counter files of a port and notes what it has moved."""

from __future__ import annotations

from tests.verify.driver import Hosts

#: Advances both counters of data every 20 ms, and prints what it has moved: lines of monotonic seconds and words of four bytes.
PROGRAM = """
import os, sys, time
folder, words, begun = sys.argv[1], float(sys.argv[2]) * 1e9 / 32, time.monotonic()
def put(name, value):
    with open(folder + "/" + name + ".new", "w") as file:
        file.write(str(value) + "\\n")
    os.replace(folder + "/" + name + ".new", folder + "/" + name)
while True:
    now = time.monotonic()
    moved = int((now - begun) * words)
    for name, value in ("xmit_data", moved), ("rcv_data", moved // 4), ("xmit_packets", moved // 1024), ("rcv_packets", moved // 4096):
        put("port_" + name, value)
    print(now, moved, flush=True)
    time.sleep(0.02)
"""


class Sender:
    """One sender: it sends at a rate in Gb/s (10^9 bit/s), and receives at a quarter of it."""

    def __init__(self, hosts: Hosts, host: str, device: str, gbps: float) -> None:
        self.hosts, self.host, self.device, self.gbps = hosts, host, device, gbps
        self._unit, self._folder = f"standin-sender-{device}", f"/run/moved-{device}"
        self._counters = f"/sys/class/infiniband/{device}/ports/1/counters"

    def start(self) -> None:
        program = self.hosts.lab.folder.node(self.host) / "root/srv/sender.py"
        program.write_text(PROGRAM)
        self.hosts.run(
            self.host,
            f"mkdir -p {self._folder} && cp {self._counters}/* {self._folder}/ && mount --bind {self._folder} {self._counters} && "
            f"systemd-run --quiet --unit={self._unit} --property=StandardOutput=truncate:{self._folder}.log "
            f"python3 /srv/sender.py {self._folder} {self.gbps}",
        )

    def stop(self) -> None:
        self.hosts.run(self.host, f"systemctl stop {self._unit}; umount {self._counters}")

    def moved_gbps(self) -> float:
        """What the sender itself has moved over the time in which it ran, in Gb/s."""
        log = f"{self._folder}.log"
        lines = [line.split() for line in self.hosts.run(self.host, f"head -1 {log}; tail -1 {log}").splitlines()]
        (begun, first), (ended, last) = ((float(each[0]), int(each[1])) for each in lines)
        return (last - first) * 32 / (ended - begun) / 1e9
