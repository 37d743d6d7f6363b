# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every parser of a text, found by its name: endless lines take no time, and nothing but ParseError escapes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from ansible_collections.rdma.cluster.plugins import module_utils
from tests.unit.builders.endless import LONG, SECONDS, Parser, parsers, read_endless_lines, read_endless_values
from tests.unit.builders.garbled import no_time, read_or_refused

#: Texts that some parser once took minutes for, or fell over.
HEADS = ("#bytes ", "# Rank ", "node1:1:1 [0] NCCL WARN ", "Max locked memory ", "Id=", "NAME=")
KNOWN = ("a", "A_", "a,b:")
PARSERS = parsers(module_utils)


def test_there_are_parsers() -> None:
    assert len(PARSERS) > 110


def busy(_text: str) -> None:
    begun = time.process_time()
    while time.process_time() - begun < SECONDS:
        pass


@pytest.mark.parametrize(
    ("function", "error", "read"),
    [
        (busy, AssertionError, read_endless_lines),
        (int, ValueError, read_endless_values),
        (json.loads, RecursionError, read_endless_values),
    ],
)
def test_a_parser_that_does_it_is_caught(function: Callable[[str], object], error: type[Exception], read: Callable[..., None]) -> None:
    with pytest.raises(error):
        read("of a test", Parser(function, str, {}, ()))


@pytest.mark.parametrize("name", PARSERS)
def test_a_line_without_an_end_takes_no_time(name: str) -> None:
    assert read_endless_lines(name, PARSERS[name])
    for head in HEADS:
        for unit in KNOWN:
            with no_time(1.0):
                assert read_or_refused(PARSERS[name].read, head + unit * (LONG // 64 // len(unit)) + "\n")


@pytest.mark.parametrize("name", PARSERS)
def test_depth_and_endless_numbers_are_refused(name: str) -> None:
    assert read_endless_values(name, PARSERS[name])


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("_collectives.parse.parse_nccl_tests", "[1," * 1300),
        ("_collectives.parse.parse_nccl_tests", "a" * 4000),
        ("_fabric.iblinkinfo.parse_iblinkinfo", "0x506b4b030000" + " " * 2500 + '1  2[  ] ==( 4X  25.8 Gbps) "x"'),
    ],
)
def test_many_long_lines_take_little_time(name: str, line: str) -> None:
    """What is quadratic in a line, though that is cut, is slow where a text has many of them."""
    with no_time(1.0):
        assert read_or_refused(PARSERS[name].read, f"{line}\n" * 100)
