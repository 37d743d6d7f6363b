# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every parser of a text, found by its name: endless lines take no time, and nothing but ParseError escapes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins import module_utils
from tests.unit.garbled import no_time, read_or_refused

Parser = Callable[[str], Any]
LONG = 4 * 2**20
#: Enough for what is quadratic to take longer than a second.
SHORT = 64 * 2**10
#: What a line repeats to its end: what quotes, tables, options and nested texts are made of.
UNITS = ("a", " ", "A_", "a,b:")
SHORT_UNITS = ("1 ", "a=", "# ", '"', "Test: ", "a[b] ", "a: ", "[", "{", *UNITS)
HEADS = ("", "#bytes ", "# Rank ", "node1:1:1 [0] NCCL WARN ", "Max locked memory ", "Id=", "NAME=")
#: Texts that are short, and more than a number or a stack can hold.
DEEP = (
    "[" * 200_000,
    '{"a":' * 200_000,
    "9" * 5000,
    "[" + "9" * 5000 + "]",
    "Max locked memory  " + "9" * 5000 + "  " + "9" * 5000 + "  bytes\n",
)


def parsers() -> dict[str, Parser]:
    """Each parse_…(text) whose other arguments have defaults."""
    found = {}
    for each in pkgutil.iter_modules(module_utils.__path__):
        module = importlib.import_module(f"{module_utils.__name__}.{each.name}")
        for name, function in vars(module).items():
            if name.startswith("parse_") and inspect.isfunction(function) and function.__module__ == module.__name__:
                first, *others = inspect.signature(function).parameters.values()
                if first.annotation == "str" and all(other.default is not other.empty for other in others):
                    found[f"{each.name}.{name}"] = function
    return found


PARSERS = parsers()


def test_there_are_parsers() -> None:
    assert len(PARSERS) > 100


@pytest.mark.parametrize("name", PARSERS)
def test_a_line_without_an_end_takes_no_time(name: str) -> None:
    for text in (unit * (LONG // len(unit)) for unit in UNITS):
        with no_time(1.0):
            read_or_refused(PARSERS[name], text)
    for text in (head + unit * (SHORT // len(unit)) + "\n" for head in HEADS for unit in SHORT_UNITS):
        with no_time(1.0):
            read_or_refused(PARSERS[name], text)


@pytest.mark.parametrize("name", PARSERS)
def test_depth_and_endless_numbers_are_refused(name: str) -> None:
    for text in DEEP:
        for each in (text, f"{text}\n"):
            read_or_refused(PARSERS[name], each)
