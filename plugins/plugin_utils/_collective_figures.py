# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of a ladder side by side: its steps, how far repeats lie apart, and two hosts against what perftest reached between them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._findings import NOT_APPLICABLE, OK, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._nccl_run import STAGE
from ansible_collections.rdma.cluster.plugins.plugin_utils._collective_expected import BITS_PER_BYTE
from ansible_collections.rdma.cluster.plugins.plugin_utils._collective_record import Record
from ansible_collections.rdma.cluster.plugins.plugin_utils._collective_runs import WELL

JITTER_CHECK, PAIRS_CHECK = "collective.jitter", "collective.pairs"
#: As of the sum of the NICs: where two hosts reach less of what perftest reached, NCCL loses it and not the network.
LEAST_OF_PAIRS = 0.80
_PAIR = 2


def climbed(runs: Sequence[Record], well: Sequence[str]) -> str:
    """The steps of the ladder in words: "2 hosts 48.9, 4 hosts 48.7 GB/s"."""
    steps: dict[int, str] = {}
    for run in runs:
        if run["status"] == WELL and set(run["hosts"]) <= set(well):
            figure = "no figure" if run["gbytes_per_s"] is None else f"{run['gbytes_per_s']:.4g}"
            steps.setdefault(len(run["hosts"]), figure)
    return f"{', '.join(f'{size} hosts {steps[size]}' for size in sorted(steps))} GB/s"


def check_jitter(host: str, runs: Sequence[Record], well: Sequence[str]) -> Finding:
    """`collective.jitter`: how far repeats of the last set lie apart; a warning where one of them is not well, else only told."""
    same = [run for run in runs if set(run["hosts"]) == set(well)]
    expected = "the same in every repeat"
    figures = [run["gbytes_per_s"] for run in same if run["gbytes_per_s"] is not None]
    subject = f"{same[0]['operation']} on {len(well)} hosts"
    if len(same) < _PAIR or not figures:
        return Finding(STAGE, JITTER_CHECK, host, subject, NOT_APPLICABLE, f"run {len(same)} time{'s' if len(same) != 1 else ''}", expected)
    middle = statistics.median(figures)
    spread = f", {100 * (max(figures) - min(figures)) / middle:.1f} % apart" if middle else ""
    seen = f"{len(same)} runs: lowest {min(figures):.4g}, highest {max(figures):.4g} GB/s{spread}"
    bad = sum(run["status"] != WELL for run in same)
    if not bad:
        return Finding(STAGE, JITTER_CHECK, host, subject, OK, seen, expected)
    remedy = "Look for other load on these hosts and their fabric (fabric.counters, link.errors), then run the collectives stage again."
    return Finding(STAGE, JITTER_CHECK, host, subject, WARNING, f"{seen}; {bad} of them not well", expected, remedy)


def check_pairs(host: str, runs: Sequence[Record], pair_gbps: Callable[[Sequence[str]], float | None]) -> Iterator[Finding]:
    """`collective.pairs`: the first two hosts of the ladder against what perftest reached between them on all their NICs."""
    run = next((run for run in runs if len(run["hosts"]) == _PAIR and run["status"] == WELL and run["gbytes_per_s"] is not None), None)
    if run is None:
        return
    subject, expected = f"{run['operation']} on {' and '.join(run['hosts'])}", f"{LEAST_OF_PAIRS:g} of what perftest reaches between them"
    gbps = pair_gbps(run["hosts"])
    if not gbps:
        why = "the pairs stage has no valid figure of all their rails"
        yield Finding(STAGE, PAIRS_CHECK, host, subject, NOT_APPLICABLE, why, expected)
        return
    share = run["gbytes_per_s"] * BITS_PER_BYTE / gbps
    seen = f"{run['gbytes_per_s']:.4g} GB/s, {share:.2f} of the {gbps / BITS_PER_BYTE:.4g} GB/s of perftest"
    if share >= LEAST_OF_PAIRS:
        yield Finding(STAGE, PAIRS_CHECK, host, subject, OK, seen, expected)
    else:
        remedy = (
            "The network is well and NCCL does not use it: collective.transport, collective.hcas, GPUDirect (gpu.path), ACS (pcie.acs)."
        )
        yield Finding(STAGE, PAIRS_CHECK, host, subject, WARNING, seen, expected, remedy)
