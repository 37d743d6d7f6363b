# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes: launchers, limits, programs, hangs and ends."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.ranks import different_collectives, silent_ranks
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.words import earlier_error
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Cause, judged, not_checkable

JOBS: dict[str, Cause] = {
    "earlier": Cause("another error came before it", earlier_error, "Fix the error that came first.", of_log=True),
    "files": Cause(
        "the limit of open files is too low",
        judged("host", "host.files"),
        "1. Run the host stage for {host} (rdma_host.open_files). 2. Log in again, or restart the service that starts jobs.",
    ),
    "host.settings": Cause(
        "the kernel moves memory between NUMA nodes",
        judged("host", "host.sysctl"),
        "On {host}, set `kernel.numa_balancing=0` by the host stage.",
    ),
    "mpi.build": Cause(
        "the program was built without MPI, or another mpirun starts it",
        not_checkable("the facts do not contain how it was built"),
        "1. On {host}, run `ldd all_reduce_perf | grep mpi`. 2. Build nccl-tests with `make MPI=1 MPI_HOME=…`, and use that MPI's mpirun.",
    ),
    "slurm.network": Cause(
        "slurmd on the host does not answer in time: its network, its load, or an image that is imported",
        not_checkable("slurmd was not read"),
        "1. On {host}, run `scontrol show slurmd` and `journalctl -u slurmd`. 2. Check that `getent hosts` with the names of the job's "
        "hosts gives the management network. 3. Import the image before the job: `enroot import`. For a test, set "
        "SLURM_PMIX_DIRECT_CONN=false.",
    ),
    "mpi.launcher": Cause(
        "mpirun cannot log in, or finds no installation there",
        not_checkable("logins between hosts were not tested"),
        "On {host}, run `ssh HOST true` and `ssh HOST which orted prted`.",
    ),
    "launch.ssh": Cause(
        "ssh asks for a password, does not know the host's key, or does not reach the host",
        not_checkable("logins between hosts were not tested"),
        "1. As the user of the job, run `ssh -o BatchMode=yes HOST true` on {host}. 2. Install the user's public key on all hosts.",
    ),
    "mpi.pmi": Cause(
        "Open MPI has no PMI or PMIx that fits srun's",
        not_checkable("the facts do not contain how it was built"),
        "1. On {host}, run `srun --mpi=list` and `ompi_info | grep -i pmi`. 2. If both have PMIx, use `srun --mpi=pmix`. 3. Otherwise, use "
        "`mpirun` within the job.",
    ),
    "mpi.hosts": Cause(
        "the host file has too few slots",
        not_checkable("the job's host file was not read"),
        "In the host file of {host}, set `slots=GPUs` for each host.",
    ),
    "ucx.mpi": Cause("openib is not used since Open MPI 4", not_checkable("it is not a failure"), "`mpirun --mca btl ^openib` hides it."),
    "program": Cause(
        "the program itself", not_checkable("facts cannot show it"), "Run it with CUDA_LAUNCH_BLOCKING=1, or under compute-sanitizer."
    ),
    "program.trace": Cause(
        "the program itself",
        not_checkable("facts cannot show it"),
        "Read the traceback above this line in the log: its last file is the place.",
    ),
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
    "unknown.line": Cause(
        "this collection does not know the text, so its meaning is unknown",
        not_checkable("no check of the facts exists for it"),
        "1. Read the lines before its first occurrence in the log: the first failed call there is the reason. "
        "2. Run `dmesg -T | grep -iE 'xid|nvrm|mlx5|oom'` on {host} for the time of the job. "
        "3. Search for the text in the source of the program that writes it.",
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
        "1. Check the last lines of each rank for a hang. 2. If no rank hangs, raise the time limit.",
    ),
    "launch.env": Cause(
        "the program was not started by torchrun or srun, or the launcher does not pass its variables to all hosts",
        not_checkable("the environment of ranks was not read"),
        "1. Start the program by `torchrun --nnodes N --nproc-per-node GPUS --rdzv-backend c10d --rdzv-endpoint HOST:29500`. 2. With srun "
        "or mpirun, export MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE and LOCAL_RANK for each rank.",
    ),
    "torch.build": Cause(
        "PyTorch was built without this backend or library",
        not_checkable("the facts do not contain how it was built"),
        "1. In the image, run `python -c 'import torch; print(torch.__config__.show())'`. 2. Install PyTorch for CUDA or ROCm, "
        "not the one for CPUs. 3. Without libuv, set USE_LIBUV=0.",
    ),
    "session": Cause(
        "the terminal or SSH connection of the launcher was closed",
        not_checkable("logins are not in this log"),
        "Start the job by Slurm or in tmux, or with `nohup setsid`.",
    ),
    "store.address": Cause(
        "MASTER_ADDR is not an address of the host of rank 0, or its port needs root",
        not_checkable("the environment of ranks was not read"),
        "1. On the host of rank 0, run `getent hosts $MASTER_ADDR` and `ip -br address`. 2. Set MASTER_ADDR to one of these addresses, and "
        "MASTER_PORT to 1024 or more.",
    ),
    "store.backlog": Cause(
        "net.core.somaxconn is smaller than the number of ranks",
        not_checkable("the kernel parameters of containers were not read"),
        "On the host of rank 0, set `net.core.somaxconn` to at least the number of ranks: `sysctl -w net.core.somaxconn=65535`; in a "
        "container with the option `--sysctl`.",
    ),
}
