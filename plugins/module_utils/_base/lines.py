# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text from a host: its lines, each of bounded length, because some forms are searched for in quadratic time; and text for a terminal."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

LONGEST_LINE = 4096
#: The longest text that is shown or recorded in one piece, in characters.
LONGEST_TEXT = 4000
#: What ends a line for a terminal, for str.splitlines or for a reader of YAML.
_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")

#: The user and password of a URL, behind its "://".
_USERINFO = re.compile(r"(?<=://)(?:[^\s/?#@]*@)+")
_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:/*")
_HIDDEN = "***"


def lines_of(text: str, longest: int = LONGEST_LINE, *, keepends: bool = False) -> list[str]:
    """Return the lines of a text. A line longer than `longest` characters is cut there; with keepends it keeps its end."""
    return [line if len(line) <= longest else line[:longest] + "\n" * line.endswith("\n") for line in text.splitlines(keepends=keepends)]


def clean(text: str, longest: int = LONGEST_TEXT, *, lines: bool = False) -> str:
    """Return a text made safe for a terminal or a file: the reports of a host may hold anything.

    Characters that do not print (control characters, escapes, marks that turn the direction of writing, lone surrogates) become "?".
    The user and password of a URL become "***". Ends of lines become spaces; lines: they become "\\n" instead, and tabs stay. A text of
    more than `longest` characters is cut, and its end says so.
    """
    if "://" in text:
        # Before it is cut: half a password has no "@" behind it.
        text = _USERINFO.sub(f"{_HIDDEN}@", text)
    if len(text) > longest:
        mark = f"… (cut, {len(text):,} characters)"
        text = text[: max(0, longest - len(mark))] + mark
    if text.isprintable():
        return text
    text = _ENDS.sub("\n", text)
    if not lines:
        text = text.replace("\n", " ")
    kept = "\n\t" if lines else ""
    return "".join(char if char.isprintable() or char in kept else "?" for char in text)


def without_passwords(value: Any) -> Any:
    """Return a refused value of the intent for a message. If it may be a URL, user, password and query are hidden, however spelled.

    value: any tree of dictionaries, lists and texts.
    """
    if isinstance(value, Mapping):
        return {without_passwords(key): without_passwords(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_passwords(each) for each in value]
    if not isinstance(value, str):
        return value
    start, at, end = value.rpartition("@")
    if at and ":" in start:
        scheme = _SCHEME.match(start)
        # "user:password@host" has no scheme, but begins like one.
        shown = scheme.group() if scheme and scheme.group().endswith("/") else ""
        value = f"{shown}{_HIDDEN}@{end}"
    before, query, _secret = value.partition("?")
    return f"{before}?{_HIDDEN}" if query and "://" in before else value


#: How much of a value a message shows, in characters.
SHOWN = 80
#: How many names a message shows.
NAMES = 40


def nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name most similar to a name; None if none is. cutoff: from 0, anything is similar, to 1, only the name itself."""
    near = difflib.get_close_matches(str(name)[:SHOWN], list(known), n=1, cutoff=cutoff)
    return near[0] if near else None


def hint(name: object, known: Iterable[str], kind: str) -> str:
    """Return "did you mean 'leaf3'?", or the known names if none is similar. kind: what they are, in the plural."""
    known = list(known)
    near = nearest(name, known)
    return f"did you mean '{near}'?" if near else f"the {kind} are {first_of(known, NAMES)}"


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """Return the first names and the number of the others: "node1, node2 and 7 more"."""
    return between.join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


_C_NOT_A_NUMBER = re.compile(r'(":\s*)-?(nan|inf)\b')
_PYTHON = {"nan": "NaN", "inf": "Infinity"}


def words_of_json(text: str) -> str:
    """Return the text with nan and inf, where a value belongs, in the spelling of Python's reader: NaN and Infinity."""
    return _C_NOT_A_NUMBER.sub(lambda match: match[1] + _PYTHON[match[2]], text)
