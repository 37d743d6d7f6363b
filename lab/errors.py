# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The error that the lab shows to its user."""

from __future__ import annotations

from pathlib import Path


class LabError(Exception):
    """An error that the user can fix. Its message, a sentence or a list of missing things, is printed unchanged; the exit status is 1."""


def console_tail(folder: Path) -> str:
    """Return the last lines of a node's console to append to a message, because a failed `up` removes the file; "" without a console."""
    file = folder / "console.log"
    lines = [line for line in file.read_text(errors="replace").splitlines() if line.strip()] if file.exists() else []
    return "".join(f"\n  console of {folder.name}: {line[:200]}" for line in lines[-5:])
