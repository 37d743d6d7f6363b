# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse `ibnetdiscover` of infiniband-diags (rdma-core, MLNX_OFED): the fabric as a topology file, with -f, -g, -m and -s too.

Also output from before rdma-core, whose lines lack the port's GUID or the word "base", and manually edited files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.words import (
    LANE_GBPS,
    Problems,
    assigned,
    lanes,
    padded_guid,
    plain_guid,
)

_END = r'"([SHR?])-([0-9a-fA-F]{1,16})"'
_PORT = re.compile(
    r"\[([0-9]{1,3})\](?:\[ext ([0-9]{1,3})\])?(?:\(([0-9a-fA-F]{1,16})\))?\s+"
    rf"{_END}\[([0-9]{{1,3}})\](?:\[ext [0-9]{{1,3}}\])?\s*(?:\(([0-9a-fA-F]{{1,16}})\))?\s*(?:#\s*(.*))?"
)
_PORT_COMMENT = re.compile(
    r'(?:lid ([0-9]{1,5})(?: lmc ([0-7]))? )?"(.*)"(?: (?:s?m?lid) ([0-9]{1,5}))?'
    r"(?: ([0-9]{1,2}x|\?\?) ?([A-Z]{3}[0-9]{0,2}|\?\?\?))?(?: [a-z]{1,8}=[0-9]{1,4})*(?: slot [0-9]{1,3})?(?: \(scp\))?"
)
_NODE = re.compile(rf"(Switch|Ca|Rt|Router|\?\?\?)\s+([0-9]{{1,3}})\s+{_END}\s*(?:#\s*(.*))?")
_NODE_STARTS = "SCR?"
_NODE_COMMENT = re.compile(r'"(.*)"(.*)')
_LID = re.compile(r"\b(?:sma?)?lid ([0-9]{1,5})(?: lmc ([0-7]))?\b")
_VALUE = re.compile(
    r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid|\?\?\?guid)=(0x[0-9a-fA-F]{1,16})(?:\(([0-9a-fA-F]{1,16})\))?\s*(?:#.*)?"
)
_START = re.compile(r"# Initiated from node (?:0x)?([0-9a-fA-F]{1,16})")
#: Lines of -g, -s and -v without information on links.
_OTHER = re.compile(r"#|Chassis [0-9]|Non-Chassis Nodes|Hostname:|DR path |\S* ?-> ")
_KINDS = {"S": "switch", "H": "host", "R": "router", "?": "host"}
_LETTERS = {"Switch": "S", "Ca": "H", "Rt": "R", "Router": "R", "???": "?"}
_TOOL = "ibnetdiscover"


@dataclass(frozen=True)
class FoundEnd:
    """The other end of a link: the node's GUID and kind, and the details on the line."""

    guid: str
    kind: str
    port: int
    port_guid: str | None
    lid: int | None
    description: str | None


@dataclass(frozen=True)
class FoundPort:
    """A port, of a link unless end is None; guid: an HCA's own. width: lanes; speed: "NDR", both None if the tool prints ??."""

    number: int
    guid: str | None
    lid: int | None
    lmc: int | None
    end: FoundEnd | None
    width: int | None
    speed: str | None


@dataclass(frozen=True)
class FoundNode:
    """A node; kind: "switch" | "host" | "router"; ports_total: the number of its ports; only linked ones are printed. lid: a switch's."""

    guid: str
    kind: str
    description: str | None
    ports_total: int | None
    system_guid: str | None
    vendor_id: int | None
    device_id: int | None
    lid: int | None
    lmc: int | None
    ports: list[FoundPort] = field(default_factory=list)


@dataclass(frozen=True)
class Discovery:
    """The nodes in the tool's order, and lines that were not understood, as sentences; start: the GUID of the querying node."""

    nodes: list[FoundNode]
    problems: list[str]
    start: str | None


class _Reading:
    """The state of parsing after the previous lines."""

    def __init__(self) -> None:
        self.nodes: list[FoundNode] = []
        self.values: dict[str, str] = {}
        self.problems = Problems(_TOOL)
        self.start: str | None = None
        self.unrated: list[tuple[int, str]] = []
        self.rated = False

    def value(self, key: str, guid: str) -> None:
        # The first line of a node: the following lines no longer belong to the previous one.
        if key == "vendid" or key in self.values:
            self._unused()
            self.values = {}
        self.values["guid" if key.endswith("guid") and key != "sysimgguid" else key] = guid

    def _unused(self) -> None:
        if "guid" in self.values:
            self.problems.add(f"the node {plain_guid(self.values['guid'])} is announced by ibnetdiscover and not described")

    def node(self, number: int, line: str, match: re.Match[str]) -> None:
        word, count, letter, digits, comment = match.groups()
        guid, values = plain_guid(digits), self.values
        self.values = {}
        remark = _NODE_COMMENT.fullmatch((comment or "").strip())
        if _LETTERS[word] != letter or (comment and remark is None) or plain_guid(values.get("guid", digits)) != guid:
            self.problems.line(number, line, "contradicts itself or those above, or is cut off")
        lid = _LID.search(remark.group(2)) if remark is not None else None
        self.nodes.append(
            FoundNode(
                guid=guid,
                kind=_KINDS[letter],
                description=remark.group(1) if remark is not None else None,
                ports_total=int(count),
                system_guid=plain_guid(values["sysimgguid"]) if "sysimgguid" in values else None,
                vendor_id=int(values["vendid"], 16) if "vendid" in values else None,
                device_id=int(values["devid"], 16) if "devid" in values else None,
                lid=assigned(lid.group(1)) if lid is not None else None,
                lmc=int(lid.group(2)) if lid is not None and lid.group(2) else None,
            )
        )

    def port(self, number: int, line: str, match: re.Match[str]) -> None:
        port, _ext, guid, letter, far, far_port, far_guid, comment = match.groups()
        remark = _PORT_COMMENT.fullmatch(comment.strip()) if comment else None
        if not self.nodes or self.values or (comment and remark is None):
            self.problems.line(number, line)
            return
        lid, lmc, description, far_lid, width, speed = remark.groups() if remark is not None else (None,) * 6
        if width is None:
            self.unrated.append((number, line))
        elif speed not in LANE_GBPS and speed != "???":
            self.problems.line(number, line, "names an unknown speed, or is cut off")
        elif "?" in width or speed == "???":
            self.problems.line(number, line, "has a port that did not answer")
        self.rated = self.rated or width is not None
        end = FoundEnd(
            padded_guid(far), _KINDS[letter], int(far_port), padded_guid(far_guid) if far_guid else None, assigned(far_lid), description
        )
        known = speed if speed in LANE_GBPS else None
        own = padded_guid(guid) if guid else None
        self.nodes[-1].ports.append(
            FoundPort(int(port), own, assigned(lid), int(lmc) if lmc else None, end, lanes(width) if width else None, known)
        )

    def result(self) -> Discovery:
        self._unused()
        if self.rated:
            for number, line in self.unrated:
                self.problems.line(number, line, "lacks the width and speed that others have, or is cut off")
        return Discovery(self.nodes, self.problems.sentences(), self.start)


def parse_ibnetdiscover(text: str) -> Discovery:
    """Parse the topology. Raises ParseError for a text without a described node; other oddities are problems of the result.

    A truncated text has ends of links whose nodes are not described: fabric_graph reports that.
    """
    reading = _Reading()
    for number, line in enumerate((raw.rstrip() for raw in text.split("\n")), 1):
        if not line:
            continue
        match, use = (
            (_PORT.fullmatch(line), reading.port)
            if line[0] == "["
            else (_NODE.fullmatch(line) if line[0] in _NODE_STARTS else None, reading.node)
        )
        if match is not None:
            use(number, line, match)
        else:
            _other(reading, number, line)
    discovery = reading.result()
    if not discovery.nodes:
        raise ParseError(f"not the output of ibnetdiscover: {quoted(text)}")
    return discovery


def _other(reading: _Reading, number: int, line: str) -> None:
    value = _VALUE.fullmatch(line)
    if value is not None:
        reading.value(value.group(1), value.group(2))
        return
    start = _START.match(line)
    if start is not None:
        reading.start = plain_guid(start.group(1))
    elif _OTHER.match(line) is None:
        reading.problems.line(number, line)
