# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make mutation`: draws mutants, runs their tests and writes docs/mutation.md.

It fails if the score is too low, or if a test kills a mutant that is explained.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime

from tests.mutation import page
from tests.mutation.equivalent import explained, killed_although_explained
from tests.mutation.run import run
from tests.mutation.sample import sample


def main() -> int:
    """Parse the command line. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=450, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=59)
    parser.add_argument("--fresh", type=int, default=150, help="how many are drawn for which no test was written before the first run")
    parser.add_argument("--fresh-seed", type=int, default=61)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes run tests")
    arguments = parser.parse_args()
    why = explained()
    drawn, fresh = sample(arguments.mutants, arguments.seed), sample(arguments.fresh, arguments.fresh_seed)
    results = run([*drawn, *fresh], arguments.jobs, lambda words: print(words, flush=True))
    wrong = killed_although_explained(each.mutant.key for each in results if each.killed)
    for file, before, after in wrong:
        print(f"equivalent.yml says that no test can kill this, and one did: {file}: {before!r} -> {after!r}")
    rows = [page.Row(each.mutant.package, each.mutant.key, each.mutant.line, each.killed, why.get(each.mutant.key, "")) for each in results]
    date, second = f"{datetime.now(UTC):%Y-%m-%d}", rows[len(drawn) :]
    firsts = page.first_runs(arguments.fresh_seed, second, date)
    text = page.render(rows[: len(drawn)], seed=arguments.seed, date=date, fresh=page.Fresh(arguments.fresh_seed, second, firsts))
    page.PAGE.write_text(text, encoding="utf-8")
    print(f"score: {page.score(text)} %. docs/mutation.md is written.")
    return 1 if wrong or page.score(text) < page.LEAST_PERCENT else 0


if __name__ == "__main__":
    sys.exit(main())
