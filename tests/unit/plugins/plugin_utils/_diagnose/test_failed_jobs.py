# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of jobs that were made to fail on two H200: the first cause, what the log itself confirms, and no line that is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.diagnose import Diagnosis, Fleet, diagnose
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import read_job_log
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import CONFIRMED, EXCLUDED, Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import UNKNOWN

JOBS = Path(__file__).parents[3] / "fixtures/jobs"
PROGRAM, RANK = "ranks wait in different collectives", "a rank does not participate"
#: Log → the first cause, and the cause that the log confirms with its words.
EXPECTED: dict[str, tuple[str | None, dict[str, str]]] = {
    "late_rank": (
        "torch.timeout",
        {RANK: "rank 1, on vm had not begun this collective: the last one was number 3, and the process still ran"},
    ),
    "recv_without_send": (
        "torch.timeout",
        {RANK: "rank 1, on vm had not begun this collective: the last one was number 3, and the process still ran"},
    ),
    "stopped_rank": ("torch.timeout", {RANK: "rank 1 of 2 did not report it, on vm"}),
    "different_kinds": ("torch.timeout", {PROGRAM: "ranks wait in collectives number 5, 4"}),
    "missing_collective": (
        "torch.timeout",
        {PROGRAM: "ranks wait in ALLREDUCE, number 4, with different numbers of elements: 1048576, 1"},
    ),
    "killed_rank": ("process.killed", {}),
    "sockets_killed": ("process.killed", {}),
    "exception": ("program.exception", {}),
    "illegal_access": ("cuda.access", {}),
    "out_of_memory": ("cuda.memory", {}),
    "hidden_gpu": ("cuda.ordinal", {}),
    "ib_only": ("ib.no_device", {}),
    "no_plugin": ("net.plugin", {}),
    "no_interface": ("socket.no_interface", {}),
    "truncated": (None, {}),
}


def read(name: str, *more: str) -> Diagnosis:
    """The diagnosis of a log, with more lines at its end, of hosts that are not known."""
    lines = [*(JOBS / f"{name}.txt").read_text(encoding="utf-8").splitlines(keepends=True), *more]
    return diagnose(read_job_log(lines), Fleet({}, lambda host: Known(host, None, None), {}))


def causes(diagnosis: Diagnosis, verdict: str) -> dict[str, str]:
    """The causes of the first line with a verdict: their words → what was seen."""
    first = next((finding for finding in diagnosis.findings if finding.first), None)
    found = first.causes if first is not None else ()
    return {each.says: "; ".join(answer.seen for answer in each.answers.values()) for each in found if each.verdict == verdict}


def test_each_log_has_an_expectation() -> None:
    assert {path.stem for path in JOBS.glob("*.txt")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_the_first_cause_is_found_and_every_line_is_known(name: str) -> None:
    diagnosis = read(name)
    first, confirmed = EXPECTED[name]
    assert [finding.occurrence.name for finding in diagnosis.findings if finding.first] == ([first] if first else [])
    assert causes(diagnosis, CONFIRMED) == confirmed
    assert [finding.occurrence.first.text for finding in diagnosis.findings if finding.occurrence.kind == UNKNOWN] == []


@pytest.mark.parametrize("name", ["different_kinds", "missing_collective"])
def test_ranks_that_all_wait_are_not_missing(name: str) -> None:
    assert causes(read(name), EXCLUDED)[RANK] == "all 2 ranks report it"


def test_the_numbers_of_several_process_groups_are_not_compared() -> None:
    """Each process group counts its own collectives, so a rank behind in one can be where it should be in the other."""
    other = "[rank1]:[E1127 04:48:54.9 ProcessGroupNCCL.cpp:1914] [PG ID 1 PG GUID 3 Rank 1] Observed flight recorder dump signal\n"
    assert causes(read("late_rank", other), CONFIRMED) == {RANK: "rank 1 of 2 did not report it, on vm"}
