# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs compared: pairs in percent, with the test that separates a change from noise, and findings that are new or fixed.

Each pair usually has one measurement in each run, so the scatter comes from the other pairs: d = ln(after / before) of all pairs of a rail.

- A pair: d minus the median d of its rail, divided by 1.4826 × the median absolute deviation (at least 0.5 %), as a normal deviate.
- A port (host and rail) and a rail: the exact sign test on d of its pairs; it assumes no distribution.

All p values are two-sided and multiplied by the number of tests of their kind (Bonferroni). Below LEVEL, and from LEAST_CHANGE on, a change
is significant. With too few pairs no test can reach LEVEL: this is stated, and is not "no change". Pairs of one port share
that port, so the sign test of a port finds a change of the port, and that of a rail can find one of few ports.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, OK, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import SWEEP, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import ReportError, Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.sweep import sweep_plan

LEVEL, LEAST_CHANGE = 0.01, 0.02
#: From this number of common pairs on, the scatter of a rail can be estimated.
LEAST_PAIRS = 10
#: The least scatter of a rail: clocks and rounding of perftest.
LEAST_SIGMA = 0.005
SIGNIFICANT, NOISE, TOO_FEW = "significant", "noise", "too few pairs to judge"
#: Rows that the page lists.
ROWS = 200
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Change:
    """A change of a pair, port or rail.

    percent: of before; judgment: SIGNIFICANT, NOISE or TOO_FEW; p: after correction, None without a test; pairs: their number.
    """

    where: str
    before_gbps: float
    after_gbps: float
    percent: float
    judgment: str
    p: float | None
    pairs: int


@dataclass(frozen=True)
class Comparison:
    """The results of two runs. only_before, only_after: how many measurements exist in only one; failed and working again: of both."""

    common: int
    only_before: int
    only_after: int
    rails: Sequence[Change]
    ports: Sequence[Change]
    pairs: Sequence[Change]
    significant_pairs: int
    failed: Sequence[str]
    works: Sequence[str]


def read_values(run: Run) -> dict[Key, float] | None:
    """Return (rail, one host, other host) → Gb/s, NaN if it failed; None if the run has no sweep.

    Both directions are one pair if only one of them was measured, which is usual. Raises ReportError for results of another schema.
    """
    try:
        plan = sweep_plan(run)
    except ParseError as error:
        raise ReportError(
            f"Run {run.name} cannot be compared: {error}. Compare it with the version of rdma.cluster that wrote it."
        ) from error
    if plan is None:
        return None
    matrix: Matrix = Evidence(run.folder, SWEEP, plan, {}, {}).measured
    columns = zip(matrix.rail, matrix.client, matrix.server, matrix.value, strict=True)
    hosts, rails = matrix.hosts, matrix.rails
    return {(rails[rail], hosts[sender], hosts[receiver]): value for rail, sender, receiver, value in columns}


def compare(before: Mapping[Key, float], after: Mapping[Key, float]) -> Comparison:
    """Return the comparison of two sweeps. A pair that was measured in the other direction counts if its own is missing."""
    old, new = dict[Key, float](), dict[Key, float]()
    for key, value in after.items():
        there = key if key in before else (key[0], key[2], key[1])
        if there in before:
            old[key], new[key] = before[there], value
    logs = {key: math.log(new[key] / old[key]) for key in new if new[key] > 0 and old[key] > 0}
    by_rail: dict[str, list[Key]] = {}
    by_port: dict[tuple[str, str], list[Key]] = {}
    for key in logs:
        by_rail.setdefault(key[0], []).append(key)
        for host in key[1:]:
            by_port.setdefault((host, key[0]), []).append(key)
    pairs = _pairs(by_rail, logs, old, new)
    judged = [each for each in pairs if each.judgment == SIGNIFICANT]
    return Comparison(
        common=len(new),
        only_before=len(before) - len(new),
        only_after=len(after) - len(new),
        rails=[_signs(rail, keys, (old, new), logs, tests=len(by_rail)) for rail, keys in sorted(by_rail.items())],
        ports=_ports(by_port, logs, old, new),
        pairs=(judged or sorted(pairs, key=lambda each: -abs(each.percent)))[:ROWS],
        significant_pairs=len(judged),
        failed=[_words(key) for key in new if math.isnan(new[key]) and old[key] > 0][:ROWS],
        works=[_words(key) for key in new if math.isnan(old[key]) and new[key] > 0][:ROWS],
    )


def _words(key: Key) -> str:
    return f"{key[1]} to {key[2]}, {key[0]}"


def _ports(
    by_port: Mapping[tuple[str, str], Sequence[Key]], logs: Mapping[Key, float], old: Mapping[Key, float], new: Mapping[Key, float]
) -> list[Change]:
    changes = [_signs(f"{host}, {rail}", keys, (old, new), logs, tests=len(by_port)) for (host, rail), keys in by_port.items()]
    shown = [each for each in changes if each.judgment == SIGNIFICANT]
    return sorted(shown, key=lambda each: -abs(each.percent))[:ROWS]


def _signs(
    where: str, keys: Sequence[Key], sweeps: tuple[Mapping[Key, float], Mapping[Key, float]], logs: Mapping[Key, float], *, tests: int
) -> Change:
    """Return the change of a group by the exact sign test."""
    found = [logs[key] for key in keys]
    change = statistics.median(found)
    ups, downs = sum(each > 0 for each in found), sum(each < 0 for each in found)
    p = min(1.0, sign_test(ups, downs) * tests)
    possible = 2.0 ** (1 - (ups + downs)) * tests
    if ups + downs and possible > LEVEL:
        judgment = TOO_FEW
    else:
        judgment = SIGNIFICANT if p < LEVEL and abs(math.expm1(change)) >= LEAST_CHANGE else NOISE
    medians = [statistics.median(values[key] for key in keys) for values in sweeps]
    return Change(where, medians[0], medians[1], 100 * math.expm1(change), judgment, None if judgment == TOO_FEW else p, len(found))


def sign_test(ups: int, downs: int) -> float:
    """Return the two-sided p value of the exact sign test; 1.0 without changes. Above 1000 pairs, the normal approximation."""
    number, fewer = ups + downs, min(ups, downs)
    if number == 0:
        return 1.0
    if number > 1000:
        return math.erfc(max(0.0, abs(ups - downs) - 1.0) / math.sqrt(2 * number))
    return float(min(1.0, 2 * sum(math.comb(number, each) for each in range(fewer + 1)) / 2**number))


def _pairs(
    by_rail: Mapping[str, Sequence[Key]], logs: Mapping[Key, float], old: Mapping[Key, float], new: Mapping[Key, float]
) -> list[Change]:
    tests = len(logs)
    found = []
    for keys in by_rail.values():
        middle = statistics.median(logs[key] for key in keys)
        sigma = max(LEAST_SIGMA, 1.4826 * statistics.median(abs(logs[key] - middle) for key in keys))
        for key in keys:
            p: float | None = min(1.0, math.erfc(abs(logs[key] - middle) / sigma / math.sqrt(2)) * tests)
            percent = 100 * math.expm1(logs[key])
            judgment = SIGNIFICANT if p is not None and p < LEVEL and abs(percent) >= 100 * LEAST_CHANGE else NOISE
            if len(keys) < LEAST_PAIRS:
                judgment, p = TOO_FEW, None
            found.append(Change(_words(key), old[key], new[key], percent, judgment, p, 1))
    return sorted(found, key=lambda each: (each.p is None, each.p, each.percent))


def findings_changed(before: Sequence[Finding], after: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Return "new", "fixed" and "worse" findings: by host, check and subject. Fixed needs a later judgment of the same subject."""

    def by_key(findings: Sequence[Finding]) -> dict[tuple[str, str, str], Finding]:
        return {(each.host, each.check, each.subject): each for each in findings}

    old, new = by_key(before), by_key(after)
    bad_old = {key: each for key, each in old.items() if _is_bad(each)}
    bad_new = {key: each for key, each in new.items() if _is_bad(each)}
    judged = {(each.host, each.check) for each in after} | {(each.host, each.stage) for each in after}
    gone = {key: each for key, each in bad_old.items() if key not in bad_new}
    return {
        "new": [each for key, each in bad_new.items() if key not in bad_old],
        "fixed": [each for each in gone.values() if (each.host, each.check) in judged or (each.host, each.stage) in judged],
        "not judged again": [
            each for each in gone.values() if (each.host, each.check) not in judged and (each.host, each.stage) not in judged
        ],
        "still there": [each for key, each in bad_new.items() if key in bad_old],
    }


def _is_bad(finding: Finding) -> bool:
    return finding.status not in (OK, NOT_APPLICABLE) and finding.silenced_by is None
