# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The signature of an error line, its meaning for the job, and the search for the signature of a line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_WORD = re.compile(r"\w+")
#: A word inside a needle: in a line it is whole as well, while a needle may start and end within a word.
_INNER_WORD = re.compile(r"(?<=[^\w])\w+(?=[^\w])")

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


class Finder:
    """Finds the first of many signatures that a line matches, by the words of the line: most lines have none of the words."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self._by_word: dict[str, list[tuple[int, Signature]]] = {}
        self._of_any: list[tuple[int, Signature]] = []
        for order, signature in enumerate(signatures):
            words = _INNER_WORD.findall(signature.needle)
            there = self._by_word.setdefault(max(words, key=len), []) if words else self._of_any
            there.append((order, signature))
        self._words = frozenset(self._by_word)

    def find(self, line: str) -> tuple[Signature, dict[str, str]] | None:
        """The first signature that a line matches, and the named groups of its pattern."""
        there = [each for each in self._of_any if each[1].needle in line]
        for word in self._words.intersection(_WORD.findall(line)):
            there += [each for each in self._by_word[word] if each[1].needle in line]
        for _order, signature in sorted(there, key=_order_of):
            found = signature.regex.search(line) if signature.regex is not None else None
            if found is not None or signature.regex is None:
                groups = found.groupdict() if found is not None else {}
                return signature, {name: value for name, value in groups.items() if value is not None}
        return None


def _order_of(each: tuple[int, Signature]) -> int:
    return each[0]
