# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why perftest gave no result. The texts are perftest's own, of the versions that are named beside them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.failure import (
    Failure,
    classify_failure,
    find_sign,
    parse_result,
)
from tests.unit.builders.garbled import garbled

GPU_ARGV = ("ib_write_bw", "-d", "mlx5_0", "--use_cuda_bus_id=0000:1b:00.0", "192.0.2.1")
MR_REFUSED = "Couldn't allocate MR\nfailed to create mr\nFailed to create MR\n Couldn't create IB resources\n"
MR_REFUSED_SINCE_23_04 = "Couldn't allocate MR with error=12\nfailed to create mr\nFailed to create MR\n Couldn't create IB resources\n"
SIGNS = [
    ("no_device", "IB device mlx5_9 not found\n Unable to find the Infiniband/RoCE device\n", "IB device mlx5_9 not found"),
    ("no_device", " Couldn't get context for the device\n", "Couldn't get context for the device"),
    ("no_device", "No IB devices found\n", "No IB devices found"),
    ("refused", " Unable to init the socket connection\n", "Unable to init the socket connection"),
    ("refused", "Unable to connect (retries = 10)\n Unable to perform rdma_client function\n", "Unable to connect (retries = 10)"),
    ("refused", "Unable to open file descriptor for socket connection\n", "Unable to open file descriptor for socket connection"),
    ("port_taken", "Couldn't listen to port 18515\n Unable to init the socket connection\n", "Couldn't listen to port 18515"),
    (
        "qp",
        "Couldn't create rdma new QP - Cannot allocate memory\nUnable to create QP.\nFailed to create QP.\n",
        "Couldn't create rdma new QP",
    ),
    ("qp", "Requested QP size might be too big. Try reducing TX depth and/or inline size.\n", "Requested QP size might be too big"),
    ("qp", "Failed to modify QP to INIT, ret=22\nUnable to create QP.\n", "Failed to modify QP to INIT, ret=22"),
    ("qp", "Failed to modify QP to RTS\n Unable to Connect the HCA's through the link\n", "Failed to modify QP to RTS"),
    ("mtu", " Couldn't set Eth MTU\n", "Couldn't set Eth MTU"),
    ("mtu", " Invalid MTU - 9000 \n Please choose mtu from {256,512,1024,2048,4096}\n", "Invalid MTU - 9000"),
    ("retry_exceeded", " Failed status-transport retry counter exceeded (12): wr_id 0 syndrom 0x81\n", "Failed status-transport retry"),
    ("memory_registration", MR_REFUSED, "Couldn't allocate MR"),
    ("memory_registration", MR_REFUSED_SINCE_23_04, "Couldn't allocate MR with error=12"),
    ("memory_registration", " Cannot Allocate\n", "Cannot Allocate"),
    (
        "memory_registration",
        "[HOST_MEMORY] Failed to allocate 131072 bytes (errno=11: Resource temporarily unavailable)\n",
        "[HOST_MEMORY] Failed to allocate 131072 bytes",
    ),
    ("version", "Current implementation is not compatible with versions older than 5.70\n", "Current implementation is not compatible"),
    ("version", " num_of_qps mismatch: local=4, remote=1\n Failed to negotiate parameters\n", "num_of_qps mismatch: local=4, remote=1"),
    ("version", " verb mismatch: local=WRITE, remote=READ\n Failed to negotiate parameters\n", "verb mismatch: local=WRITE, remote=READ"),
    (
        "version",
        "ib_write_bw: unrecognized option '--ipv6-addr'\n Invalid Command or flag.\n",
        "ib_write_bw: unrecognized option '--ipv6-addr'",
    ),
    ("timeout", " Did not get Message for 120 Seconds, exiting..\n Total Received=7, Total Iters Required=5000\n", "Did not get Message"),
    (
        "gpu_memory",
        "ib_write_bw: unrecognized option '--use_cuda=0'\n Invalid Command or flag.\n",
        "ib_write_bw: unrecognized option '--use_cuda=0'",
    ),
    (
        "gpu_memory",
        "ib_write_bw: unrecognized option '--use_cuda_bus_id=0000:1b:00.0'\n Invalid Command or flag.\n",
        "ib_write_bw: unrecognized option '--use_cuda_bus_id=0000:1b:00.0'",
    ),
    ("gpu_memory", "CUDA DMA-BUF cannot be used without CUDA\n", "CUDA DMA-BUF cannot be used without CUDA"),
    ("gpu_memory", "No such device ID (8) exists in system\nCouldn't init GPU context: 1\n", "No such device ID (8) exists in system"),
    (
        "gpu_memory",
        "cuDeviceGetByPCIBusId failed with error: 101; Failed to get PCI Bus ID (0000:1b:00.0)\n",
        "cuDeviceGetByPCIBusId failed with error: 101",
    ),
    ("gpu_memory", "Couldn't init GPU context: 1\nFailed to init memory\n", "Couldn't init GPU context: 1"),
    ("gpu_memory", "DMA-BUF is not supported on this GPU\nFailed to init memory\n", "DMA-BUF is not supported on this GPU"),
    ("gpu_memory", "Couldn't allocate MR with error=95\nOFED stack does not support DMA-BUF\n", "OFED stack does not support DMA-BUF"),
    (
        "gpu_memory",
        "DMABUF requested but not supported in this build\nCouldn't allocate MR with error=95\n",
        "DMABUF requested but not supported",
    ),
    ("gpu_memory", " Perftest supports CUDA only in BW tests\n", "Perftest supports CUDA only in BW tests"),
    (
        "gpu_memory",
        "Perftest doesn't support device memory latency test with write (without immediate) verb; use --write_with_imm\n",
        "Perftest doesn't support device memory latency test",
    ),
    (
        "gpu_memory",
        "Failed to load CUDA runtime library: libcudart.so: cannot open shared object file\n",
        "Failed to load CUDA runtime library",
    ),
    ("no_perftest", "bash: line 1: ib_write_bw: command not found\n", "bash: line 1: ib_write_bw: command not found"),
    ("no_perftest", "sh: 1: ib_write_bw: not found\n", "sh: 1: ib_write_bw: not found"),
    (
        "no_perftest",
        "numactl: execution of `ib_write_bw': No such file or directory\n",
        "numactl: execution of `ib_write_bw': No such file or directory",
    ),
    (
        "no_perftest",
        "ib_write_bw: error while loading shared libraries: libibverbs.so.1: cannot open shared object file: No such file or directory\n",
        "ib_write_bw: error while loading shared libraries",
    ),
]


@pytest.mark.parametrize(("kind", "stderr", "line"), SIGNS, ids=[f"{kind}: {line[:40]}" for kind, stderr, line in SIGNS])
def test_the_decisive_line_is_quoted(kind: str, stderr: str, line: str) -> None:
    found = classify_failure(" Number of qps : 1\n", stderr, 1)
    assert found.kind == kind
    assert found.line.startswith(line)
    assert found.line in [shown.strip() for shown in stderr.split("\n")]


@pytest.mark.parametrize(
    "line",
    [
        "cuInit(0) returned 100",
        "cuMemAlloc error=2",
        "cuMemAllocHost error=2",
        "cuMemGetHandleForAddressRange error=801",
        "cuCtxCreate() error=46",
        "cuCtxCreate_v2() error=46",
        "There are no available device(s) that support CUDA",
        "Failed to load CUDA library dynamically",
        "CUDA driver version 11.8 does not support CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE",
        "hipMalloc error=2",
    ],
)
def test_what_cuda_says_on_stdout(line: str) -> None:
    assert classify_failure(f"initializing CUDA\n{line}\n", "Couldn't allocate MR\n", 1) == Failure("gpu_memory", line)


@pytest.mark.parametrize(
    ("stdout", "argv"),
    [
        ("", GPU_ARGV),
        ("", ("ib_write_bw", "--use_cuda=0")),
        ("Picking GPU number 0\nallocated GPU buffer address at 00007f1c2a000000 pointer=0x7f1c2a000000\n", ()),
    ],
    ids=["by-bus", "by-number", "by-output"],
)
@pytest.mark.parametrize("stderr", [MR_REFUSED, MR_REFUSED_SINCE_23_04.replace("12", "14")], ids=["6.06", "23.04"])
def test_a_refused_registration_of_gpu_buffers_is_the_gpus(stdout: str, argv: tuple[str, ...], stderr: str) -> None:
    assert classify_failure("", stderr, 1).kind == "memory_registration"
    assert classify_failure(stdout, stderr, 1, argv=argv) == Failure("gpu_memory", stderr.split("\n", maxsplit=1)[0])


def test_a_local_protection_error_on_gpu_buffers_is_the_gpus() -> None:
    stderr = " Completion with error at client\n Failed status 4: wr_id 0 syndrom 0x51\n"
    assert classify_failure("", stderr, 1).kind == "completion"
    assert classify_failure("", stderr, 1, argv=GPU_ARGV) == Failure("gpu_memory", "Failed status 4: wr_id 0 syndrom 0x51")


def test_a_gpu_is_not_blamed_for_other_failures() -> None:
    assert classify_failure("", "Couldn't connect to 192.0.2.1:18515\n", 1, argv=GPU_ARGV).kind == "refused"
    assert classify_failure("", " Failed status 12: wr_id 0 syndrom 0x81\n", 1, argv=GPU_ARGV).kind == "retry_exceeded"
    assert classify_failure("", "Something else\n", 1, argv=GPU_ARGV).kind == "unknown"


def test_a_lower_mtu_explains_a_failure_but_no_timeout() -> None:
    stdout = "Requested mtu is higher than active mtu \nChanging to active mtu - 3\n"
    assert classify_failure(stdout, "", 1) == Failure("mtu", "Requested mtu is higher than active mtu")
    assert classify_failure(stdout, "", -9).kind == "timeout"
    assert find_sign(stdout, "") is None


def test_a_disabled_feature_is_no_mismatch() -> None:
    stdout = " OOO_RECV_WRS mismatch, disabling enhanced reorder\n"
    assert classify_failure(stdout, "", 1).kind == "unknown"


@pytest.mark.parametrize(
    ("exit_code", "line"),
    [
        (-9, "perftest was ended by signal 9 (SIGKILL) from elsewhere; most likely the kernel, for want of memory"),
        (-6, "perftest was ended by signal 6 (SIGABRT) from elsewhere"),
        (-100, "perftest was ended by signal 100 (no signal's number) from elsewhere"),
    ],
)
def test_a_signal_that_the_caller_did_not_send(exit_code: int, line: str) -> None:
    assert classify_failure("", "", exit_code, stopped_by_caller=False) == Failure("signal", line)
    assert classify_failure("", "", exit_code).kind == "timeout"
    assert classify_failure("", MR_REFUSED, exit_code, stopped_by_caller=False).kind == "memory_registration"


def test_a_command_that_is_not_there() -> None:
    assert classify_failure("", "env: strange words\n", 127) == Failure("no_perftest", "env: strange words")


def test_a_zero_latency_or_bandwidth_is_a_failure() -> None:
    text = " #bytes        #iterations       t_avg[usec]    tps average\n 2       0            0.00        0.00\n"
    assert classify_failure(text, "", 0) == Failure("zero", "2       0            0.00        0.00")


def of_bandwidth(row: str) -> str:
    return f" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n {row}\n"


def test_a_zero_of_a_lost_clock_is_reported_by_its_line() -> None:
    """perftest 6.06 on a busy machine: it ends well, and all rates are zero."""
    text = of_bandwidth("65536      200              0.000000           0.000000           0.000000")
    line = "Correlation coefficient r^2: 0.423822 < 0.9"
    assert classify_failure(text, f"{line}\n", 0) == Failure("clock", line)


def test_a_lost_clock_takes_no_result_that_is_there() -> None:
    text = of_bandwidth("65536      200              97.50              97.50              0.185966")
    assert classify_failure(text, "Correlation coefficient r^2: 0.423822 < 0.9\n", 0) == Failure("unknown", "")


def test_the_zero_among_several_sizes_is_quoted() -> None:
    text = (
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
        " 2          5000             0.045656            0.045526            2.845402\n"
        " 4          5000             0.000000            0.000000            0.000000\n"
    )
    assert parse_result(text, report_gbits=False) == parse_result(text, report_gbits=True)
    found = classify_failure(text, "", 0)
    assert (found.kind, found.line.split()[0]) == ("zero", "4")


ALL = "".join(stderr for kind, stderr, line in SIGNS)


@given(garbled(ALL), garbled(ALL), st.none() | st.integers(-200, 300), st.sampled_from([(), GPU_ARGV]))
def test_every_output_has_a_kind(stdout: str, stderr: str, exit_code: int | None, argv: tuple[str, ...]) -> None:
    for stopped in (True, False):
        found = classify_failure(stdout, stderr, exit_code, argv=argv, stopped_by_caller=stopped)
        assert found.kind in {kind for kind, text, line in SIGNS} | {"unknown", "zero", "signal"}
        assert found.line == found.line.strip()
