# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands before a message of NCCL's log, in the forms of its versions and of launchers."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.lines import Origin, before_log, origin

VM = Origin("vm", 1355, 0, thread=1370)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("vm:1355:1370 [0] ", VM),
        ("[1,0]<stdout>:vm:1355:1370 [0] ", VM),
        ("[prterun-vm-1@1,0]<stdout>: vm:1355:1370 [0] ", VM),
        ("3: vm:1355:1370 [0] ", VM),
        ("[2026-11-20 09:29:41] vm:1355:1370 [0] ", VM),
        ("2026-11-20T09:29:41.123Z vm:1355:1370 [0] ", VM),
        ("[rank0]:vm:1355:1370 [0] ", VM),
        ("gpu-001.example-1:1:2 [-1] ", Origin("gpu-001.example-1", 1, -1, thread=2)),
        ("10-0-0-1:1:2 [7] ", Origin("10-0-0-1", 1, 7, thread=2)),
        ("vm:1355:1370 [0] plugin/net.cc:379 ", Origin("vm", 1355, 0, "plugin/net.cc", 379, thread=1370)),
        ("[2026-11-20 09:29:41] vm:1:2 [1] init.cc:9 (ncclInit) ", Origin("vm", 1, 1, "init.cc", 9, "ncclInit", thread=2)),
        ("         1024           256     float     sum      -1vm:1355:1370 [0] ", VM),
        ("", Origin(None, None)),
        ("vm [0] ", Origin(None, None)),
    ],
    ids=[
        "plain",
        "mpirun",
        "prterun",
        "srun",
        "time",
        "kubectl",
        "torchrun",
        "name",
        "digits",
        "warning",
        "function",
        "row",
        "none",
        "no pid",
    ],
)
def test_origins(head: str, expected: Origin) -> None:
    assert origin(head) == expected


@pytest.mark.parametrize(
    ("line", "before"),
    [
        ("# nThread 1\n", None),
        ("vm:1:2 [0] NCCL INFO x\n", ""),
        ("[1,0]<stdout>:vm:1:2 [0] NCCL INFO x\n", "[1,0]<stdout>:"),
        ("  8  2  float  sum  -1vm:1:2 [0] NCCL INFO x\n", "  8  2  float  sum  -1"),
        ("  8  2  float  sum  -1 vm:1:2 [0] a.cc:3 NCCL WARN x\n", "  8  2  float  sum  -1 "),
        ("NCCL INFO x\n", ""),
    ],
    ids=["no log", "plain", "mpirun", "glued", "warning", "without an origin"],
)
def test_what_stands_before_the_log(line: str, before: str | None) -> None:
    assert before_log(line) == before
