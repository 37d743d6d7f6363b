# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Labelled lines, tables and broken lines: whole texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import (
    WIDTH,
    Item,
    Row,
    duration_words,
    items,
    listed,
    section,
    table,
    text_lines,
    wrap,
)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one", ["one"]),
        ("one two three", ["one two", "three"]),
        ("=mlx5_0:1,mlx5_1:1", ["=mlx5_0:1,", "mlx5_1:1"]),
        ("one, two", ["one, two"]),
        ("0123456789abcdef", ["0123456789", "abcdef"]),
        ("ab 0123456789abcdef gh", ["ab", "0123456789", "abcdef gh"]),
        (" a \t b ", ["a ? b"]),
    ],
)
def test_where_a_line_is_broken(text: str, lines: list[str]) -> None:
    assert wrap(text, 10) == lines


@given(st.text(st.characters() | st.sampled_from(" ,\n"), max_size=200), st.integers(1, 40))
def test_a_broken_text_has_all_its_characters_and_this_width(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert lines
    assert max(map(len, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(clean(text).split())


def test_labels_and_texts_stand_in_columns_and_a_mark_before_the_line() -> None:
    lines = items([Item("a", "first"), None, Item("longer", "second " * 20, marked=True), Item("b", "")])
    assert lines == [
        "  a       first",
        "! longer  " + "second " * 14 + "second",
        " " * 10 + "second second second second second",
        "  b",
    ]
    assert items([]) == []


def test_a_table_gives_what_is_left_to_its_last_column() -> None:
    rows = [Row(("x", "a,b,c,d,e,f", "word " * 30), marked=True, notes=("a note", "n" * 120)), Row(("yyyyyyy", "", "end"))]
    lines = table(("one", "two", "three"), rows, (4, 6))
    assert lines == [
        "  one   two     three",
        "! x     a,b,c,  " + "word " * 20 + "word",
        "        d,e,f   " + "word " * 8 + "word",
        "      a note",
        " " * 6 + "n" * 114,
        " " * 6 + "n" * 6,
        "  yyyy          end",
        "  yyy",
    ]
    assert max(map(len, lines)) <= WIDTH


def test_a_section_is_a_title_and_its_lines() -> None:
    assert section("TITLE", ["  a"], [], ["  b", "  c"]) == "TITLE\n  a\n  b\n  c"
    assert text_lines("word " * 30, 4, marked=True) == ["!   " + "word " * 22 + "word", "    " + "word " * 6 + "word"]


def test_a_terminal_gets_no_orders_from_a_host() -> None:
    assert clean("a\x1b[31mb\nc\u202ed\x00") == "a?[31mb c?d?"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 min"),
        (59.9, "0 min"),
        (3599, "59 min"),
        (3600, "1 h 0 min"),
        (86399, "23 h 59 min"),
        (86400, "1 day 0 h"),
        (273600, "3 days 4 h"),
    ],
)
def test_a_time_has_two_units(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


@pytest.mark.parametrize(
    ("names", "words"), [([], "none"), (["a"], "a"), (["a", "b", "c", "d"], "a, b, c, d"), (list("abcdef"), "a, b, c, d and 2 more")]
)
def test_of_many_names_the_first(names: list[str], words: str) -> None:
    assert listed(names) == words
