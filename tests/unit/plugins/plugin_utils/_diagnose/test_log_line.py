# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who says a line of a job's log, and what, behind the prefixes of launchers; and the fields that many kinds of lines have."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log_line import LocatedLine, fields, read

NCCL = "[2026-11-20 09:29:41] vm:1674:1685 [1] plugin/net.cc:379 NCCL WARN Failed to initialize any NET plugin\n"
WARNED = LocatedLine("Failed to initialize any NET plugin", "vm", 1674, 1, None, "11-20 09:29:41")


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("", None),
        ("[1,3]<stderr>:", 3),
        ("Sun Nov 22 18:00:00 2026[1,12]<stdout>:", 12),
        ("[prterun-node1-4711@1,5]<stderr>: ", 5),
        ("12: ", 12),
        (" 7: ", 7),
        ("[rank2]:", 2),
        ("2026-11-22T18:00:00.000Z ", None),
        ("\x1b[31m", None),
    ],
    ids=["none", "openmpi4", "openmpi4-time", "openmpi5", "srun", "srun-padded", "torchrun", "time", "color"],
)
def test_what_launchers_put_before_a_line(prefix: str, rank: int | None) -> None:
    answer = read(prefix + NCCL)
    assert answer == LocatedLine(WARNED.text, "vm", 1674, 1, rank, WARNED.time)


@pytest.mark.parametrize(
    ("line", "host", "pid"),
    [
        ("[1681107537.413956] [node1.example.org:146204:0]  ib_md.c:1 UCX  ERROR no", "node1.example.org", 146204),
        ("vm: Test NCCL failure common.cu:222 'unhandled system error / '", "vm", None),
        (" .. vm pid 1674: Test failure common.cu:1620", "vm", 1674),
        ("[node2:23280] select: init of component openib returned failure", "node2", 23280),
        ("Nov 22 18:00:00 node3 kernel: NVRM: Xid (PCI:0000:41:00): 79", "node3", None),
        ("RuntimeError: CUDA error: invalid device ordinal", None, None),
    ],
    ids=["ucx", "nccl-tests", "nccl-tests-pid", "openmpi", "kernel", "nobody"],
)
def test_the_host_of_other_programs(line: str, host: str | None, pid: int | None) -> None:
    assert (read(line).host, read(line).pid) == (host, pid)


def test_the_time_of_pytorch_is_of_the_form_of_nccl() -> None:
    answer = read("[rank0]:[E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught\n")
    assert (answer.rank, answer.time) == (0, "12-18 20:27:21.426415540")


def test_pytorch_puts_no_zero_before_a_month() -> None:
    answer = read("[rank2]:[E810 03:05:11.145572903 ProcessGroupNCCL.cpp:758] [Rank 2] To avoid data inconsistency\n")
    assert answer.time == "08-10 03:05:11.145572903"


def test_a_long_text_is_cut() -> None:
    assert len(read("x" * 5000).text) <= 300


def test_the_fields_of_a_completion() -> None:
    line = (
        "NET/IB: Got completion from peer 10.0.0.2<4791> with status=IBV_WC_RETRY_EXC_ERR(12) vendor_err=129  "
        "localGid ::ffff:10.0.0.1 remoteGids::ffff:10.0.1.2 hca mlx5_0"
    )
    expected = {"device": "mlx5_0", "gid": "::ffff:10.0.0.1", "remote_gid": "::ffff:10.0.1.2", "vendor_error": "129", "peer": "10.0.0.2"}
    assert dict(fields(line)) == expected


def test_the_fields_of_a_queue_pair() -> None:
    line = "failed with 22 Invalid argument, on dev mlx5_3:1, curr state INIT, local GID index 3, local GID fe80::1, remote GID fe80::2"
    assert dict(fields(line)) == {"device": "mlx5_3", "port": "1", "gid_index": "3", "gid": "fe80::1", "remote_gid": "fe80::2"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("UCX  ERROR Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15)", {"device": "mlx5_0", "port": "1"}),
        ("NET/IB : mlx5_1:2 GID table changed", {"device": "mlx5_1", "port": "2"}),
        ("NET/IB : No device found.", {}),
        ("timed out after 600000ms while trying to connect to (172.17.0.9, 46229).", {"peer": "172.17.0.9"}),
        ("[PG ID 2 PG GUID 19(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] Process group watchdog thread terminated", {"group": "19"}),
        ("[PG ID 0 PG GUID 0 Rank 1] Process group watchdog thread terminated", {"group": "0"}),
        ("[PG 7 Rank 9] Process group watchdog thread terminated", {"group": "7"}),
        ("failed to connect to [node1]:29500 (errno: 111)", {"peer": "node1"}),
        ("Connection closed by remote peer node2<4000>", {"peer": "node2"}),
    ],
    ids=["ucx", "event", "no-device", "store", "group", "group-without-words", "group-2.3", "store-name", "closed"],
)
def test_fields(line: str, expected: dict[str, str]) -> None:
    assert dict(fields(line)) == expected
