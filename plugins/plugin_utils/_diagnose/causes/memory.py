# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes: registering memory, and shared memory."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.gpu import no_gpu_path, peermem_alone
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.host import iommu, ipc_removed, locked_memory, shared_memory
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.words import of_container
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Cause, judged, not_checkable

MEMORY: dict[str, Cause] = {
    "memlock": Cause(
        "the limit of locked memory is too low",
        locked_memory,
        "1. Run the host stage for {host}. 2. There, run `systemctl restart slurmd` (or containerd), or log in again.",
    ),
    "memlock.container": Cause(
        "the job's container has its own limit", of_container, "Start the container on {host} with `--ulimit memlock=-1`."
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
    "shm.container": Cause(
        "the container's /dev/shm is small (default 64 MiB)",
        of_container,
        "Start the container on {host} with `--shm-size=8g` or `--ipc=host`; in Kubernetes use an emptyDir in memory.",
    ),
    "shm.full": Cause(
        "the host's /dev/shm is full", shared_memory, "Run `df -h /dev/shm; ls -l /dev/shm` on {host}, and remove files of earlier jobs."
    ),
    "shm.segments": Cause(
        "the limit of System V shared memory is reached: kernel.shmmni or kernel.shmall",
        not_checkable("the segments of the host were not read"),
        "1. On {host}, run `ipcs -lm; ipcs -m | wc -l`, and remove segments of earlier jobs: `ipcrm -m ID`. 2. Raise kernel.shmmni and "
        "kernel.shmall, or set UCX_TLS=^sysv.",
    ),
    "shm.ipc": Cause("logind removes it while the job runs", ipc_removed, "Run the host stage for {host} (rdma_host.keep_ipc)."),
    "shm.apart": Cause(
        "ranks of a host are in containers without a common /dev/shm",
        of_container,
        "1. Start the containers on {host} with `--ipc=host --pid=host`. 2. Without that, set a different NCCL_HOSTID in each, for UCX "
        "UCX_POSIX_USE_PROC_LINK=n, and for UCC UCC_TL_SHM_TUNE=0.",
    ),
    "cumem.host": Cause(
        "NCCL shares host memory by cuMem, which a GPU, driver or container of this host does not support",
        not_checkable("what CUDA supports was not read"),
        "1. Set NCCL_CUMEM_HOST_ENABLE=0 on {host}. 2. Compare `numactl -H` in all containers of the host.",
    ),
}
