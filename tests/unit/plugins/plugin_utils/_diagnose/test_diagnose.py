# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a job's log to causes: each confirmed and excluded by the facts of a lab machine; which hosts are asked, and in which order."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes.table import CAUSES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.diagnose import MOST_CHECKED, Checked, Diagnosis, Fleet, diagnose
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.kinds.meanings import MEANINGS
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.kinds.order import LIKELY
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import read_job_log
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import CONFIRMED, EXCLUDED, NOT_CHECKABLE, VERDICTS, Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import CONSEQUENCE
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.text import text
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import WIDTH
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.builders.job_lines import CAPTURED, DERIVED
from tests.unit.builders.library_lines import CALLS, GPUS, LIBRARIES, RENDEZVOUS, SETUP, TOOLS
from tests.unit.builders.program_lines import KERNEL, NCCL, OPEN_MPI, PERFTEST, PLUGINS, UCX

Facts = dict[str, Any]
Change = Callable[[Facts], None]
WARN = "[2026-11-20 09:29:41] {}:100:200 [0] misc/ibvwrap.cc:278 NCCL WARN {}\n"
INFO = "{}:100:200 [0] NCCL INFO {}\n"
LOCKED = "Call to ibv_reg_mr failed with error Cannot allocate memory"
BAD_ADDRESS = "Call to ibv_reg_mr failed with error Bad address"
RETRY = (
    "NET/IB: Got completion from peer 192.168.100.2<4791> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129  "
    "localGid ::ffff:192.168.100.1 remoteGids::ffff:192.168.100.2 hca rxe_rail0"
)
INVALID = (
    "Call to ibv_modify_qp failed with 22 Invalid argument, on dev rxe_rail0:1, curr state INIT, next state RTR, local GID index {}, "
    "local GID ::ffff:192.168.100.1, remote GID ::ffff:192.168.100.2"
)
TIMEOUT = (
    "Call to ibv_modify_qp failed with 110 Connection timed out, on dev rxe_rail0:1, curr state INIT, next state RTR, "
    "local GID index 1, local GID ::ffff:192.168.100.1, remote GID ::ffff:{}"
)
SPACE = "Error: failed to extend /dev/shm/nccl-a to 9637892 bytes, error: No space left on device (28)"
GPU = {"address": "0000:41:00.0", "model": "NVIDIA H200", "uuid": "GPU-1", "numa_node": 0, "pci": {"address": "0000:41:00.0"}}


def fleet(*changes: Change, intent: bool = True, names: Mapping[str, str] | None = None) -> Fleet:
    """The lab's machines node1, node2, … as far as changes go, each changed by its own."""
    facts = {f"node{number}": lab_facts(number) for number in range(1, len(changes) + 1)}
    for each, change in zip(facts.values(), changes, strict=True):
        change(each)
    plans = {host: lab_intent(number) if intent else None for number, host in enumerate(facts, start=1)}
    read = {host: from_dict(tree) if tree else None for host, tree in facts.items()}
    return Fleet(read, lambda host: Known(host, read[host], plans[host]), names or {})


def as_it_is(facts: Facts) -> None:
    """No change."""


def by_path(*path: str, value: Any) -> Change:
    def change(facts: Facts) -> None:
        for name in path[:-1]:
            facts = facts[name]
        facts[path[-1]] = value

    return change


def with_gpus(*, modules: tuple[str, ...] = (), dmabuf: bool = False, version: str = "535.129.03", cuda: str = "535.129.03") -> Change:
    def change(facts: Facts) -> None:
        facts["gpus"], facts["gpu_driver"] = [GPU], {"version": version, "open": dmabuf}
        facts["gpu_support"] = {"cuda": cuda, "nvswitches": 4, "fabric_manager": version}
        facts["units"]["nvidia-fabricmanager.service"] = {"active": bool(modules), "enabled": True}
        facts["gpudirect"]["dmabuf"] = {"possible": dmabuf, "why_not": [] if dmabuf else ["the driver is not the open one"]}
        facts["stack"]["modules"].update({name: {} for name in modules})

    return change


def found(log: str, hosts: Fleet) -> Diagnosis:
    return diagnose(read_job_log(log.splitlines(keepends=True)), hosts)


def cause(log: str, hosts: Fleet, name: str, kind: str | None = None) -> Checked:
    """A cause of the first finding that has it."""
    causes = [each for finding in found(log, hosts).findings for each in finding.causes if kind in (None, finding.occurrence.name)]
    return next(iter([each for each in causes if each.name == name]))


def test_the_tables_fit_each_other() -> None:
    assert set(LIKELY) == {name for name, meaning in MEANINGS.items() if meaning.kind != CONSEQUENCE} - {"qp.gids"}
    assert {name for names in LIKELY.values() for name in names} == set(CAUSES)
    assert all(len(set(names)) == len(names) for names in LIKELY.values())


def test_every_line_is_diagnosed_whatever_is_known() -> None:
    beside = (*LIBRARIES, *TOOLS, *GPUS, *RENDEZVOUS, *CALLS, *SETUP)
    more = (line for _name, line in (*PERFTEST, *OPEN_MPI, *UCX, *NCCL, *KERNEL, *beside))
    log = "".join(f"{line}\n" for line in (*(line for _name, _info, line in (*CAPTURED, *DERIVED, *PLUGINS)), *more))
    nobody = Fleet({}, Known, {})
    for hosts in (nobody, fleet(as_it_is), fleet(as_it_is, as_it_is, intent=False), fleet(lambda facts: facts.clear())):
        diagnosis = found(log, hosts)
        for finding in diagnosis.findings:
            for each in finding.causes:
                assert each.verdict in VERDICTS
                assert "{" not in each.remedy
                assert bool(each.remedy) == (each.verdict != EXCLUDED)
        json.dumps(diagnosis.to_dict())
        lines = text(diagnosis, "job.log").split("\n")
        assert max(map(len, lines)) <= WIDTH


GLOO = "node1: timed out connecting: SO_ERROR: Connection refused, remote=[{}]:33127\n"
SKIPPED = "node1: WARN: device {} is not enumerated as an mlx5 device. Skipping...\n"
MAD = "node1: ibwarn: [1] mad_rpc_open_port: client_register for mgmt 1 failed\n"
NO_ALGORITHM = WARN.format("node1", "Error : no algorithm/protocol available")
CREATED = "[1.1] [node1:1:0]  ib_iface.c:1 UCX  ERROR ibv_create_cq(cqe=256) failed: {}\n"
LOCKED_LOG = WARN.format("node1", LOCKED)
GID_LOG = WARN.format("node1", INVALID)
OLD_GID = "Call to ibv_modify_qp failed with error Invalid argument"
BOND = {"admin_up": True, "ipv4": ["10.0.0.1/24"]}
IFNAME = INFO.format("node1", "NCCL_SOCKET_IFNAME set by environment to {}") + WARN.format("node1", "Bootstrap : no socket interface found")
HCA = INFO.format("node1", "NCCL_IB_HCA set to {}") + INFO.format("node1", "NET/IB : No device found.")
MTU_LOG = WARN.format("node1", RETRY)
TOPO = INFO.format("node1", "NCCL_TOPO_FILE set by environment to {}") + INFO.format(
    "node1", "Could not open XML topology file /x.xml : No such file or directory"
)
OLD_CUDA = (
    INFO.format("node1", "NCCL version 2.28.9+cuda{}")
    + "node1: Test CUDA failure common.cu:1 'CUDA driver version is insufficient for CUDA runtime version'\n"
)
WATCHDOG = "[rank{}]: [Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, NumelIn=1)\n"
ENDED = (
    "[rank{}]:[E810 03:05:11.149121725 ProcessGroupNCCL.cpp:2057] [PG ID {} PG GUID {} Rank {}] Process group watchdog thread terminated "
    "with exception: Watchdog caught collective operation timeout\n"
)
RANKS = "".join(
    INFO.format(f"node{rank + 1}", f"ncclCommInitRank comm 0x1 rank {rank} nranks 3 cudaDev 0 busId 60 - Init START") for rank in range(3)
)
PORT = ("devices", "rxe_rail0", "ports", "1")


@pytest.mark.parametrize(
    ("log", "change", "name", "verdict", "seen"),
    [
        (LOCKED_LOG, as_it_is, "memlock", EXCLUDED, "services and logins may lock any amount"),
        (
            LOCKED_LOG,
            by_path("limits", "service_memlock", value={"unlimited": False, "bytes": 8388608}),
            "memlock",
            CONFIRMED,
            "services may lock 8388608 bytes",
        ),
        (
            LOCKED_LOG,
            by_path("limits", "running", value={"slurmd.service": {"pid": 7, "memlock": {"unlimited": False, "bytes": 65536}}}),
            "memlock",
            CONFIRMED,
            "slurmd.service and its jobs may lock 65536 bytes",
        ),
        (
            LOCKED_LOG,
            by_path("limits", "login_memlock", "*", value=None),
            "memlock",
            CONFIRMED,
            "logins of users get the kernel default",
        ),
        (LOCKED_LOG, by_path("limits", value=None), "memlock", NOT_CHECKABLE, "the limits were not read"),
        (LOCKED_LOG, as_it_is, "memlock.container", NOT_CHECKABLE, "the facts describe the host, not a job's container"),
        (
            WARN.format("node1", BAD_ADDRESS),
            with_gpus(),
            "gpu.path",
            CONFIRMED,
            "neither nvidia_peermem nor DMA-BUF: the driver is not the open one; no NVIDIA GPU",
        ),
        (WARN.format("node1", BAD_ADDRESS), with_gpus(modules=("nvidia_peermem",)), "gpu.path", EXCLUDED, "nvidia_peermem is loaded"),
        (WARN.format("node1", BAD_ADDRESS), with_gpus(dmabuf=True), "gpu.path", EXCLUDED, "DMA-BUF is possible"),
        (
            INFO.format("node1", "NCCL_DMABUF_ENABLE set by environment to 0.") + WARN.format("node1", BAD_ADDRESS),
            with_gpus(dmabuf=True),
            "gpu.dmabuf_off",
            CONFIRMED,
            "NCCL_DMABUF_ENABLE=0 by the log, and nvidia_peermem is not loaded",
        ),
        (WARN.format("node1", BAD_ADDRESS), with_gpus(), "iommu", EXCLUDED, "the IOMMU is off"),
        (
            WARN.format("node1", BAD_ADDRESS),
            by_path("iommu", "mode", value="translated"),
            "iommu",
            CONFIRMED,
            "the IOMMU is on: translated",
        ),
        (
            GID_LOG.format(1),
            as_it_is,
            "gid.index",
            EXCLUDED,
            "the line has index 1, which is for RoCE v2 on an IPv4 address of rxe_rail0/1",
        ),
        (
            GID_LOG.format(0),
            as_it_is,
            "gid.index",
            CONFIRMED,
            "the line has index 0, and rxe_rail0/1 has a link-local or IPv6 GID at index 0",
        ),
        (GID_LOG.format(9), as_it_is, "gid.index", CONFIRMED, "the line has index 9, and rxe_rail0/1 has no GID at index 9"),
        (
            GID_LOG.format(1),
            by_path("nccl_files", "/etc/nccl.conf", "NCCL_IB_GID_INDEX", value="0"),
            "gid.index",
            CONFIRMED,
            "NCCL_IB_GID_INDEX=0 by /etc/nccl.conf, and rxe_rail0/1 has a link-local or IPv6 GID at index 0",
        ),
        (
            INFO.format("node1", "NCCL version 2.20.5+cuda12.2") + WARN.format("node1", OLD_GID),
            as_it_is,
            "gid.index",
            CONFIRMED,
            "it is not set, so NCCL 2.20 uses index 0, and rxe_rail0/1 has a link-local or IPv6 GID at index 0, rxe_rail1/1 has",
        ),
        (
            INFO.format("node1", "NCCL version 2.28.9+cuda12.2") + WARN.format("node1", OLD_GID),
            as_it_is,
            "gid.index",
            EXCLUDED,
            "it is not set, and NCCL 2.28 finds the GID by itself",
        ),
        (WARN.format("node1", OLD_GID), as_it_is, "gid.index", NOT_CHECKABLE, "it is not set; NCCL before 2.21 uses index 0"),
        (GID_LOG.format(1), by_path(*PORT, "rocev2", value={}), "gid.none", CONFIRMED, "no RoCE v2 GID on IPv4 at rxe_rail0/1"),
        (
            WARN.format("node1", TIMEOUT.format("192.168.101.3")),
            as_it_is,
            "gid.subnet",
            CONFIRMED,
            "192.168.100.1 of node1 is in 192.168.100.0/24, 192.168.101.3 is not",
        ),
        (
            WARN.format("node1", TIMEOUT.format("192.168.100.3")),
            as_it_is,
            "gid.subnet",
            EXCLUDED,
            "192.168.100.1 of node1 is in 192.168.100.0/24, 192.168.100.3 is too",
        ),
        (
            WARN.format("node1", TIMEOUT.format("192.168.100.3")).replace("::ffff:192.168.100.1", "2001:db8:100::1"),
            by_path("netdevs", "ens1", "ipv6", value=["2001:db8:100::1/64"]),
            "gid.subnet",
            CONFIRMED,
            "2001:db8:100::1 of node1 is in 2001:db8:100::/64, 192.168.100.3 is not",
        ),
        (MTU_LOG, as_it_is, "port.down", EXCLUDED, "rxe_rail0/1 is ACTIVE now"),
        (MTU_LOG, by_path(*PORT, "state", value="DOWN"), "port.down", CONFIRMED, "rxe_rail0/1 is DOWN"),
        (MTU_LOG, by_path("netdevs", "ens1", "mtu_bytes", value=1500), "mtu.planned", CONFIRMED, "1500"),
        (MTU_LOG, by_path(*PORT, "active_mtu_bytes", value=1024), "mtu", CONFIRMED, "1024 bytes at node1 rxe_rail0/1; 4096 bytes at"),
        (
            HCA.format("mlx5_0"),
            as_it_is,
            "hca.list",
            CONFIRMED,
            "NCCL_IB_HCA=mlx5_0 by the log names mlx5_0; the host has rxe_rail0, rxe_rail1",
        ),
        (HCA.format("rxe_rail"), as_it_is, "hca.list", EXCLUDED, "NCCL_IB_HCA=rxe_rail (the log) names ports that are ACTIVE"),
        (HCA.format("=rxe_rail0:1"), by_path(*PORT, "state", value="DOWN"), "hca.list", CONFIRMED, "its ports are rxe_rail0:1 DOWN"),
        (HCA.format("mlx5_0"), by_path("devices", value={}), "hca.none", CONFIRMED, "the host has no RDMA device"),
        (
            HCA.format("mlx5_0"),
            by_path("nccl_files", "/etc/nccl.conf", "NCCL_IB_DISABLE", value="1"),
            "ib.disabled",
            CONFIRMED,
            "NCCL_IB_DISABLE=1 by /etc/nccl.conf",
        ),
        (HCA.format("mlx5_0"), as_it_is, "ib.disabled", EXCLUDED, "NCCL_IB_DISABLE is not set"),
        (
            HCA.format("mlx5_0"),
            by_path("devices", "rxe_rail1", "uverbs", value=None),
            "ib.node",
            CONFIRMED,
            "rxe_rail1 has no node in /dev/infiniband",
        ),
        (
            IFNAME.format("=eth9"),
            as_it_is,
            "socket.name",
            CONFIRMED,
            "NCCL_SOCKET_IFNAME==eth9 by the log matches no interface; the host has",
        ),
        (IFNAME.format("ens"), as_it_is, "socket.name", EXCLUDED, "NCCL_SOCKET_IFNAME=ens fits ens1, ens2"),
        (
            IFNAME.format("=ens1"),
            by_path("interfaces", "ens1", "ipv4", value=[]),
            "socket.name",
            CONFIRMED,
            "matches none that is up with an address",
        ),
        (
            IFNAME.format("=bond0"),
            by_path("interfaces", "bond0", value=BOND),
            "socket.name",
            EXCLUDED,
            "NCCL_SOCKET_IFNAME==bond0 fits bond0",
        ),
        (
            IFNAME.format("=bond0"),
            by_path("interfaces", value={"bond0": {"admin_up": True, "ipv4": None}}),
            "socket.name",
            NOT_CHECKABLE,
            "the addresses of the interfaces were not read",
        ),
        (
            IFNAME.format("=bond0"),
            by_path("interfaces", value=None),
            "socket.name",
            NOT_CHECKABLE,
            "such as bonds and bridges, were not read",
        ),
        (
            WARN.format("node1", "Bootstrap : no socket interface found"),
            by_path("interfaces", value={"bond0": BOND}),
            "socket.name",
            EXCLUDED,
            "usable: bond0",
        ),
        (
            WARN.format("node1", "Bootstrap : no socket interface found"),
            by_path("interfaces", value={"bond0": {**BOND, "admin_up": False}}),
            "socket.name",
            CONFIRMED,
            "no interface is up with an address",
        ),
        (TOPO.format("/x.xml"), as_it_is, "topo.variable", CONFIRMED, "NCCL_TOPO_FILE=/x.xml by the log"),
        (
            TOPO.format("/y.xml"),
            as_it_is,
            "topo.variable",
            NOT_CHECKABLE,
            "neither the log nor the host's files show what sets NCCL_TOPO_FILE",
        ),
        (
            WARN.format("node1", SPACE),
            by_path("filesystems", value={}),
            "shm.full",
            NOT_CHECKABLE,
            "the free space of /dev/shm was not read",
        ),
        (
            WARN.format("node1", SPACE),
            by_path("filesystems", "/dev/shm", value={"free_bytes": 0, "size_bytes": 2**30}),
            "shm.full",
            CONFIRMED,
            "0 of 1024 MiB of the host's /dev/shm are free now",
        ),
        (
            WARN.format("node1", SPACE),
            by_path("filesystems", "/dev/shm", value={"free_bytes": 2**30, "size_bytes": 2**30}),
            "shm.full",
            EXCLUDED,
            "1024 of 1024 MiB of the host's /dev/shm are free now",
        ),
        (
            WARN.format("node1", "Error: failed to extend /dev/shm/nccl-a to 9637892 bytes, error: Permission denied (13)"),
            by_path("filesystems", "/dev/shm", value={"free_bytes": 0, "size_bytes": 2**30}),
            "shm.full",
            EXCLUDED,
            "the error of the call is Permission denied",
        ),
        (
            WARN.format(
                "node1", "Error while creating shared memory segment /dev/shm/nccl-a (size 9637888), error: No space left on device (28)"
            ),
            by_path("filesystems", "/dev/shm", value={"free_bytes": 0, "size_bytes": 2**30}),
            "shm.full",
            CONFIRMED,
            "0 of 1024 MiB of the host's /dev/shm are free now",
        ),
        (
            INFO.format("node1", "Using network IB") + INFO.format("node2", "Using network IBext_v8"),
            as_it_is,
            "net.differs",
            CONFIRMED,
            "IB on node1; IBext_v8 on node2",
        ),
        (
            WARN.format("node1", "Error while attaching to shared memory segment /dev/shm/nccl-a (size 1)"),
            by_path("limits", "remove_ipc", value=True),
            "shm.ipc",
            CONFIRMED,
            "logind removes the files of users who log out",
        ),
        (OLD_CUDA.format("13.0"), with_gpus(), "gpu.driver", CONFIRMED, "driver 535.129.03; NCCL is built for CUDA 13, which needs 580"),
        (OLD_CUDA.format("12.2"), with_gpus(), "gpu.driver", EXCLUDED, "driver 535.129.03; NCCL is built for CUDA 12, which needs 525"),
        (OLD_CUDA.format("12.2"), with_gpus(cuda="550.1"), "gpu.driver", CONFIRMED, "driver 535.129.03 is loaded, but libcuda is 550.1"),
        (
            "node1: Test CUDA failure common.cu:1 'system not yet initialized'\n",
            with_gpus(),
            "gpu.fabric_manager",
            CONFIRMED,
            "nvidia-fabricmanager.service is not active, with 4 NVSwitches",
        ),
        (
            "node1: Test CUDA failure common.cu:1 'system not yet initialized'\n",
            with_gpus(modules=("nvidia_peermem",)),
            "gpu.fabric_manager",
            EXCLUDED,
            "nvidia-fabricmanager.service is active",
        ),
        (
            "Nov 22 18:00:00 node1 kernel: NVRM: Xid (PCI:0000:41:00): 79\n",
            by_path("gpus", value=[{**GPU, "pci": None}]),
            "gpu.lost",
            CONFIRMED,
            "0000:41:00.0 fell off the bus",
        ),
        (
            "[node1:7] The client socket has timed out after 600000ms while trying to connect to (172.17.0.9, 46229).\n",
            as_it_is,
            "socket.address",
            CONFIRMED,
            "172.17.0.9 is an address within a host: loopback, link-local or Docker's bridge",
        ),
        (
            WATCHDOG.format(0, 0, 7, "ALLREDUCE") + WATCHDOG.format(1, 1, 8, "ALLREDUCE"),
            as_it_is,
            "hang.program",
            CONFIRMED,
            "ranks wait in collectives number 7, 8",
        ),
        (
            WATCHDOG.format(0, 0, 7, "ALLREDUCE") + WATCHDOG.format(1, 1, 7, "ALLGATHER"),
            as_it_is,
            "hang.program",
            CONFIRMED,
            "ranks wait in ALLREDUCE, ALLGATHER",
        ),
        (
            WATCHDOG.format(0, 0, 7, "ALLREDUCE")
            + WATCHDOG.format(1, 1, 30, "COALESCED")
            + ENDED.format(0, 0, "0(default_pg)", 0)
            + ENDED.format(1, 2, "19(PIPELINE_MODEL_PARALLEL_GROUP)", 1),
            as_it_is,
            "hang.program",
            NOT_CHECKABLE,
            "ranks wait in process groups 0, 19, each of which counts its own collectives",
        ),
        (
            WATCHDOG.format(0, 0, 7, "ALLREDUCE")
            + WATCHDOG.format(1, 1, 8, "ALLREDUCE")
            + ENDED.format(0, 0, "0(default_pg)", 0)
            + ENDED.format(1, 0, "0(default_pg)", 1),
            as_it_is,
            "hang.program",
            CONFIRMED,
            "ranks wait in collectives number 7, 8",
        ),
        (
            WATCHDOG.format(0, 0, 7, "ALLREDUCE") * 2,
            as_it_is,
            "hang.program",
            NOT_CHECKABLE,
            "1 of an unknown number of ranks report that they wait in ALLREDUCE, number 7",
        ),
        (
            RANKS + WATCHDOG.format(0, 0, 7, "ALLREDUCE") + WATCHDOG.format(2, 2, 7, "ALLREDUCE"),
            as_it_is,
            "hang.program",
            NOT_CHECKABLE,
            "2 of 3 ranks report that they wait in ALLREDUCE, number 7; the others report nothing",
        ),
        (
            RANKS + "".join(WATCHDOG.format(rank, rank, 7, "ALLREDUCE") for rank in range(3)),
            as_it_is,
            "hang.program",
            EXCLUDED,
            "all 3 ranks wait in ALLREDUCE, number 7",
        ),
        (
            WATCHDOG.format(0, 0, 7, "ALLREDUCE") + "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running\n",
            as_it_is,
            "hang.program",
            CONFIRMED,
            "line 2: ranks call different collectives, or the same with different data",
        ),
        (
            RANKS + WATCHDOG.format(0, 0, 7, "ALLREDUCE") + "missing ranks: {2, 1}\n",
            as_it_is,
            "hang.rank",
            CONFIRMED,
            "PyTorch names rank 1, 2, on node2, node3",
        ),
        (
            RANKS + WATCHDOG.format(0, 0, 7, "ALLREDUCE") + "\t - [0-2] joined but didn't finish collective #7 (count from 1)\n",
            as_it_is,
            "hang.rank",
            EXCLUDED,
            "all 3 ranks joined the collective, according to PyTorch",
        ),
        (
            "node1: IB device mlx5_9 not found\n",
            as_it_is,
            "device.name",
            CONFIRMED,
            "no RDMA device mlx5_9; the host has rxe_rail0, rxe_rail1",
        ),
        ("node1: IB device rxe_rail0 not found\n", as_it_is, "device.name", EXCLUDED, "the host has rxe_rail0"),
        ("node1: Couldn't create CQ\n", by_path("limits", value=None), "memlock", NOT_CHECKABLE, "the limits were not read"),
        (
            "node1: Couldn't create CQ\n",
            by_path("limits", "service_memlock", value={"unlimited": False, "bytes": 65536}),
            "memlock",
            CONFIRMED,
            "services may lock 65536 bytes",
        ),
        (GLOO.format("127.0.0.1"), as_it_is, "gloo.loopback", CONFIRMED, "127.0.0.1 is an address within a host"),
        (GLOO.format("192.168.100.1"), as_it_is, "gloo.loopback", EXCLUDED, "192.168.100.1 is ens1 of node1"),
        ("node1: timed out connecting: SO_ERROR: x\n", as_it_is, "gloo.loopback", NOT_CHECKABLE, "the line does not contain the address"),
        (SKIPPED.format("bnxt_re0"), as_it_is, "device.kind", CONFIRMED, "the line names bnxt_re0"),
        (MAD, as_it_is, "mad.ethernet", CONFIRMED, "rxe_rail0/1, rxe_rail1/1 are Ethernet"),
        (MAD, by_path("devices", "rxe_rail0", "ports", "1", "link_layer", value="InfiniBand"), "mad.ethernet", EXCLUDED, "rxe_rail0/1 is"),
        (MAD, by_path("devices", "rxe_rail0", "ports", "1", "link_layer", value=None), "mad.ethernet", NOT_CHECKABLE, "the link layer"),
        (MAD, by_path("devices", value={}), "mad.ethernet", NOT_CHECKABLE, "there is no RDMA device"),
        (
            INFO.format("node1", "NCCL_ALGO set by environment to CollNet") + NO_ALGORITHM,
            as_it_is,
            "nccl.algorithm",
            CONFIRMED,
            "NCCL_ALGO=CollNet by the log",
        ),
        (NO_ALGORITHM, by_path("nccl_files", value={}), "nccl.algorithm", EXCLUDED, "NCCL_ALGO and NCCL_PROTO are not set"),
        (NO_ALGORITHM, by_path("nccl_files", value=None), "nccl.algorithm", NOT_CHECKABLE, "NCCL's files were not read"),
        (CREATED.format("Connection timed out"), as_it_is, "memlock", EXCLUDED, "the error of the call is Connection timed out"),
        (CREATED.format("Connection timed out"), as_it_is, "ib.container", EXCLUDED, "the error of the call is Connection timed out"),
        (CREATED.format("Invalid argument"), as_it_is, "memlock", EXCLUDED, "the error of the call is Invalid argument"),
        (CREATED.format("Invalid argument"), as_it_is, "ib.container", NOT_CHECKABLE, "the facts describe the host"),
        (
            "node1: Couldn't allocate MR with error=93\n",
            by_path("limits", "service_memlock", value={"unlimited": False, "bytes": 65536}),
            "memlock",
            EXCLUDED,
            "the error of the call is number 93",
        ),
        (
            "node1: Couldn't allocate MR with error=12\n",
            by_path("limits", "service_memlock", value={"unlimited": False, "bytes": 65536}),
            "memlock",
            CONFIRMED,
            "services may lock 65536 bytes",
        ),
        (
            WARN.format("node1", "Cuda failure 1 'invalid argument'"),
            with_gpus(),
            "gpu.fabric_manager",
            CONFIRMED,
            "nvidia-fabricmanager.service is not active, with 4 NVSwitches",
        ),
        (
            RANKS + WATCHDOG.format(0, 0, 7, "ALLREDUCE") + WATCHDOG.format(2, 2, 7, "ALLREDUCE"),
            as_it_is,
            "hang.rank",
            CONFIRMED,
            "rank 1 of 3 did not report it, on node2",
        ),
        (
            WARN.format("node1", LOCKED) + WARN.format("node1", RETRY),
            as_it_is,
            "earlier",
            CONFIRMED,
            "line 1 on node1: memory for RDMA cannot be locked",
        ),
        (WARN.format("node1", RETRY), as_it_is, "earlier", EXCLUDED, "the log has no error before this line"),
    ],
    ids=lambda value: None,
)
def test_a_cause(log: str, change: Change, name: str, verdict: str, seen: str) -> None:
    checked = cause(log, fleet(change), name)
    assert checked.verdict == verdict
    answer = next(iter(checked.answers.values()))
    assert answer.seen.startswith(seen) or seen in answer.seen


REFUSED = WARN.format("node1", INVALID.format(1).replace("22 Invalid argument", "12 Cannot allocate memory"))
BOTH = INFO.format("node2", "NET/IB : Using [0]rxe_rail0:1/RoCE") + WARN.format("node2", RETRY)


def gid_index_of(value: str) -> Change:
    return by_path("nccl_files", "/etc/nccl.conf", "NCCL_IB_GID_INDEX", value=value)


@pytest.mark.parametrize(
    ("first", "second", "verdict", "seen"),
    [
        (gid_index_of("1"), gid_index_of("0"), CONFIRMED, "NCCL_IB_GID_INDEX differs: node1: 1, node2: 0"),
        (gid_index_of("1"), as_it_is, CONFIRMED, "NCCL_IB_GID_INDEX differs: node1: 1, node2: not set"),
        (gid_index_of("1"), gid_index_of("1"), EXCLUDED, "NCCL_IB_GID_INDEX=1 on all hosts"),
        (as_it_is, as_it_is, EXCLUDED, "NCCL_IB_GID_INDEX is set on no host"),
    ],
    ids=["differ", "one", "same", "none"],
)
def test_gid_indexes_are_compared_between_the_hosts_of_the_job(first: Change, second: Change, verdict: str, seen: str) -> None:
    """Also with hosts that did not write the line."""
    checked = cause(REFUSED + BOTH, fleet(first, second), "gid.differs", "qp.refused")
    assert checked.verdict == verdict
    assert checked.answers["node1"].seen.startswith(seen)


def test_an_index_that_fits_only_one_host() -> None:
    def moved(facts: Facts) -> None:
        gid_index_of("1")(facts)
        for device in facts["devices"].values():
            device["ports"]["1"]["gids"] = [gid for gid in device["ports"]["1"]["gids"] if gid["index"] != 1]

    checked = cause(REFUSED + BOTH, fleet(gid_index_of("1"), moved), "gid.differs", "qp.refused")
    assert checked.answers["node1"].seen.startswith("index 1 fits on node1; node2 rxe_rail0/1 has no GID at index 1")


@pytest.mark.parametrize(
    ("second", "verdict", "seen"),
    [
        (as_it_is, EXCLUDED, "each host uses 2 ports that are ACTIVE now"),
        (
            by_path("devices", "rxe_rail1", "ports", "1", "state", value="DOWN"),
            CONFIRMED,
            "node1 uses 2: rxe_rail0/1, rxe_rail1/1; node2 uses 1",
        ),
        (
            by_path("nccl_files", "/etc/nccl.conf", "NCCL_IB_HCA", value="=rxe_rail0:1"),
            CONFIRMED,
            "node1 uses 2: rxe_rail0/1, rxe_rail1/1; node2",
        ),
    ],
    ids=["same", "down", "list"],
)
def test_lists_of_ports_are_compared_between_the_hosts_of_the_job(second: Change, verdict: str, seen: str) -> None:
    checked = cause(REFUSED + BOTH, fleet(as_it_is, second), "hca.differs", "qp.refused")
    assert checked.verdict == verdict
    assert checked.answers["node1"].seen.startswith(seen)


def with_card(**since: Any) -> Change:
    """A card on rail 0, with the counters that an interface of mlx5 has; since: what they did since the last run."""

    def change(facts: Facts) -> None:
        for netdev in ("ens1", "ens2"):
            facts["netdevs"][netdev]["ethtool"]["counters"] = {"link_down_events_phy": 2, "rx_crc_errors_phy": 7}
        facts["since"] = since or None

    return change


@pytest.mark.parametrize(
    ("risen", "verdict", "seen"),
    [
        (None, NOT_CHECKABLE, "no earlier run of this boot to compare with"),
        ({}, EXCLUDED, "no fault found by link.errors, link.flaps"),
        ({"link_down_events_phy": 3}, CONFIRMED, "link_down_events_phy 3"),
    ],
    ids=["first run", "still", "flaps"],
)
def test_a_first_run_does_not_report_whether_a_link_goes_down(risen: dict[str, int] | None, verdict: str, seen: str) -> None:
    since = {"run": "r", "seconds": 60.0, "devices": {}, "netdevs": {"ens1": risen, "ens2": risen}} if risen is not None else {}
    answer = cause(WARN.format("node1", RETRY), fleet(with_card(**since)), "port.flaps").answers["node1"]
    assert answer.verdict == verdict
    assert seen in answer.seen


def test_a_remedy_names_command_and_host() -> None:
    log = WARN.format("node2", LOCKED)
    low = by_path("limits", "service_memlock", value={"unlimited": False, "bytes": 65536})
    checked = cause(log, fleet(as_it_is, low), "memlock")
    assert (list(checked.answers), checked.verdict) == (["node2"], CONFIRMED)
    assert checked.remedy.startswith("1. Run the host stage for node2. 2. There, run `systemctl restart slurmd`")


def test_of_several_hosts_the_one_where_it_holds_is_named() -> None:
    log = WARN.format("node1", LOCKED) + WARN.format("node2", LOCKED)
    low = by_path("limits", "service_memlock", value={"unlimited": False, "bytes": 65536})
    checked = cause(log, fleet(as_it_is, low), "memlock")
    assert {host: answer.verdict for host, answer in checked.answers.items()} == {"node1": EXCLUDED, "node2": CONFIRMED}
    assert "for node2." in checked.remedy


def test_the_peer_of_a_line_is_asked_too() -> None:
    """The host that does not answer is the other one: rail 0 of node2 is DOWN."""
    checked = cause(WARN.format("node1", RETRY), fleet(as_it_is, by_path(*PORT, "state", value="DOWN")), "port.down")
    assert {host: answer.verdict for host, answer in checked.answers.items()} == {"node1": EXCLUDED, "node2": CONFIRMED}


@pytest.mark.parametrize(
    ("value", "verdict", "seen"),
    [
        ("rxe", NOT_CHECKABLE, "rxe_rail1/1 is DOWN; the log does not show which ports the job uses"),
        ("^rxe_rail7", NOT_CHECKABLE, "rxe_rail1/1 is DOWN; the log does not show which ports the job uses"),
        ("rxe_rail0,rxe_rail1", CONFIRMED, "rxe_rail1/1 is DOWN"),
        ("=rxe_rail0:1,rxe_rail1:1", CONFIRMED, "rxe_rail1/1 is DOWN"),
        ("=rxe_rail0:1", EXCLUDED, "rxe_rail0/1 is ACTIVE now"),
    ],
)
def test_a_port_without_a_cable_is_missed_only_if_it_is_named(value: str, verdict: str, seen: str) -> None:
    """Of "mlx5" NCCL takes what is ACTIVE: the second port of a card may never have had a cable."""
    log = INFO.format("node1", f"NCCL_IB_HCA set by environment to {value}") + WARN.format("node1", RETRY.partition(" hca ")[0])
    down = by_path("devices", "rxe_rail1", "ports", "1", "state", value="DOWN")
    answer = cause(log, fleet(down), "port.down").answers["node1"]
    assert (answer.verdict, answer.seen) == (verdict, seen)


CONNECTING = "[node1:7] The client socket has timed out after 600000ms while trying to connect to ({}, 46229).\n"


def with_address(name: str, address: str) -> Change:
    return lambda facts: facts["netdevs"].update({name: {**copy.deepcopy(facts["netdevs"]["enp0s2"]), "ipv4": [address]}})


@pytest.mark.parametrize(
    ("peer", "interfaces", "verdict", "seen"),
    [
        ("172.17.0.9", ("eth7", "172.17.0.9/16"), EXCLUDED, "172.17.0.9 is eth7 of node2"),
        ("169.254.10.2", ("enp1s0f1np1", "169.254.10.2/16"), EXCLUDED, "169.254.10.2 is enp1s0f1np1 of node2"),
        ("172.17.0.1", ("docker0", "172.17.0.1/16"), CONFIRMED, "172.17.0.1 is an address within a host"),
        ("127.0.0.1", ("lo", "127.0.0.1/8"), CONFIRMED, "127.0.0.1 is an address within a host"),
        ("127.0.1.1", ("dummy0", "127.0.1.1/8"), CONFIRMED, "127.0.1.1 is an address within a host"),
        ("192.0.2.77", ("eth7", "172.17.0.9/16"), NOT_CHECKABLE, "192.0.2.77 is not an address of a host that was read"),
    ],
    ids=lambda value: None,
)
def test_an_address_that_a_host_has_is_not_taken_for_docker_s(peer: str, interfaces: tuple[str, str], verdict: str, seen: str) -> None:
    answer = cause(CONNECTING.format(peer), fleet(as_it_is, with_address(*interfaces)), "socket.address").answers["node1"]
    assert (answer.verdict, answer.seen[: len(seen)]) == (verdict, seen)


def test_an_address_that_every_host_has_is_of_none() -> None:
    """The bridge may have another name (docker's option `bridge`)."""
    hosts = fleet(with_address("bridge0", "172.17.0.1/16"), with_address("bridge0", "172.17.0.1/16"))
    assert cause(CONNECTING.format("172.17.0.1"), hosts, "socket.address").answers["node1"].verdict == CONFIRMED


def test_subnets_are_compared_by_the_host_that_has_the_local_address() -> None:
    """The peer that the line names is asked too; the local address is not its own."""
    hosts = fleet(as_it_is, as_it_is)
    for remote, verdict in (("192.168.101.2", CONFIRMED), ("192.168.100.2", EXCLUDED)):
        checked = cause(WARN.format("node1", TIMEOUT.format(remote)), hosts, "gid.subnet")
        assert (checked.verdict, list(checked.answers)) == (verdict, ["node1", "node2"])
        assert {answer.seen.partition(",")[0] for answer in checked.answers.values()} == {"192.168.100.1 of node1 is in 192.168.100.0/24"}


def test_the_local_address_may_be_of_a_vlan_or_bond() -> None:
    """Only facts.interfaces have interfaces that are no NICs."""

    def moved(facts: Facts) -> None:
        for netdev in facts["netdevs"].values():
            netdev["ipv4"] = []
        facts["interfaces"] = {"bond0.100": {"admin_up": True, "ipv4": ["192.168.100.1/24"]}}

    checked = cause(WARN.format("node1", TIMEOUT.format("192.168.100.2")), fleet(moved), "gid.subnet")
    assert checked.answers["node1"] == (EXCLUDED, "192.168.100.1 of node1 is in 192.168.100.0/24, 192.168.100.2 is too")


def test_addresses_that_were_not_read_are_not_reported_to_be_missing() -> None:
    def unread(facts: Facts) -> None:
        facts["interfaces"] = None
        for netdev in facts["netdevs"].values():
            netdev["ipv4"] = None

    answer = cause(WARN.format("node1", TIMEOUT.format("192.168.100.2")), fleet(unread), "gid.subnet").answers["node1"]
    assert answer == (NOT_CHECKABLE, "the addresses of the hosts were not read")


def test_mtus_are_compared_between_hosts() -> None:
    checked = cause(WARN.format("node1", RETRY), fleet(as_it_is, by_path(*PORT, "active_mtu_bytes", value=1024)), "mtu")
    assert checked.answers["node1"].seen.startswith("1024 bytes at node2 rxe_rail0/1; 4096 bytes at node1 rxe_rail0/1")


def with_management_nic(link_layer: str, *, listed: bool) -> Change:
    """A DGX has ConnectX-7 for management and storage beside its rails, with MTU 1500 and so 1024 bytes of RDMA."""

    def change(facts: Facts) -> None:
        port = {**copy.deepcopy(facts["devices"]["rxe_rail0"]["ports"]["1"]), "netdev": "ens9", "active_mtu_bytes": 1024}
        facts["devices"]["mlx5_8"] = {**copy.deepcopy(facts["devices"]["rxe_rail0"]), "ports": {"1": {**port, "link_layer": "Ethernet"}}}
        for rail in ("rxe_rail0", "rxe_rail1"):
            facts["devices"][rail]["ports"]["1"]["link_layer"] = link_layer
        if not listed:
            facts["nccl_files"] = {}

    return change


@pytest.mark.parametrize(
    ("link_layer", "listed", "verdict", "seen"),
    [
        ("InfiniBand", True, EXCLUDED, "InfiniBand: 4096 bytes at node1 rxe_rail0/1, node1 rxe_rail1/1"),
        (
            "InfiniBand",
            False,
            EXCLUDED,
            "Ethernet: 1024 bytes at node1 mlx5_8/1, node2 mlx5_8/1; InfiniBand: 4096 bytes at node1 rxe_rail0/1",
        ),
        ("Ethernet", True, EXCLUDED, "Ethernet: 4096 bytes at node1 rxe_rail0/1, node1 rxe_rail1/1"),
        ("Ethernet", False, NOT_CHECKABLE, "1024 bytes at node1 mlx5_8/1, node2 mlx5_8/1; 4096 bytes at node1 rxe_rail0/1"),
    ],
)
def test_the_mtu_of_a_nic_that_the_job_does_not_use_is_no_cause(link_layer: str, listed: bool, verdict: str, seen: str) -> None:
    change = with_management_nic(link_layer, listed=listed)
    answer = cause(WARN.format("node1", RETRY), fleet(change, change), "mtu").answers["node1"]
    assert (answer.verdict, answer.seen[: len(seen)]) == (verdict, seen)


@pytest.mark.parametrize(
    ("name", "names"),
    [("node1", {}), ("node1.example.org", {}), ("trainer-0", {"trainer-0": "node1"}), ("gpu-17", {})],
    ids=["inventory", "domain", "reported", "hostname"],
)
def test_who_is_meant_by_a_name_of_the_log(name: str, names: dict[str, str]) -> None:
    diagnosis = found(WARN.format(name.partition(".")[0], LOCKED), fleet(by_path("boot", "hostname", value="gpu-17.cluster"), names=names))
    assert diagnosis.strangers == []
    assert list(diagnosis.findings[0].causes[0].answers) == ["node1"]


def test_a_host_that_the_play_does_not_know_is_reported() -> None:
    diagnosis = found(WARN.format("elsewhere", LOCKED), fleet(as_it_is))
    assert diagnosis.strangers == ["elsewhere"]
    assert {each.name: each.verdict for each in diagnosis.findings[0].causes} == {
        "memlock": NOT_CHECKABLE,
        "memlock.container": NOT_CHECKABLE,
    }
    assert "! This play does not contain elsewhere: nothing could be checked there." in text(diagnosis, "job.log")


def test_a_line_without_a_host_is_checked_on_all() -> None:
    checked = cause("misc/ibvwrap.cc:278 NCCL WARN " + LOCKED + "\n", fleet(as_it_is, as_it_is), "memlock")
    assert list(checked.answers) == ["node1", "node2"]


def test_so_many_hosts_are_asked_and_no_more() -> None:
    facts = lab_facts()
    asked = []
    hosts = [f"node{number}" for number in range(100)]

    def load(host: str) -> Known:
        asked.append(host)
        return Known(host, from_dict(facts))

    log = "".join(WARN.format(host, LOCKED) for host in hosts)
    found(log, Fleet(dict.fromkeys(hosts), load, {}))
    assert asked == hosts[:MOST_CHECKED]


def test_the_order_is_that_of_looking() -> None:
    log = (
        WARN.format("node2", "socketProgress: Connection closed by remote peer node1<4000>")
        + "node1: Test NCCL failure common.cu:1 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '\n"
        + WARN.format("node1", LOCKED)
        + INFO.format("node1", "NET/IB : No device found.")
        + WARN.format("node2", BAD_ADDRESS)
    )
    diagnosis = found(log, fleet(as_it_is, as_it_is))
    assert [(each.occurrence.name, each.first) for each in diagnosis.findings] == [
        ("memory.locked", True), ("memory.gpu", False), ("nccl.system", False), ("ib.no_device", False), ("socket.closed", False),
    ]  # fmt: skip
    verdicts = [each.verdict for each in diagnosis.findings[1].causes]
    assert verdicts == sorted(verdicts, key=VERDICTS.index)


def test_the_text_of_a_diagnosis() -> None:
    low = by_path("limits", "service_memlock", value={"unlimited": False, "bytes": 65536})
    log = WARN.format("node1", LOCKED) + WARN.format("node2", "socketProgress: Connection closed by remote peer node1<4000>")
    assert text(found(log, fleet(low, as_it_is)), "job.log") == (
        """job.log: why the job failed
2 lines

LIKELY CAUSE
! memory for RDMA cannot be locked
    line 1, on node1 (NCCL src/misc/ibvwrap.cc)
    > Call to ibv_reg_mr failed with error Cannot allocate memory
    confirmed      the limit of locked memory is too low
                   node1: services may lock 65536 bytes
    do             1. Run the host stage for node1. 2. There, run `systemctl restart slurmd` (or containerd), or log in
                   again.
    not checkable  the job's container has its own limit

CONSEQUENCES
  a rank is gone
    line 2, on node2 (NCCL src/misc/socket.cc)
    > socketProgress: Connection closed by remote peer node1<4000>"""
    )


@pytest.mark.parametrize(
    ("log", "output"),
    [
        ("", "The log is empty."),
        ("step 1\nstep 2\n", "No line reports a failure."),
        ("n:1:2 [0] NCCL WARN odd\n" * 3, "No line is a known failure, but NCCL warned 3 times"),
        ("FrobError: the wheel is square\n" * 2, "No line is a known failure, but 2 lines have errors: see the unknown errors."),
        ("DistBackendError: NCCL error: frob flux\n" * 2, "No line is a known failure, but NCCL warned 2 times"),
        (
            "RuntimeError: NCCL error in: a.cpp:1, remote process exited or there was a network error\n",
            "This log has only consequences of a failure.",
        ),
        ("step 1\nstep 2", "The last line is incomplete: the log is cut off, or the job still runs."),
    ],
    ids=["empty", "healthy", "unknown", "unknown error", "unknown exception", "consequence", "cut"],
)
def test_the_text_of_a_log_without_failures(log: str, output: str) -> None:
    assert output in text(found(log, fleet(as_it_is)), "job.log")


def test_unknown_warnings_are_shown_beside_a_known_cause() -> None:
    odd = "".join(WARN.format("node2", f"{name} went odd") for name in ("aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh", "ii", "jj"))
    lines = text(found(WARN.format("node1", LOCKED) + odd, fleet(as_it_is, as_it_is)), "job.log").splitlines()
    at = lines.index("UNKNOWN WARNINGS AND ERRORS, WHICH MAY BE THE CAUSE")
    assert lines[at + 1 : at + 3] == ["! aa went odd", "    line 2, on node2 (NCCL misc/ibvwrap.cc)"]
    assert "  and 2 more kinds, all in diagnosis.json" in lines
    steps = [line for line in lines[at:] if line.startswith(("    1. ", "    2. ", "    3. "))]
    assert len(steps) == 3
    assert "on node2" in steps[1]
    assert "No line is a known failure" not in lines


def test_refused_and_missing_intents_and_hosts_that_were_not_read_stand_at_the_top() -> None:
    briefs = {"node1": from_dict(lab_facts(1)), "node2": from_dict(lab_facts(2)), "node3": None}
    problems = {"node1": [f"rdma_x{number} is no variable" for number in range(7)]}
    hosts = Fleet(briefs, lambda host: Known(host, briefs[host]), {}, problems, ["node2"])
    diagnosis = found(WARN.format("node1", LOCKED), hosts)
    lines = text(diagnosis, "job.log").splitlines()
    assert lines[2].startswith("! ERROR: the intent of node1 is refused.")
    assert lines[4:6] == ["    rdma_x1 is no variable (node1)", "    rdma_x2 is no variable (node1)"]
    assert "    and 2 more problems, all in diagnosis.json" in lines
    assert any(line.startswith("No intent for node2:") for line in lines)
    assert any(line.startswith("! No facts of node3:") for line in lines)
    reported = diagnosis.to_dict()
    assert (reported["refused_intents"], reported["without_intent"], reported["unread_hosts"]) == (problems, ["node2"], ["node3"])
