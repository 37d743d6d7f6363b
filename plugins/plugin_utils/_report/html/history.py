# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The history of a folder of runs: one line a run in history.jsonl beside them, so that trends need not read old runs.

Every run appends its line at its end. A line that cannot be read is ignored. Runs of several inventories in one folder share the file.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.charts import lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.sweep import Sweep
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RUN_ID

FILE = "../history.jsonl"
SCHEMA = 1
#: The newest bytes of the file that are read, and the runs that the page shows.
MOST_BYTES, SHOWN = 4 * 2**20, 60
NUMBERS = ("error", "unknown", "warning", "hosts")


@dataclass(frozen=True)
class Past:
    """One run of the history. rails: name → {"measured", "median_gbps", "lowest_gbps", "lowest_pair", "median_usec"}."""

    run: str
    outcome: str
    is_check: bool
    hosts: int
    errors: int
    unknowns: int
    warnings: int
    rails: Mapping[str, Mapping[str, Any]]

    @property
    def lowest(self) -> str:
        """The lowest measurement of the run in words, "" without one."""
        found = [(each["lowest_gbps"], rail, each["lowest_pair"]) for rail, each in self.rails.items() if each["lowest_gbps"] is not None]
        if not found:
            return ""
        gbps, rail, pair = min(found)
        return f"{gbps:.4g} Gb/s, {rail}, {pair}"


def record_of(run: Run, sweep: Sweep | None) -> dict[str, Any]:
    """Return the line of a run."""
    counts = Counter(each.status for each in run.findings if each.silenced_by is None)
    rails = {
        rail.name: {
            "measured": rail.measured,
            "median_gbps": rail.quantiles[3] if rail.quantiles else None,
            "lowest_gbps": rail.quantiles[0] if rail.quantiles else None,
            "lowest_pair": _pair_words(rail.worst),
            "median_usec": rail.usec_median,
        }
        for rail in (sweep.rails if sweep else ())
    }
    numbers = {"error": counts[ERROR], "unknown": counts[UNKNOWN], "warning": counts[WARNING], "hosts": len(run.hosts)}
    return {"schema": SCHEMA, "run": run.name, "outcome": run.outcome, "check_mode": run.is_check, **numbers, "rails": rails}


def _pair_words(worst: Sequence[Any]) -> str:
    low = next((pair for pair in worst if pair.gbps is not None), None)
    return f"{low.sender} to {low.receiver}" if low else ""


def append(run: Run, sweep: Sweep | None) -> None:
    """Append the line of a run, in one write, so that runs that end at once do not mix their lines. Once a run."""
    if any(each.run == run.name and each.outcome == run.outcome for each in read(run)):
        return
    line = json.dumps(record_of(run, sweep), sort_keys=True, ensure_ascii=True) + "\n"
    descriptor = os.open(run.folder.path / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def read(run: Run) -> list[Past]:
    """Return the runs up to this one, oldest first. The last line of a run counts."""
    found: dict[str, Past] = {}
    for line in _tail(run.folder.path / FILE):
        past = _past(line)
        if past is not None and past.run <= run.name:
            found[past.run] = past
    return [found[name] for name in sorted(found)]


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - MOST_BYTES))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()[1 if size > MOST_BYTES else 0 :]


def _past(line: str) -> Past | None:
    try:
        data = json.loads(line)
        if data["schema"] != SCHEMA or not RUN_ID.fullmatch(data["run"]) or not all(isinstance(data[name], int) for name in NUMBERS):
            return None
        rails = {clean(str(rail)): _rail(each) for rail, each in data["rails"].items()}
        counts = {"hosts": data["hosts"], "errors": data["error"], "unknowns": data["unknown"], "warnings": data["warning"]}
        return Past(data["run"], clean(str(data["outcome"]), 40), data["check_mode"] is True, rails=rails, **counts)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _rail(data: Mapping[str, Any]) -> dict[str, Any]:
    figures = {name: None if data[name] is None else float(data[name]) for name in ("median_gbps", "lowest_gbps", "median_usec")}
    return {**figures, "measured": int(data["measured"]), "lowest_pair": clean(str(data["lowest_pair"]))}


@dataclass(frozen=True)
class Trend:
    """A chart over the runs of the history, and its series by name."""

    title: str
    chart: Markup
    names: Sequence[str]


def trends(past: Sequence[Past]) -> list[Trend]:
    """Return the charts: the medians of rails, the lowest pair of each rail, and findings. Empty with fewer than two runs."""
    shown = past[-SHOWN:]
    if len(shown) < 2:
        return []
    rails = sorted({rail for each in shown for rail in each.rails})
    charts = []
    for title, key in (("median of each rail, Gb/s", "median_gbps"), ("lowest pair of each rail, Gb/s", "lowest_gbps")):
        series = [[(each.rails.get(rail) or {}).get(key) for each in shown] for rail in rails]
        if rails:
            charts.append(Trend(title, lines(series, f"{title}, {len(shown)} runs; the table has the values"), rails))
    found = [[float(getattr(each, name)) for each in shown] for name in ("errors", "unknowns", "warnings")]
    charts.append(
        Trend("findings", lines(found, f"findings of {len(shown)} runs; the table has the values"), ("error", "unknown", "warning"))
    )
    return charts


def began_words(past: Past) -> str:
    """Return when a run began, by its ID."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.strptime(past.run[:16], "%Y%m%dT%H%M%SZ"))
