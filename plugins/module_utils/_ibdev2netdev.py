# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which network interface belongs to which RDMA port, as `ibdev2netdev` of MLNX_OFED and DOCA-OFED prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._ibstat import squeezed_lines

# With -v, a row begins with the PCI address (if one was found), and the device's id, part number and description stand between.
_PCI = r"(?:[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7] )?"
_BEGIN = re.compile(_PCI + r"\S{1,64} (?:port(?: [0-9]{1,3})?(?: =.*)?$|\((?:MT[0-9]{1,10}|NA)(?: -|$))")
_ROW = re.compile(_PCI + r"(\S{1,64}) (?:\(.* )?port ([0-9]{1,3})(?: \([A-Z_]{1,20} ?\))? ==> (\S{1,64}) \((Up|Down|NA)\)(?: .*)?")
_UP = {"Up": True, "Down": False, "NA": None}
# A description may have a hundred characters and more, so that a mail program makes several lines of a row.
_MOST_LINES = 6


@dataclass(frozen=True)
class NetdevOfPort:
    """A row: the interface of a port; up is whether it has a carrier, None where nobody could tell ("NA")."""

    device: str
    port: int
    netdev: str
    up: bool | None


def parse_ibdev2netdev(text: str) -> list[NetdevOfPort]:
    """`ibdev2netdev`, plain or with -v, also of several hosts behind one another.

    Raises ParseError for a row that is cut off, and if there is no row. (On a host without devices the tool prints nothing.)
    """
    rows = []
    for line in _whole_rows(text):
        match = _ROW.fullmatch(line)
        if match is None:
            raise ParseError(f"not a whole row of ibdev2netdev: {line[-200:]!r}")
        device, port, netdev, state = match.groups()
        rows.append(NetdevOfPort(device, int(port), netdev, _UP[state]))
    if not rows:
        raise ParseError(f"not the output of ibdev2netdev: {text[:200]!r}")
    return rows


def _whole_rows(text: str) -> Iterator[str]:
    """Every row, in one line, whole if the text has all of it."""
    row: list[str] = []
    for line in squeezed_lines(text):
        begins = _BEGIN.match(line) is not None
        if row and (begins or len(row) == _MOST_LINES or _ROW.fullmatch(" ".join(row))):
            yield " ".join(row)
            row = []
        if begins or row:
            row.append(line)
    if row:
        yield " ".join(row)
