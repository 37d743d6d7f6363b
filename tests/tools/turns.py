# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs scenarios of molecule in turns: as many as fit into the minutes that are left, or those that are named.

First come the scenarios whose code has changed since they last passed, then those that have waited longest. tests/ci/scenarios.json
says what code a scenario covers, how many minutes it takes, and when it last passed. A scenario that passes at a clean commit gets
its record rewritten; commit that after the run. Needs the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.bench.watch import executions
from tests.tools.repository import RECORD, Clone

ROOT = Path(__file__).parents[2]
RUN = str(ROOT / "tests/tools/run.sh")
LOGS = ROOT / "tests/output/turns"
#: With one of these in the environment a scenario does more than usual, and its counts say nothing of its record.
THOROUGH = ("RDMA_TEST_KILLS", "RDMA_TEST_EACH")
#: How far the counts of a run may differ from the record.
TOLERANCE = 0.10
#: How long molecule may take to end after SIGINT, and to remove a lab.
END_SECONDS, DESTROY_SECONDS = 60, 120
AT_THE_WALL = "ended at the wall limit"
#: A line of Ansible's log: the process id of ansible-playbook, which logs for its workers, and the message.
LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ p=(\d+) u=.*? n=ansible [A-Z]+\| (.*)$")
PLAYBOOK = re.compile(r"\d+ plays in (.+)")
#: Playbooks of molecule that make and remove a lab.
LAB_PLAYBOOK = re.compile(r"/molecule/\w+/(?:create|prepare|destroy)\.yml")


@dataclass(frozen=True)
class Counts:
    """What a scenario asks of Ansible. site_runs: runs of playbooks but for the lab's; remote_executions: by them, on all hosts."""

    site_runs: int
    remote_executions: int


@dataclass(frozen=True)
class Green:
    """The last run of a scenario that passed. date: UTC, ISO 8601; what is not known is None."""

    commit: str
    date: str
    seconds: int | None
    counts: Counts | None


@dataclass(frozen=True)
class Scenario:
    """A record. minutes: the budget; thorough_minutes: with THOROUGH, if that takes longer; paths: git pathspecs.

    counted: whether the counts of a run say something of the code. They do not where faults and moments are drawn at random.
    """

    name: str
    minutes: float
    paths: Sequence[str]
    green: Green | None = None
    thorough_minutes: float | None = None
    counted: bool = True


@dataclass(frozen=True)
class Turn:
    """A scenario and why it is where it is in the queue."""

    scenario: Scenario
    reason: str


@dataclass(frozen=True)
class Outcome:
    """The end of a run. remark: why it failed beyond its exit status; counts: None if they say nothing of the record."""

    passed: bool
    seconds: float
    remark: str = ""
    counts: Counts | None = None


@dataclass(frozen=True)
class Row:
    """A line of the table. remark: what else there is to say; outcome: None if the scenario was not run."""

    turn: Turn
    remark: str = ""
    outcome: Outcome | None = None


def load(file: Path) -> list[Scenario]:
    """The records of a file. Raises KeyError or ValueError if a record is not one."""
    return [_scenario(**record) for record in json.loads(file.read_text(encoding="utf-8"))]


def _scenario(green: dict[str, Any] | None, **record: Any) -> Scenario:
    last = None
    if green is not None:
        counts = None if green["counts"] is None else Counts(**green["counts"])
        last = Green(**{**green, "counts": counts})
    try:
        return Scenario(green=last, **record)
    except TypeError as error:
        raise ValueError(f"{record}: {error}") from None


def dump(scenarios: Iterable[Scenario]) -> str:
    """The text of the file that `load` reads."""
    records = []
    for scenario in scenarios:
        record = asdict(scenario)
        if scenario.thorough_minutes is None:
            del record["thorough_minutes"]
        if scenario.counted:
            del record["counted"]
        records.append(record)
    return json.dumps(records, indent=2, ensure_ascii=False) + "\n"


def budget(scenario: Scenario, environment: Mapping[str, str]) -> float:
    """Minutes that a scenario takes in this environment."""
    return scenario.thorough_minutes if scenario.thorough_minutes and is_thorough(environment) else scenario.minutes


def is_thorough(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name) for name in THOROUGH)


def touched(scenarios: Iterable[Scenario], clone: Clone) -> dict[str, str]:
    """Scenario → why its last green run says nothing of the code of today; only those of which that is so."""
    reasons = {}
    for scenario in scenarios:
        if scenario.green is None:
            reasons[scenario.name] = "no green run is known"
            continue
        commit = scenario.green.commit
        files = clone.changed(commit, scenario.paths)
        if files is None:
            reasons[scenario.name] = f"touched: {commit[:7]} is not in this clone"
        elif files:
            more = f" and {len(files) - 1} more" if len(files) > 1 else ""
            reasons[scenario.name] = f"touched since {commit[:7]}: {files[0]}{more}"
    return reasons


def order(scenarios: Iterable[Scenario], reasons: Mapping[str, str]) -> list[Turn]:
    """The queue: scenarios with a reason of `touched` first, then the others. Of each, the one that has waited longest comes first; of
    those that have waited as long, the shortest.
    """
    by_age = sorted(scenarios, key=lambda each: (each.green.date if each.green else "", each.minutes))
    first = [Turn(each, reasons[each.name]) for each in by_age if each.name in reasons]
    rest = [Turn(each, f"waiting since {each.green.date[:10]}") for each in by_age if each.name not in reasons and each.green]
    return first + rest


def choose(queue: Iterable[Turn], minutes_left: float) -> Turn | None:
    """The first of the queue whose budget fits."""
    return next((turn for turn in queue if turn.scenario.minutes <= minutes_left), None)


def planned(queue: Sequence[Turn], minutes_left: float) -> list[Turn]:
    """The turns that are taken if each scenario takes its budget."""
    taken: list[Turn] = []
    while turn := choose([each for each in queue if each not in taken], minutes_left):
        taken.append(turn)
        minutes_left -= turn.scenario.minutes
    return taken


def count(log: str) -> Counts:
    """What Ansible has logged at verbosity 3, of all runs of playbooks but those that make and remove the lab."""
    runs, executed, running = 0, 0, set()
    for line in log.splitlines():
        if not (found := LOG_LINE.match(line)):
            continue
        process, message = found.groups()
        if begun := PLAYBOOK.fullmatch(message):
            running.discard(process)
            if not LAB_PLAYBOOK.search(begun[1]):
                running.add(process)
                runs += 1
        elif process in running:
            executed += executions(message)
    return Counts(runs, executed)


def excess(scenario: Scenario, counts: Counts) -> str:
    """One sentence if a run asked for clearly more than the record; else empty."""
    if not counts.site_runs:
        return f"{scenario.name}: no run of a playbook was counted, so its record cannot be checked."
    allowed = scenario.green.counts if scenario.green and scenario.counted else None
    if allowed is None:
        return ""
    limits = asdict(allowed)
    over = [
        f"{made} {what.replace('_', ' ')} instead of {limits[what]}"
        for what, made in asdict(counts).items()
        if made > limits[what] * (1 + TOLERANCE)
    ]
    return f"{scenario.name} made {' and '.join(over)}: if the code needs that, write the new figure into {RECORD}." if over else ""


def kept(old: Counts | None, new: Counts) -> Counts:
    """The counts for the record: the old ones unless a run needs clearly less, so that many small steps are noticed too."""
    if old is None:
        return new
    before = asdict(old)
    return Counts(**{what: now if now < before[what] * (1 - TOLERANCE) else before[what] for what, now in asdict(new).items()})


def recorded(scenario: Scenario, outcome: Outcome, commit: str, date: str) -> Scenario:
    """The record after a green run at this commit."""
    old = scenario.green.counts if scenario.green else None
    counts = old if outcome.counts is None or not scenario.counted else kept(old, outcome.counts)
    return replace(scenario, green=Green(commit, date, round(outcome.seconds), counts))


def run(scenario: Scenario, argv: Sequence[str], wall_minutes: float, logs: Path = LOGS) -> Outcome:
    """Run a scenario in a process group of its own, and end it at the wall limit."""
    print(f"=== {scenario.name} (budget {budget(scenario, os.environ):g} min)", flush=True)
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{scenario.name}.log"
    log.unlink(missing_ok=True)
    begun = time.monotonic()
    environment = {**os.environ, "ANSIBLE_LOG_PATH": str(log), "ANSIBLE_LOG_VERBOSITY": "3"}
    process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
    try:
        status = process.wait(None if wall_minutes == float("inf") else 60 * wall_minutes)
    except subprocess.TimeoutExpired:
        end(process)
        return Outcome(passed=False, seconds=time.monotonic() - begun, remark=AT_THE_WALL)
    except KeyboardInterrupt:
        end(process)
        raise
    seconds = time.monotonic() - begun
    counts = count(log.read_text(encoding="utf-8", errors="replace")) if log.exists() else Counts(0, 0)
    print(f"=== {scenario.name}: {counts.site_runs} site runs, {counts.remote_executions} remote executions", flush=True)
    if status != 0:
        return Outcome(passed=False, seconds=seconds)
    if is_thorough(os.environ):
        return Outcome(passed=True, seconds=seconds)
    remark = excess(scenario, counts)
    return Outcome(not remark, seconds, remark, counts)


def end(process: subprocess.Popen[bytes]) -> None:
    """SIGINT, so that molecule and pytest clean up; then SIGKILL to what is left of the group."""
    os.killpg(process.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def remove_lab(name: str) -> None:
    """Remove what an ended scenario leaves."""
    argv = [RUN, "molecule", "destroy", "--scenario-name", name]
    try:
        subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, check=False, timeout=DESTROY_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"=== {name}: its lab was not removed within {DESTROY_SECONDS} s: run {' '.join(argv[1:])}", flush=True)


def table(rows: Iterable[Row]) -> str:
    """One line for each scenario: name, result, seconds, budget, why it was chosen or not."""
    lines = [f"{'scenario':<14} {'result':<8} {'seconds':>7} {'budget':>7}  why"]
    for row in rows:
        name, minutes = row.turn.scenario.name, budget(row.turn.scenario, os.environ)
        result, seconds, over = "not run", "", ""
        if row.outcome is not None:
            result, seconds = "passed" if row.outcome.passed else "FAILED", f"{row.outcome.seconds:.0f}"
            over = "OVER ITS BUDGET" if row.outcome.seconds > 60 * minutes else ""
        why = "; ".join(filter(None, (row.turn.reason, row.remark, over)))
        lines.append(f"{name:<14} {result:<8} {seconds:>7} {minutes:>3g} min  {why}")
    return "\n".join(lines)


def queue_of(names: Sequence[str], scenarios: Sequence[Scenario], clone: Clone) -> tuple[list[Turn], list[Turn]]:
    """The turns to take, in order; and those that need not be taken, since they passed at this commit.

    Raises KeyError if there is no record of a name.
    """
    if names:
        by_name = {scenario.name: scenario for scenario in scenarios}
        return [Turn(by_name[name], "named") for name in names], []
    commit = clone.clean_commit()
    passed = [Turn(each, "passed at this commit") for each in scenarios if commit and each.green and each.green.commit == commit]
    left = [each for each in scenarios if not any(each is turn.scenario for turn in passed)]
    return order(left, touched(left, clone)), passed


def note(name: str, outcome: Outcome, commit: str, clone: Clone) -> str:
    """Rewrite the record of a scenario that has passed. commit: of a clean tree when it began; returns why nothing was written, or ""."""
    if not commit or clone.clean_commit() != commit:
        return "not recorded: files differ from the commit"
    file, date = clone.root / RECORD, datetime.now(timezone.utc).isoformat(timespec="minutes")
    file.write_text(dump(recorded(each, outcome, commit, date) if each.name == name else each for each in load(file)), encoding="utf-8")
    return ""


def take(queue: Sequence[Turn], clone: Clone, minutes_left: Callable[[], float], wall_left: Callable[[], float]) -> tuple[int, list[Row]]:
    """Run what fits, one after the other. The exit status, and a row for each turn."""
    rows: list[Row] = []
    waiting = list(queue)
    try:
        while turn := choose(waiting, minutes_left()):
            waiting.remove(turn)
            rows.append(Row(turn, "interrupted"))
            name, commit = turn.scenario.name, clone.clean_commit()
            outcome = run(turn.scenario, [RUN, "molecule", "test", "--scenario-name", name], wall_left())
            if outcome.remark == AT_THE_WALL:
                remove_lab(name)
            rows[-1] = Row(turn, note(name, outcome, commit, clone) if outcome.passed else outcome.remark, outcome)
    except KeyboardInterrupt:
        return 130, [*rows, *map(Row, waiting)]
    left = max(0.0, minutes_left())
    failed = any(row.outcome and not row.outcome.passed for row in rows)
    return int(failed), [*rows, *(Row(turn, f"does not fit into {left:.0f} min") for turn in waiting)]


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 0 if every scenario that was run passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="run these, whatever time they take")
    parser.add_argument("--minutes", type=float, default=60.0, help="run as many scenarios as fit into these (60)")
    parser.add_argument("--began", type=float, default=time.time(), help="when the minutes began, in seconds since 1970 (now)")
    parser.add_argument("--wall-minutes", type=float, default=float("inf"), help="end the scenario that still runs after these (never)")
    parser.add_argument("--list", action="store_true", help="show what would be run")
    arguments = parser.parse_args(words)
    clone = Clone(ROOT)
    try:
        queue, passed = queue_of(arguments.names, load(ROOT / RECORD), clone)
    except KeyError as error:
        parser.error(f"{RECORD} has no scenario {error}")
    minutes = float("inf") if arguments.names else arguments.minutes

    def left(of: float) -> float:
        return of - (time.time() - float(arguments.began)) / 60

    if arguments.list:
        chosen = planned(queue, left(minutes))
        status, rows = 0, [Row(turn, "would be run" if turn in chosen else "does not fit") for turn in queue]
    else:
        status, rows = take(queue, clone, lambda: left(minutes), lambda: left(arguments.wall_minutes))
    print(table([*rows, *map(Row, passed)]))
    return status


if __name__ == "__main__":
    sys.exit(main())
