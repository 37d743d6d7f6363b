# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts for parsers that must not fall over: anything at all, and a real output that lost a part or got another into it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import MESSAGE, ParseError

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
    """True, as a parser takes a text, or refuses it with a ParseError that says something and not too much. Anything else escapes."""
    answer = None
    try:
        parser(*arguments)
    except ParseError as error:
        answer = str(error)
    assert answer is None or 0 < len(answer) <= MESSAGE + len(" … "), f"an error of {len(answer)} characters: {answer[:200]!r}"
    return True


@contextmanager
def no_time(seconds: float = 2.0) -> Iterator[None]:
    """AssertionError for what takes this process more CPU time: what is quadratic in a long text, as what is linear takes milliseconds."""
    begun = time.process_time()
    yield
    took = time.process_time() - begun
    assert took < seconds, f"it took {took:.1f} s of CPU time, expected less than {seconds} s"
