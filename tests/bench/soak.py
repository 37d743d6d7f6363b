# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the result of a long soak costs on the control node: python -m tests.bench.soak [HOSTS RAILS SLICES]"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import make_schedule
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.findings import check_soak
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.judge import tallies
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.slices import PortSlice, SliceEnd, read_slices, to_lines

#: 24 h in slices of 300 s.
HOSTS, RAILS, SLICES = 64, 8, 288
#: The share of slices in which a bad port loses packets: 20 s of every 300 s and 30 s of traffic.
SHARE = 50 / 300
BAD = ("node7", "node23")


def slices(hosts: int, rails: int, count: int) -> Iterator[list[str]]:
    """Yield the lines of each slice of a soak in which the first rail of two ports loses packets now and then."""
    draw, schedule = random.Random(1), make_schedule({"kind": "full"}, hosts)
    for number in range(count):
        ports = []
        pairs = [*schedule.pairs(number % schedule.rounds)]
        for rail in range(rails):
            for pair in pairs:
                names = [f"node{end + 1}" for end in pair]
                lost = 40 if rail == 0 and {*names} & {*BAD} and draw.random() < SHARE else 0
                for host, partner in (names, names[::-1]):
                    errors = {"out_of_sequence" if host in BAD else "packet_seq_err": lost} if lost else {}
                    ports.append(PortSlice(number, 300.0 * number, host, f"rail{rail}", partner, 34.5, 300_000_000, errors))
        yield to_lines(ports, SliceEnd(number, 300.0 * number, 300.0))


def main() -> None:
    """Print the time of the processor and what was found."""
    hosts, rails, count = [int(word) for word in sys.argv[1:4]] or (HOSTS, RAILS, SLICES)
    lines = [line for each in slices(hosts, rails, count) for line in each]
    begun = time.process_time()
    read = read_slices([lines])
    was_read = time.process_time()
    found = tallies(read.ports)
    planned = {f"node{number + 1}": [f"rail{rail}" for rail in range(rails)] for number in range(hosts)}
    bad = [f"{each.host} {each.subject}" for each in check_soak(found, planned, 1.0, 24.0) if each.status != "ok"]
    judged = time.process_time()
    size = sum(len(line) + 1 for line in lines) / 2**20
    print(f"{hosts} hosts, {rails} rails, {count} slices: {size:.0f} MiB; read {was_read - begun:.1f} s, judged {judged - was_read:.1f} s")
    print(f"not ok: {', '.join(bad)}")


if __name__ == "__main__":
    main()
