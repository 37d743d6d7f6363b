# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes: programs and libraries around NCCL."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.words import (
    kernels_too_large,
    name_unresolved,
    of_fields,
    of_program,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Cause, not_checkable

PROGRAMS: dict[str, Cause] = {
    "dns": Cause(
        "the name of a host does not resolve, or not yet",
        name_unresolved,
        "1. On {host} and in its container, run `getent hosts $MASTER_ADDR`. 2. In Kubernetes, check the headless service, and wait for "
        "its name in an init container. 3. Otherwise, set MASTER_ADDR to the address.",
    ),
    "nccl.two": Cause(
        "two versions of NCCL are installed, and the older one is loaded",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host} and in the image, run `pip list | grep nccl`, `ldconfig -p | grep libnccl` and `echo $LD_LIBRARY_PATH $LD_PRELOAD`. "
        "2. Uninstall the packages for the other CUDA, such as nvidia-nccl-cu11. 3. Keep one NCCL, at least of the version that the "
        "program was built with.",
    ),
    "nccl.old": Cause(
        "this NCCL is too old for the GPU or its driver",
        kernels_too_large,
        "1. Compare the version of NCCL in the log with the release notes for the GPU of {host}. 2. Install a newer NCCL and PyTorch.",
    ),
    "library.path": Cause(
        "a library is missing, or LD_LIBRARY_PATH leads to another release",
        not_checkable("the facts do not contain a job's libraries"),
        "1. On {host} and in the image, run `ldd` with the file that the line names. 2. Install the missing package, or remove the other "
        "release from LD_LIBRARY_PATH and LD_PRELOAD.",
    ),
    "cma.ptrace": Cause(
        "the container or the kernel does not allow processes to read each other's memory (ptrace)",
        of_fields("reads", "reads_too", why="the capabilities of a job's container were not read"),
        "1. On {host}, run `sysctl kernel.yama.ptrace_scope`; 0 allows it. 2. Start the container with `--cap-add=SYS_PTRACE` and one user "
        "for all ranks. 3. Otherwise, do without it: `--mca btl_vader_single_copy_mechanism none` for Open MPI, `UCX_TLS=^cma` for UCX.",
    ),
    "gpu.no_p2p": Cause(
        "these GPUs cannot access each other's memory: their model, the virtual machine or the driver does not allow it",
        not_checkable("which GPUs can access each other was not read"),
        "1. On {host}, run `nvidia-smi topo -p2p r`. 2. If it is not OK, set NCCL_P2P_DISABLE=1 in the environment of all ranks; for Ray "
        "in its runtime_env. 3. For vLLM, also use `--disable-custom-all-reduce`.",
    ),
    "gloo.interface": Cause(
        "GLOO_SOCKET_IFNAME does not name one interface of the host",
        not_checkable("the environment of ranks was not read"),
        "1. On {host}, run `ip -br address`. 2. Set GLOO_SOCKET_IFNAME to one name: unlike NCCL_SOCKET_IFNAME it takes no list and no `^`.",
    ),
    "nccl.setting": Cause(
        "a variable of NCCL or an option of the program requests it",
        not_checkable("the line names what was requested"),
        "1. Read in the line which setting it is. 2. Unset it on {host}, in the job and in /etc/nccl.conf.",
    ),
    "nccl.transport": Cause(
        "the settings exclude every transport between two ranks",
        not_checkable("which transports were tried is only in NCCL's log at level INFO"),
        "1. Unset NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET on {host}. 2. Run it again with `NCCL_DEBUG=INFO "
        "NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET`.",
    ),
    "nccl.hosts": Cause(
        "two hosts or containers have the same identity, or one host has two",
        not_checkable("the identities of containers were not read"),
        "1. Compare `hostname` and /proc/sys/kernel/random/boot_id in all containers. 2. Give each host its own name, or set NCCL_HOSTID: "
        "one value for each host.",
    ),
    "gin": Cause(
        "the NICs, their driver or DOCA do not let GPUs start transfers (GIN)",
        not_checkable("the driver of the NICs was not asked for it"),
        "1. On {host}, check that all NICs of the job are of mlx5, and that nvidia_peermem or DMA-BUF works. 2. Set NCCL_GIN_TYPE=2 "
        "(by the CPU) for a test.",
    ),
    "ofi.cxi": Cause(
        "the job has no access to the Slingshot network (VNI of the provider cxi)",
        not_checkable("the services of the provider cxi were not read"),
        "1. On {host}, run `fi_info -p cxi` within the job step. 2. With Slurm, use `srun --network=single_node_vni,job_vni`. 3. Use the "
        "libfabric of the system's vendor.",
    ),
    "ofi.choice": Cause(
        "libfabric chooses a provider that does not support this NIC",
        of_program("MPICH", "Open MPI", "libpsm2", "libfabric", why="the choice of a provider is not in the log"),
        "1. On {host}, run `fi_info -l`. 2. Set FI_PROVIDER to one that fits the NIC: verbs, efa, cxi, psm3, or tcp for a test. 3. For "
        "containers without RDMA, use shm and tcp.",
    ),
    "disk.full": Cause(
        "a file system or its quota is full",
        not_checkable("the file systems of the job were not read"),
        "1. On {host}, run `df -h`, `df -i` and `quota`. 2. Remove old checkpoints and files in /tmp.",
    ),
    "limits.processes": Cause(
        "the limit of processes or threads of the user, the service or the container is reached",
        not_checkable("the limits of processes were not read"),
        "1. On {host}, run `ulimit -u` within the job, and read pids.max of its cgroup. 2. Raise TasksMax of slurmd or containerd, or "
        "start the container with `--pids-limit=-1`. 3. Set OMP_NUM_THREADS.",
    ),
    "slurm.request": Cause(
        "the step requests what the job, the partition or the hosts do not have",
        not_checkable("the settings of Slurm were not read"),
        "1. Compare the options with `scontrol show job` and `scontrol show node`. 2. Check `--gres` and gres.conf.",
    ),
    "kube.plugin": Cause(
        "the device plugin does not run, or the devices of the nodes are in use",
        not_checkable("Kubernetes was not asked"),
        "1. Run `kubectl describe node`, and compare Allocatable with what is allocated. 2. Read the log of the device plugin's pod on "
        "this node.",
    ),
    "kube.network": Cause(
        "the pod's secondary network cannot be attached",
        not_checkable("Kubernetes was not asked"),
        "1. Run `kubectl describe pod`. 2. Compare the NetworkAttachmentDefinition with the resource of the device plugin. 3. Read the log "
        "of multus on the node.",
    ),
    "launch.ranks": Cause(
        "two processes have the same rank: two launchers start the ranks, or one starts too many",
        not_checkable("the command of the job is not in the log"),
        "1. Start one process for each GPU by one launcher: srun or torchrun, not both. 2. With Slurm, make --ntasks-per-node equal to the "
        "number of devices in the program.",
    ),
    "store.stale": Cause(
        "the rendezvous has addresses of an earlier job: a file of `file://`, or a port that is used again",
        not_checkable("the file and the earlier job are not in the log"),
        "1. Remove the file of init_method before each job. 2. Give each job its own MASTER_PORT. 3. End processes of earlier jobs.",
    ),
    "nvshmem.setting": Cause(
        "a setting of NVSHMEM does not fit the fabric: traffic class, service level, GID or P_Key",
        not_checkable("the environment of ranks was not read"),
        "1. On {host}, run `env | grep NVSHMEM_IB`. 2. Unset NVSHMEM_IB_TRAFFIC_CLASS and NVSHMEM_IB_GID_INDEX on InfiniBand; for RoCE set "
        "the GID index from `show_gids`.",
    ),
    "ucx.gpu": Cause(
        "UCX cannot give GPUs a transport to the peer: no GPU-initiated RDMA or NVLink between them",
        of_fields("of_gpus", why="the transports of UCX were not read"),
        "1. On {host}, run `ucx_info -d | grep -E 'gda|cuda'`. 2. Check that UCX was built with CUDA and DOCA GPUNetIO, and that UCX_TLS "
        "allows rc_gda and cuda_ipc.",
    ),
    "ib.filter": Cause(
        "UCX_IB_ROCE_SUBNET_LIST, a P_Key or a GID in the settings fits no port",
        not_checkable("the environment of ranks was not read"),
        "1. On {host}, run `show_gids` and read /sys/class/infiniband/*/ports/*/pkeys. 2. Unset UCX_IB_ROCE_SUBNET_LIST, UCX_IB_PKEY and "
        "UCX_IB_GID_INDEX.",
    ),
    "slurm.preempted": Cause(
        "a job of higher priority took the hosts",
        not_checkable("the settings of Slurm were not read"),
        "1. Run `scontrol show job` and `sacctmgr show qos format=name,preempt`. 2. Write checkpoints, and let Slurm requeue the job.",
    ),
    "slurm.cancelled": Cause(
        "a user, an administrator or a script cancelled it",
        not_checkable("who cancels a job is only in Slurm's own log"),
        "Run `sacct -j JOB --format=jobid,state,exitcode,end`, and search for the job in the log of slurmctld.",
    ),
    "container.image": Cause(
        "the image is missing, cannot be unpacked, or lacks the program that is started",
        not_checkable("images were not read"),
        "1. On {host}, import and start the image by hand: `enroot start` or `docker run`. 2. Check the space below /var/lib and /tmp.",
    ),
    "container.runtime": Cause(
        "the runtime of containers does not fit the driver, or may not read the container's files",
        not_checkable("the runtimes of containers were not read"),
        "1. On {host}, run `nvidia-container-cli --load-kmods info` as the user of the job. 2. Compare the versions of libnvidia-container "
        "and enroot with those of a host that works.",
    ),
    "mooncake.build": Cause(
        "Mooncake was built without this metadata plugin",
        not_checkable("the facts do not contain how it was built"),
        "Use an HTTP or P2P metadata server, or build Mooncake with -DUSE_ETCD=ON.",
    ),
    "mpi.root": Cause(
        "the job runs as root, as containers often do",
        not_checkable("users of containers were not read"),
        "Start it as another user, or with `mpirun --allow-run-as-root`.",
    ),
    "mooncake.metadata": Cause(
        "the metadata server does not run, or its URL is wrong",
        not_checkable("the processes of the job have ended"),
        "1. On {host}, run `curl -v` with the URL of the metadata server, or `etcdctl endpoint health`. 2. Unset http_proxy for it.",
    ),
}
