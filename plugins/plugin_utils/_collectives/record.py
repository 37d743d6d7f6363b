# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The runs of a collectives stage as stored in the run folder, and their results for the ladder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, Finding, stopping
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import (
    BUSBW_CHECK,
    EXIT_CHECK,
    HCAS_CHECK,
    RANKS_CHECK,
    TRANSPORT_CHECK,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.blame import Blame
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.ladder import Ladder
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.runs import FAILED, SETUP_FAULT, SLOW, WELL, Result

SCHEMA = 1
#: Above any bandwidth in GB/s and any time in seconds.
MOST = 1e9
#: The beginnings of CommandError if there is nothing to run; no other set of hosts avoids that.
_NOTHING_TO_RUN = ("command not found", "cannot run")

#: Sizes of a run that are stored at most.
MOST_SIZES = 64
#: One run: {"operation", "hosts", "status", "gbytes_per_s", "expected_gbytes_per_s", "sizes", "seconds", "argv", "log", "findings"}.
#: sizes: [bytes, GB/s] of each size, out of place. expected_gbytes_per_s: null if there is no expectation.
Record = dict[str, Any]


def record(hosts: Sequence[str], operation: str, answer: Mapping[str, Any], expected: float | None = None) -> Record:
    """Return a run from the result of rdma.cluster.nccl_test. expected: the expected busbw in GB/s, None if there is none.

    Raises KeyError, TypeError or ValueError for an invalid result.
    """
    findings = [Finding.from_dict(each) for each in answer["findings"]]
    busbw, log = answer["busbw_gbytes_per_s"], answer["log"]
    return {
        "operation": operation,
        "hosts": list(hosts),
        "status": status_of(findings),
        "gbytes_per_s": None if busbw is None else _amount(busbw),
        "expected_gbytes_per_s": expected,
        "sizes": _sizes(answer.get("result")),
        "seconds": round(_amount(answer["seconds"]), 3),
        "argv": [clean(str(each)) for each in answer["argv"]],
        "log": None if log is None else clean(str(log)),
        "findings": [each.to_dict() for each in findings],
    }


def _sizes(result: Any) -> list[list[float]]:
    """Return [bytes, busbw in GB/s] of each size; empty without a parsed output."""
    rows = result.get("rows", ()) if isinstance(result, Mapping) else ()
    pairs = [(row["size_bytes"], (row["out_of_place"] or row["in_place"] or {}).get("busbw_gbytes_per_s")) for row in rows[:MOST_SIZES]]
    return [[int(size), _amount(rate)] for size, rate in pairs if rate is not None and not isinstance(size, bool)]


def _amount(value: Any) -> float:
    """Return a figure that is neither negative nor infinite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < MOST:
        raise ValueError(f"expected a number from 0, got {quoted(value)}")
    return float(value)


def brief(run: Record) -> Record:
    """Return a run with only the findings that are not ok: a ladder has dozens of runs, each with findings of every host."""
    return {**run, "findings": [each for each in run["findings"] if each["status"] != OK]}


def findings_of(run: Record) -> list[Finding]:
    return [Finding.from_dict(each) for each in run["findings"]]


def status_of(findings: Sequence[Finding]) -> str:
    """Return the status of a run for the ladder, from its findings."""
    bad = stopping(findings)
    if not bad:
        return WELL
    if any(each.check == RANKS_CHECK and each.status == ERROR for each in bad):
        return SETUP_FAULT
    if any(each.check == EXIT_CHECK and each.observed.startswith(_NOTHING_TO_RUN) for each in bad):
        return SETUP_FAULT
    return SLOW if all(each.check == BUSBW_CHECK and each.status == ERROR for each in bad) else FAILED


def result_of(run: Record) -> Result:
    """Return a run as the ladder uses it."""
    bad = [each for each in findings_of(run) if each.status == ERROR]
    accused = frozenset(each.host for each in bad if each.check in (TRANSPORT_CHECK, HCAS_CHECK))
    why = "; ".join(dict.fromkeys(f"{each.check}: {each.observed}" for each in bad[:3]))
    return Result(tuple(run["hosts"]), run["status"], run["gbytes_per_s"], accused, why)


def ladder_data(ladder: Ladder, runs: Sequence[Record], others: Sequence[Record], launcher: str, problem: str = "") -> dict[str, Any]:
    """Return the content of collectives.json. others: runs of other operations on the last set. problem: why the ladder was interrupted."""
    last = [place for place, run in enumerate(runs) if set(run["hosts"]) == set(ladder.well) and run["status"] == WELL]
    return {
        "schema": SCHEMA,
        "launcher": launcher,
        "ended": ladder.step is None and not problem,
        "problem": problem,
        "well": list(ladder.well),
        "left_out": list(ladder.left_out),
        "blames": [{**asdict(blame), "words": blame.words} for blame in ladder.blames],
        "runs": [run if place in last[:1] else brief(run) for place, run in enumerate(runs)],
        "also": list(others),
    }


def blame_of(data: Mapping[str, Any]) -> Blame:
    """Return one blame from collectives.json."""
    hosts = {key: tuple(data[key]) for key in ("hosts", "others", "left_out")}
    return Blame(kind=data["kind"], by_itself=data["by_itself"], **hosts)
