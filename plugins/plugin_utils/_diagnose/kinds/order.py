# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of the likely causes: what hosts recorded comes first, then what the words of the line or NCCL's trace show."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.kinds.likely import LOCKED, NOW, SOCKETS, SPACE

#: Causes that show only in the past, and the kinds of lines that a network's failure can cause: those with one of these causes.
_PAST, _PAST_NETWORK = ("past.host", "past.journal"), ("past.port", "past.gid", "past.counters")
_NETWORK = frozenset({"port.down", "port.flaps", "loss", "gid.index", "gid.none", "hang.rank", "socket.address", "earlier", "ended"})
#: Ends of source files of NCCL → the causes that come first if a failed call of NCCL is there, and no line names the reason.
_BY_TRACE: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("misc/socket.cc", "include/socket.h", "bootstrap.cc", "net_socket.cc"), ("socket.name", "socket.container", *SOCKETS[1:])),
    (("misc/shmutils.cc", "include/shm.h", "transport/shm.cc"), (*SPACE, "shm.apart", "cumem.host")),
    (("misc/ibvwrap.cc", "transport/net_ib.cc", "transport/net_ib/connect.cc"), ("memlock", "gid.index", "ib.container", "port.down")),
    (("transport/nvls.cc",), ("gpu.fabric_manager", "fm.restarted")),
    (("transport/p2p.cc",), ("gpu.visible", "gpu.no_p2p", "shm.apart")),
)
_TRACED = frozenset({"nccl.system", "nccl.internal", "nccl.cuda"})
_QUEUES = frozenset({"qp.connect", "qp.invalid", "qp.refused"})
_CALLS = frozenset({"ib.create", "ib.query", "ib.open"})
_CUDA = frozenset({"cuda.failed"})
_STORE = frozenset({"store.connect", "store.retrying"})
_DMABUF, _PEER = frozenset({"memory.dmabuf"}), frozenset({"p2p.failed"})
_STARTS, _METADATA, _TRANSFER = frozenset({"container.start"}), frozenset({"mooncake.metadata"}), frozenset({"ofi.transfer"})
_HANGS, _RETRIES = frozenset({"torch.timeout"}), frozenset({"ib.retry", "qp.timeout"})
_SHM = frozenset({"shm.failed"})
_OFI = frozenset({"ofi.open", "ofi.failed", "ofi.provider"})
#: Kinds of lines, words of the line, and the causes that come first if the line has them.
_BY_WORDS: tuple[tuple[frozenset[str], re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (kinds, re.compile(words), causes)
    for kinds, words, causes in (
        # A queue of DC or UD has no address of the other end, and no queue has one at INIT: the driver or the firmware refuses it.
        (_QUEUES, r"\bD(?:CI|CT)\b|\bUD QP\b|\b(?:to|2|,) ?INIT\b", ("driver.fit", "firmware", "verbs.version")),
        (_QUEUES, r"\b(?:to|2|,) ?RTS\b", ("firmware", "driver.fit")),
        (_CALLS, r"(?i)cannot allocate memory|errno:? 12\b", (*LOCKED, "limits.nic")),
        (_CALLS, r"(?i)remote i/o error|input/output error|timed out|errno:? (?:121|5|110)\b", ("firmware", "driver.fit")),
        (_CALLS, r"(?i)not supported|inappropriate ioctl|function not implemented|invalid argument", ("driver.fit", "verbs.version")),
        (_CALLS, r"(?i)no space left|temporarily unavailable|resource busy", ("limits.nic", "firmware")),
        (_CALLS, r"(?i)permission denied|not permitted|no such (?:device|file)", ("ib.container", "ib.node")),
        (
            _CUDA,
            r"(?i)initialization error|not initialized|unsupported display|unknown error|no kernel|system driver",
            ("gpu.driver", "gpu.container"),
        ),
        (_DMABUF, r"(?i)not supported", ("driver.fit", "nccl.old")),
        (_PEER, r"(?i)not supported between|can't enable access", ("gpu.no_p2p", "gpu.visible")),
        (_STARTS, r"nvidia-container|98-nvidia|OCI runtime", ("container.runtime", "gpu.driver")),
        (_METADATA, r"(?i)unable to find metadata storage plugin", ("mooncake.build",)),
        (_TRANSFER, r"(?i)\bcancell?ed\b", ("slurm.cancelled", "ended")),
        (_CUDA, r"(?i)invalid argument|named symbol|invalid device function|not supported", ("nccl.old", "gpu.driver")),
        (_CUDA, r"(?i)illegal instruction|misaligned|resource handle|launch|assert|EXECUTION_FAILED", ("program", "gpu.broken")),
        (_CALLS, r"Invalid active_(?:speed|width)", ("driver.fit", "verbs.version")),
        (_CUDA, r"HSA_STATUS_ERROR_OUT_OF_RESOURCES", ("gpu.batch", "gpu.driver")),
        (_OFI, r"(?i)\bcxi\b", ("ofi.cxi", "ofi.choice")),
        (_OFI, r"MPICH|Open MPI|libfabric:", ("ofi.choice", "ofi.cxi", "plugin.version")),
        # The first collective of a job: no rank can have gone another way before it.
        (_HANGS, r"SeqNum=[01], ", ("hang.rank", "iommu", "acs")),
        # NCCL prints the GIDs of RoCE only, where a link-local one is rarely meant.
        (_RETRIES, r"(?i)local ?gid fe80", ("gid.index", "gid.none")),
        (_SHM, r"shmget\(|mm_sysv", ("shm.segments",)),
        (_SHM, r"to 0 bytes|size 0\b", ("cumem.host", "shm.apart")),
        (_STORE, r"(?i)gai error|not known|host not found|name resolution|nodename", ("dns", "socket.address")),
        (_STORE, r"(?i)errno: 111|connection refused|reset by peer|got 0 bytes", ("store.alone", "socket.address")),
        (_STORE, r"(?i)errno: (?:110|113|101)|no route|unreachable|connection timed out", ("socket.firewall", "socket.address")),
        (_STORE, r"\bGCS\b", ("ended", "socket.firewall")),
    )
)
#: Lines whose words also count for those of another kind: the attempts before a failed connection.
BESIDE: Mapping[str, tuple[str, ...]] = {"store.connect": ("store.retrying",)}


def likely(kind: str, trace: str, words: str = "") -> tuple[str, ...]:
    """The causes of a kind of line, the most likely first.

    trace: the source file of NCCL's first failed call, "" if it is not known; words: the program, the text of the line, and those of
    BESIDE.
    """
    first = _first(kind, trace, words)
    if not first:
        return LIKELY.get(kind, ())
    before = ("earlier",) if "earlier" in NOW[kind] or kind in _TRACED else ()
    rest = [name for name in NOW[kind] if name not in (*first, "earlier")]
    return _with_past((*before, *first, *rest))


def _first(kind: str, trace: str, words: str) -> tuple[str, ...]:
    """The causes that the trace or the words put before the others."""
    if kind in _TRACED and trace:
        return next((causes for files, causes in _BY_TRACE if trace.endswith(files)), ())
    return next((causes for kinds, pattern, causes in _BY_WORDS if kind in kinds and pattern.search(words)), ())


def _with_past(causes: tuple[str, ...]) -> tuple[str, ...]:
    """What the hosts have recorded comes first: it was true when the job failed."""
    return (*(_PAST_NETWORK if _NETWORK.intersection(causes) else ()), *_PAST, *causes)


#: Kind of line → its causes, the most likely first.
LIKELY: dict[str, tuple[str, ...]] = {kind: _with_past(causes) for kind, causes in NOW.items()}
