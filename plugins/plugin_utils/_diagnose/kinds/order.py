# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of the likely causes: what hosts recorded comes first, then what the trace of NCCL shows."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.kinds.likely import NOW, SOCKETS, SPACE

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


def likely(kind: str, trace: str) -> tuple[str, ...]:
    """The causes of a kind of line, the most likely first. trace: the source file of NCCL's first failed call, "" if it is not known."""
    causes = LIKELY.get(kind, ())
    if kind not in _TRACED or not trace:
        return causes
    first = next((names for files, names in _BY_TRACE if trace.endswith(files)), ())
    rest = [name for name in NOW[kind] if name not in (*first, "earlier")]
    return _with_past(("earlier", *first, *rest)) if first else causes


def _with_past(causes: tuple[str, ...]) -> tuple[str, ...]:
    """What the hosts have recorded comes first: it was true when the job failed."""
    return (*(_PAST_NETWORK if _NETWORK.intersection(causes) else ()), *_PAST, *causes)


#: Kind of line → its causes, the most likely first.
LIKELY: dict[str, tuple[str, ...]] = {kind: _with_past(causes) for kind, causes in NOW.items()}
