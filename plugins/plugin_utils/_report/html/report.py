# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write report.html of a run. An error in it never affects the run: write_safely returns the reason instead."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html import history, parts
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.causes import (
    BLOCKS,
    ROWS,
    matrix,
    silenced,
    stopping_causes,
    warnings,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.changes import Changes, changes, last_good
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.hosts import (
    HostFacts,
    affinity,
    kind_of_devices,
    read_hosts,
    versions,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.page import render
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import ReportError, Run, run_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.sweep import read_sweep, sweep_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.verdict import verdict_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.withheld import grouped

FILE = "report.html"
#: Longest reason of a report that could not be written.
REASON = 300


def write_safely(folder: RunFolder) -> tuple[Path | None, str]:
    """Write report.html at the end of a run, and its line of the history. Return the file, or None and the reason."""
    try:
        return write_report(Run(folder)), ""
    except Exception as error:  # noqa: BLE001 (a report must not fail a run, whatever its data does)
        return None, clean(f"{type(error).__name__}: {error}", REASON)


def report_of(base: Path, name: str, compared: str = "") -> Path:
    """Write the report of an old run, or the comparison with another one, and return its file. Raises ReportError.

    base: the folder of all runs; name, compared: IDs of runs, or "latest".
    """
    run = run_of(base, name)
    return write_report(run, run_of(base, compared) if compared else None)


def write_report(run: Run, compared: Run | None = None) -> Path:
    """Write the page of a run, and return its file. With another run: report-vs-RUN.html. Raises ReportError and RunFolderError."""
    if compared is not None and compared.name == run.name:
        raise ReportError(f"rdma_run and rdma_compare are the same run, {run.name}. Name two runs.")
    verdict = verdict_of(run)
    notes = []
    try:
        plan = sweep_plan(run)
    except ParseError as error:
        plan = None
        notes.append(f"The pairs are not shown: {error}.")
    graphs = parts.graphs_of(run)
    facts = read_hosts(run, plan)
    sweep = read_sweep(run, plan, facts, parts.leaves(graphs)) if plan else None
    if compared is None:
        history.append(run, sweep)
    past = history.read(run)
    values = {
        "run": run,
        "verdict": verdict,
        "began": parts.time_words(run.began),
        "notes": notes,
        **_gates(run),
        "sweep": sweep,
        "drawings": parts.drawings(graphs, run.bad),
        **_hosts(run, facts),
        **_measured(run, plan, facts),
        "changes": _changes(run, facts, compared, past, notes),
        "compared": compared,
        "past": past[-history.SHOWN :],
        "trends": history.trends(past),
        "began_words": history.began_words,
    }
    name = FILE if compared is None else f"report-vs-{compared.name}.html"
    return run.folder.write(name, render(values, sweep.page_data() if sweep else {}))


def _gates(run: Run) -> Mapping[str, Any]:
    shown, every = matrix(run)
    found = stopping_causes(run)
    return {
        "matrix": shown,
        "whole_matrix": every,
        "causes": found[:BLOCKS],
        "more_causes": found[BLOCKS:ROWS],
        "left_out": max(0, len(found) - ROWS),
        "warnings": warnings(run)[:ROWS],
        "silenced": silenced(run)[:ROWS],
        "withheld": grouped(run.folder),
    }


def _hosts(run: Run, facts: HostFacts) -> Mapping[str, Any]:
    proofs, later = parts.proofs(run)
    return {
        "versions": versions(facts),
        "affinity": affinity(facts),
        "unread": sorted(facts.unread.items())[: parts.ROWS],
        "counters": parts.risen_counters(run),
        "drift": parts.drift_lines(run),
        "proofs": proofs,
        "later_proofs": later,
        "most": parts.ROWS,
    }


def _measured(run: Run, plan: Mapping[str, Any] | None, facts: HostFacts) -> Mapping[str, Any]:
    found, blames, problem = parts.collectives(run)
    blamed = run.mapping("pairs/summary.json")
    return {
        "collectives": found,
        "collective_blames": [*blames, *([problem] if problem else [])],
        "pair_verdicts": [str(each) for each in blamed.get("verdicts") or []],
        "pair_cleared": [str(each) for each in blamed.get("cleared") or []],
        "commands": parts.commands(run, plan, found),
        "evidence": parts.evidence(kind_of_devices(facts), run, plan, found),
    }


def _changes(run: Run, facts: HostFacts, compared: Run | None, past: list[history.Past], notes: list[str]) -> Changes | None:
    """The differences to the named run, else to the last good one. A good run of another schema is only noted."""
    if compared is not None:
        return changes(run, facts, compared, pairs=True)
    good = last_good(run, past)
    if good is None:
        return None
    try:
        return changes(run, facts, good, pairs=False)
    except ReportError as error:
        notes.append(f"No comparison with the last good run: {error}")
        return None
