# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The causes of classes of failures that the log itself shows, without facts of hosts."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.diagnose import Checked, Fleet, diagnose
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import read_job_log
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Known

WARN = "node1:100:200 [0] {} NCCL WARN "
SOCKET, IB = WARN.format("misc/socket.cc:441"), WARN.format("transport/net_ib.cc:839")
RETRY = f"{IB}NET/IB : Got completion from peer 10.0.0.2<38560> with error 12, opcode 0, len 0, vendor err 129\n"
USING = "node1:100:200 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/{} [1]mlx5_1:1/{} [RO]; OOB eth0:10.0.0.1<0>\n"
BOOTSTRAP = "{}:100:100 [0] NCCL INFO Bootstrap : Using {}<0>\n"
UNREACHABLE = f"{SOCKET}socketStartConnect: Connect to 172.17.0.1<46417> failed : No route to host\n"
CUDA = WARN.format("enqueue.cc:1541") + "Cuda failure 1 'invalid argument'\n"
GLOO = "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] no error\n"
FALLBACK = "Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback.\n"
FI_DOMAIN = "MPIDI_OFI_mpi_init_hook(599): OFI fi_open domain failed (ofi_init.c:599:MPIDI_OFI_mpi_init_hook:Invalid argument)\n"


def causes(text: str) -> dict[str, Checked]:
    found = diagnose(read_job_log(text.splitlines(keepends=True)), Fleet({}, lambda host: Known(host, None, None), {})).findings
    return {cause.name: cause for cause in next(each for each in found if each.first).causes}


@pytest.mark.parametrize(
    ("text", "name", "verdict", "seen"),
    [
        (f"{SOCKET}socketFinalizeAccept: wrong type 4 != 3\n", "net.differs", "confirmed", "one rank uses RDMA"),
        (f"{SOCKET}socketFinalizeAccept from 10.0.0.2<9>: wrong type 3 != 4\n", "net.differs", "confirmed", "one rank uses RDMA"),
        (f"{SOCKET}socketFinalizeAccept: wrong type 1 != 2\n", "net.differs", "not checkable", "the log does not name the networks"),
        (f"{SOCKET}socketFinalizeAccept: wrong magic 1f != 2f\n", "net.differs", "not checkable", "the log does not name the networks"),
        ("ValueError: host not found: Name or service not known\n", "dns", "confirmed", "the line says: Name or service not known"),
        ("torch.DistNetworkError: The client socket has timed out after 60000ms\n", "dns", "not checkable", "the log does not say"),
        ("cma event RDMA_CM_EVENT_REJECTED, error 8\n", "test.server", "confirmed", "the other end answers and refuses"),
        ("cma event RDMA_CM_EVENT_ADDR_ERROR, error -19\n", "test.server", "not checkable", "the processes of the other end have ended"),
        (USING.format("IB", "IB") + RETRY, "gid.index", "excluded", "NCCL uses only InfiniBand ports"),
        (USING.format("RoCE", "RoCE") + RETRY, "ib.sm", "excluded", "NCCL uses only RoCE ports"),
        (USING.format("RoCE", "RoCE") + RETRY, "gid.index", "not checkable", "the GIDs were not read"),
        (USING.format("RoCE", "IB") + RETRY, "gid.index", "not checkable", "the GIDs were not read"),
        (USING.format("RoCE", "IB") + RETRY, "ib.sm", "not checkable", "the host was not read"),
        (RETRY, "gid.index", "not checkable", "the GIDs were not read"),
        (
            BOOTSTRAP.format("node1", "docker0:172.17.0.1") + BOOTSTRAP.format("node2", "eth0:10.0.0.2") + UNREACHABLE,
            "socket.name",
            "confirmed",
            "NCCL uses docker0 (172.17.0.1) on node1, according to the log",
        ),
        (
            BOOTSTRAP.format("node1", "br0:10.9.0.1") + BOOTSTRAP.format("node2", "br0:10.9.0.1") + UNREACHABLE,
            "socket.name",
            "confirmed",
            "NCCL uses br0 (10.9.0.1) on node1, br0 (10.9.0.1) on node2",
        ),
        (BOOTSTRAP.format("node1", "[0]lo:127.0.0.1") + UNREACHABLE, "socket.name", "not checkable", "other hosts may not reach it"),
        (
            BOOTSTRAP.format("node1", "eth0:10.0.0.1") + BOOTSTRAP.format("node2", "eth0:10.0.0.2") + UNREACHABLE,
            "socket.name",
            "not checkable",
            "interfaces other than NICs",
        ),
        (
            "node1:1:2 [0] NCCL INFO ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856\n" + CUDA,
            "nccl.old",
            "confirmed",
            "line 1: NCCL's kernels need more shared memory than the GPU has",
        ),
        (CUDA, "nccl.old", "not checkable", "the log does not contain the limits of the GPU"),
        (
            FALLBACK + GLOO,
            "gloo.loopback",
            "confirmed",
            "line 1: Gloo uses the loopback address",
        ),
        (GLOO, "gloo.loopback", "not checkable", "the line does not contain the address"),
        (FI_DOMAIN, "plugin.version", "not checkable", "libraries"),
        (FI_DOMAIN, "ofi.choice", "not checkable", "the choice of a provider is not in the log"),
        ("Read -1, expected 10024, errno = 1\n", "cma.ptrace", "not checkable", "capabilities"),
        (f"{SOCKET}UDS: Sending data over socket failed : Connection refused\n", "cma.ptrace", "excluded", "something else"),
    ],
)
def test_what_the_log_shows(text: str, name: str, verdict: str, seen: str) -> None:
    cause = causes(text)[name]
    assert cause.verdict == verdict
    assert all(seen in answer.seen for answer in cause.answers.values())


def test_a_rank_that_follows_another_one_is_not_the_first_cause() -> None:
    text = (
        f"{SOCKET}socketProgress: Connection closed by remote peer node2<40823>\n"
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:219, remote process exited or there was a network error\n"
        "node2:100:200 [1] enqueue.cc:90 NCCL WARN Cuda failure 'out of memory'\n"
        "RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    assert read_job_log(text.splitlines(keepends=True)).cause == "cuda.memory"


@pytest.mark.parametrize(
    ("trace", "names"),
    [
        ("misc/socket.cc:568 -> 2", ["socket.name", "socket.container"]),
        ("bootstrap.cc:280 -> 2", ["socket.name", "socket.container"]),
        ("misc/shmutils.cc:90 -> 2", ["shm.container", "shm.full"]),
        ("transport/net_ib.cc:579 -> 2", ["memlock", "gid.index"]),
        ("init.cc:1388 -> 2", ["debug", "memlock"]),
        ("Ring 00 : 1 -> 2 via P2P/IPC", ["debug", "memlock"]),
    ],
)
def test_the_place_of_the_first_failed_call_orders_the_causes(trace: str, names: list[str]) -> None:
    text = f"node1:1:2 [0] NCCL INFO {trace}\nnode1:1:2 [0] NCCL INFO init.cc:1641 -> 2\nRuntimeError: NCCL error: unhandled system error\n"
    assert [name for name in causes(text) if name != "earlier"][:2] == names


HANG = (
    "[E ProcessGroupNCCL.cpp:475] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType=ALLREDUCE, NumelIn=1)\n"
)
UCX = "[1681107537.413956] [node1:146204:0]      dc_mlx5.c:300 UCX  ERROR {}\n"
STORE = "[W1127 10:00:00.1 socket.cpp:697] [c10d] The client socket has failed to connect to [node1]:29500 (errno: {}).\n"
TIMED_OUT = "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (node1, 29500).\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (UCX.format("ibv_modify_qp(DCI, RTR) failed : Invalid argument"), ["driver.fit", "firmware"]),
        (UCX.format("error modifying DCT to RTR: Invalid argument"), ["driver.fit", "firmware"]),
        ("Failed to modify UD QP to INIT on mlx5_0: Invalid argument\n", ["driver.fit", "firmware"]),
        (UCX.format("error modifying QP to RTR: Invalid argument"), ["gid.index", "gid.differs"]),
        (UCX.format("mlx5dv_devx_create_event_channel() failed: Protocol not supported"), ["driver.fit", "verbs.version"]),
        (UCX.format("ibv_create_cq(cqe=4096) failed: No space left on device"), ["limits.nic", "firmware"]),
        (UCX.format("ibv_create_qp(type=RC) failed: Remote I/O error"), ["firmware", "driver.fit"]),
        (CUDA, ["nccl.old", "gpu.driver"]),
        (CUDA.replace("1 'invalid argument'", "'unspecified launch error'"), ["program", "gpu.broken"]),
        (CUDA.replace("1 'invalid argument'", "'initialization error'"), ["gpu.driver", "gpu.container"]),
        (STORE.format("111 - Connection refused") + TIMED_OUT, ["store.alone", "socket.address"]),
        (STORE.format("113 - No route to host") + TIMED_OUT, ["socket.firewall", "socket.address"]),
        (TIMED_OUT, ["socket.address", "socket.firewall"]),
        (FI_DOMAIN, ["ofi.choice", "ofi.cxi"]),
        (f"{RETRY.rstrip()} (Recv) localGid fe80::1 remoteGidsfe80::2\n", ["gid.index", "gid.none"]),
        (f"{RETRY.rstrip()} (Recv) localGid ::ffff:10.0.0.1 remoteGids::ffff:10.0.0.2\n", ["port.down", "gid.index"]),
        (HANG.format(1), ["hang.rank", "iommu"]),
        (HANG.format(808), ["hang.program", "hang.rank"]),
        (f"{IB}Call to ibv_reg_dmabuf_mr failed with error Operation not supported\n", ["driver.fit", "nccl.old"]),
        ("RuntimeError: CUDART error: peer access is not supported between these two devices\n", ["gpu.no_p2p", "gpu.visible"]),
        ("slurmstepd: error: pyxis: container start failed with error code: 1\n", ["container.image", "container.runtime"]),
        (
            "slurmstepd: error: pyxis: container start failed with error code: 1\n"
            "slurmstepd: error: pyxis:   nvidia-container-cli: container error: file lookup failed: permission denied\n",
            ["container.runtime", "gpu.driver"],
        ),
        ("Unable to find metadata storage plugin etcd with conn string: etcd://10.0.0.1:2379\n", ["mooncake.build", "mooncake.metadata"]),
        ("OFI poll failed (ofi_events.c:1077:MPIDI_OFI_handle_cq_error:Input/output error - CANCELED)\n", ["slurm.cancelled", "ended"]),
        (
            UCX.format("shmget(size=1 flags=0x7b0) failed: No space left, please check shared memory limits"),
            ["shm.segments", "shm.container"],
        ),
        (f"{SOCKET}Error: failed to extend /dev/shm/nccl-aB to 0 bytes, error: Invalid argument (22)\n", ["cumem.host", "shm.apart"]),
        (f"{SOCKET}Error: failed to extend /dev/shm/nccl-aB to 64 bytes, error: Not a directory (20)\n", ["shm.container", "shm.full"]),
    ],
)
def test_the_words_of_a_line_order_its_causes(text: str, names: list[str]) -> None:
    assert [name for name, each in causes(text).items() if name != "earlier" and each.verdict != "excluded"][:2] == names


def test_a_job_that_goes_on_by_sockets_does_not_fail_for_lack_of_rdma() -> None:
    info = "node1:1:2 [0] NCCL INFO {}\n"
    library, network = info.format("Failed to open libibverbs.so[.1]"), info.format("Using network Socket")
    failed = "RuntimeError: NCCL error: unhandled system error\n"
    assert read_job_log([library, failed]).cause == "ib.library"
    assert read_job_log([library, network, failed]).cause == "nccl.system"
