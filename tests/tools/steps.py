# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs targets of the Makefile one after the other and says how long each took: steps.py STEP ...

A step is TARGET=MINUTES, scenario-NAME, whose minutes tests/ci/scenarios.json says, or scenarios: all of them. The minutes are a budget:
a step that takes longer is pointed out, and does not fail. Nothing is tried after the first step has failed, since it prepares the
others; with --stop, nothing after any that failed. With --resume, steps that passed at this commit of a clean tree are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.tools.repository import RECORD, Clone
from tests.tools.turns import budget, load

SCENARIO = "scenario-"
#: Ignored by git, removed by `make clean`.
STATE = "tests/output/passed.json"


@dataclass(frozen=True)
class Row:
    """The end of a step."""

    target: str
    passed: bool
    seconds: float
    remark: str


class Passed:
    """The steps that have passed at the commit of a clean clone, kept for the next run."""

    def __init__(self, clone: Clone) -> None:
        self._clone, self._file, self._commit = clone, clone.root / STATE, clone.clean_commit()

    def seconds(self) -> dict[str, float]:
        """Step → seconds it took; none of another commit, or if files differ from the commit."""
        if not self._commit or not self._file.exists():
            return {}
        kept = json.loads(self._file.read_text(encoding="utf-8"))
        return dict(kept["seconds"]) if kept["commit"] == self._commit else {}

    def add(self, target: str, seconds: float) -> None:
        """Keep a step, unless the tree has changed since this object was made."""
        if not self._commit or self._clone.clean_commit() != self._commit:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps({"commit": self._commit, "seconds": {**self.seconds(), target: seconds}}), encoding="utf-8")
        part.replace(self._file)


def planned(words: Sequence[str], root: Path) -> Iterator[tuple[str, float]]:
    """Targets and their minutes. Raises KeyError for a scenario that has no record, ValueError for minutes that are no number."""
    for word in words:
        target, _equals, minutes = word.partition("=")
        if minutes:
            yield target, float(minutes)
            continue
        budgets = {SCENARIO + each.name: budget(each, os.environ) for each in load(root / RECORD)}
        yield from budgets.items() if target == "scenarios" else [(target, budgets[target])]


def run(target: str, minutes: float) -> Row:
    """One target."""
    print(f"=== {target} (budget {minutes:g} min)", flush=True)
    started = time.monotonic()
    done = subprocess.run([os.environ.get("MAKE", "make"), "--no-print-directory", target], stdin=subprocess.DEVNULL, check=False)
    seconds = time.monotonic() - started
    remark = f"OVER ITS BUDGET of {minutes:g} min" if seconds > 60 * minutes else ""
    row = Row(target, done.returncode == 0, seconds, remark)
    print(f"=== {target}: {'passed' if row.passed else 'FAILED'} in {seconds:.0f} s {remark}".rstrip(), flush=True)
    return row


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 0 if every step passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stop", action="store_true", help="nothing after a step that failed")
    parser.add_argument("--resume", action="store_true", help="not again what passed at this commit of a clean tree")
    parser.add_argument("steps", nargs="+", metavar="STEP")
    arguments = parser.parse_args(words)

    try:
        steps = list(planned(arguments.steps, Path()))
    except (KeyError, ValueError) as error:
        parser.error(f"neither TARGET=MINUTES nor a scenario of {RECORD}: {error}")
    passed = Passed(Clone(Path()))
    before = passed.seconds() if arguments.resume else {}
    rows: list[Row] = []
    for target, minutes in steps:
        if rows and not all(row.passed for row in (rows if arguments.stop else rows[:1])):
            break
        if target in before:
            rows.append(Row(target, True, before[target], "taken over: it has passed at this commit"))
            continue
        row = run(target, minutes)
        rows.append(row)
        if arguments.resume and row.passed:
            passed.add(target, row.seconds)

    print()
    for row in rows:
        print(f"{row.target:<20} {'passed' if row.passed else 'FAILED'} {row.seconds:7.0f} s  {row.remark}".rstrip())
    for target, _minutes in steps[len(rows) :]:
        print(f"{target:<20} not tried")
    print(f"{'in all':<27} {sum(row.seconds for row in rows if row.target not in before):7.0f} s")
    failed = sum(not row.passed for row in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
