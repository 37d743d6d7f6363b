# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make month`: simulates a month of three clusters, writes docs/faults_month.md, and fails on a missed fault or a false
alarm without a reason.

`python -m tests.faults.month --seed N` simulates another month, prints it, and writes nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from functools import partial

from tests.faults.month import page
from tests.faults.month.cluster import CLUSTERS, SEED
from tests.faults.month.count import month
from tests.faults.month.page import MISSED, ROW, Texts


def _cluster(seed: int, kind: str) -> tuple[Texts, float]:
    begun = time.process_time()
    texts = page.texts(kind, month(kind, seed))
    return texts, time.process_time() - begun


def main() -> int:
    """Simulate every cluster. Exit status: 0 if no fault is missed and each false alarm has its reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.month", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes simulate clusters")
    arguments = parser.parse_args()
    with multiprocessing.Pool(arguments.jobs) as pool:
        done = dict(zip(CLUSTERS, pool.map(partial(_cluster, arguments.seed), CLUSTERS, chunksize=1), strict=True))
    text = page.render({kind: texts for kind, (texts, _seconds) in done.items()})
    if arguments.seed == SEED:
        page.PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)
    false = [each for texts, _seconds in done.values() for each in texts.false]
    found = [match for texts, _seconds in done.values() for row in texts.rows if (match := ROW.match(row))]
    missed = [match[0] for match in found if match["verdict"] == MISSED]
    print(f"{len(false)} false alarms, {len(missed)} missed faults; {sum(seconds for _texts, seconds in done.values()):.0f} s of CPU.")
    print(*false, *missed, sep="\n")
    return 1 if page.unexplained(false) or missed else 0


if __name__ == "__main__":
    sys.exit(main())
