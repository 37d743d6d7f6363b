# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prometheus' text format 0.0.4 (exposition_formats.md): families of samples as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

GAUGE, COUNTER = "gauge", "counter"
Labels = Mapping[str, str]
Sample = tuple[Labels, float]


@dataclass(frozen=True)
class Metric:
    """A family: its name, with the base unit at the end, what it is, and GAUGE or COUNTER."""

    name: str
    words: str
    kind: str = GAUGE


def exposition(metric: Metric, samples: Iterable[Sample]) -> str:
    """Return a family as text; "" without samples. A value that is NaN or infinite is left out."""
    lines = [f"{metric.name}{_labels(labels)} {_number(value)}\n" for labels, value in samples if math.isfinite(value)]
    return f"# HELP {metric.name} {metric.words}\n# TYPE {metric.name} {metric.kind}\n{''.join(lines)}" if lines else ""


def _labels(labels: Labels) -> str:
    words = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{words}}}" if words else ""


def _escaped(value: str) -> str:
    """Return a label's value with backslash, quote and line feed escaped."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
