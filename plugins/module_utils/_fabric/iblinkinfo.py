# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse `iblinkinfo` of infiniband-diags (rdma-core): every port, also with -l and -p, and the best possible link."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.words import (
    PHYSICAL,
    STATES,
    Problems,
    assigned,
    lanes,
    plain_guid,
    speed_name,
)

_TITLE = re.compile(r"(Switch|CA|Router|\?\?):? (?:(0x[0-9a-fA-F]{1,16}) )?(.*):")
_PORT = re.compile(
    r'(?:(0x[0-9a-fA-F]{1,16})\s{1,40}(?:"(.*?)" )?)?\s{0,40}([0-9]{1,5})\s{1,40}([0-9]{1,3})\[ *[0-9]*\s*\] ==\((.*)\)==>\s*(.*)'
)
_LINK = re.compile(
    r"\s*(?:([0-9]{1,2}X|undefined \([0-9]+\))\s{1,40}(.*\S)\s{1,40})?([A-Za-z]+|\?\([0-9]+\)) */ *([A-Za-z]+|\?\([0-9]+\))\s*"
)
_END = re.compile(r'(?:(0x[0-9a-fA-F]{1,16})\s+)?(?:([0-9]{1,5})\s+([0-9]{1,3}))?\[ *[0-9]*\s*\] "(.*)" ?\((.*)\)')
_COULD_BE = re.compile(r"Could be ([0-9]{1,2}X|[0-9.]+ Gbps|[A-Z]{3}[0-9]{0,2}\b)(?: \(Found [^)]*\))?")
_KINDS = {"Switch": "switch", "CA": "host", "Router": "router"}
#: What -p adds after the link.
_SETTINGS = ") (HOQ:"
_NO_ANSWER = '"Port not available"'


@dataclass(frozen=True)
class LinkinfoEnd:
    """The other end; guid (of the node for a switch, else of the port) is printed only with -l."""

    guid: str | None
    lid: int | None
    port: int
    description: str


@dataclass(frozen=True)
class LinkinfoPort:
    """A port. guid: the node's for a switch, the port's for an HCA, None for a switch in old versions that print none.

    kind: "switch" | "host" | "router", None with -l; state and physical: the kernel's words; width: lanes; speed: "NDR"; could_be: (lanes,
    speed) that both ends support but the link does not use, None each otherwise; answered: whether the other end answered.
    """

    guid: str | None
    kind: str | None
    description: str | None
    lid: int | None
    number: int
    state: str | None
    physical: str | None
    width: int | None
    speed: str | None
    end: LinkinfoEnd | None
    could_be: tuple[int | None, str | None] | None
    answered: bool

    @property
    def lost(self) -> bool:
        """Return whether it is up and the tool did not find the node behind it."""
        return not self.answered and self.state is not None


@dataclass(frozen=True)
class Linkinfo:
    """All ports in the tool's order, and lines that were not understood, as sentences."""

    ports: list[LinkinfoPort]
    problems: list[str]


def parse_iblinkinfo(text: str) -> Linkinfo:
    """Parse the text. Raises ParseError for a text without a port; other oddities are problems of the result."""
    ports: list[LinkinfoPort] = []
    problems = Problems("iblinkinfo")
    title: tuple[str | None, str | None, str | None] = (None, None, None)
    for number, line in enumerate(text.split("\n"), 1):
        match = _PORT.fullmatch(line.strip())
        if match is not None:
            _add(ports, problems, number, match, title)
        elif line.strip():
            named = _TITLE.fullmatch(line.strip())
            if named is None:
                problems.line(number, line)
            title = _title(named) if named is not None else title
    if not ports:
        raise ParseError(f"not the output of iblinkinfo: {quoted(text)}")
    return Linkinfo(ports, problems.sentences())


def _title(match: re.Match[str]) -> tuple[str | None, str | None, str | None]:
    kind, guid, name = match.groups()
    return _KINDS.get(kind), plain_guid(guid) if guid else None, name


def _add(
    ports: list[LinkinfoPort], problems: Problems, number: int, match: re.Match[str], title: tuple[str | None, str | None, str | None]
) -> None:
    guid, name, lid, port, link, far = match.groups()
    read, end = _LINK.fullmatch(link.split(_SETTINGS)[0]), _END.fullmatch(far.strip())
    missing = far.strip() == _NO_ANSWER
    if read is None or (end is None and not missing):
        problems.line(number, match.group(0))
        return
    width, speed, state, physical = read.groups()
    if state not in STATES or physical not in PHYSICAL:
        problems.line(number, match.group(0), "names an unknown state")
    kind, title_guid, title_name = title if name is None else (None, None, None)
    state = STATES.get(state)
    up = state is not None and state != "DOWN"
    could_be = _could_be(end.group(5)) if end is not None and up else None
    ports.append(
        LinkinfoPort(
            guid=plain_guid(guid) if guid else title_guid,
            kind=kind,
            description=(title_name if name is None else name.strip()),
            lid=assigned(lid),
            number=int(port),
            state=state,
            physical=PHYSICAL.get(physical),
            width=lanes(width) if width and up else None,
            speed=speed_name(speed) if speed and up else None,
            end=_end(end) if end is not None and end.group(3) else None,
            could_be=could_be,
            answered=not missing and state is not None,
        )
    )
    if state is None:
        problems.line(number, match.group(0), "has a port that did not answer")


def _end(match: re.Match[str]) -> LinkinfoEnd:
    guid, lid, port, description, _more = match.groups()
    return LinkinfoEnd(plain_guid(guid) if guid else None, assigned(lid), int(port), description)


def _could_be(text: str) -> tuple[int | None, str | None] | None:
    width = speed = None
    for word in _COULD_BE.findall(text):
        width = lanes(word) or width
        speed = speed_name(word) or speed
    return (width, speed) if width is not None or speed is not None else None
