# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The `key: value` lines of which tools of rdma-core print a section for each device or port."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

T = TypeVar("T")

_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9_ ]{0,40}): ?(.*)")
_NUMBER = re.compile(r"-?[0-9]{1,10}|0x(?:[0-9a-fA-F]{2}){1,4}")


class Fields:
    """The `key: value` lines of one device or port, of the keys that are known; other lines are none of its business."""

    def __init__(self, title: str, keys: Sequence[str]) -> None:
        self.last_line = title
        self._keys = keys
        self._values: dict[str, str] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def add(self, line: str) -> None:
        """Take a line. Raises ParseError for a key that is there already: the title of another section was lost."""
        match = _FIELD.fullmatch(line)
        if match is None or match.group(1) not in self._keys:
            return
        key, value = match.groups()
        if key in self._values:
            raise ParseError(f"a second {key!r} in one section: {line!r}")
        self._values[key] = value
        self.last_line = line

    def text(self, key: str) -> str | None:
        """The value as it stands; None where it is empty or "unknown", or the line is not there."""
        value = self._values.get(key, "")
        return None if value in ("", "unknown") else value

    def read(self, key: str, parse: Callable[[str], T]) -> T | None:
        """The value as parse reads it; None if the line is not there or says "unknown". A ParseError quotes the line."""
        value = self._values.get(key, "unknown")
        if value == "unknown":
            return None
        try:
            return parse(value)
        except (ParseError, KeyError) as exc:
            raise ParseError(f"{exc}, in the line {f'{key}: {value}'!r}") from exc

    def word(self, key: str, words: Mapping[str, str | None]) -> str | None:
        """What stands in words for the value, as read gives it."""
        return self.read(key, words.__getitem__)


def squeezed_lines(text: str) -> Iterator[str]:
    """The lines that are not blank, without marks of quotation in mails, and every run of white space as one space."""
    return (line for line in (" ".join(raw.lstrip("> \t\u00a0").split()) for raw in text.splitlines()) if line)


def parse_number(text: str) -> int:
    """A decimal number, or a hexadecimal one of two to eight digits after 0x: an odd one out is cut off."""
    if _NUMBER.fullmatch(text) is None:
        raise ParseError(f"not a number: {text[:200]!r}")
    return int(text, 0) if text.startswith("0x") else int(text)


def check_ends(tool: str, ports: Sequence[Fields], last_keys: tuple[str, str]) -> None:
    """Raise ParseError for a port that is cut off. The last two lines of a port have these keys; old versions lack the very last."""
    told = any(last_keys[1] in port for port in ports)
    for port in ports:
        if last_keys[1] not in port and (told or last_keys[0] not in port):
            raise ParseError(f"the output of {tool} is cut off behind the line {port.last_line!r}")
