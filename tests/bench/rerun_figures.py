# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run costs that finds nothing to do: our stages, and beside them the plain form of the same, one stock task for each thing.

All stages but those that measure, pairs and collectives. Both forms take turns on the lab that is up and converged with MARKED;
PLAIN_QOS_BACKEND=mlnx_qos|dcb in the environment says what the stand-in gives its NICs, RERUN_TURNS how often each form is run (3).
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Lab, load
from lab.errors import LabError
from tests.bench.bars import Line, figure
from tests.bench.watch import Watched, changes, executions, watch

ROOT = Path(__file__).parents[2]
SUMMARY = ROOT / "artifacts/latest/summary.json"
TURNS = int(os.environ.get("RERUN_TURNS", "3"))
RERUN = ("python", "-m", "tests.bench.figures", "rerun")
_RUN = ("env", "ANSIBLE_PIPELINING=1", "tests/tools/lab_playbook.sh")
#: What the lab's inventory does not say, and the plain form does.
MARKED = ("-e", '{"rdma_roce": {}}')
OURS = (*_RUN, "tests/bench/rerun_site.yml", "-vvv", *MARKED)
PLAIN = (*_RUN, "tests/bench/plain/site.yml", "-vvv", "-e", f"plain_qos_backend={os.environ.get('PLAIN_QOS_BACKEND', 'none')}")


@dataclass(frozen=True)
class Form:
    """One way to have the same. unfit: why a run of it says nothing of converged hosts; "" if it does."""

    command: Sequence[str]
    unfit: Callable[[Watched], str]


@dataclass(frozen=True)
class Cost:
    """Of one run on all hosts. executions: on all of them together."""

    seconds: float
    executions: int


def rerun(folder: Path) -> Iterator[Line]:
    """The figures of both forms, on a lab that is converged."""
    lab, reason = running_lab()
    forms = {"ours": Form(OURS, lambda done: unfit(done, SUMMARY)), "plain": Form(PLAIN, unfit_plain)}
    costs, reason = in_turns(forms, folder) if lab is not None else ({}, reason)
    yield from compared(costs, len(lab.plan.nodes) if lab is not None else 0, reason)


def in_turns(forms: Mapping[str, Form], folder: Path, turns: int = TURNS) -> tuple[dict[str, list[Cost]], str]:
    """What each run of each form cost, so that all of them had the same neighbors; nothing, and why, if one of them is unfit."""
    costs: dict[str, list[Cost]] = {name: [] for name in forms}
    for _turn in range(turns):
        for name, form in forms.items():
            done = watch(form.command, ROOT, folder / f"{name}.log")
            if reason := form.unfit(done):
                return {}, f"{name}: {reason}"
            costs[name].append(Cost(done.seconds, executions(done.output)))
    return costs, ""


def compared(costs: Mapping[str, Sequence[Cost]], hosts: int, reason: str = "") -> Iterator[Line]:
    """Medians of "ours" and "plain". reason: why there are no costs."""
    ours, plain = (_median(costs.get(name, ())) for name in ("ours", "plain"))
    yield figure("rerun_remote_executions", ours.executions / hosts if ours else None, OURS, reason)
    yield figure("plain_remote_executions", plain.executions / hosts if plain else None, PLAIN, reason)
    yield figure("rerun_wall_s", ours.seconds if ours else None, OURS, reason)
    yield figure("rerun_wall_s_per_host", ours.seconds / hosts if ours else None, OURS, reason)
    yield figure("plain_wall_s", plain.seconds if plain else None, PLAIN, reason)
    note = f"{ours.seconds:.1f} s ÷ {plain.seconds:.1f} s on {hosts} hosts" if ours and plain else ""
    yield figure("rerun_wall_ratio", ours.seconds / plain.seconds if ours and plain else None, RERUN, reason, 1.0, note=note)


def _median(costs: Sequence[Cost]) -> Cost | None:
    """The medians of time and of executions, each for itself; None of no run."""
    if not costs:
        return None
    return Cost(statistics.median(cost.seconds for cost in costs), round(statistics.median(cost.executions for cost in costs)))


def unfit(done: Watched, summary: Path) -> str:
    """Why a run of ours says nothing of converged hosts; empty if it does."""
    return _unfit(done, lambda: json.loads(summary.read_text(encoding="utf-8"))["changes"])


def unfit_plain(done: Watched) -> str:
    """The same of a run of the plain form, by what Ansible has counted."""
    return _unfit(done, lambda: changes(done.output))


def _unfit(done: Watched, count: Callable[[], int]) -> str:
    if done.status != 0:
        return f"the run ended with exit status {done.status}: {' '.join(done.output[-200:].split())}"
    made = count()
    return f"the run made {made} changes, so that the hosts were not converged: run again" if made else ""


def running_lab() -> tuple[Lab | None, str]:
    """The lab named by LAB_NAME, if all of it is up; else None and why."""
    try:
        lab = load(os.environ.get("LAB_NAME", "lab"))
    except LabError as error:
        return None, str(error)
    down = ", ".join(node.name for node in lab.plan.nodes if not lab.is_running(node))
    return (None, f"{down} of lab '{lab.plan.name}' is not running") if down else (lab, "")
