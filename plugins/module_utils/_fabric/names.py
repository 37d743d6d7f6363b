# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Derive names for messages from the descriptions of nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import AGGREGATION, HOST, SWITCH
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.words import plain_guid

#: "node17 mlx5_3": the kernel's default after a host name; "node17 HCA-4": of OFED's script; "node17 ibp11s0f0": of udev, which adds a PCI
#: domain other than the first: "node17 ibP2p1s0f0".
_HCA = re.compile(r"(\S{1,64})\s+(HCA-[0-9]{1,3}|[a-z][a-zP0-9_]{0,14}[0-9])")
#: "MF0;leaf3:MQM9700/U1" of NVIDIA's managed switches, "MF0;core1:MCS8500/L01/U1" of a part of a director.
_MANAGED = re.compile(r"[A-Z]{2}[0-9];([^:;]{1,64}):([A-Za-z0-9-]{1,32})/(\S{1,32})")
#: The default descriptions of firmware and drivers for unnamed nodes.
_MAKERS = re.compile(
    r"mellanox technologies|nvidia (?:corporation|technologies)|voltaire|\bqlogic\b|infiniscale|^mt[0-9]{4,5}\b", re.IGNORECASE
)
_AGGREGATION = re.compile(r"aggregation node", re.IGNORECASE)
#: The default names of machines without a configured name.
_NOBODY = ("localhost", "localhost.localdomain", "(none)")


def kind_of(kind: str, description: str | None) -> str:
    """Return the graph's kind: SHARP's aggregation node is an HCA of a switch, not a host."""
    return AGGREGATION if kind == HOST and _AGGREGATION.search(description or "") else kind


def name_of(guid: str, kind: str, description: str | None, names: Mapping[str, str]) -> tuple[str, str | None]:
    """Return a node's name and, for an HCA, its device. names: the node-name map, by GUID; without a name it is the GUID.

    A vendor's text, which is the same in each of its devices, is not a name: all HCAs called "MT4129 ConnectX7   Mellanox Technologies" are
    not one host.
    """
    text = (description or "").strip()
    hca = _HCA.fullmatch(names.get(guid, text)) if kind == HOST else None
    if hca is not None and hca.group(1).lower() not in _NOBODY:
        return hca.group(1), hca.group(2)
    if guid in names:
        own = _HCA.fullmatch(text) if kind == HOST else None
        return names[guid], own.group(2) if own is not None else None
    if not text or text.lower() in _NOBODY or _MAKERS.search(text):
        return guid, None
    return (_switch_name(text) if kind == SWITCH else text), hca.group(2) if hca is not None else None


def _switch_name(description: str) -> str:
    match = _MANAGED.fullmatch(description)
    if match is None:
        return description
    host, _model, part = match.groups()
    part = part[:-3] if part.endswith("/U1") else part
    return host if part == "U1" else f"{host}/{part}"


_LINE = re.compile(r'(0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]{0,19})(?:\s+"?([^"#]*)["#]?.*|#.*)?')


def parse_node_name_map(text: str) -> dict[str, str]:
    """Return GUID → name, as "0x0008f10400410015". Raises ParseError for a line for which the tools reject the whole file."""
    names: dict[str, str] = {}
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ParseError(
                f"not a line of a node-name map, at line {number}: {quoted(line)}, expected the form '0x0008f10400410015 \"leaf1\"'"
            )
        name = (match.group(2) or "").strip()
        if name:
            names.setdefault(_guid(match.group(1), line), name)
    return names


def _guid(text: str, line: str) -> str:
    if text[:2] in ("0x", "0X"):
        return plain_guid(text[2:])
    value = int(text)
    if value >= 1 << 64:
        raise ParseError(f"not a GUID of 64 bits, in the line {quoted(line)}")
    return f"0x{value:016x}"
