# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of UCX by class, read from the format strings of UCX 1.12 to 1.19: the source file in a line shows what failed."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_UCX = "UCX src"
_ERROR = r"UCX +(?:ERROR|FATAL) .{0,200}"
_WHY = r"(?:.{0,100}: (?P<error>[A-Z][A-Za-z ]{3,60}))?"

#: The last ones of UCX: other texts say more.
UCX_CLASSES: tuple[Signature, ...] = (
    Signature("memory.gdrcopy", "UCX ", f"{_UCX}/uct/cuda/gdr_copy", r"gdr_copy_\w+\.[ch]:\d+ +UCX +ERROR .*(?i:fail|could not open)"),
    Signature(
        "p2p.failed",
        "UCX ",
        f"{_UCX}/uct/cuda/cuda_ipc",
        r"cuda_ipc_\w+\.[ch]:\d+ +UCX +ERROR .*(?:cuIpc\w+\(\) failed|open ipc mem handle|pidfd_\w+\(.* failed|multi-node NVLINK)"
        r"(?:: (?P<error>.{1,60}))?",
    ),
    Signature(
        "cuda.failed",
        "UCX ",
        f"{_UCX}/uct/cuda",
        r"cuda_\w+\.[ch]:\d+ +UCX +ERROR .*?cu\w+(?:\(.{0,80}\))? (?:failed|error): (?P<error>.{1,80})",
    ),
    Signature("ucx.transport", "UCX ", f"{_UCX}/uct/ib/mlx5/gdaki", r"gdaki\w*\.[ch]:\d+ +UCX +ERROR +(?P<of_gpus>.{1,80})"),
    Signature("verbs.abi", "Please make sure the installed libmlx5 version matches", f"{_UCX}/uct/ib/mlx5"),
    Signature("host.processes", "pthread_create() failed", _UCX, _ERROR + "pthread_create"),
    Signature(
        "ucx.closed", "UCX ", f"{_UCX}/uct/tcp", r"tcp_\w+\.[ch]:\d+ +UCX +(?:ERROR|WARN) .*failed: (?:Connection reset|Broken pipe)"
    ),
    Signature(
        "host.memory", "UCX ", _UCX, _ERROR + r"(?:[Ff]ailed|[Uu]nable) to allocate (?!memory pool|\w* ?shared|cuda|.{0,60}mem_type)"
    ),
    Signature("host.memory", "failed: Out of memory", "Open MPI ompi/mca/pml/ucx", r"pml_ucx\.c:\d+ .*ucp_ep_create"),
    Signature("host.memory", "out of dynamic memory in ", "flex"),
    Signature(
        "ib.query",
        "UCX ",
        f"{_UCX}/uct/ib",
        _ERROR
        + r"(?:(?:ibv_|mlx5dv_)(?:exp_)?(?:query|devx_(?:general_cmd|obj_query|qp_query)|init_obj)|failed to query (?:qp|UD QP))"
        + _WHY,
    ),
    Signature(
        "ib.query", "Invalid active_", f"{_UCX}/uct/ib/base/ib_iface.c", _ERROR + r"Invalid active_(?:speed|width) on (?P<device>\w{1,63})"
    ),
    Signature("ib.query", "UCX ", f"{_UCX}/uct/ib/mlx5", _ERROR + "DEVX requested but not supported"),
    Signature(
        "ib.create",
        "UCX ",
        f"{_UCX}/uct/ib",
        _ERROR + r"(?:ibv_|mlx5dv_)(?:exp_)?(?:create|alloc|devx_create|devx_alloc)\w*\(" + _WHY,
    ),
    Signature("ib.create", "UCX ", f"{_UCX}/uct/ib", _ERROR + r"failed to create (?:\w+ ){0,2}(?:QP|DC target|UMR|dci)" + _WHY),
)
