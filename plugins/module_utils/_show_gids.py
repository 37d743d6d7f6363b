# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The GID tables of all ports, as `show_gids` of mlnx-tools prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._ibstat import squeezed_lines
from ansible_collections.rdma.cluster.plugins.module_utils._infiniband import parse_gid

_BEGIN = re.compile(r"\S{1,64} [0-9]{1,3} [0-9]{1,5}(?: |$)")
_ROW = re.compile(
    r"(\S{1,64}) ([0-9]{1,3}) ([0-9]{1,5}) ([0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){7})(?: [0-9]{1,3}(?:\.[0-9]{1,3}){3})?"
    r"(?: (v[12]))?(?: ([^\s/:=$#~<>\[\]]{1,15}))?"
)
_COUNT = re.compile(r"n_gids_found=([0-9]{1,9})")


@dataclass(frozen=True)
class ShownGid:
    """A row, the gid in the form of sysfs: version "v1" or "v2" ("v1" on InfiniBand too), None where the kernel told no type.

    netdev is None where no interface belongs to the entry: InfiniBand, iWARP.
    """

    device: str
    port: int
    index: int
    gid: str
    ipv4: str | None
    version: str | None
    netdev: str | None


def parse_show_gids(text: str) -> list[ShownGid]:
    """`show_gids`, also of several hosts behind one another, and with lines that a mail program has broken.

    Raises ParseError for a row that is cut off, for fewer or more rows than the last line counts, and for a text without rows
    that does not say n_gids_found=0 either.
    """
    rows: list[ShownGid] = []
    counted = None
    for line in _whole_lines(text):
        count = _COUNT.fullmatch(line)
        if count is not None:
            if int(count.group(1)) != len(rows) - (counted or 0):
                raise ParseError(f"{len(rows) - (counted or 0)} rows of show_gids, but the last line says {line!r}")
            counted = len(rows)
        elif _BEGIN.match(line):
            rows.append(_row(line))
    if not rows and counted is None:
        raise ParseError(f"not the output of show_gids: {text[:200]!r}")
    if len(rows) != counted and rows[-1].version is None and any(row.version is not None for row in rows):
        raise ParseError(f"the output of show_gids is cut off: it ends with {text[-200:]!r}")
    return rows


def _whole_lines(text: str) -> Iterator[str]:
    whole = ""
    for line in squeezed_lines(text):
        if _BEGIN.match(whole) and not _BEGIN.match(line) and _ROW.fullmatch(f"{whole} {line}"):
            whole = f"{whole} {line}"
        else:
            yield whole
            whole = line
    yield whole


def _row(line: str) -> ShownGid:
    match = _ROW.fullmatch(line)
    if match is None:
        raise ParseError(f"not a row of show_gids: {line[:200]!r}")
    device, port, index, text, version, netdev = match.groups()
    gid = parse_gid(text)
    return ShownGid(device, int(port), int(index), gid.gid, gid.ipv4, version, netdev)
