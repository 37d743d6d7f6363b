# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be the cause of an error line, how that is checked, and what to do: a table.

A remedy names the host ({host}) and what the line tells ({device}, {file}, {peer}).
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
    nothing_tells,
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
    """Whether ranks wait in different places of the program."""
    operations, numbers = scene.told("operation"), scene.told("sequence")
    groups = dict.fromkeys(group for each in scene.log.occurrences for group in each.fields.get("group", ()))
    if len(groups) > 1 and max(len(operations), len(numbers)) > 1:
        return unknown(f"ranks wait in process groups {listed(list(groups))}, each of which counts collectives of its own")
    if len(operations) > 1:
        return confirmed(f"ranks wait in {', '.join(operations)}")
    if len(numbers) > 1:
        return confirmed(f"ranks wait in collectives number {listed(numbers)}")
    return excluded(f"all that tell wait in {operations[0]}, number {numbers[0]}") if numbers else unknown("the lines do not tell which")


def silent_ranks(scene: Scene) -> Answer:
    """Whether a few ranks did not say what all others say: they were not there, or hang elsewhere."""
    ranks, count = set(scene.occurrence.ranks), scene.log.context.nranks
    if count < 2 or not ranks:
        return unknown("how many ranks there are, or which they are, the log does not tell")
    silent = [str(rank) for rank in range(count) if rank not in ranks]
    if not silent:
        return excluded(f"all {count} ranks say it")
    if len(silent) > max(8, count // 8):
        return unknown(f"{len(ranks)} of {count} ranks say it")
    places = list(dict.fromkeys(host for rank in silent for host in [scene.log.context.host_of(int(rank))] if host))
    return confirmed(f"rank {listed(silent)} of {count} did not say it{f', on {listed(places)}' if places else ''}")


def versions_differ(scene: Scene) -> Answer:
    said = [f"{version} on {listed(list(hosts))}" for version, hosts in sorted(scene.log.context.versions.items())]
    if len(said) > 1:
        return confirmed("; ".join(said))
    if said:
        return unknown(f"only {said[0]} is told")
    numbers = [*scene.told("one_version"), *scene.told("other_version")]
    return confirmed(f"versions {listed(numbers)}") if len(set(numbers)) > 1 else unknown("the log does not tell them")


class Cause(NamedTuple):
    """says: for a person; test: whether it holds; remedy: the command and the host; of_log: whether the log alone tells it."""

    says: str
    test: Test
    remedy: str
    of_log: bool = False


_CONTAINER = nothing_tells("facts are of the host, not of a job's container")
_QOS = ("qos.trust", "qos.dscp", "qos.pfc", "qos.ets", "qos.ecn", "qos.traffic_class", "qos.overwritten")

CAUSES: dict[str, Cause] = {
    "earlier": Cause("another error came before it", earlier_error, "Mend the error that came first.", of_log=True),
    # memory
    "memlock": Cause(
        "the limit of locked memory is too low",
        locked_memory,
        "Run the host stage for {host}, then `systemctl restart` what starts jobs there (slurmd, containerd), or log in anew.",
    ),
    "memlock.container": Cause(
        "the job's container has a limit of its own", _CONTAINER, "Start the container on {host} with `--ulimit memlock=-1`."
    ),
    "gpu.path": Cause(
        "the host has no way to register GPU memory",
        no_gpu_path,
        "Run the gpu stage for {host}; `modprobe nvidia_peermem` there tells more.",
    ),
    "gpu.dmabuf_off": Cause(
        "NCCL may not use DMA-BUF, and nvidia_peermem is missing",
        peermem_alone,
        "Take NCCL_DMABUF_ENABLE away on {host}, or run `modprobe nvidia_peermem` there.",
    ),
    "gpu.intent": Cause("the planned way to GPU memory is not there", judged("gpu", "gpu.path"), "Run the gpu stage for {host}."),
    "iommu": Cause(
        "the IOMMU translates what devices send to each other",
        iommu,
        "Boot {host} with `iommu.passthrough=1` (on x86 also `iommu=pt`), or turn the IOMMU off in its BIOS.",
    ),
    "acs": Cause(
        "ACS sends what GPUs and NICs say to each other through the root",
        judged("preflight", "pcie.acs"),
        "Run the host stage for {host} with rdma_host.pcie; its gate says which bridge.",
    ),
    # devices
    "hca.none": Cause("the host has no RDMA device", no_device, "Run the driver stage for {host}; its gate says what is missing."),
    "hca.list": Cause(
        "NCCL_IB_HCA leaves no device", device_list, "Run the nccl stage for {host}, or mend NCCL_IB_HCA where the job sets it."
    ),
    "ib.disabled": Cause("RDMA is turned off", set_to("NCCL_IB_DISABLE", "1"), "Take NCCL_IB_DISABLE away on {host}."),
    "ib.net": Cause("the job asks for sockets", set_to("NCCL_NET", "Socket"), "Take NCCL_NET away on {host}."),
    "port.down": Cause("a port is not ACTIVE", ports_down, "Run the link stage for {host}; its gate says why the port is not ACTIVE."),
    "port.planned": Cause("a planned rail is not up", judged("link", "link.state"), "Run the link stage for {host}."),
    "port.flaps": Cause(
        "the link goes down, or has errors",
        judged("link", "link.flaps", "link.errors", must_apply=True),
        "Check cable and optic of {device} on {host}: `mlxlink -d {device} -m -c -e`.",
    ),
    "ib.node": Cause(
        "programs find no node in /dev/infiniband", no_node, "Run the driver stage for {host}; `ls -l /dev/infiniband` there."
    ),
    "ib.container": Cause(
        "the job's container lacks devices or the library of verbs",
        _CONTAINER,
        "Start the container on {host} with `--device /dev/infiniband`, and have rdma-core in its image: `ldconfig -p | grep ibverbs`.",
    ),
    "ib.pkey": Cause("partitions keep them apart", judged("link", "link.pkey", "link.partitions"), "Run the link stage for {host}."),
    "ib.layers": Cause(
        "RoCE and InfiniBand ports are mixed", judged("link", "link.layer"), "Name ports of one kind in NCCL_IB_HCA on {host}."
    ),
    # addresses
    "gid.index": Cause(
        "the GID index is that of no RoCE v2 address",
        gid_index,
        "Take NCCL_IB_GID_INDEX away on {host} (NCCL finds it since 2.21), or set that of `show_gids` for RoCE v2 on IPv4.",
    ),
    "gid.none": Cause("a RoCE port has no IPv4 address", no_ip_gid, "Run the network stage for {host}."),
    "gid.planned": Cause("a rail has not its planned GID", judged("network", "network.gid"), "Run the network stage for {host}."),
    "gid.subnet": Cause(
        "the two ends are in different subnets",
        subnets_differ,
        "See `ip route get` on {host} for the other end; NCCL_CROSS_NIC=0 where rails do not meet, in a mesh "
        "NCCL_IB_SUBNET_AWARE_ROUTING=1.",
    ),
    "mtu": Cause(
        "MTUs differ", mtus_of_job_differ, "Run the network stage for {host}; prove the path: `ping -M do -s 8972` to its partners."
    ),
    "mtu.planned": Cause(
        "a rail has not its planned MTU", judged("network", "network.mtu", "network.rdma_mtu"), "Run the network stage for {host}."
    ),
    "arp": Cause("several rails answer for each other's addresses", judged("host", "host.sysctl"), "Run the host stage for {host}."),
    "qos": Cause("RoCE is not lossless", judged("qos", *_QOS), "Run the qos stage for {host}."),
    "loss": Cause(
        "the fabric loses packets or is down between them",
        nothing_tells("switches were not asked"),
        "Measure the pair: `ansible-playbook rdma.cluster.pairs`; then discards of the switch ports and `ethtool -S` of {host}.",
    ),
    # sockets
    "socket.name": Cause(
        "NCCL_SOCKET_IFNAME fits no interface",
        socket_interface,
        "Mend NCCL_SOCKET_IFNAME on {host} (rdma_nccl.socket_ifname); `ip -br address` there.",
    ),
    "socket.address": Cause(
        "it connects to an address that is none of another host",
        wrong_address,
        "Set NCCL_SOCKET_IFNAME to the management interface of {host}; for PyTorch also MASTER_ADDR.",
    ),
    "socket.firewall": Cause(
        "a firewall is between them", firewall, "See `nft list ruleset` on {host}: ports 1024 to 65535 between the job's hosts."
    ),
    "store.alone": Cause(
        "the launcher did not start all ranks, or with other addresses",
        nothing_tells("the log has only those that came"),
        "Compare MASTER_ADDR, MASTER_PORT and the number of ranks on all hosts; see the log of the host that is missing.",
    ),
    "port.taken": Cause(
        "an earlier job still runs there",
        nothing_tells("who listens was not read"),
        "See `ss -ltnp` on {host}, and end what is left of earlier jobs.",
    ),
    # versions and programs
    "version": Cause(
        "images or installations differ",
        versions_differ,
        "Use one image on all hosts; see `ldconfig -p | grep nccl` on {host}, and LD_LIBRARY_PATH.",
        of_log=True,
    ),
    "mpi.build": Cause(
        "the program was built without MPI, or another mpirun starts it",
        nothing_tells("how it was built, facts do not tell"),
        "Build nccl-tests with `make MPI=1 MPI_HOME=…`, and start it with that MPI's mpirun; `ldd all_reduce_perf | grep mpi` on {host}.",
    ),
    "mpi.launcher": Cause(
        "mpirun cannot log in, or finds no installation there",
        nothing_tells("logins between hosts were not tried"),
        "Try `ssh HOST true` and `ssh HOST which orted prted` from {host}.",
    ),
    "mpi.hosts": Cause(
        "the host file has too few slots",
        nothing_tells("the job's host file was not read"),
        "Give each host `slots=GPUs` in the host file of {host}.",
    ),
    "plugin": Cause(
        "the plugin is not installed, or its folder is not in LD_LIBRARY_PATH",
        nothing_tells("libraries of a job are not in the facts"),
        "Look for it on {host}: `ldconfig -p | grep nccl-net`; else take NCCL_NET_PLUGIN away.",
    ),
    "ucx.mpi": Cause(
        "openib is not used since Open MPI 4", nothing_tells("it is no failure"), "Nothing for NCCL. `mpirun --mca btl ^openib` hides it."
    ),
    # GPUs
    "gpu.driver": Cause(
        "driver, its libraries and CUDA do not fit",
        gpu_driver,
        "Install a newer NVIDIA driver on {host}, with libcuda of the same version, and reboot it.",
    ),
    "gpu.fabric_manager": Cause(
        "Fabric Manager does not run",
        fabric_manager,
        "Run `systemctl enable --now nvidia-fabricmanager` on {host}; its version must be the driver's.",
    ),
    "gpu.lost": Cause("a GPU fell off the bus", gpu_lost, "See `dmesg | grep -i xid` on {host}, and reboot it."),
    "gpu.broken": Cause(
        "the hardware of a GPU is broken",
        nothing_tells("the GPU itself was not asked"),
        "Run `nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER` and `dcgmi diag -r 3` on {host}.",
    ),
    "gpu.load": Cause("something else uses the GPU", gpu_load, "See `nvidia-smi` on {host}."),
    "gpu.batch": Cause(
        "the program wants more than the GPU has",
        nothing_tells("facts do not tell what a program wants"),
        "Take a smaller batch, or look what else is on the GPUs of {host}.",
    ),
    "gpu.visible": Cause(
        "CUDA_VISIBLE_DEVICES or the ranks of a host do not fit its GPUs",
        nothing_tells("the environment of ranks was not read"),
        "Start as many ranks on {host} as it has GPUs, with cuda:LOCAL_RANK.",
    ),
    "program": Cause(
        "the program itself", nothing_tells("facts do not tell"), "Run it with CUDA_LAUNCH_BLOCKING=1, or under compute-sanitizer."
    ),
    # shared memory
    "shm.container": Cause(
        "the container's /dev/shm is small (64 MiB unless told otherwise)",
        _CONTAINER,
        "Start the container on {host} with `--shm-size=8g` or `--ipc=host`; in Kubernetes an emptyDir in memory.",
    ),
    "shm.full": Cause(
        "the host's /dev/shm is full", shared_memory, "See `df -h /dev/shm; ls -l /dev/shm` on {host}, and remove what earlier jobs left."
    ),
    "shm.ipc": Cause("logind removes it while the job runs", ipc_removed, "Run the host stage for {host} (rdma_host.keep_ipc)."),
    "shm.apart": Cause(
        "ranks of a host are in containers that share no /dev/shm",
        _CONTAINER,
        "Start the containers on {host} with `--ipc=host`, or set NCCL_HOSTID to differ.",
    ),
    # files
    "topo.variable": Cause(
        "NCCL_TOPO_FILE names a file that is not there",
        names_file("NCCL_TOPO_FILE"),
        "Take NCCL_TOPO_FILE away on {host}: bare metal needs none; see `ls -l {file}` there, and in the container.",
    ),
    "graph.variable": Cause(
        "NCCL_GRAPH_FILE names a file that is not there", names_file("NCCL_GRAPH_FILE"), "Take NCCL_GRAPH_FILE away on {host}."
    ),
    "topo.stale": Cause(
        "the file is of another version of NCCL",
        nothing_tells("the file was not read"),
        "Write it anew with NCCL_TOPO_DUMP_FILE on {host}, or do without.",
    ),
    # hangs and ends
    "hang.program": Cause(
        "ranks wait in different collectives",
        different_collectives,
        "Look where ranks part ways: TORCH_DISTRIBUTED_DEBUG=DETAIL.",
        of_log=True,
    ),
    "hang.rank": Cause(
        "a rank does not take part",
        silent_ranks,
        "See what that rank does: `py-spy dump --pid` and `nvidia-smi` on its host; its log may end earlier.",
        of_log=True,
    ),
    "hang.slow": Cause(
        "a rank is only slow: loading, compiling, writing a checkpoint",
        nothing_tells("facts do not tell how long a step takes"),
        "Compare the last lines of each rank; raise the timeout of init_process_group.",
    ),
    "debug": Cause(
        "the line that tells more is not in this log",
        nothing_tells("NCCL prints it at level WARN"),
        "Run it again with NCCL_DEBUG=WARN, or INFO with NCCL_DEBUG_SUBSYS=INIT,ENV,NET.",
    ),
    "unknown": Cause(
        "no table of this collection has the text, so what it means is unknown",
        nothing_tells("the facts of the hosts have no check for it"),
        "1. Read the lines before its first occurrence in the log: the first failed call there is the reason. "
        "2. Run `dmesg -T | grep -iE 'xid|nvrm|mlx5|oom'` on {host} for the time of the job. "
        "3. Run the job again with `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET`, and search the text in the source of NCCL.",
    ),
    "oom.host": Cause(
        "the kernel's or the job's limit of memory",
        nothing_tells("it is over now"),
        "See `journalctl -k --grep oom` on {host}, and what the job was given.",
    ),
    "ended": Cause(
        "the host went down or was drained",
        nothing_tells("why is not in the facts"),
        "See `journalctl --boot=-1` and the BMC's event log of {host}.",
    ),
    "time": Cause(
        "the job was not done in its time",
        nothing_tells("it is the scheduler's limit"),
        "Give it more time, or see whether it hung: the last lines of each rank.",
    ),
    "firmware": Cause(
        "the firmware or the card",
        nothing_tells("the card was not asked"),
        "See `dmesg | grep mlx5` on {host}, and compare its firmware with the other hosts' (alike.firmware).",
    ),
}
