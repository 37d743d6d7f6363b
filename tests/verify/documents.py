# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that the documents show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: A block of commands: each command is behind a "$", and what it prints follows.
FENCE = re.compile(r"^ *```(\w*)$")
BLOCKS = ("console",)
PROMPT = "$ "
#: A command within a sentence or table.
INLINE = re.compile(r"`((?:make|lab/lab|ansible-playbook|ansible|python3? -m) [^`]+)`")


@dataclass(frozen=True)
class Shown:
    """A command as a document shows it. file: below the repository. block: in a block of its own, and complete."""

    file: str
    line: int
    text: str
    block: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def documents() -> list[Path]:
    """Return the Markdown that users and contributors read."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "roles").glob("*/README.md"))]


def shown() -> list[Shown]:
    """Return all commands of all documents."""
    return [each for path in documents() for each in _of(path)]


def _of(path: Path) -> Iterator[Shown]:
    name, fence = str(path.relative_to(ROOT)), None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := FENCE.match(line):
            fence = match[1] if fence is None else None
        elif fence in BLOCKS and line.lstrip().startswith(PROMPT):
            text = line.lstrip()[len(PROMPT) :].split("  #")[0].strip()
            yield from (Shown(name, number, each.strip(), block=True) for each in text.split("&&"))
        elif fence is None:
            yield from (Shown(name, number, " ".join(each.split()), block=False) for each in INLINE.findall(line))
