# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutants that no test can kill, or that change nothing that matters, each with its reason: equivalent.yml.

An entry names the file, the line before and after, and why nobody can see the difference. It is refused if the file has no such line
any more; the score command also refuses it if the mutant was killed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("equivalent.yml")
Key = tuple[str, str, str]


def explained() -> Mapping[Key, str]:
    """(file, before, after) → the reason. Raises ValueError for an entry whose line is not in its file, or that is there twice."""
    found: dict[Key, str] = {}
    for each in yaml.safe_load(FILE.read_text(encoding="utf-8")):
        key = (each["file"], each["before"], each["after"])
        if key in found:
            raise ValueError(f"explained twice: {key}")
        if not has_line(*key[:2]):
            raise ValueError(f"{key[0]} has no line {key[1]!r}: remove its entry from {FILE.name}")
        found[key] = each["why"]
    return found


def has_line(file: str, before: str) -> bool:
    """Whether a file has these lines, whatever surrounds them."""
    path = ROOT / file
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    wanted = before.split("\n")
    return any(lines[at : at + len(wanted)] == wanted for at in range(len(lines)))


def killed_although_explained(killed: Iterable[Key]) -> list[Key]:
    """The entries that are wrong, because a test has seen the difference."""
    return sorted(set(killed) & explained().keys())
