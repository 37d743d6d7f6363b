# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of perftest, Open MPI, UCX, network plugins, RCCL and the kernel: kind and first cause, with prefixes, ranks and hosts."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest import failure
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import (
    UNKNOWN_LINE,
    UNKNOWN_WARNING,
    JobLog,
    read_job_log,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Finder, Signature
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.every import SIGNATURES, find_signature
from tests.unit.builders.program_lines import NEAR

Found = list[tuple[str, int, tuple[str, ...], tuple[int, ...]]]


def read(text: str) -> JobLog:
    return read_job_log(text.splitlines(keepends=True))


def found(text: str) -> Found:
    return [(each.name, each.count, each.hosts, each.ranks) for each in read(text).occurrences]


PORT_DOWN = """\
node3:  Port number 1 state is Down
node3:  Couldn't set the link layer
node3:  Couldn't get context for the device
"""
MEMLOCK = """\
************************************
* Waiting for client to connect... *
************************************
Couldn't create CQ
Failed to create CQs
Couldn't create IB resources
"""
REMOTE = """\
 local address: LID 0000 QPN 0x0127 PSN 0x7b2b52 RKey 0x1fff00 VAddr 0x007f1a
 remote address: LID 0000 QPN 0x0129 PSN 0x5f2841 RKey 0x1fff01 VAddr 0x007f44
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 Completion with error at client
 Failed status-remote access error (10): wr_id 0 syndrom 0x88
 scnt=128, ccnt=0
"""
OPENIB = """\
[1,0]<stderr>:[[20375,1],0][btl_openib_component.c:3645:handle_wc] from node1 to: node2 error polling LP CQ with status RETRY \
EXCEEDED ERROR status number 12 for wr_id 7f81 opcode 0  vendor error 129 qp_idx 0
[1,0]<stderr>:--------------------------------------------------------------------------
[1,0]<stderr>:The InfiniBand retry count between two MPI processes has been
[1,0]<stderr>:exceeded.  "Retry count" is defined in the InfiniBand spec 1.2
[1,0]<stderr>:(section 12.7.38):
[1,0]<stderr>:  Local host:   node1
[1,0]<stderr>:  Local device: mlx5_0
[1,0]<stderr>:  Peer host:    node2
"""
OPENIB_MEMLOCK = """\
--------------------------------------------------------------------------
The OpenFabrics (openib) BTL failed to initialize while trying to
allocate some locked memory.  This typically can indicate that the
memlock limits are set too low.

  Local host:    node7
  OMPI source:   btl_openib.c:794
  Function:      ompi_free_list_init_ex_new()
  Device:        mlx5_0
  Memlock limit: 65536
--------------------------------------------------------------------------
WARNING: There was an error initializing an OpenFabrics device.

  Local host:   node8
  Local device: mlx5_0
--------------------------------------------------------------------------
"""
UCX = """\
1: [1681107537.413956] [node2:146204:0]          ib_md.c:316  UCX  ERROR ibv_reg_mr(address=0x7f, length=64, access=0xf) failed: \
Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)
0: [1681107537.513956] [node1:146200:0]         select.c:722  UCX  ERROR no active messages transport to <no debug data>: \
mlx5_0:1 - Destination is unreachable
0: [node1:146200] pml_ucx.c:419  Error: ucp_ep_create(proc=1) failed: Destination is unreachable
"""
KERNEL_PCIE = """\
Nov 22 18:00:00 node4 kernel: pcieport 0004:00:00.0: DPC: containment event, status:0x1f01 source:0x0000
Nov 22 18:00:00 node4 kernel: mlx5_core 0004:01:00.1: print_health:819:(pid 0): Fatal error detected
Nov 22 18:00:05 node4 kernel: mlx5_core 0004:01:00.1: mlx5_health_try_recover:338:(pid 2239): health recovery flow aborted, PCI reads
"""
KERNEL_VF = """\
[    9.863871] mlx5_core 0000:01:00.2: mlx5_cmd_out_err:803:(pid 1440): SET_ROCE_ADDRESS(0x761) op_mod(0x0) failed, status bad \
parameter(0x3), syndrome (0x63c66), err(-22)
[    9.881250] infiniband mlx5_2: add_roce_gid GID add failed port=1 index=0
[    9.889095] __ib_cache_gid_add: unable to add gid fe80:0000:0000:0000:ad3e:e3ff:fe92:b31b error=-22
"""
OFI = """\
[1,31]<stdout>:node4:8800:9549 [7] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)
[1,31]<stdout>:node4:8800:9549 [7] create_nccl_ofi_component:459 NCCL WARN NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument
[1,31]<stdout>:node4:8800:9549 [7] NCCL INFO include/net.h:24 -> 2
"""
MAGIC = """\
node1:1:1 [0] misc/socket.cc:431 NCCL WARN socketFinalizeAccept: wrong magic 474554202f204854 != 7a8b9c
node1:1:1 [0] bootstrap.cc:224 NCCL WARN Message truncated : received 1024 bytes instead of 256
node1:1:1 [0] proxy.cc:808 NCCL WARN Proxy Call to rank 3 failed (Setup)
"""
DESYNC = """\
[rank0]:[E909 09:55:46.996 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, \
OpType=ALLREDUCE, NumelIn=1)
[rank0]:[E909 09:55:46.997 ProcessGroupNCCL.cpp:1] [Rank 0] Timeout at collective: ALLREDUCE, #39
\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
\t   - [0, 1] joined but didn't finish collective #39 (count from 1)
\t     [2] finished collective #38, but didn't join collective #39 (count from 1)
"""
FABRIC = """\
node1:1:1 [0] init.cc:1 NCCL WARN Cuda failure 802 'system not yet initialized'
node1: Test NCCL failure common.cu:222 'unhandled cuda error (run with NCCL_DEBUG=INFO for details) / '
"""
RCCL = """\
#  Rank  0 Group  0 Pid   1234 on      node1 device  0 [0x63]
#  Rank  1 Group  0 Pid   1235 on      node2 device  0 [0x63]
node2: node2:1235:1240 [0] enqueue.cc:1 NCCL WARN HIP failure 'invalid device function'
"""


@pytest.mark.parametrize(
    ("text", "cause", "expected"),
    [
        (PORT_DOWN, "ib.port_down", [("ib.port_down", 1, ("node3",), ()), ("ib.query", 1, ("node3",), ()), ("ib.open", 1, ("node3",), ())]),
        (MEMLOCK, "ib.create", [("ib.create", 3, (), ())]),
        (REMOTE, "ib.remote_access", [("ib.remote_access", 1, (), ())]),
        (OPENIB, "ib.retry", [("ib.retry", 2, ("node1",), (0,))]),
        (OPENIB_MEMLOCK, "memory.locked", [("memory.locked", 2, ("node7",), ()), ("mpi.openib", 1, ("node8",), ())]),
        (UCX, "memory.locked", [("memory.locked", 1, ("node2",), (1,)), ("ucx.transport", 2, ("node1",), (0,))]),
        (KERNEL_PCIE, "kernel.pcie", [("kernel.pcie", 1, ("node4",), ()), ("kernel.health", 2, ("node4",), ())]),
        (KERNEL_VF, "kernel.gid", [("kernel.gid", 3, (), ())]),
        (OFI, "ofi.open", [("ofi.open", 1, ("node4",), (31,))]),
        (
            MAGIC,
            "socket.stranger",
            [("socket.stranger", 1, ("node1",), ()), ("nccl.truncated", 1, ("node1",), ()), ("nccl.proxy", 1, ("node1",), ())],
        ),
        (DESYNC, "torch.timeout", [("torch.timeout", 2, (), (0,)), ("torch.desync", 3, (), ())]),
        (FABRIC, "cuda.not_ready", [("cuda.not_ready", 1, ("node1",), ()), ("nccl.cuda", 1, ("node1",), ())]),
        (RCCL, "cuda.failed", [("cuda.failed", 1, ("node2",), (1,))]),
    ],
    ids=["port", "memlock", "remote", "openib", "openib memlock", "ucx", "pcie", "gid", "ofi", "magic", "desync", "fabric", "rccl"],
)
def test_a_log(text: str, cause: str, expected: Found) -> None:
    log = read(text)
    assert log.cause == cause
    assert [(each.name, each.count, each.hosts, each.ranks) for each in log.occurrences] == expected


@pytest.mark.parametrize(("info", "line"), NEAR, ids=range(len(NEAR)))
def test_a_line_that_resembles_a_failure(info: bool, line: str) -> None:
    assert find_signature(line, info=info) is None
    assert all(each.name == UNKNOWN_LINE for each in read(line + "\n").occurrences)


def test_perftest_s_own_signs_are_known() -> None:
    """Of the signs by which a measurement is judged; the others are too general for a log of many programs."""
    general = ("Cannot allocate memory", " Cannot Allocate\n", "Failed to allocate ", "No such file", " not found", "cu", "hip")
    options = (
        "unrecognized option '--ipv6-addr'",
        "unrecognized option '--use_cuda",
        "unrecognized option '--use_rocm",
        "MAPPING_TYPE_PCIE",
    )
    needles = [needle for _kind, needles, _pattern in failure._SIGNS for needle in needles]
    wanted = [needle.strip() for needle in needles if needle not in (*general, *options)]
    known = [each.needle for each in SIGNATURES if each.source.startswith(("perftest", "rdma-core", "the dynamic linker"))]
    assert [needle for needle in wanted if not any(each in needle or needle in each for each in known)] == []


def test_a_plugin_is_too_old_only_if_no_version_of_it_is_loaded() -> None:
    head = "node1:1:1 [0] NCCL INFO NET/Plugin: "
    failed = "".join(f"{head}Failed to find ncclNetPlugin_v{version} symbol.\n" for version in (10, 9, 8))
    assert found(failed + f"{head}Loaded net plugin IBext_v8 (v8)\n") == []
    assert found(failed) == [("net.plugin_old", 1, ("node1",), ())]
    none = "node1:1:1 [0] plugin/net.cc:349 NCCL WARN Failed to initialize any NET plugin\n"
    assert read(failed + none).cause == "net.plugin_old"


def test_unknown_errors_of_any_program_are_kept() -> None:
    lines = (
        "[1,0]<stderr>:FrobError: wheel 7 is square\n"
        "[1,1]<stderr>:FrobError: wheel 8 is square\n"
        "step 3 error 0.01 loss 2.3\n"
        "node1:1:1 [0] NCCL WARN Frobnication failed\n"
        "2026-11-22 18:00:00 | ERROR | the flux is empty\n"
        "Nov 22 18:00:00 node2 kernel: mlx5_core 0000:41:00.0: frob_wheel:1:(pid 1): wheel failed, err -5\n"
    )
    log = read(lines)
    assert [(each.name, each.count, each.hosts, each.ranks) for each in log.occurrences] == [
        (UNKNOWN_LINE, 2, (), (0, 1)),
        (UNKNOWN_WARNING, 1, ("node1",), ()),
        (UNKNOWN_LINE, 1, (), ()),
        (UNKNOWN_LINE, 1, ("node2",), ()),
    ]
    assert log.cause is None


def test_a_help_text_ends() -> None:
    """A host that is named after the help text is not of its error."""
    text = "allocate some locked memory.\n" + "x\n" * 30 + "  Local host: node9\n"
    assert found(text) == [("memory.locked", 1, (), ())]


def test_the_first_of_several_signatures_counts() -> None:
    """A needle is found by an inner word of it, or within a word if it has none."""
    words = (
        Signature("two", "alpha beta gamma", "x", r"gamma (?P<number>\d+)"),
        Signature("one", "eta", "x"),
        Signature("no", "delta", "x"),
    )
    finder = Finder(words)
    assert finder.find("xalpha beta gamma 7") == (words[0], {"number": "7"})
    assert finder.find("alpha beta gamma x") == (words[1], {})
    assert finder.find("alpha betaX gammo") == (words[1], {})
    assert finder.find("nothing here") is None


GPU_BUFFER = "allocated GPU buffer address at 0000010013000000 pointer=0x10013000000\n"


def test_memory_of_a_test_is_that_of_a_gpu_while_the_test_uses_gpu_memory() -> None:
    refused = "Couldn't allocate MR\nfailed to create mr\n"
    assert found(refused) == [("memory.registration", 2, (), ())]
    assert found(GPU_BUFFER + refused) == [("memory.gpu", 2, (), ())]
    assert found(GPU_BUFFER + "deallocating GPU buffer 0000010013000000\n" + refused) == [("memory.registration", 2, (), ())]


def ranks_and_networks(*networks: tuple[str, int, str], nranks: int = 4) -> str:
    """The lines of ranks: host, rank, network."""
    line = "{0}:1:1 [0] NCCL INFO comm 0x7f rank {1} nranks {3} cudaDev 0\n{0}:1:1 [0] NCCL INFO Using network {2}\n"
    return "".join(line.format(*each, nranks) for each in networks)


def test_hosts_of_one_job_with_different_networks() -> None:
    text = ranks_and_networks(("node1", 0, "IB"), ("node2", 1, "IBext_v8"), ("node3", 2, "IB"))
    late = "[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)\n"
    assert found(text) == [("net.differs", 2, ("node1", "node3", "node2"), ())]
    assert read(text).occurrences[0].line == 4
    assert read(text).cause is None
    assert read(text + late).cause == "net.differs"
    assert read(text + "node1:1:1 [0] misc/x.cc:1 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60\n").cause == (
        "gpu.shared"
    )


@pytest.mark.parametrize(
    "text",
    [
        ranks_and_networks(("node1", 0, "AWS Libfabric"), ("node2", 1, "AWS Libfabric")),
        # one job after another, on the same hosts or on others
        ranks_and_networks(("node1", 0, "IB"), ("node2", 1, "IB"), ("node1", 0, "IBext_v8"), ("node2", 1, "IBext_v8")),
        ranks_and_networks(("node1", 0, "IB"), ("node2", 1, "IB")) + ranks_and_networks(("node3", 0, "IBext_v8"), ("node4", 1, "IBext_v8")),
        "Using network IB\nnode1:1:1 [0] NCCL INFO Using network IB\n",
    ],
    ids=["same", "same hosts", "other hosts", "no host"],
)
def test_networks_that_do_not_differ_within_a_job(text: str) -> None:
    assert found(text) == []
