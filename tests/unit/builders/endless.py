# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts without an end, for every parser of a package: lines of 4 MiB, numbers that no int() takes, nesting that no stack holds.

The parsers are found by import, and each gets the words and marks of its own source, so that a new one is held to it as well.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._recorder.ring import Moment
from tests.unit.builders.garbled import no_time, read_or_refused

LONG = 4 * 2**20
#: Enough for what is quadratic to take longer than SECONDS.
SHORT = 64 * 2**10
SECONDS = 1.0
#: Every text with RDMA_TEST_EXAMPLES=new, else so many of each kind for a parser, the same in every run.
EVERYTHING = os.environ.get("RDMA_TEST_EXAMPLES") == "new"
FEW_LONG, FEW_SHORT, FEW_DEEP = 3, 12, 8
#: What a line repeats to its end, beside a parser's own words: blanks, digits, brackets, quotes, tables, options, nested texts.
UNITS = (
    *("a", " ", "\t", "9", "1 ", "A_", "a b ", "[", "]", "{", "(", '"', "'", "\\", '\\"', '["a",', "[1,", '{"a":', "a[b] "),
    *("a=", "a: ", "a,b:", "=", ":", "-", "/", "0x", "# ", "1.", "..", "--", "²", "\0", "Test: "),
)
_LONGEST_WORD = 60
_DIGITS = "9" * 5000
_NESTED = 100_000


@dataclass(frozen=True)
class Parser:
    """A function parse_…, which takes a text or what is made of one. own: the words and marks of its module's strings."""

    function: Callable[..., Any]
    make: Callable[[str], Any]
    others: Mapping[str, Any]
    own: tuple[str, ...]
    refuses: type[ValueError] | None = None

    def read(self, text: str) -> None:
        """Read a text to the end, also by a generator. A parser of values of the intent refuses by ValueError."""
        try:
            found = self.function(self.make(text), **self.others)
            if inspect.isgenerator(found):
                list(found)
        except ValueError as error:
            if self.refuses is None or not isinstance(error, self.refuses):
                raise


#: What a parser is given, by the annotation of its first argument.
_MADE: dict[str, Callable[[str], Any]] = {
    "str": lambda text: text,
    "Any": lambda text: text,
    "bytes": lambda text: text.encode("utf-8", "replace"),
    "Iterable[str]": lambda text: text.splitlines(keepends=True),
    "Sequence[str]": lambda text: [text],
    "Iterable[Mapping[str, Any]]": lambda text: [dict.fromkeys(("kind", "line", "probe", "stdout", "stderr", "target"), text)],
}
#: Other arguments without a default: a key, a path, a switch, a moment of a host.
_OTHERS: dict[str, Any] = {"str": "a", "bool": True, "Moment": Moment(1795733900.0, 100.0, "0" * 32)}


def parsers(package: ModuleType) -> dict[str, Parser]:
    """Each parse_… of a package. KeyError for one whose arguments this file does not know."""
    found = {}
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(each.name)
        for name, function in vars(module).items():
            if name.startswith("parse_") and inspect.isfunction(function) and function.__module__ == module.__name__:
                first, *others = inspect.signature(function).parameters.values()
                given = {other.name: _OTHERS[other.annotation] for other in others if other.default is other.empty}
                refuses = ValueError if first.annotation == "Any" else None
                found[f"{each.name[len(package.__name__) + 1 :]}.{name}"] = Parser(
                    function, _MADE[first.annotation], given, tuple(_own(module)), refuses
                )
    return found


def _own(module: ModuleType) -> Iterable[str]:
    """The strings of a module's source, and the words and marks in them, each once."""
    strings = [node.value for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Constant)]
    shown = [text.replace("\n", " ") for text in strings if isinstance(text, str) and 0 < len(text) <= _LONGEST_WORD]
    return dict.fromkeys([*shown, *(word for text in shown for word in re.findall(r"[A-Za-z_][\w.-]*|[^\w\s]", text))])


def read_endless_lines(name: str, parser: Parser) -> bool:
    """True; fails if a line without an end takes a second, or anything but ParseError escapes."""
    random = Random(name)
    units = [*UNITS, *parser.own, " ".join(parser.own[:40]) + " ", ",".join(parser.own[:40]) or ","]
    for unit in _some(random, units, FEW_LONG):
        assert _read(parser, unit * (LONG // len(unit) + 1))
    pairs = [(head, unit) for head in ("", *parser.own) for unit in units]
    for head, unit in _some(random, pairs, FEW_SHORT, most=400):
        assert _read(parser, head + unit * (SHORT // len(unit) + 1) + random.choice(("", "\n", head, '"', "]")))
    return True


def read_endless_values(name: str, parser: Parser) -> bool:
    """The same of numbers and nesting."""
    for text in ("[" * _NESTED, '{"a":' * _NESTED, "(" * _NESTED, _DIGITS, f"[{_DIGITS}]", f"{_DIGITS}.0", f"-{_DIGITS}\n", f"1e{_DIGITS}"):
        assert _read(parser, text)
    for text in _some(Random(name), list(_values(parser)), FEW_DEEP):
        assert _read(parser, text)
    return True


def _values(parser: Parser) -> Iterator[str]:
    for word in parser.own:
        yield from (f"{word} {_DIGITS} {_DIGITS}\n", f"{word}={_DIGITS}\n", f"{word}: {_DIGITS}\n")
        yield f"{{{_quoted(word)}:" + "[" * _NESTED
        yield f"{{{_quoted(word)}:{_DIGITS}}}"


def _quoted(word: str) -> str:
    return '"' + word.replace("\\", "").replace('"', "") + '"'


def _some(random: Random, texts: list[Any], few: int, most: int = 10**6) -> list[Any]:
    return random.sample(texts, min(len(texts), most if EVERYTHING else few))


def _read(parser: Parser, text: str) -> bool:
    with no_time(SECONDS):
        return read_or_refused(parser.read, text)
