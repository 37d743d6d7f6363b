# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse `saquery -s` of infiniband-diags (rdma-core, saquery.c): the ports on which a subnet manager runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.smpquery import parse_nodedesc, parse_nodeinfo
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import Tools
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.words import assigned, plain_guid

_RUNNING, _SWITCHED_OFF = "IsSM ports", "IsSMdisabled ports"
_RECORD = "PortInfoRecord dump:"
_FIELD = re.compile(r"\s+(\w{1,40})\.{2,}(\S{1,40})")
_LID = "EndPortLid"


def parse_manager_ports(text: str) -> list[int]:
    """Return the LIDs of the ports on which a subnet manager runs, in order; those of a switched off manager are omitted.

    Raises ParseError, with the line, unless both sections have complete records.
    """
    lids: dict[str, list[int]] = {}
    section, waits = "", False
    for line in text.splitlines():
        if line in (_RUNNING, _SWITCHED_OFF):
            section, waits = line, _whole(waits, line)
            lids[section] = []
        elif line == _RECORD and section:
            waits = not _whole(waits, line)
        elif line.strip():
            match = _FIELD.fullmatch(line)
            if match is None or not section:
                raise ParseError(f"not the output of saquery -s: {quoted(line)}, expected the form 'EndPortLid..............4'")
            if match[1] == _LID:
                lids[section].append(_number(match[2]))
                waits = False
    if set(lids) != {_RUNNING, _SWITCHED_OFF} or waits:
        raise ParseError(f"saquery -s ends early: {text[-80:]!r}, expected '{_RUNNING}' and '{_SWITCHED_OFF}' with whole records")
    return sorted(set(lids[_RUNNING]))


def _whole(waits: bool, line: str) -> bool:
    """Return False until the record before a line has its LID."""
    if waits:
        raise ParseError(f"a record of saquery -s has no {_LID} before {quoted(line)}")
    return False


def _number(word: str) -> int:
    if re.fullmatch(r"[0-9]{1,5}", word) is None or not 0 < int(word) < 0xC000:
        raise ParseError(f"no LID of a port in saquery -s: {quoted(word)}, expected 1 to 49151")
    return int(word)


_LINE = re.compile(
    r"sminfo: sm lid ([0-9]{1,5}) sm guid (0x[0-9a-fA-F]{1,16}), activity count ([0-9]{1,10}) priority ([0-9]{1,2}) "
    r"state ([0-9]{1,3}) (SMINFO_[A-Z]{1,20}|\?\?\?)"
)
#: The states 0 to 3 of libibmad; "NOTACT" is an SM that was made inactive.
STATES = ("NOTACT", "DISCOVER", "STANDBY", "MASTER")


@dataclass(frozen=True)
class SmInfo:
    """A subnet manager. guid: of its port; state: one of STATES, None for another; activity: a count that grows while it runs.

    kind: of its node, "host" or "switch"; description: that node's own description; both None if they were not read.
    """

    lid: int | None
    guid: str
    state: str | None
    priority: int
    activity: int
    kind: str | None = None
    description: str | None = None

    @property
    def words(self) -> str:
        """Return its name for a message."""
        node = f"{self.kind or 'node'} {self.description!r}" if self.description else f"a {self.kind or 'node'} without a description"
        return f"{node}, GUID {self.guid}, LID {self.lid}, priority {self.priority}, {self.state or 'in an unknown state'}"


def parse_sminfo(text: str) -> SmInfo:
    """Parse sminfo's output. Raises ParseError unless it is one complete line, whose number and word of the state agree."""
    match = _LINE.fullmatch(text.strip())
    if match is None:
        raise ParseError(f"not the output of sminfo: {quoted(text)}, expected the form 'sminfo: sm lid 1 sm guid 0x…, activity count …'")
    lid, guid, activity, priority, number, word = match.groups()
    state = STATES[int(number)] if int(number) < len(STATES) else None
    if word != (f"SMINFO_{state}" if state is not None else "???"):
        raise ParseError(f"the number and the word of the state do not agree: {quoted(text.strip())}")
    return SmInfo(assigned(lid), plain_guid(guid), state, int(priority), int(activity))


@dataclass(frozen=True)
class Managers:
    """master: the one that the port knows, None if none answers; known: all of the plane, the master first, None if unknown.

    why_not: the reason that they are unknown, else None.
    """

    master: SmInfo | None
    known: list[SmInfo] | None
    why_not: str | None


def read_managers(tools: Tools, *, identify: bool = False) -> Managers:
    """Read the managers with two commands, one more for each manager in addition to the master, and two for the node of each with identify.

    Never raises for a fault of the fabric or the tools.

    If the master disappears between the two, sminfo is run again, so that the reason shows which one disappeared or took over.
    """
    before = len(tools.problems)
    master = tools.run("sminfo", [], parse_sminfo)
    lids = tools.run("saquery", ["-s"], parse_manager_ports) if master is not None else None
    if master is not None and lids is None:
        again = tools.run("sminfo", [], parse_sminfo)
        if again is not None and again.guid != master.guid:
            tools.problems.append(f"the master was at LID {master.lid} and is now at LID {again.lid}: another one took over in between")
    known = [] if master is None else [master]
    for lid in lids or ():
        if master is not None and lid != master.lid and (other := tools.run("sminfo", [str(lid)], parse_sminfo)) is not None:
            known.append(other)
    why_not = "; ".join(tools.problems[before:]) or None
    known = [identified(tools, each) for each in known] if identify else known
    return Managers(known[0] if known else None, known if why_not is None else None, why_not)


def identified(tools: Tools, manager: SmInfo) -> SmInfo:
    """Return the manager with kind and description of its node, as far as that node answers; a missing answer is no problem."""
    if manager.lid is None:
        return manager
    before = len(tools.problems)
    info = tools.run("smpquery", ["nodeinfo", str(manager.lid)], parse_nodeinfo)
    description = tools.run("smpquery", ["nodedesc", str(manager.lid)], parse_nodedesc)
    del tools.problems[before:]
    return replace(manager, kind=info.kind if info is not None else None, description=description or None)
