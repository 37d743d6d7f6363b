# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's log on two H200, and logs of its source's words: many hosts, plugins, warnings, torn lines, and more than is kept."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log import log as log_log
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.lines import Origin, origin
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.log import parse_nccl_log
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import (
    Adapter,
    Channel,
    EnvironmentValue,
    GpuDirect,
    LogLine,
    NcclLog,
    NcclRank,
    Network,
)
from tests.unit.builders.garbled import garbled
from tests.unit.builders.nccl_texts import Job, h200

NO_IB = (
    LogLine("NET/IB : No device found.", None, None, 1, ("vm",)),
    LogLine("Failed to initialize NET plugin IB", None, None, 1, ("vm",)),
)
ETH0 = (Network("vm", "IB", (), "eth0"), Network("vm", "Socket", (Adapter(0, "eth0", address="192.0.2.2"),), None))
NOTHING = NcclLog(0, (), (), None, (), {}, (), (), (), (), None, (), (), (), (), 0)


def read(text: str) -> NcclLog:
    return parse_nccl_log(text.splitlines(keepends=True))


def ranks(pid: int, comm_id: str) -> tuple[NcclRank, ...]:
    return tuple(NcclRank("vm", pid, rank, 2, rank, rank, f"0000:00:0{6 + rank}.0", comm_id, True) for rank in (0, 1))


SOCKET = NcclLog(
    lines=71,
    versions=("2.28.9+cuda13.0",),
    ranks=ranks(1489, "0x86ef289a3a2c583a"),
    nnodes=2,
    networks=ETH0,
    networks_in_use={"Socket": 2},
    plugins=(),
    channels=(
        Channel("vm", "NET", "Socket", "receive", 0, "eth0", False, False, 4, "Channel 00/0 : 1[1] -> 0[0] [receive] via NET/Socket/0"),
        Channel("vm", "NET", "Socket", "send", 0, "eth0", False, False, 4, "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0"),
    ),
    gpu_direct=(),
    dmabuf=(),
    nvls=False,
    bootstrap=("eth0",),
    environment=tuple(
        EnvironmentValue(name, value, ("vm",))
        for name, value in (("NCCL_NVLS_ENABLE", "0"), ("NCCL_P2P_DISABLE", "1"), ("NCCL_SHM_DISABLE", "1"))
    ),
    warnings=(),
    errors=NO_IB,
    left_out=0,
)


def test_two_h200_over_sockets() -> None:
    assert read(h200("all_reduce_perf_via_socket_debug_info.txt")) == SOCKET


def test_two_h200_through_the_memory_of_the_host() -> None:
    shared = Channel("vm", "SHM", "direct", None, None, None, False, None, 8, "Channel 00 : 1[1] -> 0[0] via SHM/direct/direct")
    assert read(h200("all_reduce_perf_p2p_disabled_debug_info.txt")) == replace(
        SOCKET,
        lines=70,
        ranks=ranks(1467, "0xfa721f9410f4b1d0"),
        nnodes=1,
        channels=(shared,),
        environment=SOCKET.environment[:2],
    )


def test_two_h200_over_nvlink() -> None:
    direct = Channel("vm", "P2P", "direct pointer", None, None, None, False, None, 48, "Channel 00/0 : 1[1] -> 0[0] via P2P/direct pointer")
    files = (("NCCL_GRAPH_DUMP_FILE", "/tmp/graph.xml"), ("NCCL_NVLS_ENABLE", "0"), ("NCCL_TOPO_DUMP_FILE", "/tmp/topo.xml"))
    assert read(h200("all_reduce_perf_debug_info.txt")) == replace(
        SOCKET,
        lines=130,
        ranks=ranks(1355, "0x3a933d740bbafd4c"),
        nnodes=1,
        channels=(direct,),
        environment=tuple(EnvironmentValue(name, value, ("vm",)) for name, value in files),
    )


def test_a_topology_file_that_is_missing() -> None:
    log = read(h200("all_reduce_perf_topo_file_missing_debug_info.txt"))
    text = "Could not open XML topology file /nonexistent.xml : No such file or directory"
    assert log.errors == (*NO_IB, LogLine(text, None, None, 2, ("vm",)))
    assert (log.lines, log.nnodes, sum(channel.count for channel in log.channels)) == (132, 1, 48)


def test_a_device_that_is_missing() -> None:
    log = read(h200("all_reduce_perf_no_ib_device_failed.txt"))
    traces = {"init.cc:421 -> 5": 2, "init.cc:1572 -> 5": 2, "group.cc:76 -> 5 [Async thread]": 2}
    traces |= {"group.cc:537 -> 5": 1, "group.cc:743 -> 5": 1, "group.cc:107 -> 5": 1}
    failure = LogLine("Test NCCL failure common.cu:222 'invalid usage (run with NCCL_DEBUG=WARN for details) / '", None, None, 1, ())
    assert log == replace(
        SOCKET,
        lines=23,
        ranks=(),
        nnodes=None,
        networks=ETH0[:1],
        networks_in_use={},
        channels=(),
        nvls=None,
        environment=(EnvironmentValue("NCCL_IB_HCA", "mlx5_0", ("vm",)),),
        warnings=(LogLine("Failed to initialize any NET plugin", "plugin/net.cc", 379, 2, ("vm",)),),
        errors=(*NO_IB, *(LogLine(text, None, None, count, ("vm",)) for text, count in traces.items()), failure),
    )


def test_a_job_of_many_hosts() -> None:
    job = Job(hosts=3, gpus=2, hcas=2, per_peer=1, rings=2)
    log = parse_nccl_log(job.lines())
    assert (log.lines, log.nnodes, log.networks_in_use, log.left_out) == (sum(1 for _line in job.lines()), 3, {"IB": 6}, 0)
    assert [(rank.host, rank.rank, rank.nranks, rank.complete) for rank in log.ranks] == [
        (f"gpu00{rank // 2 + 1}", rank, 6, True) for rank in range(6)
    ]
    assert log.ranks[1].bus_id == "0000:2b:00.0"
    assert log.dmabuf == ("gpu001", "gpu002", "gpu003")
    adapters = (Adapter(0, "mlx5_0", 1, "IB"), Adapter(1, "mlx5_1", 1, "IB"))
    assert log.networks == tuple(Network(f"gpu00{number}", "IB", adapters, "eth0") for number in (1, 2, 3))
    assert log.environment[0] == EnvironmentValue("NCCL_IB_HCA", "=mlx5_0,mlx5_1", ("gpu001", "gpu002", "gpu003"))
    assert log.gpu_direct[:2] == (GpuDirect("gpu001", True, "mlx5_0", None, None, 2), GpuDirect("gpu001", True, "mlx5_1", None, None, 2))
    of_first = {replace(channel, example="") for channel in log.channels if channel.host == "gpu001"}
    ways = [
        (0, "receive", False, 4),
        (0, "send", False, 2),
        (0, "send", True, 2),
        (1, "receive", False, 4),
        (1, "send", False, 2),
        (1, "send", True, 2),
    ]
    assert of_first == {
        Channel("gpu001", "P2P", "CUMEM", None, None, None, False, None, 2, ""),
        *(Channel("gpu001", "NET", "IB", way, device, f"mlx5_{device}", pxn, True, count, "") for device, way, pxn, count in ways),
    }


@pytest.mark.parametrize("tag", [True, False], ids=["tagged", "plain"])
def test_the_order_of_lines_and_the_tags_of_a_launcher_change_nothing(tag: bool) -> None:
    lines = list(Job(hosts=2, gpus=2, hcas=2, tag=tag).lines())
    mixed = list(itertools.chain.from_iterable(lines[start::7] for start in range(7)))
    log, other = parse_nccl_log(lines), parse_nccl_log(mixed)
    assert {replace(channel, example="") for channel in log.channels} == {replace(channel, example="") for channel in other.channels}
    assert (log.ranks, set(log.networks), log.environment) == (other.ranks, set(other.networks), other.environment)


def test_times_of_day_before_each_line_change_nothing() -> None:
    lines = list(Job(hosts=2, gpus=2).lines())
    timed = [line.replace(":gpu", f":[2026-11-20 09:29:41.{number:06d}] gpu", 1) for number, line in enumerate(lines)]
    assert parse_nccl_log(timed) == parse_nccl_log(lines)


@pytest.mark.parametrize("time", ["", "[2026-11-20 09:29:41.{:06d}] "], ids=["plain", "timed"])
def test_the_process_of_a_line_is_looked_up_once(monkeypatch: pytest.MonkeyPatch, time: str) -> None:
    """A time before each line must not make a long log slow: 64 processes write many thousand lines."""
    seen: list[str] = []

    def counted(head: str) -> Origin:
        seen.append(head)
        return origin(head)

    monkeypatch.setattr(log_log, "origin", counted)
    lines = [time.format(number) + line for number, line in enumerate(Job(hosts=8, gpus=8, tag=False).lines())]
    assert len(parse_nccl_log(lines).ranks) == len(seen) == 64
    assert len(lines) > 5000


def test_a_communicator_that_was_split_off() -> None:
    text = (
        "g:5:6 [3] NCCL INFO ncclCommSplit comm 0x55 rank 1 nranks 4 cudaDev 3 nvmlDev 3 busId b1000 parent 0x44 splitCount 1 color 0 key 1"
        " - Init START\n"
        "g:5:6 [3] NCCL INFO comm 0x66 rank 0 nranks 8 cudaDev 0 nvmlDev 0 - Init COMPLETE\n"
        "g:5:6 [0] NCCL INFO [Rank 7] ncclCommInitRank comm 0x77 rank 7 nranks 8 cudaDev 7 nvmlDev 7 busId XXXX commId 0x1 - Init START\n"
    )
    assert read(text).ranks == (
        NcclRank("g", 5, 1, 4, 3, 3, "0000:b1:00.0", None, False),
        NcclRank("g", 5, 0, 8, 0, 0, None, None, True),
        NcclRank("g", 5, 7, 8, 7, 7, None, "0x1", False),
    )


def test_lines_on_gpudirect_of_several_versions() -> None:
    text = (
        "a:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (no module)\n"
        "a:1:2 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 1b000 / HCA 1 (distance 4 <= 4), read 1\n"
        "a:1:2 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 2 / HCA 3 (distance 7 > 4)\n"
        "a:1:2 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 0 / HCA a (distance 4 <= 4), read 0 mode Default\n"
    )
    assert read(text).gpu_direct == (
        GpuDirect("a", False, "mlx5_0", None, "no module", 1),
        GpuDirect("a", True, "1", "1b000", "distance 4 <= 4", 1),
        GpuDirect("a", False, "3", "2", "distance 7 > 4", 1),
        GpuDirect("a", True, "a", "0", "distance 4 <= 4", 1),
    )


def test_plugins() -> None:
    text = (
        "a:1:2 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.13.2-aws\n"
        "a:1:2 [0] NCCL INFO NET/Plugin: Loaded net plugin IBext_v8 (v8)\n"
        "a:1:2 [0] NCCL INFO Successfully loaded external network plugin libnccl-net.so\n"
        "a:1:2 [0] NCCL INFO NET/Plugin: Plugin name set by env to libnccl-net-spcx.so\n"
        "a:1:2 [0] NCCL INFO Using network IBext_v8\n"
        "a:1:2 [0] NCCL INFO TUNER/Plugin: NCCL_TUNER_PLUGIN set to libx.so\n"
    )
    log = read(text)
    assert log.plugins == ("aws-ofi-nccl 1.13.2-aws", "IBext_v8 (v8)", "libnccl-net.so", "libnccl-net-spcx.so")
    assert (log.networks_in_use, log.environment) == ({"IBext_v8": 1}, (EnvironmentValue("NCCL_TUNER_PLUGIN", "libx.so", ("a",)),))


def test_the_plugin_of_aws_that_goes_without_gpudirect() -> None:
    text = (
        "a:1:2 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 1 nics)\n"
        "a:1:2 [0] NCCL INFO NET/OFI Could not disable CUDA API usage for HMEM, disabling GDR\n"
        "a:1:2 [0] NCCL INFO Successfully loaded external tuner plugin /opt/lib/libnccl-net.so\n"
        "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [receive] via NET/Libfabric/0\n"
    )
    log = read(text)
    assert log.plugins == ("provider is efa", "/opt/lib/libnccl-net.so")
    assert log.gpu_direct == (GpuDirect("a", False, "OFI", None, "Could not disable CUDA API usage for HMEM, disabling GDR", 1),)
    assert [(channel.kind, channel.adapter, channel.gdr) for channel in log.channels] == [("Libfabric", None, False)]


def test_devices_that_nccl_has_merged() -> None:
    text = (
        "a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
        "a:1:2 [0] NCCL INFO NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=800000 ndevs=2\n"
        "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/2/GDRDMA\n"
        "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/9/GDRDMA\n"
    )
    assert [(channel.device, channel.adapter) for channel in read(text).channels] == [(2, "mlx5_0+mlx5_1"), (9, None)]


def test_a_process_that_lists_no_adapters_has_those_of_its_host() -> None:
    text = (
        "a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_3:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
        "a:8:9 [1] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n"
        "b:8:9 [1] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [send] via NET/IB/0\n"
    )
    assert [(channel.host, channel.adapter) for channel in read(text).channels] == [("a", "mlx5_3"), ("b", None)]


def test_nvls_in_use() -> None:
    assert read("a:1:2 [0] NCCL INFO 16 coll channels, 16 nvls channels, 32 p2p channels\n").nvls
    assert read("a:1:2 [0] NCCL INFO Connected NVLS tree\n").nvls
    assert read("a:1:2 [0] NCCL INFO NVLS multicast support is available on dev 0\n").nvls is None


def test_warnings_and_errors_of_many_hosts() -> None:
    status = "NET/IB: Got completion from peer 10.0.0.{}<4711> with status=12 opcode=0 len=0 vendor err 129 (Recv)"
    text = "".join(
        f"\n[2026-11-20 09:29:41] gpu{number}:1:2 [0] transport/net_ib.cc:2094 NCCL WARN {status.format(2)}\n" for number in range(3)
    )
    text += (
        "Call to ibv_modify_qp failed with 110 Connection timed out\nRuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled\n"
    )
    log = read(text)
    assert log.warnings == (LogLine(status.format(2), "transport/net_ib.cc", 2094, 3, ("gpu0", "gpu1", "gpu2")),)
    assert [line.text for line in log.errors] == [
        "Call to ibv_modify_qp failed with 110 Connection timed out",
        "NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled",
    ]


def test_torn_lines_say_nothing_and_are_counted() -> None:
    text = (
        "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRb:1:2 [1] NCCL INFO Channel 01/0 : 8[0] -> 0[0] via SHM/d\n"
        "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRb:1:2 [1]\n"
    )
    log = read(text)
    assert (log.lines, log.channels, log.left_out) == (2, (), 2)


def test_no_log_is_no_error() -> None:
    assert read("# nThread 1\nhello\n") == NOTHING


@pytest.mark.parametrize(
    ("head", "host"),
    [
        ("vm:1:2 [0] ", "vm"),
        ("[2026-11-20 09:29:41] vm:1:2 [0] ", "vm"),
        ("     8     2     float     sum      -1vm:1:2 [0] ", "vm"),
        ("09:29:41 10-0-0-1:1:2 [0] ", "10-0-0-1"),
        ("vm:1:2 ", "vm"),
        ("", None),
        (" ", None),
    ],
    ids=["plain", "time", "row", "digits", "no device", "nothing", "a blank"],
)
@pytest.mark.parametrize("times", [1, 3], ids=str)
def test_hosts_of_channels(head: str, host: str | None, times: int) -> None:
    line = f"{head}NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct\n"
    log = parse_nccl_log([line] * times)
    assert [(channel.host, channel.count) for channel in log.channels] == [(host, times)]


def test_a_version_alone() -> None:
    assert read("NCCL version 2.18.3+cuda12.1\n") == replace(NOTHING, versions=("2.18.3+cuda12.1",))


def test_what_is_kept_does_not_grow_with_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_log, "_MOST_PROCESSES", 100)
    monkeypatch.setattr(log_log, "_MOST_HEADS", 50)
    numbers = range(3000)
    lines = [f"h{number}:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n" for number in numbers]
    lines += [f"h1:1:2 [0] a.cc:{number} NCCL WARN {number}\n" for number in numbers]
    lines += [f"h1:1:2 [0] NCCL INFO NCCL_X{number} set to 1\n" for number in numbers]
    log = parse_nccl_log(lines)
    assert (log.lines, len(log.channels), len(log.warnings), len(log.environment)) == (9000, 100, 500, 2000)
    assert log.left_out == 2900 + 2500 + 1000


def test_a_process_with_texts_of_channels_without_end() -> None:
    lines = (f"a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> {number}[1] via P2P/IPC/{number}\n" for number in range(20_000))
    assert [(channel.kind, channel.count) for channel in parse_nccl_log(lines).channels] == [("IPC", 20_000)]


@given(garbled(h200("all_reduce_perf_via_socket_debug_info.txt")))
def test_any_text_is_read(text: str) -> None:
    log = read(text)
    assert log.lines <= text.count("NCCL INFO ") + text.count("NCCL WARN ")
