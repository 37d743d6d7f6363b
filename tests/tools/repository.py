# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a clone, by git. Needs the standard library of Python 3.9 alone, since it runs before there is a virtual environment."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

#: The record of green scenarios. A run rewrites it, so a change of it does not make a tree dirty.
RECORD = "tests/ci/scenarios.json"


class Clone:
    """A folder that may be a git repository."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def clean_commit(self) -> str:
        """The commit that is checked out; empty if files differ from it (the record aside), or without git."""
        changed = self._git("status", "--porcelain", "--", ".", f":!{RECORD}")
        return (self._git("rev-parse", "HEAD") or "").strip() if changed == "" else ""

    def changed(self, commit: str, paths: Sequence[str]) -> list[str] | None:
        """The tracked files that match one of these git pathspecs and differ from a commit, uncommitted changes included.

        None if the commit is not here: in a shallow clone, after a rebase, or without git.
        """
        if self._git("cat-file", "-e", f"{commit}^{{commit}}") is None:
            return None
        names = self._git("diff", "--name-only", "-z", commit, "--", *paths)
        return None if names is None else [name for name in names.split("\0") if name]

    def _git(self, *words: str) -> str | None:
        """The output of git; None if it fails or is not installed. A clone that belongs to another user is read too, for root."""
        argv = ["git", "-c", f"safe.directory={self.root.resolve()}", *words]
        try:
            done = subprocess.run(argv, cwd=self.root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return None
        return done.stdout if done.returncode == 0 else None
