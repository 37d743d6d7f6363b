# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labs of four machines from the saved state, one after the other: how long each takes, and that every machine is one of its own.

python -m tests.bench.saved_boots [LABS]: five labs, twenty machines, without a number. Needs root and what a lab needs.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from lab import cluster
from tests.verify.nodes import assert_identity, host_keys, say
from tests.verify.patience import until

ROOT = Path(__file__).parents[2]
NAME = "boots"
NODES = 4


def lab(*words: str) -> None:
    subprocess.run([ROOT / "lab/lab", *words, "--name", NAME], check=True, stdout=subprocess.PIPE)


def boot() -> tuple[float, set[str]]:
    """Seconds until all machines of one lab answered, and their host keys; a cable is cut, and the machine sees it."""
    begun = time.monotonic()
    lab("up", "--nodes", str(NODES))
    seconds = time.monotonic() - begun
    try:
        there = cluster.load(NAME)
        for node in there.plan.nodes:
            assert_identity(there, node)
        node = there.plan.nodes[0]
        lab("cable", node.name, "0", "--cut")
        carrier = f"cd $(dirname $(grep -l {node.rails[0].mac} /sys/class/net/*/address)); ip link set up dev $(basename $PWD); cat carrier"
        until(lambda: say(there, node, carrier).strip() == "0", 20, "a rail without light")
        lab("cable", node.name, "0", "--restore")
        until(lambda: say(there, node, carrier).strip() == "1", 20, "a rail with light")
        return seconds, host_keys(there)
    finally:
        lab("down")


def main() -> None:
    labs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    times, keys = [], set()
    for _number in range(labs):
        seconds, own = boot()
        print(f"{NODES} machines up after {seconds:.1f} s, each one of its own; a cut cable is dark", flush=True)
        times.append(seconds)
        keys |= own
    assert len(keys) == labs * NODES, "two machines have the same host key"
    print(f"{labs * NODES} machines: {min(times):.1f} to {max(times):.1f} s a lab of {NODES}, {len(keys)} host keys")


if __name__ == "__main__":
    main()
