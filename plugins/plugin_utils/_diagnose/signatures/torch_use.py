# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of PyTorch and of servers on it from the first collective on, as PyTorch 2.1 and 2.14 and Gloo have them."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.torch import PEER, WORK

_NCCL, _GLOO, _REDUCER = "PyTorch ProcessGroupNCCL.cpp", "Gloo gloo/transport/tcp", "PyTorch reducer.cpp"
_SYMMETRIC, _VLLM, _SGLANG, _RAY = "PyTorch CUDASymmetricMemory.cu", "vLLM vllm/v1", "SGLang", "Ray"

#: They come before the texts of CUDA and NCCL, which these quote.
USE_FIRST: tuple[Signature, ...] = (
    Signature("torch.mismatch", "op.preamble.length <= op.nbytes", f"{_GLOO}/pair.cc"),
    Signature("torch.mismatch", "Is there a distributed collective mismatch", f"{_GLOO}/pair.cc"),
    Signature("gloo.connect", "Connect timeout [", f"{_GLOO}/pair.h", r"gloo/transport/.{0,60}Connect timeout " + PEER),
    Signature(
        "gloo.connect",
        "] connect [",
        f"{_GLOO}/pair.cc",
        rf"gloo/transport/.{{0,60}}connect {PEER}:\d+: (?P<error>[A-Z][A-Za-z ]{{3,60}})",
    ),
    Signature("socket.closed", "closed [", f"{_GLOO}/pair.cc", r"gloo/transport/.{0,60}Socket (?:unexpectedly )?closed \["),
    Signature("gloo.interface", "Unable to find address for", f"{_GLOO}/device.cc", r"find address for(?:: ?| )(?P<interface>\S{1,64})"),
    Signature("gloo.interface", "ailed to look up the IP address for the", "PyTorch ProcessGroupGloo.cpp"),
)

TORCH_USE: tuple[Signature, ...] = (
    # timeouts, and what follows from the failure of another rank
    Signature(
        "torch.timeout",
        "Caught collective operation timeout: ",
        _NCCL,
        WORK,
    ),
    Signature("torch.timeout", "timed out in blocking wait", _NCCL),
    Signature("torch.remote", "NCCLABORTEDCOMM", _NCCL),
    Signature("torch.remote", "remote error detected from rank", _NCCL),
    Signature("torch.aborted", "found async exception when checking for NCCL errors", _NCCL),
    Signature("torch.aborted", "Stack trace of the failed collective", _NCCL),
    Signature("torch.init", "Health check failure: Failed to initialize NCCL", _NCCL),
    Signature("torch.init", "NCCL timeout when waiting for nonblocking call", "PyTorch NCCLUtils.cpp"),
    # the program
    Signature("torch.call", "Default process group has not been initialized", "PyTorch torch/distributed/distributed_c10d.py"),
    Signature("torch.call", "trying to initialize the default process group twice", "PyTorch torch/distributed/distributed_c10d.py"),
    Signature("torch.call", "ensors must be CUDA and dense", _NCCL),
    Signature("torch.call", "Tensors must be contiguous", _NCCL, r"Error: Tensors must be contiguous"),
    Signature("torch.call", "No backend type associated with device type", "PyTorch ProcessGroup.hpp"),
    Signature("torch.call", "perform collective on tensor not on device passed", _NCCL),
    Signature("torch.call", "must match number of collective participants", _NCCL),
    Signature("torch.call", "nput tensor must be the same type as the output", _NCCL, r"(?:Error: |\] )[Ii]nput tensor must be the same"),
    Signature("torch.device", "used by this process are currently unknown", _NCCL),
    Signature("torch.device", "uessing device ID based on global rank", _NCCL),
    Signature("torch.mismatch", "DDP expects same model across all ranks", "PyTorch reducer.cpp, logger.cpp"),
    Signature("torch.mismatch", "appears not to match s", _REDUCER, r"appears not to match (?:sizes|strides) of the same param"),
    Signature("torch.model", "have finished reduction in the prior iteration", _REDUCER),
    Signature("torch.model", "Expected to mark a variable ready only once", _REDUCER),
    Signature("cuda.fork", "Cannot re-initialize CUDA in forked subprocess", "PyTorch torch/cuda/__init__.py"),
    # symmetric memory
    Signature("gpu.symmetric", "mismatched NVLink clique_ids", _SYMMETRIC),
    Signature("gpu.symmetric", "must be in the same NVLink domain", _SYMMETRIC),
    Signature("gpu.symmetric", "multicast support", _SYMMETRIC, r"(?:: |must have |has |requires )multicast support(?: is required|: |\.)"),
    Signature("gpu.symmetric", " does not have peer access to GPU ", _SYMMETRIC),
    Signature("gpu.symmetric", "SymmetricMemory: fail to ", _SYMMETRIC),
    # servers
    Signature("engine.timeout", "RPC call to ", f"{_VLLM}/executor/multiproc_executor.py", r"RPC call to \w{1,60} timed out"),
    Signature("engine.timeout", "shared memory broadcast block found in", "vLLM shm_broadcast.py"),
    Signature("engine.timeout", "Watchdog timeout (self.watchdog_timeout=", f"{_SGLANG} scheduler.py"),
    Signature("engine.ended", "Engine process failed to start", _VLLM),
    Signature("engine.ended", " died unexpectedly, shutting down executor", _VLLM, r"Worker proc \S{1,60} died"),
    Signature("engine.ended", "Received sigquit from a child process", _SGLANG),
    Signature("engine.ended", " scheduler is dead. Please check", _SGLANG),
    Signature(
        "ray.node", "has been marked dead because the detector", _RAY, r"address: (?P<dead>[0-9a-fA-F.:]{3,45}).{0,200}has been marked dead"
    ),
    Signature("ray.node", "NodeDiedError", _RAY),
    Signature("store.connect", "ailed to connect to GCS", _RAY, r"[Ff]ailed to connect to GCS(?: within| at address)"),
    Signature("ray.ended", "OwnerDiedError", _RAY),
    Signature("torch.remote", "distributed service detected fatal errors", "JAX"),
    # tools and drivers of GPUs
    Signature("gpu.off_bus", "GPU is lost", "NVML"),
    Signature("gpu.off_bus", "Unable to determine the device handle for", "nvidia-smi"),
    Signature("cuda.no_device", "NVIDIA-SMI has failed because it couldn't", "nvidia-smi"),
    Signature("cuda.no_device", "No devices were found", "nvidia-smi", r"(?:^|[\s:>\]])No devices were found\s*$"),
    Signature("cuda.access", "Memory access fault by GPU node", "ROCm"),
    Signature("cuda.access", "HSA_STATUS_ERROR_MEMORY_", "ROCm", r"HSA_STATUS_ERROR_MEMORY_(?:APERTURE_VIOLATION|FAULT)"),
    Signature("cuda.failed", "HSA_STATUS_ERROR_", "ROCm", r"(?P<error>HSA_STATUS_ERROR_\w{1,60})"),
    Signature("gpu.start", "Fatal error during GPU init", "Linux drivers/gpu/drm/amd"),
    Signature(
        "gpu.fault",
        "amdgpu",
        "Linux drivers/gpu/drm/amd",
        r"amdgpu.{0,60}(?:page fault|GPU reset begin|ring \S{1,40} timeout|[Ff]ailed to (?:evict|quiesce)|uncorrectable hardware error"
        r"|[Pp]oison)",
    ),
)
