# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The node-name map of opensm and infiniband-diags (/etc/opensm/ib-node-name-map): names for GUIDs, a line each.

Source: util/node_name_map.c of rdma-core, whose readers refuse a file with one bad line, and take the first of two names for a GUID.
"""

from __future__ import annotations

import re

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric_words import plain_guid

_LINE = re.compile(r'(0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]{0,19})(?:\s+"?([^"#]*)["#]?.*|#.*)?')


def parse_node_name_map(text: str) -> dict[str, str]:
    """GUID → name, as "0x0008f10400410015". Raises ParseError for a line that the tools would refuse, with the whole file."""
    names: dict[str, str] = {}
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ParseError(
                f"not a line of a node-name map, at line {number}: {line[:200]!r}, expected the form '0x0008f10400410015 \"leaf1\"'"
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
        raise ParseError(f"not a GUID of 64 bits, in the line {line[:200]!r}")
    return f"0x{value:016x}"
