# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make faults`: injects every fault, writes docs/faults.md, and fails if one is not reported as the catalogue says.

`python -m tests.faults ID …` judges some faults and prints what is reported. `python -m tests.faults --lab` runs the commands of
machines.yml and writes docs/faults_lab.md, `--lab-page` only writes it, `--list` lists them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence

from tests.faults import machines, page
from tests.faults.combinations import all_combinations
from tests.faults.fault import faults
from tests.faults.machines import machine_faults
from tests.faults.score import RIGHT, judge


def _fault(number: int) -> tuple[str, str, list[str]]:
    result = judge(faults()[number])
    return result.fault.id, page.section(result), [] if result.fault.shortfall else result.problems


def _combination(number: int) -> str:
    return page.combination_row(all_combinations()[number])


def write_page(jobs: int) -> int:
    """Judge everything and write the page. Exit status: 0 if each fault is reported as the catalogue says."""
    begun = time.monotonic()
    with multiprocessing.Pool(jobs) as pool:
        judged = pool.map(_fault, range(len(faults())), chunksize=4)
        rows = pool.map(_combination, range(len(all_combinations())), chunksize=2)
    wrong = {name: problems for name, _text, problems in judged if problems}
    for name, problems in wrong.items():
        print(f"{name}:", *problems, sep="\n  ")
    texts = {name: text for name, text, _problems in judged}
    page.PAGE.write_text(page.render(texts, rows), encoding="utf-8")
    right = sum(f"| {RIGHT} | 0 |" in row for row in rows)
    later = sum(row.endswith(f"| {page.LATER} |") for row in rows)
    print(
        f"{len(judged)} faults, {len(judged) - len(wrong)} as the catalogue says; {right} of {len(rows)} combinations named right "
        f"without a false accusation, {later} more by the next run; {time.monotonic() - begun:.0f} s. docs/faults.md is written."
    )
    return 1 if wrong else 0


def show(names: Sequence[str]) -> int:
    """Print what is reported of some faults."""
    known = {fault.id: fault for fault in faults()}
    wrong = 0
    for name in names:
        result = judge(known[name])
        print(page.section(result), *result.problems, sep="\n")
        wrong += bool(result.problems)
    return 1 if wrong else 0


def run_machines(*, only_list: bool) -> int:
    """List the faults that need machines, and run the commands that inject them, each once."""
    for each in machine_faults():
        print(f"{each.command:<24} {each.check:<18} {each.rung:<18} {each.breaks}")
    failed = []
    for command in () if only_list else dict.fromkeys(each.command for each in machine_faults()):
        print(f"=== {command}", flush=True)
        if subprocess.run(shlex.split(command), check=False).returncode:
            failed.append(command)
        machines.write_page()
    print(*(f"failed: {command}" for command in failed), sep="\n")
    return 1 if failed else 0


def main() -> int:
    """Parse the command line. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("faults", nargs="*", metavar="ID")
    parser.add_argument("--lab", action="store_true", help="run the faults that need machines")
    parser.add_argument("--lab-page", action="store_true", help="write docs/faults_lab.md from the records of scenarios")
    parser.add_argument("--list", action="store_true", help="list the faults that need machines")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes judge faults")
    arguments = parser.parse_args()
    if arguments.lab or arguments.list:
        return run_machines(only_list=arguments.list)
    if arguments.lab_page:
        machines.write_page()
        return 0
    unknown = sorted({*arguments.faults} - {fault.id for fault in faults()})
    if unknown:
        parser.error(f"no fault {', '.join(unknown)}")
    return show(arguments.faults) if arguments.faults else write_page(arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
