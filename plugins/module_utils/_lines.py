# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of a text from a host, each of bounded length: some forms are searched for in quadratic time."""

from __future__ import annotations

LONGEST_LINE = 4096


def lines_of(text: str, longest: int = LONGEST_LINE, *, keepends: bool = False) -> list[str]:
    """The lines of a text. A line of more characters than `longest` is cut there; with keepends it keeps its end."""
    return [line if len(line) <= longest else line[:longest] + "\n" * line.endswith("\n") for line in text.splitlines(keepends=keepends)]
