# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of transfer libraries and libfabric by class: the source file in a line shows what failed, where no other text says more."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Signature

_MOONCAKE, _NIXL, _NVSHMEM, _OFI = "Mooncake mooncake-transfer-engine", "NIXL src", "NVSHMEM src", "libfabric prov"
#: A line of glog or absl at level ERROR or FATAL: "E1201 10:01:12.112233  4711 rdma_context.cpp:1300] …", here of a source file.
_ERROR_IN = r"\b[EF]\d{{4}} [0-9:]{{8}}\.\d+ +\d+ (?:{0})\.cpp:\d+\] "
_NVSHMEM_AT = r"(?:nvshmem|/src/(?:host|modules|device))\S{0,200}\.(?:cpp|cu|cuh|h):(?:\w{1,80}:)?\d+: "
_WARN_OF = r"libfabric:\d+:(?:\d*:\w*:)?{0}:{1}:\S{{1,80}}<(?:warn|critical)> .{{0,200}}"
_BAD = r"(?i:fail|unable|error|cannot|could not|timed out)"

TRANSFER_CLASSES: tuple[Signature, ...] = (
    # Mooncake
    Signature("test.no_device", "No matched device found: ", f"{_MOONCAKE}/src/transport/rdma_transport/rdma_context.cpp"),
    Signature("ib.port_down", " port not active", f"{_MOONCAKE}/src/transport/rdma_transport", r"Device (?P<device>\w{1,63}) port not"),
    Signature("mooncake.metadata", "Unable to find metadata storage plugin", f"{_MOONCAKE}/src/transfer_metadata_plugin.cpp"),
    Signature("mooncake.metadata", ".cpp:", _MOONCAKE, _ERROR_IN.format(r"transfer_metadata\w*|\w*metadata_plugin")),
    Signature("mooncake.handshake", ".cpp:", _MOONCAKE, _ERROR_IN.format("(?:rdma|efa|cxi)_endpoint")),
    Signature(
        "ib.create",
        "rdma_context.cpp:",
        _MOONCAKE,
        _ERROR_IN.format("rdma_context")
        + r"(?:Failed to|[Cc]annot) (?:create|allocate|set up)(?:.{0,100}: (?P<error>[A-Z][a-z /]{3,60}))?",
    ),
    Signature(
        "mooncake.failed",
        ".cpp:",
        _MOONCAKE,
        _ERROR_IN.format(
            r"(?:rdma|efa|cxi|tcp|nvlink|multi)_(?:transport|context)|worker_pool|transfer_engine\w*|client_service|master_client"
        ),
    ),
    # NIXL
    Signature(
        "library.version", "Plugin API version mismatch for ", f"{_NIXL}/core/nixl_plugin_manager.cpp", r"for (?P<library>\S{1,100}):"
    ),
    Signature("nixl.lost", "connection cannot be established", f"{_NIXL}/plugins/libfabric", r"Handshake from peer \S+ not received"),
    Signature("nixl.lost", " was disconnected after transfer request", f"{_NIXL}/core/nixl_agent.cpp"),
    Signature("nixl.failed", ".cpp:", _NIXL, _ERROR_IN.format(r"nixl_\w+|ucx_(?:backend|utils)|libfabric_\w+|\w+_backend")),
    # NVSHMEM
    Signature("nccl.ranks", "NVSHMEM requires the same number of PEs on all nodes", f"{_NVSHMEM}/host/init/init.cu"),
    Signature("nccl.library", "NCCL library major version", f"{_NVSHMEM}/host/coll", r"NCCL library major version \(\d+\) is different"),
    Signature("library.missing", "ootstrap", f"{_NVSHMEM}/host/bootstrap", r"Bootstrap (?:unable to load|library dlopen failed)"),
    Signature("library.version", "The selected bootstrap returned an incompatible", f"{_NVSHMEM}/host/bootstrap"),
    Signature("gpu.nvls", " multicast group", f"{_NVSHMEM}/host/mem", _NVSHMEM_AT + r".{0,40}multicast group.{0,20}failed"),
    Signature("nvshmem.failed", ": ", _NVSHMEM, _NVSHMEM_AT + r"(?!NULL value|non-zero)(?P<error>.{1,100})"),
    # libfabric at level warn
    Signature(
        "ofi.transfer",
        "Unresponsive remote",
        f"{_OFI}/efa",
        r"(?:libfabric|OFI|efa|EFA).{0,300}Unresponsive remote",
    ),
    Signature("ofi.memory", "libfabric:", _OFI, _WARN_OF.format(r"[\w;,]{1,40}", r"mr") + _BAD),
    Signature("ofi.peer", "libfabric:", _OFI, _WARN_OF.format(r"[\w;,]{1,40}", r"av") + _BAD),
    Signature("ofi.transfer", "libfabric:", _OFI, _WARN_OF.format(r"[\w;,]{1,40}", r"(?:cq|ep_data)") + _BAD),
    Signature("ofi.open", "libfabric:", _OFI, _WARN_OF.format(r"[\w;,]{1,40}", r"(?:ep_ctrl|fabric|domain)") + _BAD),
)
