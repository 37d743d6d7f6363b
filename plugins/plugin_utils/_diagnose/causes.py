# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of possible causes of error lines: how each is checked, and its remedy.

A remedy contains the host ({host}) and fields of the line ({device}, {file}, {peer}).
"""

from __future__ import annotations

from typing import NamedTuple

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes_gpu import (
    fabric_manager,
    gpu_driver,
    gpu_load,
    gpu_lost,
    no_gpu_path,
    peermem_alone,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes_host import (
    device_list,
    iommu,
    ipc_removed,
    locked_memory,
    names_file,
    no_device,
    no_node,
    ports_down,
    set_to,
    shared_memory,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes_network import (
    firewall,
    gid_index,
    mtus_of_job_differ,
    no_ip_gid,
    socket_interface,
    subnets_differ,
    wrong_address,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import (
    Answer,
    Scene,
    Test,
    confirmed,
    excluded,
    judged,
    not_checkable,
    unknown,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import ERROR
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import listed


def earlier_error(scene: Scene) -> Answer:
    """Whether the log has an error before this one, of any rank."""
    before = [each for each in scene.log.occurrences if each.kind == ERROR and each.line < scene.occurrence.line]
    if not before:
        return excluded("the log has no error before this line")
    first = min(before, key=lambda each: each.line)
    where = f" on {listed(first.hosts)}" if first.hosts else ""
    return confirmed(f"line {first.line}{where}: {first.says}")


def different_collectives(scene: Scene) -> Answer:
    """Whether ranks wait in different collectives of the program."""
    operations, numbers = scene.field_values("operation"), scene.field_values("sequence")
    groups = dict.fromkeys(group for each in scene.log.occurrences for group in each.fields.get("group", ()))
    if len(groups) > 1 and max(len(operations), len(numbers)) > 1:
        return unknown(f"ranks wait in process groups {listed(list(groups))}, each of which counts its own collectives")
    if len(operations) > 1:
        return confirmed(f"ranks wait in {', '.join(operations)}")
    if len(numbers) > 1:
        return confirmed(f"ranks wait in collectives number {listed(numbers)}")
    if numbers:
        return excluded(f"all ranks with this line wait in {operations[0]}, number {numbers[0]}")
    return unknown("the lines do not contain the collective")


def silent_ranks(scene: Scene) -> Answer:
    """Whether a few ranks did not write the line that all others wrote: they were missing, or hang elsewhere."""
    ranks, count = set(scene.occurrence.ranks), scene.log.context.nranks
    if count < 2 or not ranks:
        return unknown("the log does not contain the number of ranks, or the ranks of this line")
    silent = [str(rank) for rank in range(count) if rank not in ranks]
    if not silent:
        return excluded(f"all {count} ranks report it")
    if len(silent) > max(8, count // 8):
        return unknown(f"{len(ranks)} of {count} ranks report it")
    places = list(dict.fromkeys(host for rank in silent for host in [scene.log.context.host_of(int(rank))] if host))
    return confirmed(f"rank {listed(silent)} of {count} did not report it{f', on {listed(places)}' if places else ''}")


def versions_differ(scene: Scene) -> Answer:
    versions = [f"{version} on {listed(list(hosts))}" for version, hosts in sorted(scene.log.context.versions.items())]
    if len(versions) > 1:
        return confirmed("; ".join(versions))
    if versions:
        return unknown(f"only {versions[0]} is known")
    numbers = [*scene.field_values("one_version"), *scene.field_values("other_version")]
    return confirmed(f"versions {listed(numbers)}") if len(set(numbers)) > 1 else unknown("the log does not contain the versions")


class Cause(NamedTuple):
    """A possible cause. says: the cause in words; test: whether it holds; remedy: command and host; of_log: only the log shows it."""

    says: str
    test: Test
    remedy: str
    of_log: bool = False


_CONTAINER = not_checkable("the facts describe the host, not a job's container")
_QOS = ("qos.trust", "qos.dscp", "qos.pfc", "qos.ets", "qos.ecn", "qos.traffic_class", "qos.overwritten")

CAUSES: dict[str, Cause] = {
    "earlier": Cause("another error came before it", earlier_error, "Fix the error that came first.", of_log=True),
    # memory
    "memlock": Cause(
        "the limit of locked memory is too low",
        locked_memory,
        "1. Run the host stage for {host}. 2. There, run `systemctl restart slurmd` (or containerd), or log in again.",
    ),
    "memlock.container": Cause(
        "the job's container has its own limit", _CONTAINER, "Start the container on {host} with `--ulimit memlock=-1`."
    ),
    "gpu.path": Cause(
        "the host cannot register GPU memory",
        no_gpu_path,
        "1. Run the gpu stage for {host}. 2. If it fails, run `modprobe nvidia_peermem` there, which shows the reason.",
    ),
    "gpu.dmabuf_off": Cause(
        "NCCL may not use DMA-BUF, and nvidia_peermem is missing",
        peermem_alone,
        "Unset NCCL_DMABUF_ENABLE on {host}, or run `modprobe nvidia_peermem` there.",
    ),
    "gpu.intent": Cause("the planned path to GPU memory is missing", judged("gpu", "gpu.path"), "Run the gpu stage for {host}."),
    "iommu": Cause(
        "the IOMMU translates traffic between devices",
        iommu,
        "Boot {host} with `iommu.passthrough=1` (on x86 also `iommu=pt`), or disable the IOMMU in its BIOS.",
    ),
    "acs": Cause(
        "ACS redirects traffic between GPUs and NICs to the root",
        judged("preflight", "pcie.acs"),
        "Set rdma_host.pcie for {host} and run the host stage. Its gate names the bridge.",
    ),
    # devices
    "hca.none": Cause("the host has no RDMA device", no_device, "Run the driver stage for {host}. Its gate reports what is missing."),
    "hca.list": Cause("NCCL_IB_HCA selects no device", device_list, "Run the nccl stage for {host}, or correct NCCL_IB_HCA in the job."),
    "ib.disabled": Cause("RDMA is disabled", set_to("NCCL_IB_DISABLE", "1"), "Unset NCCL_IB_DISABLE on {host}."),
    "ib.net": Cause("the job requests sockets", set_to("NCCL_NET", "Socket"), "Unset NCCL_NET on {host}."),
    "port.down": Cause("a port is not ACTIVE", ports_down, "Run the link stage for {host}. Its gate reports why the port is not ACTIVE."),
    "port.planned": Cause("a planned rail is not up", judged("link", "link.state"), "Run the link stage for {host}."),
    "port.flaps": Cause(
        "the link goes down, or has errors",
        judged("link", "link.flaps", "link.errors", must_apply=True),
        "Check cable and optic of {device} on {host}: `mlxlink -d {device} -m -c -e`.",
    ),
    "ib.node": Cause(
        "a device node in /dev/infiniband is missing", no_node, "Run the driver stage for {host}, then `ls -l /dev/infiniband` there."
    ),
    "ib.container": Cause(
        "the job's container lacks RDMA devices or libibverbs",
        _CONTAINER,
        "1. Start the container on {host} with `--device /dev/infiniband`. 2. Add rdma-core to its image: `ldconfig -p | grep ibverbs`.",
    ),
    "ib.pkey": Cause("partitions separate the hosts", judged("link", "link.pkey", "link.partitions"), "Run the link stage for {host}."),
    "ib.layers": Cause(
        "RoCE and InfiniBand ports are mixed", judged("link", "link.layer"), "Use only ports of one kind in NCCL_IB_HCA on {host}."
    ),
    # addresses
    "gid.index": Cause(
        "the GID index does not belong to a RoCE v2 address",
        gid_index,
        "Unset NCCL_IB_GID_INDEX on {host} (NCCL 2.21 or newer finds it), or set the index of RoCE v2 on IPv4 from `show_gids`.",
    ),
    "gid.none": Cause("a RoCE port has no IP address", no_ip_gid, "Run the network stage for {host}."),
    "gid.planned": Cause("a rail lacks its planned GID", judged("network", "network.gid"), "Run the network stage for {host}."),
    "gid.subnet": Cause(
        "the two ends are in different subnets",
        subnets_differ,
        "1. On {host}, run `ip route get` with the address of the other end. 2. Set NCCL_CROSS_NIC=0 if rails are separate networks; in a "
        "mesh set NCCL_IB_SUBNET_AWARE_ROUTING=1.",
    ),
    "mtu": Cause(
        "MTUs differ", mtus_of_job_differ, "1. Run the network stage for {host}. 2. Test the path to its partners: `ping -M do -s 8972`."
    ),
    "mtu.planned": Cause(
        "a rail lacks its planned MTU", judged("network", "network.mtu", "network.rdma_mtu"), "Run the network stage for {host}."
    ),
    "arp": Cause("several rails answer for each other's addresses", judged("host", "host.sysctl"), "Run the host stage for {host}."),
    "qos": Cause("RoCE is not lossless", judged("qos", *_QOS), "Run the qos stage for {host}."),
    "loss": Cause(
        "the fabric loses packets or is down between them",
        not_checkable("switches were not read"),
        "1. Measure the pair: `ansible-playbook rdma.cluster.pairs`. 2. Check `ethtool -S` on {host} and the discards of its switch ports.",
    ),
    # sockets
    "socket.name": Cause(
        "NCCL_SOCKET_IFNAME matches no interface",
        socket_interface,
        "Correct NCCL_SOCKET_IFNAME on {host} (rdma_nccl.socket_ifname); `ip -br address` there lists its interfaces.",
    ),
    "socket.address": Cause(
        "it connects to an address that does not belong to another host",
        wrong_address,
        "Set NCCL_SOCKET_IFNAME to the management interface of {host}; for PyTorch also set MASTER_ADDR.",
    ),
    "socket.firewall": Cause(
        "a firewall blocks them", firewall, "Run `nft list ruleset` on {host}, and allow ports 1024 to 65535 between the job's hosts."
    ),
    "store.alone": Cause(
        "the launcher did not start all ranks, or used different addresses",
        not_checkable("the log has only the ranks that connected"),
        "1. Compare MASTER_ADDR, MASTER_PORT and the number of ranks on all hosts. 2. Read the log of the missing host.",
    ),
    "port.taken": Cause(
        "an earlier job still runs there",
        not_checkable("listening processes were not read"),
        "Run `ss -ltnp` on {host}, and end the processes of earlier jobs.",
    ),
    # versions and programs
    "version": Cause(
        "images or installations differ",
        versions_differ,
        "Use one image on all hosts. On {host}, check `ldconfig -p | grep nccl` and LD_LIBRARY_PATH.",
        of_log=True,
    ),
    "mpi.build": Cause(
        "the program was built without MPI, or another mpirun starts it",
        not_checkable("the facts do not contain how it was built"),
        "1. On {host}, run `ldd all_reduce_perf | grep mpi`. 2. Build nccl-tests with `make MPI=1 MPI_HOME=…`, and use that MPI's mpirun.",
    ),
    "mpi.launcher": Cause(
        "mpirun cannot log in, or finds no installation there",
        not_checkable("logins between hosts were not tested"),
        "On {host}, run `ssh HOST true` and `ssh HOST which orted prted`.",
    ),
    "mpi.hosts": Cause(
        "the host file has too few slots",
        not_checkable("the job's host file was not read"),
        "In the host file of {host}, set `slots=GPUs` for each host.",
    ),
    "plugin": Cause(
        "the plugin is not installed, or its folder is not in LD_LIBRARY_PATH",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host}, run `ldconfig -p | grep nccl-net`. 2. If it is not there, unset NCCL_NET_PLUGIN.",
    ),
    "ucx.mpi": Cause("openib is not used since Open MPI 4", not_checkable("it is not a failure"), "`mpirun --mca btl ^openib` hides it."),
    # GPUs
    "gpu.driver": Cause(
        "driver, its libraries and CUDA do not match",
        gpu_driver,
        "On {host}, install a newer NVIDIA driver with libcuda of the same version, then reboot it.",
    ),
    "gpu.fabric_manager": Cause(
        "Fabric Manager does not run",
        fabric_manager,
        "Run `systemctl enable --now nvidia-fabricmanager` on {host}. Its version must match the driver's.",
    ),
    "gpu.lost": Cause("a GPU fell off the bus", gpu_lost, "1. On {host}, run `dmesg | grep -i xid`. 2. Reboot it."),
    "gpu.broken": Cause(
        "the hardware of a GPU is broken",
        not_checkable("the GPU's own diagnostics were not run"),
        "Run `nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER` and `dcgmi diag -r 3` on {host}.",
    ),
    "gpu.load": Cause("another process uses the GPU", gpu_load, "Run `nvidia-smi` on {host}."),
    "gpu.batch": Cause(
        "the program needs more memory than the GPU has",
        not_checkable("the facts do not contain a program's needs"),
        "Use a smaller batch, or check with `nvidia-smi` what else uses the GPUs of {host}.",
    ),
    "gpu.visible": Cause(
        "CUDA_VISIBLE_DEVICES or the ranks of a host do not match its GPUs",
        not_checkable("the environment of ranks was not read"),
        "Start as many ranks on {host} as it has GPUs, with cuda:LOCAL_RANK.",
    ),
    "program": Cause(
        "the program itself", not_checkable("facts cannot show it"), "Run it with CUDA_LAUNCH_BLOCKING=1, or under compute-sanitizer."
    ),
    # shared memory
    "shm.container": Cause(
        "the container's /dev/shm is small (default 64 MiB)",
        _CONTAINER,
        "Start the container on {host} with `--shm-size=8g` or `--ipc=host`; in Kubernetes use an emptyDir in memory.",
    ),
    "shm.full": Cause(
        "the host's /dev/shm is full", shared_memory, "Run `df -h /dev/shm; ls -l /dev/shm` on {host}, and remove files of earlier jobs."
    ),
    "shm.ipc": Cause("logind removes it while the job runs", ipc_removed, "Run the host stage for {host} (rdma_host.keep_ipc)."),
    "shm.apart": Cause(
        "ranks of a host are in containers without a common /dev/shm",
        _CONTAINER,
        "Start the containers on {host} with `--ipc=host`, or set a different NCCL_HOSTID in each.",
    ),
    # files
    "topo.variable": Cause(
        "NCCL_TOPO_FILE names a missing file",
        names_file("NCCL_TOPO_FILE"),
        "1. On {host} and in the container, run `ls -l {file}`. 2. Unset NCCL_TOPO_FILE, which bare metal does not need.",
    ),
    "graph.variable": Cause("NCCL_GRAPH_FILE names a missing file", names_file("NCCL_GRAPH_FILE"), "Unset NCCL_GRAPH_FILE on {host}."),
    "topo.stale": Cause(
        "the file is of another version of NCCL",
        not_checkable("the file was not read"),
        "Write it again with NCCL_TOPO_DUMP_FILE on {host}, or unset the variable.",
    ),
    # hangs and ends
    "hang.program": Cause(
        "ranks wait in different collectives",
        different_collectives,
        "Run with TORCH_DISTRIBUTED_DEBUG=DETAIL to see where the ranks diverge.",
        of_log=True,
    ),
    "hang.rank": Cause(
        "a rank does not participate",
        silent_ranks,
        "On that rank's host, run `py-spy dump --pid` and `nvidia-smi`. Its log may end earlier.",
        of_log=True,
    ),
    "hang.slow": Cause(
        "a rank is only slow: loading, compiling, writing a checkpoint",
        not_checkable("the facts do not contain the time of a step"),
        "1. Compare the last lines of each rank. 2. Raise the timeout of init_process_group.",
    ),
    "debug": Cause(
        "the line with the reason is not in this log",
        not_checkable("NCCL prints it at level WARN"),
        "Run the job again with NCCL_DEBUG=WARN, or INFO with NCCL_DEBUG_SUBSYS=INIT,ENV,NET.",
    ),
    "unknown": Cause(
        "this collection does not know the text, so its meaning is unknown",
        not_checkable("no check of the facts exists for it"),
        "1. Read the lines before its first occurrence in the log: the first failed call there is the reason. "
        "2. Run `dmesg -T | grep -iE 'xid|nvrm|mlx5|oom'` on {host} for the time of the job. "
        "3. Run the job again with `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET`, and search for the text in the source of NCCL.",
    ),
    "oom.host": Cause(
        "the host's memory or the job's memory limit",
        not_checkable("the process has already ended"),
        "1. Run `journalctl -k --grep oom` on {host}. 2. Check the job's memory limit.",
    ),
    "ended": Cause(
        "the host went down or was drained",
        not_checkable("the facts do not contain the reason"),
        "On {host}, run `journalctl --boot=-1`, and check its BMC's event log.",
    ),
    "time": Cause(
        "the job exceeded its time limit",
        not_checkable("it is the scheduler's limit"),
        "1. Check the last lines of each rank for a hang. 2. If there is none, raise the time limit.",
    ),
    "firmware": Cause(
        "the firmware or the card",
        not_checkable("the card was not read"),
        "Run `dmesg | grep mlx5` on {host}, and compare its firmware with that of the other hosts (alike.firmware).",
    ),
}
