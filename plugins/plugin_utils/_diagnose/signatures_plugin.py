# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The texts of network plugins of NCCL by which errors are recognized: OFI (AWS), libfabric, UCX and SHARP (HPC-X), and their loading."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_OFI, _FABRIC, _SHARP = "aws-ofi-nccl src", "libfabric prov/efa", "nccl-rdma-sharp-plugins src"
_OPEN = "nccl src/plugin/plugin_open.cc"

PLUGIN_SIGNATURES: tuple[Signature, ...] = (
    # OFI
    Signature(
        "ofi.none",
        "NET/OFI",
        _OFI,
        r"No eligible providers were found|Unable to find a protocol that worked|Unable to find plugin protocol|Insufficient Libfabric "
        r"devices found|Could not find any optimal provider|fi_getinfo\S* (?:returned|failed)|Call to fi_getinfo.{0,40}failed|Unable to "
        r"find provider|requires at least libfabric version",
        info=True,
    ),
    Signature("gdr.disabled", "NET/OFI", _OFI, r"GDR (?:disabled|not supported)|[dD]isabling GDR", info=True),
    Signature(
        "ofi.memory",
        "NET/OFI",
        _OFI,
        r"(?i)NCCL WARN .{0,20}NET/OFI .{0,120}(?:register|registration|\bMR\b|fi_mr_).{0,200}(?P<error>RC: -?\d+.{0,80}|fail.{0,80}|$)",
    ),
    Signature(
        "ofi.transfer",
        "NET/OFI",
        _OFI,
        r"completed with error(?:\.|:|$)(?: RC: (?P<code>-?\d+)\.)?(?:.{0,60}?Error: \d* ?\(?(?P<error>[^.()]{1,100}))?",
    ),
    Signature(
        "ofi.open",
        "NET/OFI",
        _OFI,
        r"(?:Couldn't|Could not|Unable to|Failed to) (?:open|create|allocate|bind|enable|get|set|initialize|capture) .{0,200}|Creating "
        r"new endpoint for domain .{0,40}failed|Initializing (?:plugin|rail \d+|control rail \d+|a new domain.{0,60}) failed|Failed to "
        r"initialize \w+ protocol|CUDA initialization failed",
    ),
    Signature(
        "ofi.failed", "NET/OFI", _OFI, r"(?i)NCCL WARN .{0,20}NET/OFI .{0,200}(?:fail|error|unable|could not|couldn't|invalid|abort)"
    ),
    Signature(
        "ofi.transfer",
        "libfabric:",
        _FABRIC,
        r"efa:.{0,80}(?:err: \d+, message: |[Uu]nresponsive receiver|[Uu]nreachable remote)(?P<error>.{0,80})",
    ),
    Signature("ofi.transfer", "Unresponsive receiver", _FABRIC),
    Signature(
        "ofi.open",
        "libfabric:",
        _FABRIC,
        r"libfabric:.{0,120}(?:Unable to|Failed to|failed to|could not) (?:open|create|allocate|initialize|construct)",
    ),
    Signature(
        "ofi.none",
        "fi_getinfo",
        "libfabric",
        r"(?i)(?:failed|error|returned -\d+|unable).{0,60}fi_getinfo|fi_getinfo.{0,60}(?:failed|returned -\d+|-61)",
    ),
    # UCX and SHARP
    Signature("ucx.failed", "Failed: UCX error", f"{_SHARP}/ucx_plugin.c"),
    Signature("ucx.failed", "NET/UCX", f"{_SHARP}/ucx_plugin.c", r"NCCL WARN .{0,40}NET/UCX"),
    Signature("sharp.unavailable", "SHARP coll init error", f"{_SHARP}/sharp_plugin.c"),
    Signature("sharp.unavailable", "sharp_coll_caps_query failed", f"{_SHARP}/sharp_plugin.c"),
    Signature(
        "sharp.unavailable",
        "SHArP daemon",
        "libsharp",
        r"(?i)(?:fail|error|unable|cannot).{0,80}SHArP daemon|SHArP daemon.{0,80}(?i:fail|error)",
    ),
    Signature("sharp.unavailable", "sharp_coll_init", "libsharp", r"(?i)(?:fail|error|unable|returned -\d+)"),
    Signature(
        "sharp.failed",
        "SHARP ",
        f"{_SHARP}/sharp_plugin.c",
        r"NCCL WARN .{0,20}SHARP (?:\w+ )?(?:allreduce|Allgather|reduce_scat?ter|reduce_scatter|group create|regmr|deregmr|: unable)",
    ),
    # loading
    Signature("net.plugin_version", "incompatible", _OPEN, r"(?i)plugin.{0,60}incompatible|incompatible.{0,60}plugin", info=True),
    Signature(
        "net.plugin_old",
        "ncclNetPlugin symbol",
        "NCCL src/plugin/net.cc",
        r"Failed to find ncclNetPlugin symbol \((?:>= v\d+|v\d+ or v\d+)\)",
        info=True,
    ),
    Signature(
        "net.plugin",
        "NET/Plugin",
        "NCCL src/net.cc",
        r"NET/Plugin ?: (?:Plugin load (?:\([^)]{0,200}\) )?returned -?\d+ ?: |dlerror=)(?P<library>\S{1,200}?): "
        r"(?P<error>(?!cannot open shared object file).{1,200})",
        info=True,
    ),
    Signature(
        "net.plugin",
        "NET/Plugin",
        "NCCL src/net.cc",
        r"NET/Plugin ?: (?:Plugin load (?:\([^)]{0,200}\) )?returned -?\d+ ?: |dlerror=)(?P<library>(?!libnccl-net)\S{1,200}?): "
        r"(?P<error>cannot open shared object file.{0,100})",
        info=True,
    ),
    Signature(
        "net.plugin",
        "undefined symbol",
        "the dynamic linker",
        r"(?P<library>\S*libnccl-net\S*): (?P<error>undefined symbol: .{1,100})",
        info=True,
    ),
)
