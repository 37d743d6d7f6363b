# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pages of text and tables as Markdown and as HTML that contains all it needs. Every text may come from a fabric, so all are escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean

_TEMPLATE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{{ page.title }}</title>
<style>
body{font:14px/1.4 sans-serif;margin:2em;color:#1f2933}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:1.6em}
table{border-collapse:collapse;margin:.6em 0}
th,td{border:1px solid #c9c9c0;padding:.15em .5em;text-align:left;vertical-align:top}
th{background:#eef2f6}
tr{break-inside:avoid}
.own{break-before:page}
</style>
</head>
<body>
<h1>{{ page.title }}</h1>
{% for section in page.sections %}<h2{% if section.own_page and not loop.first %} class="own"{% endif %}>{{ section.title }}</h2>
{% for line in section.lines %}<p>{{ line }}</p>
{% endfor %}{% for table in section.tables %}<table>
<thead><tr>{% for text in table.head %}<th>{{ text }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in table.rows %}<tr>{% for text in row %}<td>{{ text }}</td>{% endfor %}</tr>
{% endfor %}</tbody>
</table>
{% endfor %}{% endfor %}</body>
</html>
"""
_HTML = Environment(autoescape=True).from_string(_TEMPLATE)
#: Characters with a meaning in Markdown or in the HTML that it may contain.
_MARKS = re.compile(r"([\\`*_\[\]<>|#&~])")


@dataclass(frozen=True)
class Table:
    """A table: the texts of its head and of its rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """A part of a page: lines, then tables. own_page: it begins a page when it is printed."""

    title: str
    lines: Sequence[str] = ()
    tables: Sequence[Table] = ()
    own_page: bool = False


@dataclass(frozen=True)
class Page:
    """A page."""

    title: str
    sections: Sequence[Section]


def html(page: Page) -> str:
    """Return the page as HTML without references to other files."""
    return _HTML.render(page=page) + "\n"


def markdown(page: Page) -> str:
    """Return the page as Markdown."""
    parts = [f"# {_words(page.title)}"]
    for section in page.sections:
        parts.append(f"## {_words(section.title)}")
        parts += [_words(line) for line in section.lines]
        parts += ["\n".join(_table(table)) for table in section.tables]
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> list[str]:
    rows = [table.head, ["---"] * len(table.head), *table.rows]
    return ["| " + " | ".join(text if number == 1 else _words(text) for text in row) + " |" for number, row in enumerate(rows)]


def _words(text: str) -> str:
    return _MARKS.sub(r"\\\1", clean(text, len(text)))
