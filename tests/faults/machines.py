# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that need a simulated fabric, namespaces or machines. Scenarios inject them; machines.yml lists them with their commands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

FILE = Path(__file__).parent / "machines.yml"


@dataclass(frozen=True)
class MachineFault:
    """One fault. check: that must report it; injected: the file that injects and requires it."""

    id: str
    breaks: str
    rung: str
    command: str
    check: str
    injected: str


@cache
def machine_faults() -> tuple[MachineFault, ...]:
    """Every fault of machines.yml."""
    return tuple(MachineFault(**each) for each in yaml.safe_load(FILE.read_text(encoding="utf-8")))
