# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All texts by which error lines are recognized, in the order in which they are tried, and the search among them."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import Finder, Signature
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.cuda import (
    CUDA_CALLS,
    CUDA_SIGNATURES,
    EXCEPTION_SIGNATURES,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.jobs import JOB_SIGNATURES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.kernel import KERNEL_SIGNATURES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.mpi import MPI_SIGNATURES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.nccl import NCCL_SIGNATURES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.nccl_classes import FIRST_SIGNATURES, NCCL_CLASSES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.nccl_use import USE_CLASSES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.perftest import CALL_SIGNATURES, PERFTEST_SIGNATURES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.plugin import PLUGIN_SIGNATURES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.programs import EARLY_PROGRAMS, PROGRAM_CLASSES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.tools import TOOLS, TOOLS_FIRST
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.torch import TORCH_SIGNATURES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.torch_rendezvous import RENDEZVOUS_CLASSES, TORCH_FIRST
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.torch_use import TORCH_USE, USE_FIRST
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.transfer import TRANSFER_CLASSES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.ucx import UCX_CLASSES

#: The first match of a line counts.
SIGNATURES: tuple[Signature, ...] = (
    *FIRST_SIGNATURES,
    *CUDA_SIGNATURES,
    *EARLY_PROGRAMS,
    *TOOLS_FIRST,
    *USE_FIRST,
    *TORCH_FIRST,
    *PLUGIN_SIGNATURES,
    *NCCL_SIGNATURES,
    *CUDA_CALLS,
    *TORCH_SIGNATURES,
    *RENDEZVOUS_CLASSES,
    *TORCH_USE,
    *JOB_SIGNATURES,
    *MPI_SIGNATURES,
    *KERNEL_SIGNATURES,
    *PERFTEST_SIGNATURES,
    *NCCL_CLASSES,
    *USE_CLASSES,
    *UCX_CLASSES,
    *CALL_SIGNATURES,
    *PROGRAM_CLASSES,
    *TRANSFER_CLASSES,
    *TOOLS,
    *EXCEPTION_SIGNATURES,
)
_OF_ANY = Finder(SIGNATURES)
_OF_INFO = Finder(signature for signature in SIGNATURES if signature.info)


def find_signature(line: str, *, info: bool) -> tuple[Signature, dict[str, str]] | None:
    """The first of SIGNATURES that a line matches, and its named groups. info: whether NCCL wrote the line at level INFO."""
    return (_OF_INFO if info else _OF_ANY).find(line)
