# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layout of an explanation: labeled lines and tables of plain text, some of them marked."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean, first_of

WIDTH = 120
MARK = "!"
NOT_READ = "not read"
_GAP = "  "
# A piece that is kept on one line: up to a blank, or to the commas of a list.
_PIECE = re.compile(r"[^ ,]+,* ?|,+ ?")


@dataclass(frozen=True)
class Item:
    """A labeled line; marked: it needs attention."""

    label: str
    text: str
    marked: bool = False


@dataclass(frozen=True)
class Row:
    """A line of a table; notes are printed below it."""

    cells: tuple[str, ...]
    marked: bool = False
    notes: tuple[str, ...] = ()


def section(title: str, *blocks: Sequence[str]) -> str:
    return "\n".join([title, *(line for block in blocks for line in block)])


def items(lines: Iterable[Item | None], indent: int = 2) -> list[str]:
    """Labeled lines with their texts in one column; None is omitted."""
    there = [line for line in lines if line is not None]
    widest = max((len(clean(line.label)) for line in there), default=0)
    return [text for line in there for text in _item(line, indent, widest)]


def _item(line: Item, indent: int, widest: int) -> list[str]:
    lead = _marked(line.marked, indent) + clean(line.label).ljust(widest) + _GAP
    lines = wrap(line.text, WIDTH - len(lead))
    return [(lead + lines[0]).rstrip(), *(" " * len(lead) + more for more in lines[1:])]


def text_lines(text: str, indent: int = 2, *, marked: bool = False) -> list[str]:
    """A sentence, wrapped to as many lines as needed."""
    first, *rest = wrap(text, WIDTH - indent)
    return [_marked(marked, indent) + first, *(" " * indent + line for line in rest)]


def table(header: Sequence[str], rows: Sequence[Row], most: Sequence[int]) -> list[str]:
    """Columns below a header. most: the maximum width of each column but the last, which gets the rest of WIDTH."""
    columns = list(zip(header, *(row.cells for row in rows), strict=True))
    widths = [min(max(len(clean(cell)) for cell in column), limit) for column, limit in zip(columns, most, strict=False)]
    widths.append(WIDTH - 2 - sum(widths) - len(_GAP) * len(widths))
    lines = []
    for row in (Row(tuple(header)), *rows):
        lines += _row(row, widths)
    return lines


def _row(row: Row, widths: Sequence[int]) -> list[str]:
    cells = [wrap(cell, width) for cell, width in zip(row.cells, widths, strict=True)]
    lines = [
        " " * 2 + _GAP.join(text.ljust(width) for text, width in zip(texts, widths, strict=True))
        for texts in itertools.zip_longest(*cells, fillvalue="")
    ]
    lines[0] = _marked(row.marked, 2) + lines[0][2:]
    return [*(line.rstrip() for line in lines), *(line for note in row.notes for line in text_lines(note, 6))]


def _marked(marked: bool, indent: int) -> str:
    return (MARK if marked else "").ljust(indent)


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text, at least one: broken at blanks, after the commas of a list, and within a word only if it is too long."""
    lines, line = [], ""
    for piece in _PIECE.findall(" ".join(clean(text).split())):
        if line and len(line) + len(piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece
        while len(line.rstrip()) > width:
            lines.append(line[:width])
            line = line[width:]
    return [*lines, line.rstrip()] if line or not lines else lines


def listed(names: Sequence[str], most: int = 4) -> str:
    """The first names and the number of the others; "none" if there are none."""
    return first_of(names, most) or "none"


def duration_words(seconds: float) -> str:
    """The two largest units of a time: "3 days 4 h"."""
    minutes = int(seconds // 60)
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days} {'day' if days == 1 else 'days'} {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"
