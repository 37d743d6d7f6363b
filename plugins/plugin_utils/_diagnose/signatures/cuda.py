# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of CUDA and HIP, and the exceptions of Python."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_CUDA = "CUDA"

#: CUDA's texts appear in the lines of every program that uses it, so they come before those of NCCL.
CUDA_SIGNATURES: tuple[Signature, ...] = (
    Signature("cuda.old_driver", "CUDA driver version is insufficient", _CUDA),
    Signature("cuda.mismatch", "river/library version mismatch", _CUDA),
    Signature("cuda.not_ready", "system not yet initialized", _CUDA),
    Signature("cuda.no_device", "no CUDA-capable device is detected", _CUDA),
    Signature("cuda.ordinal", "invalid device ordinal", _CUDA),
    Signature("cuda.architecture", "no kernel image is available", _CUDA),
    Signature("cuda.ecc", "uncorrectable ECC error", _CUDA),
    Signature("cuda.nvlink", "uncorrectable NVLink error", _CUDA),
    Signature("cuda.nvlink", "cudaErrorNvlinkUncorrectable", _CUDA),
    Signature("cuda.not_ready", "cudaErrorSystemNotReady", _CUDA),
    Signature("cuda.not_ready", "uda failure 802", _CUDA),
    Signature("cuda.busy", "busy or unavailable", _CUDA, r"CUDA-capable device\(s\) is/are busy"),
    Signature("cuda.busy", "all CUDA-capable devices are busy", _CUDA),
    Signature("cuda.old_driver", "CUDA Driver version found is", "NCCL src/misc/cudawrap.cc"),
    Signature("cuda.old_driver", "provided PTX was compiled with an unsupported toolchain", _CUDA),
    Signature("cuda.no_device", "no ROCm-capable device is detected", "ROCm"),
    Signature("cuda.no_device", "Driver Not Loaded", "NVML"),
    Signature("cuda.no_device", "The NVIDIA Driver was not detected", "NVIDIA's containers"),
    Signature("cuda.no_device", "Found no NVIDIA driver on your system", "PyTorch"),
    Signature("cuda.access", "device-side assert triggered", _CUDA),
    Signature("cuda.memory", "HIP out of memory", "PyTorch"),
    Signature("cuda.memory", "CUDA out of memory", "PyTorch"),
    Signature("cuda.memory", "out of memory", _CUDA, r"(?:Cuda failure|CUDA (?:error|failure)).{0,200}out of memory"),
    Signature("cuda.access", "illegal memory access", _CUDA),
    Signature("cuda.launch", "unspecified launch failure", _CUDA),
)

#: Texts of CUDA in lines of any program: those of NCCL come before them.
CUDA_CALLS: tuple[Signature, ...] = (
    # A kernel between GPUs of one host fails if they cannot access each other's memory.
    Signature("p2p.failed", "Failed: Cuda error", "vLLM csrc/custom_all_reduce.cuh", r"custom_all_reduce\.cuh"),
    Signature(
        "gpu.imex", "cuMemCreate", _CUDA, r"(?i)cuMem(?:Create|ImportFromShareableHandle|ExportToShareableHandle)\b.{0,200}not permitted"
    ),
    Signature(
        "cuda.unsupported",
        "operation not supported",
        _CUDA,
        r"(?:Cuda failure|CUDA (?:error|failure)|Cuda error).{0,60}operation not supported",
    ),
    Signature("cuda.failed", "Failed: Cuda error", "vLLM csrc", r"Failed: Cuda error (?P<error>.{1,100})"),
    Signature("cuda.failed", "Cuda failure", "NCCL src/include/checks.h", r"Cuda failure (?P<error>.{1,100})"),
    Signature("cuda.failed", "HIP failure", "RCCL src/include/checks.h", r"HIP failure:? (?P<error>.{1,100})"),
    Signature("cuda.failed", "CUDA error: ", "PyTorch", r"CUDA error: (?P<error>.{1,100})"),
    Signature("cuda.failed", "HIP error: ", "PyTorch", r"HIP error: (?P<error>.{1,100})"),
)

#: Exceptions by which a program says that it is wrong itself. Others, such as RuntimeError, also come from libraries.
_EXCEPTIONS = (
    "AssertionError", "AttributeError", "FileNotFoundError", "FloatingPointError", "ImportError", "IndexError", "IsADirectoryError",
    "JSONDecodeError", "KeyError", "ModuleNotFoundError", "NameError", "NotADirectoryError", "NotImplementedError", "RecursionError",
    "TypeError", "UnboundLocalError", "UnicodeDecodeError", "ValueError", "ZeroDivisionError",
)  # fmt: skip
#: The last ones, because a library's own text in an exception says more.
EXCEPTION_SIGNATURES: tuple[Signature, ...] = tuple(
    Signature("program.exception", name, "Python", rf"(?:^|[\s:>\]])(?:\w{{1,60}}\.){{0,8}}{name}(?:: |\s*$)") for name in _EXCEPTIONS
)
