# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of adapters in NCCL's log: "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>" and the like of others."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.model import Adapter

_LIST = re.compile(r"NET/([^:]{1,60}?) ?: Using ?(.*)")
_ENTRY = re.compile(r"\[([0-9]{1,5})\](={[^{}]{0,2000}}|[^\s[]\S*)")
#: The ports of a card as NCCL 2.20 to 2.23 list them after merging them: "[0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}".
_MERGED = "={"
_PART = re.compile(r"\[[0-9]{1,5}\] ([^\s,{}]+)")
#: An HCA with its port, since 2.30 with its rail and its plane if NCCL knows them, and its link layer. The SHARP plugin adds a word.
_HCA = re.compile(r"([^\s:/]+):([0-9]{1,3})(?::([0-9]{0,5}))?(?::([0-9]{1,5}))?/(IB|RoCE)(/SHARP)?", re.IGNORECASE)
_INTERFACE = re.compile(r"([^\s:]+):(.+?)(?:<[0-9]+>)?")
_OOB = re.compile(r"; OOB ([^\s:]+):")
#: A device that NCCL 2.22 and newer create from several.
_VIRTUAL = re.compile(r"NET/(\S+) : Made virtual device \[([0-9]{1,5})\] name=(\S+)")


def read_network(message: str) -> tuple[str, tuple[Adapter, ...], str | None] | None:
    """Return the network's name, its adapters and the interface of its own connections; None for a message that lists none."""
    found = _LIST.match(message)
    if found is None or "threads and" in message:
        return None
    name, rest = found.groups()
    oob = _OOB.search(rest)
    entries = _ENTRY.findall(rest.partition("; OOB")[0])
    # These versions number merged devices by position, and the rest by the original number.
    merged = any(words.startswith(_MERGED) for _number, words in entries)
    adapters = tuple(_adapter(place if merged else int(number), words) for place, (number, words) in enumerate(entries))
    return name.strip(), adapters, None if oob is None else oob[1]


def read_virtual(message: str) -> tuple[str, Adapter] | None:
    """Return the network's name and the device that it has created from several; None for other messages."""
    found = _VIRTUAL.match(message)
    return None if found is None else (found[1], Adapter(int(found[2]), found[3]))


def _adapter(index: int, words: str) -> Adapter:
    if words.startswith(_MERGED):
        parts = [_adapter(index, part) for part in _PART.findall(words)]
        layers = {part.layer for part in parts}
        return Adapter(index, "+".join(part.name for part in parts), layer=layers.pop() if len(layers) == 1 else None)
    hca = _HCA.fullmatch(words)
    if hca is not None:
        name, port, rail, plane, layer, sharp = hca.groups()
        return Adapter(index, name, int(port), layer, _whole(rail), _whole(plane), sharp is not None)
    interface = _INTERFACE.fullmatch(words)
    if interface is not None:
        return Adapter(index, interface[1], address=interface[2])
    return Adapter(index, words)


def _whole(digits: str | None) -> int | None:
    return int(digits) if digits else None


#: "[send]" and "[receive]", and the last part of "[receive]" with as many characters as "[send]".
_DIRECTIONS = {"[send]": "send", "ceive]": "receive"}
#: The number of characters before " via " with the direction.
DIRECTION = 6
_NETWORK = re.compile(r"(NET|COLLNET)/([^/\s][^/]{0,60})/([0-9]{1,5})(?:\(([0-9]{1,9})\))?((?:/GDRDMA|\(PCI\)|/Shared)*)")
_P2P = re.compile(r"P2P/(direct pointer|common device|indirect|[A-Za-z]{1,20})(?:/\S*)?")
_SHARED_MEMORY = re.compile(r"SHM(?:/\S*)?|direct shared memory")
_OTHER = re.compile(r"(?!NET|COLLNET|P2P|SHM)[A-Z][A-Za-z0-9_]{1,30}(?:/[\w .()-]{1,60}){0,4}")
OTHER = "other"


@dataclass(frozen=True)
class Way:
    """The transport on a channel's line; the fields are those of Channel."""

    transport: str
    kind: str
    direction: str | None
    device: int | None
    proxied: bool
    gdr: bool | None


def read_way(tail: str) -> Way | None:
    """Read a channel's line from DIRECTION characters before " via " on; None for a torn line or another message.

    For an unknown transport, transport is OTHER, and kind is the line's text.
    """
    direction = _DIRECTIONS.get(tail[:DIRECTION])
    words = tail.partition(" via ")[2].strip()
    found = _NETWORK.fullmatch(words)
    if found is not None:
        transport, name, device, proxy, flags = found.groups()
        return Way(transport, name, direction, int(device), proxy is not None, "/GDRDMA" in flags)
    found = _P2P.fullmatch(words)
    if found is not None:
        return Way("P2P", found[1], direction, None, False, None)
    if _SHARED_MEMORY.fullmatch(words):
        return Way("SHM", "direct", direction, None, False, None)
    return Way(OTHER, words, direction, None, False, None) if _OTHER.fullmatch(words) else None
