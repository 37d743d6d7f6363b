# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reading a host's facts costs, measured on that host. Standard library only: it is sent to lab machines.

python facts_here.py cpu ROOT: {"cpu_ms"} of the sysfs subset of a captured tree, without the start of Python.
python facts_here.py plain: {"facts_s", "same_s", "processes", "plain_s", "plain"} of this host: everything, what the commands that people
type report (devices, ports, PCIe, interfaces, optics), and those commands.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed, SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Asked, gather, to_dict

TIMES = 11
SYSFS = frozenset({"counters", "gpus"})
SAME = SYSFS | {"netdevs", "optics"}
ONCE = (("ibstat",), ("ibv_devinfo", "-v"), ("lspci", "-vv"))
PER_NETDEV = (("ethtool", "-i"), ("ethtool", "-S"), ("ethtool", "-g"), ("ethtool", "-m"))


class Counting(SubprocessRunner):
    """The runner of a live host that counts what it runs."""

    def __init__(self) -> None:
        self.count = 0

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        self.count += 1
        return super().run(argv, timeout_seconds=timeout_seconds)


def cpu(root: str) -> dict[str, float]:
    """The median of some runs: CPU seconds of this process, file system cache warm."""
    spent = []
    for _turn in range(TIMES):
        begun = time.process_time()
        to_dict(gather(SysRoot(root), asked=Asked(subset=SYSFS)))
        spent.append(1000 * (time.process_time() - begun))
    return {"cpu_ms": statistics.median(spent)}


def plain() -> dict[str, object]:
    """Everything that the module reads, and then the plain commands one after the other, for each interface of a NIC."""
    runner = Counting()
    begun = time.monotonic()
    facts = gather(SysRoot("/"), runner)
    facts_s = time.monotonic() - begun
    begun = time.monotonic()
    gather(SysRoot("/"), SubprocessRunner(), Asked(subset=SAME))
    same_s = time.monotonic() - begun
    commands = [*ONCE, *((*command, name) for command in PER_NETDEV for name in facts.netdevs)]
    missing = sorted({command[0] for command in commands if shutil.which(command[0]) is None})
    if missing:
        raise SystemExit(f"not installed here: {', '.join(missing)}")
    begun = time.monotonic()
    for command in commands:
        SubprocessRunner().run(command)
    plain_s = time.monotonic() - begun
    answer = {"facts_s": facts_s, "same_s": same_s, "plain_s": plain_s}
    return {**answer, "processes": runner.count, "plain": len(commands)}


if __name__ == "__main__":
    print(json.dumps(cpu(sys.argv[2]) if sys.argv[1] == "cpu" else plain()))
