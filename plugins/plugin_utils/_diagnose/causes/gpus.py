# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes: GPUs, NVSwitches and their drivers."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.gpu import fabric_manager, gpu_driver, gpu_load, gpu_lost
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.evidence.words import of_container
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Cause, not_checkable

GPUS: dict[str, Cause] = {
    "fm.version": Cause(
        "Fabric Manager is not of the driver's version",
        fabric_manager,
        "1. On {host}, run `modinfo -F version nvidia` and `nv-fabricmanager --version`. 2. Install nvidia-fabricmanager of exactly this "
        "version. 3. Hold both packages at it, and restart nvidia-fabricmanager.",
    ),
    "fm.restarted": Cause(
        "Fabric Manager was stopped or restarted, and the GPUs were not reset",
        not_checkable("the starts of Fabric Manager were not read"),
        "1. On {host}, run `journalctl -b -u nvidia-fabricmanager`. 2. If it was restarted, end all processes on the GPUs and reboot.",
    ),
    "fm.absent": Cause(
        "the host has no NVSwitch, or its driver is not loaded",
        not_checkable("it depends on the model of the host"),
        "1. On {host}, run `lspci -d 10de: | grep -i bridge` and `nvidia-smi topo -m`. 2. Without NVSwitches, disable "
        "nvidia-fabricmanager. 3. With fifth-generation NVLink, run `modprobe mlx5_ib ib_umad` first.",
    ),
    "gpu.imex": Cause(
        "the IMEX service does not run on all hosts, or the job has no IMEX channel",
        not_checkable("the IMEX service was not read"),
        "1. On {host}, run `systemctl status nvidia-imex` and `nvidia-imex-ctl -N`. 2. Check that /dev/nvidia-caps-imex-channels has a "
        "channel, also in the container. 3. For one host, set NCCL_MNNVL_ENABLE=0.",
    ),
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
    "gpu.nvlink": Cause(
        "an NVLink, its bridge or an NVSwitch is broken",
        not_checkable("the errors of NVLink were not read"),
        "1. On {host}, run `nvidia-smi nvlink -e` and `dcgmi diag -r 3`. 2. Reboot it. 3. If errors return, replace the part.",
    ),
    "gpu.virtual": Cause(
        "the GPU is a virtual one without unified memory or access between GPUs",
        not_checkable("the kind of GPU was not read"),
        "1. On {host}, run `nvidia-smi -q | grep -i virtualization`. 2. Enable unified memory for the vGPU in the hypervisor. "
        "3. Set NCCL_CUMEM_ENABLE=0 and NCCL_P2P_DISABLE=1.",
    ),
    "gpu.mode": Cause(
        "the GPU is in exclusive mode, or in MIG mode",
        not_checkable("the modes of GPUs were not read"),
        "On {host}, run `nvidia-smi -q | grep -iE 'compute mode|mig mode'`, and set the compute mode to Default.",
    ),
    "gpu.container": Cause(
        "the job's container lacks the GPUs or the driver's libraries",
        of_container,
        "1. Start the container on {host} with `--gpus all`. 2. Run `nvidia-smi` in it.",
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
}
