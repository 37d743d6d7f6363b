# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a signature of an error line is, and what it says of the job."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: Something failed here; something failed, and the reason stands elsewhere; something failed because of another failure; no failure;
#: a warning whose text is in no table.
ERROR, SYMPTOM, CONSEQUENCE, REMARK, UNKNOWN = ("error", "symptom", "consequence", "remark", "unknown")


@dataclass(frozen=True)
class Meaning:
    """kind: one of those above; says: for a person; explains: the errors that follow from it where it stands before them."""

    kind: str
    says: str
    explains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Signature:
    """One text that says it.

    name: of a Meaning; needle: what such a line has in it, looked for before pattern, whose named groups are fields of the line; source:
    whose text it is; info: whether NCCL writes it at level INFO too.
    """

    name: str
    needle: str
    source: str
    pattern: str = ""
    info: bool = False
    regex: re.Pattern[str] | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", re.compile(self.pattern) if self.pattern else None)
