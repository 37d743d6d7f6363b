# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse NCCL's messages other than channels (src/init.cc, src/graph, src/plugin, src/transport), NCCL 2.4 to 2.30."""

from __future__ import annotations

import re
from collections.abc import Callable

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.channels import read_network, read_virtual
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.contents import LogContents
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import NcclRank
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.process import Process

_INIT = re.compile(
    r"comm (\S{1,40}) rank ([0-9]{1,9}) nranks ([0-9]{1,9}) cudaDev (-?[0-9]{1,5})(?: nvmlDev (-?[0-9]{1,5}))?(?: busId (\S{1,40}))?"
    r".*? ?- Init (START|COMPLETE)"
)
_COMM_ID = re.compile(r" commId (0x[0-9a-fA-F]{1,16})")
_NODES = re.compile(r"comm \S+ rank [0-9]+ nRanks [0-9]+ nNodes ([0-9]{1,7}) ")
_SET = re.compile(r"(?:\S+/Plugin: )?(NCCL_[A-Z0-9_]{1,80}) set (?:by environment )?to (.*)")
_GPU_DIRECT = re.compile(
    r"(?:NET/[^:]{1,60} ?: )?GPU Direct RDMA (Enabled|Disabled) for "
    r"(?:GPU (\S{1,40}) / )?HCA ([0-9a-fA-F]{1,16})(?: '([^']{1,60})')?(?: \((.{1,100}?)\))?(?:, read [0-9].*)?\s*$"
)
#: The plugin of AWS uses its own sentences.
_NO_GPU_DIRECT = re.compile(r"NET/(OFI) (.*(?:disabling GDR|GDR not supported|GDR disabled).{0,100})")
_PLUGIN = re.compile(
    r"(?:[A-Z]{2,10}/Plugin: )?(?:Successfully loaded external (?:[a-z]+ )?plugin|Loaded (?:net|collnet|gin|rma)? ?plugin"
    r"|Plugin name set by env to) (.{1,80})|NET/OFI (?:Initializing (aws-ofi-nccl \S{1,40})|Selected (provider is [^\s,]{1,40}))"
)
_NVLS_CHANNELS = re.compile(r"[0-9]+ coll channels, (?:[0-9]+ collnet channels, )?([0-9]{1,5}) nvls channels")
_BOOTSTRAP = re.compile(r"Bootstrap ?: Using (?:\[[0-9]+\])?([^\s:]{1,60}):")
_MOST_RANKS = 100_000


def _init(contents: LogContents, process: Process, message: str) -> None:
    found = _INIT.search(message)
    if found is None:
        nodes = _NODES.match(message)
        if nodes is not None:
            contents.nnodes = max(contents.nnodes or 0, int(nodes[1]))
        return
    pointer, rank, nranks, cuda, nvml, bus_id, state = found.groups()
    comm_id = _COMM_ID.search(message)
    # A pointer is used again for a later communicator.
    key = (process.host, process.pid, pointer, None if comm_id is None else comm_id[1])
    if not contents.room(contents.ranks, key, _MOST_RANKS):
        return
    before = contents.ranks.get(key)
    contents.ranks[key] = NcclRank(
        process.host,
        process.pid,
        int(rank),
        int(nranks),
        int(cuda),
        None if nvml is None else int(nvml),
        _bus_id(bus_id),
        key[3],
        state == "COMPLETE" or (before is not None and before.complete),
    )


def _bus_id(digits: str | None) -> str | None:
    """Return the address of a PCI function. NCCL's number, c1000, is the address without separators: 0000:c1:00.0."""
    if digits is None or not re.fullmatch(r"[0-9a-f]{1,9}", digits):
        return None
    whole = digits.rjust(9, "0")
    return f"{whole[:4]}:{whole[4:6]}:{whole[6:8]}.{whole[8]}"


def _network(contents: LogContents, process: Process, message: str) -> None:
    listed, virtual = read_network(message), read_virtual(message)
    if listed is not None:
        process.network(*listed)
    elif virtual is not None:
        process.adapters.setdefault(virtual[0], {})[virtual[1].index] = virtual[1]
    elif "GPU Direct RDMA " in message or "GDR" in message:
        _gpu_direct(contents, process, message)
    else:
        _by_form(contents, process, message)


def _gpu_direct(contents: LogContents, process: Process, message: str) -> None:
    found, refused = _GPU_DIRECT.match(message), _NO_GPU_DIRECT.match(message)
    if found is not None:
        state, gpu, number, name, reason = found.groups()
        key = (process.host, state == "Enabled", name or number, gpu, reason)
    elif refused is not None:
        key = (process.host, False, refused[1], None, refused[2].strip())
    else:
        return
    if contents.room(contents.gpu_direct, key, _MOST_RANKS):
        contents.gpu_direct[key] = contents.gpu_direct.get(key, 0) + 1


def _variable(contents: LogContents, process: Process, message: str) -> None:
    found = _SET.match(message)
    if found is None:
        return
    value = found[2].strip()[:200]
    key = (found[1], value[:-1] if re.fullmatch(r"-?[0-9]+\.", value) else value)
    if contents.room(contents.environment, key):
        contents.environment.setdefault(key, {})[process.host or ""] = None


def _using(contents: LogContents, _process: Process, message: str) -> None:
    name = message.partition("Using network ")[2].strip()[:60]
    if name and contents.room(contents.in_use, name):
        contents.in_use[name] = contents.in_use.get(name, 0) + 1


def _dmabuf(contents: LogContents, process: Process, message: str) -> None:
    if message.startswith("DMA-BUF is available") and process.host is not None:
        contents.dmabuf[process.host] = None


def _nvls(contents: LogContents, _process: Process, message: str) -> None:
    if message.startswith(("Connected NVLS tree", "NVLS Created Multicast group", "NVLS comm ")):
        contents.nvls = True


def _bootstrap(contents: LogContents, _process: Process, message: str) -> None:
    found = _BOOTSTRAP.match(message)
    if found is not None and contents.room(contents.bootstrap, found[1]):
        contents.bootstrap[found[1]] = None


def _nccl(contents: LogContents, _process: Process, message: str) -> None:
    contents.version(message)


def _nothing(_contents: LogContents, _process: Process, _message: str) -> None:
    """Ignore frequent lines without relevant information."""


def _by_form(contents: LogContents, process: Process, message: str) -> None:
    channels = _NVLS_CHANNELS.match(message)
    if channels is not None:
        contents.nvls = contents.nvls or int(channels[1]) > 0
        return
    plugin = _PLUGIN.match(message)
    name = "" if plugin is None else (plugin[1] or plugin[2] or plugin[3]).strip()
    if name and contents.room(contents.plugins, name):
        contents.plugins[name] = None
    elif " set to " in message and "NCCL_" in message:
        _variable(contents, process, message)
    else:
        contents.fault(process, message)


#: By a message's first word.
_BY_WORD: dict[str, Callable[[LogContents, Process, str], None]] = {
    "comm": _init,
    "[Rank": _init,
    "ncclCommInitRank": _init,
    "ncclCommInitAll": _init,
    "ncclCommInitRankConfig": _init,
    "ncclCommInitRankScalable": _init,
    "ncclCommSplit": _init,
    "GPU": _gpu_direct,
    "Using": _using,
    "DMA-BUF": _dmabuf,
    "Connected": _nvls,
    "NVLS": _nvls,
    "Bootstrap:": _bootstrap,
    "Bootstrap": _bootstrap,
    "NCCL": _nccl,
    "Channel": _nothing,
    "Trees": _nothing,
    "Tree": _nothing,
    "Ring": _nothing,
    "New": _nothing,
}


def read_message(contents: LogContents, process: Process, message: str) -> None:
    """Read a message at INFO that names no channel."""
    read = _BY_WORD.get(message.partition(" ")[0])
    if read is None:
        read = _network if message.startswith("NET/") else _variable if message.startswith("NCCL_") else _by_form
    read(contents, process, message)
