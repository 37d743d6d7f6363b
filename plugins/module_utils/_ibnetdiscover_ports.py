# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `ibnetdiscover -p` of infiniband-diags (rdma-core) prints: a line for each port, connected or not."""

from __future__ import annotations

import re

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric_words import LANE_GBPS, Problems, assigned, lanes, plain_guid
from ansible_collections.rdma.cluster.plugins.module_utils._ibnetdiscover import Discovery, FoundEnd, FoundNode, FoundPort

_END = r"(SW|CA|RT|\?\?)\s+([0-9]{1,5})\s+([0-9]{1,3})\s+(0x[0-9a-fA-F]{16})"
_LINE = re.compile(rf"{_END}\s+([0-9]{{1,2}}x|\?\?) ([A-Z]{{3}}[0-9]{{0,2}}|\?\?\?)(?:\s+-\s+{_END} \( '(.*)' - '(.*)' \)|\s+'(.*)')")
_KINDS = {"SW": "switch", "CA": "host", "RT": "router", "??": "host"}
_FORM = "expected lines of the form \"SW 1719 10 0x7cfe9003009ce5b0 4x EDR - CA 134 1 0x7cfe9003003b4bde ( 'leaf1' - 'node1 HCA-1' )\""


def parse_ibnetdiscover_ports(text: str) -> Discovery:
    """The ports. Raises ParseError for a text without any; a line of another form is a problem of the result.

    An HCA is known by its port's GUID here, as the tool does not tell the node's. Of a port without a link neither state nor rate is
    told: the rate that is printed there says nothing.
    """
    nodes: dict[str, FoundNode] = {}
    problems = Problems("ibnetdiscover -p")
    for number, line in enumerate(text.split("\n"), 1):
        match = _LINE.fullmatch(line.strip())
        if match is not None:
            _add(nodes, problems, number, match)
        elif line.strip():
            problems.line(number, line)
    if not nodes:
        raise ParseError(f"not the output of ibnetdiscover -p: {text[:200]!r}, {_FORM}")
    return Discovery(list(nodes.values()), problems.told(), None)


def _add(nodes: dict[str, FoundNode], problems: Problems, number: int, match: re.Match[str]) -> None:
    kind, lid, port, guid, width, speed, far_kind, far_lid, far_port, far, name, far_name, lone_name = match.groups()
    switch, linked = kind == "SW", far is not None
    node = nodes.setdefault(
        guid.lower(),
        FoundNode(
            guid=guid.lower(),
            kind=_KINDS[kind],
            description=name if linked else lone_name,
            ports_total=None,
            system_guid=None,
            vendor_id=None,
            device_id=None,
            lid=assigned(lid) if switch else None,
            lmc=None,
        ),
    )
    if node.kind != _KINDS[kind]:
        problems.line(number, match.group(0), "gives a GUID to a second kind of node")
        return
    if linked and speed not in LANE_GBPS and speed != "???":
        problems.line(number, match.group(0), "names an unknown speed")
    end = None
    if linked:
        far = plain_guid(far)
        end = FoundEnd(far, _KINDS[far_kind], int(far_port), None if far_kind == "SW" else far, assigned(far_lid), far_name)
    node.ports.append(
        FoundPort(
            number=int(port),
            guid=None if switch else node.guid,
            lid=None if switch else assigned(lid),
            lmc=None,
            end=end,
            width=lanes(width) if linked else None,
            speed=speed if linked and speed in LANE_GBPS else None,
        )
    )
