# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The common words of the tools of infiniband-diags (rdma-core): GUIDs, LIDs, states, widths and speeds, in the kernel's words.

Source: libibmad's dump.c, and the functions for widths and speeds in ibnetdiscover.c and ibdiag_common.c.
"""

from __future__ import annotations

import re

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted

#: libibmad's word for a port's state → the kernel's word; "NoChange" is in an answer that never came.
STATES = {"Down": "DOWN", "Initialize": "INIT", "Init": "INIT", "Armed": "ARMED", "Active": "ACTIVE", "NoChange": None}
PHYSICAL = {
    "NoChange": None, "Sleep": "Sleep", "Polling": "Polling", "Disabled": "Disabled", "PhyTest": "Phy Test", "LinkUp": "LinkUp",
    "PortConfigurationTraining": "PortConfigurationTraining", "LinkErrorRecovery": "LinkErrorRecovery",
}  # fmt: skip
#: Speed → 10^9 bit/s of a lane by the kernel's calculation: 4X EDR is 100 Gb/s here as in sysfs, and not the 103.125 on the wire.
LANE_GBPS = {
    "SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR10": 10.0, "FDR": 14.0, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0, "XDR": 200.0,
}  # fmt: skip
#: The signaling rate of a lane, as the tools print it, by the speed's name. FDR10 differs from QDR only in its name.
_SIGNALLED = {
    "2.5": "SDR", "5.0": "DDR", "10.0": "QDR", "10.3125": "FDR10", "14.0625": "FDR", "25.78125": "EDR",
    "53.125": "HDR", "50.0": "HDR", "106.25": "NDR", "100.0": "NDR", "212.5": "XDR", "200.0": "XDR",
}  # fmt: skip
_SPEED = re.compile(r"([0-9]{1,3}\.[0-9]{1,5}) Gbps(?: \((FDR10)\))?")
_LANES = {f"{width}{mark}": width for width in (1, 2, 4, 8, 12) for mark in "xX"}
_GUID = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
_UNASSIGNED = (0, 0xFFFF)
#: The maximum number of sentences for a text's problems; a completely broken text is not reported line by line.
_MOST_SENTENCES = 20


class Problems:
    """The lines of a text that were not understood, as sentences; later ones are only counted."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._sentences: list[str] = []
        self._more = 0

    def __len__(self) -> int:
        return len(self._sentences) + self._more

    def line(self, number: int, line: str, why: str = "is not understood") -> None:
        """Add a problem with a line of the text, counted from 1."""
        self.add(f"line {number} of {self._tool} {why}: {quoted(line.strip())}")

    def add(self, sentence: str) -> None:
        if len(self._sentences) < _MOST_SENTENCES:
            self._sentences.append(sentence)
        else:
            self._more += 1

    def sentences(self) -> list[str]:
        """Return the sentences, the last one with the number of omitted ones."""
        more = [f"{self._more} more problems in what {self._tool} printed"] if self._more else []
        return [*self._sentences, *more]


def plain_guid(text: str) -> str:
    """Return a GUID as in the graph: "2C5EAB0300B87B40", "0x2c5eab0300b87b40" and "0x8f10400410015" → "0x" and 16 lower hex digits."""
    match = _GUID.fullmatch(text)
    if match is None:
        raise ParseError(f"not a GUID: {quoted(text)}, expected the form '0x2c5eab0300b87b40'")
    return padded_guid(match.group(1))


def padded_guid(digits: str) -> str:
    """Return the same for hexadecimal digits that a parser has already checked; a large fabric has many."""
    return f"0x{digits.lower():0>16}"


def assigned(lid: str | None) -> int | None:
    """Return a LID from decimal digits; None for a missing one, and for 0 and 65535, which mean that a port has none yet."""
    value = int(lid) if lid is not None else None
    return None if value in _UNASSIGNED else value


def lanes(text: str) -> int | None:
    """Return the lanes of "4X" and "4x"; None for "??", "undefined (0)" and the like, which no answering port has."""
    return _LANES.get(text.strip())


def speed_name(text: str) -> str | None:
    """Return the name of a speed: "NDR" → "NDR", "53.125 Gbps" → "HDR", "10.0 Gbps (FDR10)" → "FDR10"; None for "???" and other words."""
    if text in LANE_GBPS:
        return text
    match = _SPEED.fullmatch(text.strip())
    if match is None:
        return None
    return match.group(2) or _SIGNALLED.get(match.group(1))


def rate_gbps(width: int | None, speed: str | None) -> float | None:
    """Return 10^9 bit/s over all lanes, None unless both are known."""
    lane_gbps = LANE_GBPS.get(speed or "")
    return width * lane_gbps if width is not None and lane_gbps is not None else None
