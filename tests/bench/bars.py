# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of the benchmark: what they are called, their units and bars, and how they are written and shown."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

MACHINE = f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}"
Line = dict[str, Any]


@dataclass(frozen=True)
class Bar:
    """What a figure is held against: at most `limit`, or, where more is better, at least."""

    limit: float
    at_least: bool = False

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"


def at_most(limit: float) -> Bar:
    return Bar(limit)


def at_least(limit: float) -> Bar:
    return Bar(limit, at_least=True)


#: Metric → unit and bar.
TABLE: dict[str, tuple[str, Bar | None]] = {
    "facts_cpu_ms": ("ms", at_most(60.0)),
    "facts_processes": ("per host", None),
    "facts_s": ("s", None),
    "facts_speedup": ("times", None),
    "facts_all_speedup": ("times", None),
    "facts_kib_per_host": ("KiB", None),
    "gate_fleet_s_1000": ("s", at_most(10.0)),
    "gate_fleet_mib_1000": ("MiB", None),
    "controller_mib_1000": ("MiB", None),
    "controller_worker_mib_1000": ("MiB", None),
    "controller_wall_s_1000": ("s", None),
    "rerun_remote_executions": ("per host", at_most(45.0)),
    "rerun_wall_s": ("s", None),
    "rerun_wall_s_per_host": ("s", None),
    "rerun_wall_ratio": ("times", None),
    "plain_remote_executions": ("per host", None),
    "plain_wall_s": ("s", None),
    "pairs_overhead_64": ("times", at_most(1.10)),
    "pairs_overhead_64_dead_host": ("times", at_most(1.10)),
    "pairs_speedup_over_sequential": ("times", None),
    "pairs_overhead_lab": ("times", at_most(1.25)),
    "schedule_ms_4096x8": ("ms", at_most(20.0)),
    "pairs_hostile_quiet_s": ("s", None),
    "pairs_hostile_flood_lost": ("records", at_most(0.0)),
    "pairs_hostile_flood_ratio": ("times", at_most(1.5)),
    "pairs_hostile_scan_lost": ("records", at_most(0.0)),
    "pairs_hostile_scan_ratio": ("times", at_most(1.5)),
    "pairs_hostile_handshake_lost": ("records", at_most(0.0)),
    "pairs_hostile_handshake_ratio": ("times", at_most(2.0)),
    "pairs_hostile_replay_lost": ("records", at_most(0.0)),
    "pairs_hostile_replay_ratio": ("times", at_most(1.5)),
    "pairs_hostile_pause_lost": ("records", at_most(0.0)),
    "pairs_hostile_pause_more_s": ("s", at_most(6.0)),
    "pairs_hostile_stopped_lost": ("records", at_most(0.0)),
    "pairs_hostile_stopped_more_s": ("s", at_most(20.0)),
    "pairs_hostile_unkillable_lost": ("records", at_most(0.0)),
    "pairs_hostile_unkillable_more_s": ("s", at_most(20.0)),
    "localization_precision": ("share", at_least(0.98)),
    "localization_recall": ("share", at_least(0.98)),
    "verdict_seconds_1024x8": ("s", at_most(60.0)),
    "verdict_peak_mib_1024x8": ("MiB", at_most(2048.0)),
    "result_bytes": ("bytes", at_most(120.0)),
    "fabric_parse_s_2048": ("s", at_most(0.3)),
    "fabric_peak_mib_2048": ("MiB", at_most(300.0)),
    "fabric_findings_s_2048": ("s", at_most(2.0)),
    "fabric_localization_precision": ("share", at_least(0.95)),
    "fabric_localization_recall": ("share", at_least(0.95)),
    "plan_s_4096x8": ("s", at_most(10.0)),
    "plan_peak_mib_4096x8": ("MiB", at_most(1024.0)),
    "plan_s_32768x1": ("s", at_most(60.0)),
    "plan_files_s_512x8": ("s", at_most(15.0)),
    "plan_peak_mib_32768x1": ("MiB", at_most(1024.0)),
    "nccl_log_parse_s": ("s", at_most(10.0)),
    "nccl_log_peak_mib": ("MiB", at_most(500.0)),
}


def figure(
    name: str, value: float | None, command: Sequence[str], reason: str = "", baseline: float | None = None, *, note: str = ""
) -> Line:
    """One line. baseline: what the value is held against, the bar unless given; reason: why there is no value; note: what belongs to it.

    Raises KeyError for a name that TABLE does not have.
    """
    unit, limit = TABLE[name]
    return {
        "metric": name,
        "value": rounded(value),
        "unit": unit,
        "baseline": rounded(limit.limit if baseline is None and limit is not None else baseline),
        "machine": MACHINE,
        "command": " ".join(command),
        "when": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **({"skipped": reason} if reason else {}),
        **({"note": note} if note else {}),
        **({"missed": True} if _misses(value, limit, reason) else {}),
    }


def rounded(value: float | None) -> float | None:
    """Four digits, as lines and notes show them."""
    return None if value is None else float(f"{value:.4g}")


def _misses(value: float | None, limit: Bar | None, reason: str) -> bool:
    """Judged before rounding: 1.10004 is above 1.10."""
    if limit is None:
        return False
    return not reason if value is None else not limit.holds(value)


def missed(line: Line) -> bool:
    """Whether a figure is on the wrong side of its bar, or is not there, and nobody says why, to be held against it."""
    return bool(line.get("missed"))


def table(lines: Sequence[Line]) -> str:
    """The figures for a person, with their bars; MISSED where one does not hold."""
    rows = [("metric", "value", "unit", "bar", "")]
    for line in lines:
        value = "-" if line["value"] is None else f"{line['value']:g}"
        rows.append((line["metric"], value, line["unit"], str(TABLE[line["metric"]][1] or "-"), _remark(line)))
    return "\n".join(f"{row[0]:<32}{row[1]:>8} {row[2]:<9}{row[3]:>8}  {row[4]}".rstrip() for row in rows)


def _remark(line: Line) -> str:
    words = ["MISSED" if missed(line) else "", f"skipped: {line['skipped']}" if "skipped" in line else "", line.get("note", "")]
    return "; ".join(filter(None, words))
