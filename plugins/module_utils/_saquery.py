# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `saquery -s` of infiniband-diags (rdma-core, saquery.c) says: the ports on which a subnet manager runs."""

from __future__ import annotations

import re

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

_RUNNING, _SWITCHED_OFF = "IsSM ports", "IsSMdisabled ports"
_RECORD = "PortInfoRecord dump:"
_FIELD = re.compile(r"\s+(\w{1,40})\.{2,}(\S{1,40})")
_LID = "EndPortLid"


def parse_manager_ports(text: str) -> list[int]:
    """The LIDs of the ports on which a subnet manager runs, in order; those where one was switched off are left out.

    Raises ParseError, with the line, for anything but both sections with whole records.
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
                raise ParseError(f"not the output of saquery -s: {line[:200]!r}, expected the form 'EndPortLid..............4'")
            if match[1] == _LID:
                lids[section].append(_number(match[2]))
                waits = False
    if set(lids) != {_RUNNING, _SWITCHED_OFF} or waits:
        raise ParseError(f"saquery -s ends early: {text[-80:]!r}, expected '{_RUNNING}' and '{_SWITCHED_OFF}' with whole records")
    return sorted(set(lids[_RUNNING]))


def _whole(waits: bool, line: str) -> bool:
    """False, as long as the record before a line has told its LID."""
    if waits:
        raise ParseError(f"a record of saquery -s does not tell its {_LID} before {line[:80]!r}")
    return False


def _number(word: str) -> int:
    if re.fullmatch(r"[0-9]{1,5}", word) is None or not 0 < int(word) < 0xC000:
        raise ParseError(f"no LID of a port in saquery -s: {word[:40]!r}, expected 1 to 49151")
    return int(word)
