# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small git repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(root: Path, *words: str) -> str:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.com", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def commit_all(root: Path) -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "A change")
    return git(root, "rev-parse", "HEAD")
