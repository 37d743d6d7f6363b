# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Python of its own that finds what this one finds."""

from __future__ import annotations

import os
import sys


def environment() -> dict[str, str]:
    """For a child process: ours, with our places of modules."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
