# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/mutation.md: the score of the last run, by package, every survivor, and what samples scored in their first run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PAGE = Path(__file__).parents[2] / "docs/mutation.md"
FIRST_RUNS = Path(__file__).with_name("first_runs.yml")
LEAST_PERCENT = 85
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Row:
    """One mutant on the page. why: why it need not or cannot be killed, "" if nobody has said."""

    package: str
    key: Key
    line: int
    killed: bool
    why: str = ""


@dataclass(frozen=True)
class Fresh:
    """A sample of which the first run is recorded. first_runs: all records, oldest first, see `first_runs`."""

    seed: int
    rows: Sequence[Row]
    first_runs: Sequence[Mapping[str, Any]] = ()


def render(rows: Sequence[Row], *, seed: int, date: str, fresh: Fresh) -> str:
    """The page. The score leaves out the survivors that are explained."""
    return "\n".join([*_head(rows, seed, date, fresh), *_packages(rows), *_survivors(rows), *_fresh(fresh)]) + "\n"


def percent(killed: int, possible: int) -> float:
    return 100 * killed / possible if possible else 100.0


def _counts(rows: Sequence[Row]) -> tuple[int, int, int, int]:
    """(drawn, killed, explained, not explained)"""
    killed = sum(row.killed for row in rows)
    explained = sum(bool(row.why) and not row.killed for row in rows)
    return len(rows), killed, explained, len(rows) - killed - explained


def _head(rows: Sequence[Row], seed: int, date: str, fresh: Fresh) -> Iterator[str]:
    drawn, killed, explained, rest = _counts(rows)
    yield from f"""# Mutation score of parsers and judges

`make mutation` writes this page. It changes one place of a parser or a check, such as `<` to `<=` or `and` to `or`, and runs the unit
tests of this file. A mutant is killed if a test fails. A mutant that survives shows a line whose result no test verifies.

* Command: `make mutation N={drawn} SEED={seed} FRESH={len(fresh.rows)} FRESH_SEED={fresh.seed}`; a mutant is drawn by the text of its
  line, so that a later change of other code keeps the sample
* Date: {date}
* Mutants: {drawn}, made by the operators of [cosmic-ray](https://cosmic-ray.readthedocs.io), one for each place
* Files: the checks in `plugins/plugin_utils/_checks`, and in all other files the functions `parse_…` and `read_…` with the functions,
  classes and constants of the file that they use
* Tests of a mutant: those with the name of its file, then those that import it, then those that import a file that imports it, and
  for checks the test of their sources. Other tests and `make faults` are not run: the score is a lower bound
* Killed: {killed} of {drawn} ({percent(killed, drawn):.1f} %)
* Score without the {explained} survivors explained below: **{percent(killed, drawn - explained):.1f} %**, at least {LEAST_PERCENT} %
* Survivors that no test kills yet: {rest}
* Many tests were written because a mutant of this sample had survived. [Fresh samples](#fresh-samples) show what to expect of other
  lines.
""".splitlines()


def _packages(rows: Sequence[Row]) -> Iterator[str]:
    yield from ("", "## By package", "", "| package | mutants | killed | explained | score |", "|---|---:|---:|---:|---:|")
    packages: dict[str, list[Row]] = {}
    for row in rows:
        packages.setdefault(row.package, []).append(row)
    for package, of in sorted(packages.items()):
        drawn, killed, explained, _rest = _counts(of)
        yield f"| `{package}` | {drawn} | {killed} | {explained} | {percent(killed, drawn - explained):.0f} % |"


def _survivors(rows: Sequence[Row]) -> Iterator[str]:
    for title, chosen in (
        ("Survivors that no test kills yet", [row for row in rows if not row.why]),
        ("Survivors that are explained", [row for row in rows if row.why]),
    ):
        yield from ("", f"## {title}", "", *_changes(chosen))


def _changes(rows: Sequence[Row]) -> Iterator[str]:
    """The survivors among these."""
    left = sorted((row for row in rows if not row.killed), key=lambda row: row.key)
    if not left:
        yield "None."
    for row in left:
        yield from (f"* `{row.key[0]}`:" + (f" {row.why}" if row.why else ""), "", "  ```diff")
        yield from (f"  -{line}" for line in row.key[1].split("\n"))
        yield from (f"  +{line}" for line in row.key[2].split("\n"))
        yield from ("  ```", "")


def _fresh(fresh: Fresh) -> Iterator[str]:
    drawn, killed, explained, rest = _counts(fresh.rows)
    yield from """
## Fresh samples

No test was written for a mutant of these samples before their first run. It therefore shows what to expect of other lines.

| seed | first run | mutants | killed | explained | score |
|---:|---|---:|---:|---:|---:|""".splitlines()
    for run in fresh.first_runs:
        score_percent = percent(run["killed"], run["mutants"] - run["explained"])
        yield f"| {run['seed']} | {run['date']} | {run['mutants']} | {run['killed']} | {run['explained']} | {score_percent:.1f} % |"
    yield from f"""
Seed {fresh.seed} today: {killed} of {drawn} are killed, {explained} are explained, {rest} are neither. Tests may have been written since.
""".splitlines()
    yield from ("", *_changes(fresh.rows))


def first_runs(seed: int, rows: Sequence[Row], date: str) -> Sequence[Mapping[str, Any]]:
    """The records of first_runs.yml: seed, date, mutants, killed and explained. A seed without a record gets one, by these rows."""
    records: list[Mapping[str, Any]] = yaml.safe_load(FIRST_RUNS.read_text(encoding="utf-8"))
    if seed not in [record["seed"] for record in records]:
        drawn, killed, explained, _rest = _counts(rows)
        record = {"seed": seed, "date": date, "mutants": drawn, "killed": killed, "explained": explained}
        with FIRST_RUNS.open("a", encoding="utf-8") as file:
            yaml.safe_dump([record], file, sort_keys=False)
        records.append(record)
    return records


def score(text: str) -> float:
    """The score on a page in percent. Raises ValueError if there is none."""
    match = re.search(r"\*\*([\d.]+) %\*\*", text)
    if match is None:
        raise ValueError("no score")
    return float(match[1])


def survivors(text: str) -> Mapping[Key, str]:
    """The survivors on a page → the reason, "" if there is none."""
    form = re.compile(r"^\* `([^`]+)`:(?: (.*))?\n\n  ```diff\n((?:  -.*\n)+)((?:  \+.*\n)+)  ```$", re.MULTILINE)
    return {
        (match[1], *("\n".join(line[3:] for line in match[part].splitlines()) for part in (3, 4))): match[2] or ""  # type: ignore[misc]
        for match in form.finditer(text)
    }
