# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of NCCL's log that name a channel and its way (src/transport: net.cc, coll_net.cc, p2p.cc, shm.cc), NCCL 2.4 to 2.30.

"Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0(3)/GDRDMA/Shared"; before 2.5 "Ring 00 : 0 -> 8 …", before 2.18 with bus ids in brackets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: "[send]" and "[receive]", and the end of "[receive]", which as many characters as "[send]" leave of it.
_DIRECTIONS = {"[send]": "send", "ceive]": "receive"}
#: How many characters before " via " tell the direction.
DIRECTION = 6
_NETWORK = re.compile(r"(NET|COLLNET)/([^/\s][^/]{0,60})/([0-9]{1,5})(?:\(([0-9]{1,9})\))?((?:/GDRDMA|\(PCI\)|/Shared)*)")
_P2P = re.compile(r"P2P/(direct pointer|common device|indirect|[A-Za-z]{1,20})(?:/\S*)?")
_SHARED_MEMORY = re.compile(r"SHM(?:/\S*)?|direct shared memory")
_OTHER = re.compile(r"(?!NET|COLLNET|P2P|SHM)[A-Z][A-Za-z0-9_]{1,30}(?:/[\w .()-]{1,60}){0,4}")
OTHER = "other"


@dataclass(frozen=True)
class Way:
    """What a channel's line says of its way; the fields are those of Channel."""

    transport: str
    kind: str
    direction: str | None
    device: int | None
    proxied: bool
    gdr: bool | None


def read_way(tail: str) -> Way | None:
    """Read a channel's line from DIRECTION characters before " via " on; None for one that is torn, or no channel's.

    transport is OTHER, and kind what the line says, for a way that this code does not know.
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
