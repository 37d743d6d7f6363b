# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the log of a job of 512 ranks costs to read: a process of its own prints its seconds of CPU and its peak of memory.

python -m tests.bench.nccl_log FILE: the log of NCCL_DEBUG=INFO as a launcher prints it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.log import parse_nccl_log
from tests.bench.bars import Line, figure
from tests.bench.watch import peak_mib
from tests.child import environment
from tests.unit.builders.nccl_texts import Job

ROOT = Path(__file__).parents[2]
PARSE = ("python", "-m", "tests.bench.nccl_log", "FILE")
JOB = Job(hosts=64, gpus=8)
LEAST_LINES = 1_000_000


def read(folder: Path, job: Job = JOB, least_lines: int = LEAST_LINES) -> Iterator[Line]:
    """The log of a generated job, in a process that does nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "nccl.log"
    with file.open("w", encoding="utf-8") as stream:
        lines = sum(stream.write(line) > 0 for line in job.lines())
    done = subprocess.run(
        [sys.executable, *PARSE[1:3], str(file)], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment()
    )
    file.unlink()
    answer = json.loads(done.stdout)
    across = 2 * job.per_peer * job.ranks * (job.ranks - job.gpus)
    if lines < least_lines or (answer["lines"], answer["ranks"], answer["channels"]) != (lines, job.ranks, across):
        raise RuntimeError(f"The log of {lines} lines was not read whole, so that something else was measured: {answer}")
    yield figure("nccl_log_parse_s", answer["seconds"], PARSE, note=f"{lines} lines of {job.ranks} ranks")
    yield figure("nccl_log_peak_mib", answer["mib"], PARSE)


def main(file: str) -> None:
    begun = time.process_time()
    with Path(file).open(encoding="utf-8", errors="replace") as lines:
        log = parse_nccl_log(lines)
    seconds, mib = time.process_time() - begun, peak_mib("self")
    across = sum(channel.count for channel in log.channels if channel.transport == "NET")
    print(json.dumps({"seconds": seconds, "mib": mib, "lines": log.lines, "ranks": len(log.ranks), "channels": across}))


if __name__ == "__main__":
    main(sys.argv[1])
