# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts for parsers that must not fall over: anything at all, and a real output that lost a part or got another into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._errors import MESSAGE, ParseError

#: What a digit, a blank or a letter is to Python and not to the tools.
ODD = st.text(st.sampled_from("²٣０\0\r\n\t\x0b\u2028 :,=/[]()0a-") | st.characters(), max_size=40)


def garbled(sample: str) -> st.SearchStrategy[str]:
    """Any text, the sample cut off anywhere, a piece of it replaced, or its lines dropped, doubled, moved and mixed with others."""
    position = st.integers(0, len(sample))
    lines = sample.split("\n")
    return st.one_of(
        st.text(max_size=300),
        position.map(lambda end: sample[:end]),
        st.tuples(position, position, ODD).map(lambda parts: sample[: parts[0]] + parts[2] + sample[parts[1] :]),
        st.lists(st.sampled_from(lines) | ODD, max_size=3 * len(lines)).map("\n".join),
    )


def read_or_refused(parser: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a parser takes a text, or refuses it with a ParseError that says something and not too much. Anything else escapes."""
    try:
        parser(*arguments)
    except ParseError as error:
        return 0 < len(str(error)) <= MESSAGE + len(" … ")
    return True
