# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error that the lab shows to a person."""

from __future__ import annotations

from pathlib import Path


class LabError(Exception):
    """Something that the person at the keyboard can act on: one sentence, or a list of what is missing, printed as it is, exit status 1."""


def console_tail(folder: Path) -> str:
    """The last lines of a machine's console, to follow a message: the file goes away with what does not come up. Empty without one."""
    file = folder / "console.log"
    lines = [line for line in file.read_text(errors="replace").splitlines() if line.strip()] if file.exists() else []
    return "".join(f"\n  console of {folder.name}: {line[:200]}" for line in lines[-5:])
