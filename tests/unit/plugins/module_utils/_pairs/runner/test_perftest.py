# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""perftest's command line and its outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import first_line, node_cpus, perftest_argv
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import MeetingError


@pytest.mark.parametrize(
    ("outputs", "line"),
    [
        (("", ""), ""),
        (("----\n****\n* Waiting for client to connect... *\n WARNING: BW peak\n",), ""),
        (("\n  \x1b[31mCouldn't\tallocate\x00 MR\x1b[0m \nmore", "other"), "Couldn't allocate MR"),
        (("", "on stdout"), "on stdout"),
        (("x" * 500,), "x" * 159 + "…"),
    ],
    ids=["nothing", "frames", "control characters", "second output", "long"],
)
def test_the_first_line_that_says_something(outputs: tuple[str, ...], line: str) -> None:
    assert first_line(*outputs).replace("[31m", "").replace("[0m", "").strip() == line


@pytest.mark.parametrize(
    ("node", "cpulist", "expected"),
    [(0, "0-3,8\n", {0, 1, 2, 3, 8}), (1, "\n", set()), (None, "0\n", set()), (-1, "0\n", set()), (7, None, set())],
)
def test_cpus_of_a_numa_node(tmp_path: Path, node: int | None, cpulist: str | None, expected: set[int]) -> None:
    if cpulist is not None:
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(cpulist, encoding="ascii")
    assert node_cpus(node, tmp_path) == expected


PROFILE = {"device": "mlx5_0", "port": 2, "gid_index": 3, "numa_node": None, "gpu": {"bus_id": "0000:1b:00.0", "dmabuf": True}}
PLAIN = {"name": "x", "command": "ib_write_bw", "size_bytes": 2, "queue_pairs": 4, "duration_seconds": 3, "iterations": None}


@pytest.mark.parametrize(
    ("test", "profile", "expected"),
    [
        ({}, {"gid_index": None}, "ib_write_bw -d mlx5_0 -i 2 -s 2 -q 4 -D 3 --report_gbits -F -p 18520"),
        (
            {"mtu_bytes": 4096, "traffic_class": 106, "service_level": 3, "qp_timeout": 20},
            {},
            "ib_write_bw -d mlx5_0 -i 2 -x 3 -s 2 -q 4 -D 3 --report_gbits -F -p 18520 -m 4096 -u 20 --tclass=106 --sl=3",
        ),
        ({"iterations": 200}, {}, "ib_write_bw -d mlx5_0 -i 2 -x 3 -s 2 -q 4 -n 200 --report_gbits -F -p 18520"),
        (
            {"command": "ib_read_bw", "bidirectional": True},
            {},
            "ib_read_bw -d mlx5_0 -i 2 -x 3 -s 2 -q 4 -D 3 --report_gbits -F -p 18520 -b",
        ),
        ({"command": "ib_send_lat", "bidirectional": True}, {}, "ib_send_lat -d mlx5_0 -i 2 -x 3 -s 2 -D 3 -F -p 18520"),
        ({"command": "ib_read_lat", "queue_pairs": None}, {}, "ib_read_lat -d mlx5_0 -i 2 -x 3 -s 2 -D 3 -F -p 18520"),
        (
            {"command": "ib_send_bw", "memory": "gpu"},
            {},
            "ib_send_bw -d mlx5_0 -i 2 -x 3 -s 2 -q 4 -D 3 --report_gbits -F -p 18520 --use_cuda_bus_id=0000:1b:00.0 --use_cuda_dmabuf",
        ),
        (
            {"command": "ib_write_lat", "memory": "gpu"},
            {"gpu": {"bus_id": "0000:1b:00.0", "dmabuf": False}},
            "ib_write_lat -d mlx5_0 -i 2 -x 3 -s 2 -D 3 -F -p 18520 --use_cuda_bus_id=0000:1b:00.0",
        ),
    ],
    ids=["plain, InfiniBand", "all options", "iterations", "bidirectional", "latency", "no queue pairs", "GPU, DMA-BUF", "GPU, peermem"],
)
def test_the_command_line_of_perftest(test: dict[str, Any], profile: dict[str, Any], expected: str) -> None:
    both = {**PLAIN, **test}, {**PROFILE, **profile}
    assert perftest_argv(*both, 18520, None) == expected.split()
    assert perftest_argv(*both, 18520, "192.0.2.2") == [*expected.split(), "192.0.2.2"]


def test_no_gpu_where_one_is_wanted() -> None:
    with pytest.raises(MeetingError, match="no GPU for mlx5_0"):
        perftest_argv({**PLAIN, "memory": "gpu"}, {**PROFILE, "gpu": None}, 18520, None)
