# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `sminfo` of infiniband-diags (rdma-core) says of a subnet manager: the master that the port knows, or the one asked by its LID."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._fabric_words import assigned, plain_guid

_LINE = re.compile(
    r"sminfo: sm lid ([0-9]{1,5}) sm guid (0x[0-9a-fA-F]{1,16}), activity count ([0-9]{1,10}) priority ([0-9]{1,2}) "
    r"state ([0-9]{1,3}) (SMINFO_[A-Z]{1,20}|\?\?\?)"
)
#: 0 to 3 of libibmad; "NOTACT" is an SM that was told to stand aside and does nothing.
STATES = ("NOTACT", "DISCOVER", "STANDBY", "MASTER")


@dataclass(frozen=True)
class SmInfo:
    """A subnet manager. guid: of its port; state: one of STATES, None for another; activity: a count that grows while it lives.

    kind: of the node that it runs on, "host" or "switch"; description: what that node calls itself; both None where they were not read.
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
        """Who it is, for a person."""
        node = f"{self.kind or 'node'} {self.description!r}" if self.description else f"a {self.kind or 'node'} without a description"
        return f"{node}, GUID {self.guid}, LID {self.lid}, priority {self.priority}, {self.state or 'in an unknown state'}"


def parse_sminfo(text: str) -> SmInfo:
    """Raises ParseError for anything but one whole line, whose number and word of the state agree."""
    match = _LINE.fullmatch(text.strip())
    if match is None:
        raise ParseError(f"not the output of sminfo: {text[:200]!r}, expected the form 'sminfo: sm lid 1 sm guid 0x…, activity count …'")
    lid, guid, activity, priority, number, word = match.groups()
    state = STATES[int(number)] if int(number) < len(STATES) else None
    if word != (f"SMINFO_{state}" if state is not None else "???"):
        raise ParseError(f"the number and the word of the state do not agree: {text.strip()[:200]!r}")
    return SmInfo(assigned(lid), plain_guid(guid), state, int(priority), int(activity))
