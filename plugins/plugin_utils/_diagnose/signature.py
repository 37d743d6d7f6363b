# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The signature of an error line, and its meaning for the job."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: ERROR: a failure with its reason here; SYMPTOM: a failure with its reason elsewhere; CONSEQUENCE: a failure because of another one;
#: REMARK: no failure; UNKNOWN: a warning without a signature.
ERROR, SYMPTOM, CONSEQUENCE, REMARK, UNKNOWN = ("error", "symptom", "consequence", "remark", "unknown")


@dataclass(frozen=True)
class Meaning:
    """The meaning of an error line. kind: one of those above; says: its words; explains: the later errors that follow from it."""

    kind: str
    says: str
    explains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Signature:
    """One text of an error line.

    name: of a Meaning; needle: a fixed part of the line, searched before pattern; pattern: its named groups are fields of the line;
    source: the program that writes it; info: whether NCCL also writes it at level INFO.
    """

    name: str
    needle: str
    source: str
    pattern: str = ""
    info: bool = False
    regex: re.Pattern[str] | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", re.compile(self.pattern) if self.pattern else None)
