# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the rings of a job of 512 ranks with 16 channels cost to read.

python -m tests.bench.ring_log [HOSTS CHANNELS]: a log in the words of NCCL's source, of hosts with 8 GPUs. It prints the lines, the seconds
of CPU and the peak of memory with the log itself.
"""

from __future__ import annotations

import json
import sys
import time

from ansible_collections.rdma.cluster.plugins.plugin_utils._rings.log import read_rings
from tests.bench.watch import peak_mib
from tests.unit.builders.ring_texts import RingJob

GPUS = 8


def main(hosts: str = "64", channels: str = "16") -> None:
    job = RingJob([f"gpu{number}" for number in range(1, int(hosts) + 1)], gpus=GPUS, channels=int(channels))
    lines = list(job.lines())
    begun = time.process_time()
    log = read_rings(lines)
    seconds = time.process_time() - begun
    (only,) = log.communicators
    ranks = int(hosts) * GPUS
    edges = {len(ring) for ring in only.rings.values()}
    if (only.nranks, len(only.rings), edges) != (ranks, int(channels), {ranks}):
        raise RuntimeError(f"The log was not read whole: {only.nranks} ranks, {len(only.rings)} rings, {edges} edges of a ring")
    print(json.dumps({"lines": len(lines), "ranks": ranks, "rings": len(only.rings), "seconds": seconds, "mib": peak_mib("self")}))


if __name__ == "__main__":
    main(*sys.argv[1:])
