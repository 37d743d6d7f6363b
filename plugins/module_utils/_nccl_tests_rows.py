# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rows of nccl-tests' table (src/common.cu, since 2.18 src/util.cu), read by their shape.

size count type [redop] [root], then time, algbw, busbw and #wrong, out of place and in place; with -I four more after each half, with -S a
time of day at the end. Which columns stand there depends on version and collective, and INFO lines of NCCL often tear a row apart.
"""

from __future__ import annotations

import math
import re

from ansible_collections.rdma.cluster.plugins.module_utils._nccl_tests_result import Measured, Row

_TYPE = r"(?:u?int(?:8|32|64)?|u?char|half|b?float(?:16)?|double|fp?8_?e[0-9]m[0-9])"
_START = re.compile(rf"(?<![^\s:|>\]])([0-9]{{1,20}})[ \t]+([0-9]{{1,20}})[ \t]+({_TYPE})(?=\s|$)")
_NUMBER = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,10})?(?:e[+-]?[0-9]{1,3})?|-?nan|inf|N/A")
_WRONG = re.compile(r"[0-9]{1,20}|[0-9](?:\.[0-9]{1,10})?e[+-][0-9]{1,3}|N/A|-?nan|inf")
_COUNT = re.compile(r"[0-9]{1,20}|[0-9](?:\.[0-9]{1,10})?e\+[0-9]{1,2}")
_REDOP = re.compile(r"[a-z][a-z0-9_]{0,20}")
_ROOT = re.compile(r"-?[0-9]{1,7}")
_TIME_OF_DAY = re.compile(r"\s[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\s*$")
#: Where only the in-place half was run, blanks stand for the other one.
_ONLY_IN_PLACE = re.compile(r"\s{30,}")
_HALF = 4
_HALF_WITH_ITERATIONS = 8
_RESTS = (_HALF, 2 * _HALF, 2 * _HALF_WITH_ITERATIONS)


def begins_row(line: str) -> bool:
    """Whether a row begins somewhere on a line, after what a launcher may have put before it."""
    return _START.search(line) is not None


def continues_row(line: str) -> bool:
    """Whether a line holds nothing but what may be the rest of a torn row: a half or both, for a cell in two parts is not to be mended."""
    cells = _TIME_OF_DAY.sub("", line).split()
    return len(cells) in _RESTS and all(_NUMBER.fullmatch(cell) for cell in cells)


def read_row(line: str, deviations: bool | None) -> Row | None:
    """The row on a line, None if it is not whole. deviations: whether the header says "error", as before version 2.13, None if unknown."""
    start = _START.search(line)
    if start is None:
        return None
    rest = _TIME_OF_DAY.sub("", line[start.end() :])
    cells = rest.split()
    split = _split(cells, _ONLY_IN_PLACE.search(rest) is not None)
    if split is None:
        return None
    names, halves = split
    if not all(_is_half(half) for half in halves):
        return None
    redop = names[0] if names and _REDOP.fullmatch(names[0]) else None
    root = int(names[-1]) if names and _ROOT.fullmatch(names[-1]) else None
    if len(names) != (redop is not None) + (root is not None):
        return None
    size, count, type_ = start.groups()
    measured = [_measured(half, deviations) for half in halves]
    return Row(int(size), int(count), type_, redop, root, measured[0] if len(measured) == 2 else None, measured[-1])


def _split(cells: list[str], only_in_place: bool) -> tuple[list[str], list[list[str]]] | None:
    """What stands between the type and the first time, and the halves, without the figures of single iterations."""
    for width in (_HALF, _HALF_WITH_ITERATIONS):
        names = len(cells) - width * (1 if only_in_place else 2)
        if 0 <= names <= 2:
            data = cells[names:]
            return cells[:names], [data[at : at + _HALF] for at in range(0, len(data), width)]
    return None


def _is_half(cells: list[str]) -> bool:
    return all(_NUMBER.fullmatch(cell) for cell in cells[:3]) and _WRONG.fullmatch(cells[3]) is not None


def _measured(cells: list[str], deviations: bool | None) -> Measured:
    time, algbw, busbw = (_number(cell) for cell in cells[:3])
    last = cells[3]
    if deviations is None:
        deviations = "e-" in last or last == "0e+00"
    if deviations:
        return Measured(time, algbw, busbw, None, _number(last))
    return Measured(time, algbw, busbw, int(float(last)) if _COUNT.fullmatch(last) else None)


def _number(cell: str) -> float | None:
    """None for N/A, and for what is no measurement (nan, inf)."""
    value = math.nan if cell == "N/A" else float(cell)
    return value if math.isfinite(value) else None
