# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `perfquery` of infiniband-diags (rdma-core) prints: a port's counters, extended ones with -x, the details of errors with -E and -D.

The data counters are in words of four octets, the classic error counters stop at their greatest value, and all count from the last reset.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric_words import assigned

_COUNTERS_TITLE = re.compile(
    r"# ([A-Za-z][A-Za-z ]{1,60}?) counters: (.{1,200}?) port ([0-9]{1,3})(?: \(CapMask: 0x([0-9a-fA-F]{1,8}).*\))?"
)
_LID = re.compile(r"Lid ([0-9]{1,5})\b")
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9_]{1,60}):\.*([0-9]{1,20}|0x[0-9a-fA-F]{1,16})")
_SELECTORS = ("PortSelect", "CounterSelect", "CounterSelect2")
#: IB_PM_EXT_WIDTH_SUPPORTED as perfquery prints the mask: the packets of multicast are told, and the last of the data counters.
_EXTENDED_WIDTH = 0x200
_LAST_DATA = ("PortMulticastRcvPkts", "PortRcvPkts")
#: The names before OFED 1.5, and those that they have had since (libibmad's fields.c).
_TODAY = {
    "SymbolErrors": "SymbolErrorCounter", "LinkRecovers": "LinkErrorRecoveryCounter", "LinkDowned": "LinkDownedCounter",
    "RcvErrors": "PortRcvErrors", "RcvRemotePhysErrors": "PortRcvRemotePhysicalErrors", "RcvSwRelayErrors": "PortRcvSwitchRelayErrors",
    "XmtDiscards": "PortXmitDiscards", "XmtConstraintErrors": "PortXmitConstraintErrors", "RcvConstraintErrors": "PortRcvConstraintErrors",
    "LinkIntegrityErrors": "LocalLinkIntegrityErrors", "ExcBufOverrunErrors": "ExcessiveBufferOverrunErrors", "XmtWait": "PortXmitWait",
    "XmtData": "PortXmitData", "RcvData": "PortRcvData", "XmtPkts": "PortXmitPkts", "RcvPkts": "PortRcvPkts",
}  # fmt: skip


@dataclass(frozen=True)
class PortCounters:
    """What one port counted, by today's names. kind: "Port" | "Port extended" | "PortRcvErrorDetails"…; port 255: all ports together."""

    kind: str
    lid: int | None
    port: int
    counters: dict[str, int]


def counter_name(name: str) -> str:
    """A counter's name as the tools print it today: "SymbolErrors" → "SymbolErrorCounter"."""
    return _TODAY.get(name, name)


def parse_perfquery(text: str) -> list[PortCounters]:
    """One or, with -a, -l and several ports, more. Raises ParseError, also for what is cut off."""
    sections: list[PortCounters] = []
    masks: list[int] = []
    for line in (raw.strip() for raw in text.split("\n") if raw.strip()):
        title, field = _COUNTERS_TITLE.fullmatch(line), _FIELD.fullmatch(line)
        if title is not None:
            kind, target, port, mask = title.groups()
            lid = _LID.search(target)
            sections.append(PortCounters(kind, assigned(lid.group(1)) if lid is not None else None, int(port), {}))
            masks.append(int(mask, 16) if mask else 0)
        elif field is None or not sections or counter_name(field.group(1)) in sections[-1].counters:
            raise ParseError(f"not a line of perfquery, or one too many: {line[:200]!r}")
        else:
            sections[-1].counters[counter_name(field.group(1))] = int(field.group(2), 0 if "x" in field.group(2) else 10)
    if not sections:
        raise ParseError(f"not the output of perfquery: {text[:200]!r}")
    for section, mask in zip(sections, masks):
        _check_end(section, mask)
        for name in _SELECTORS:
            section.counters.pop(name, None)
    return sections


def _check_end(section: PortCounters, mask: int) -> None:
    last = next(reversed(section.counters), None)
    whole = last is not None
    if section.kind == "Port":
        whole = last in ("PortXmitWait", "PortRcvPkts")
    elif section.kind == "Port extended":
        ends = ("QP1Dropped",) if "CounterSelect2" in section.counters else _LAST_DATA[:1] if mask & _EXTENDED_WIDTH else _LAST_DATA
        whole = last in ends
    if not whole:
        raise ParseError(f"the output of perfquery is cut off: the {section.kind} counters of port {section.port} end with {last!r}")
