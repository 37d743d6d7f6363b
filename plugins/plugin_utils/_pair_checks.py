# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the pairs stage asks: every planned pair measured, on every rail, and none far below its like.

First slice: software devices have no line rate, so a pair is judged by the median of its rail and by the floor that the
intent sets. A finding stands at both hosts of its pair, since one pair does not tell which end is to blame.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._perftest import classify_failure, parse_bandwidth

STAGE = "pairs"
CHECK = "pair.bandwidth"


@dataclass(frozen=True)
class PairResult:
    """One pair on one rail, as its client measured it; average_gbps None: not measured, and why. run: the earlier run that proved it."""

    rail: str
    server: str
    client: str
    average_gbps: float | None
    size_bytes: int | None
    iterations: int | None
    started: float | None
    seconds: float | None
    failure: str | None = None
    run: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def collect(plan: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> list[PairResult]:
    """One result for each planned pair and rail, from the runners' records."""
    by_pair: dict[tuple[str, frozenset[str]], list[Mapping[str, Any]]] = {}
    for record in records:
        if "rail" in record:
            key = (record["rail"], frozenset((record["server"], record["client"])))
            by_pair.setdefault(key, []).append(record)
    return [
        _result(rail["name"], pair, by_pair.get((rail["name"], frozenset(pair)), []))
        for rail in plan["rails"]
        for pair in itertools.combinations([host for host in plan["hosts"] if host in rail["endpoints"]], 2)
    ]


def _result(rail: str, pair: tuple[str, str], records: list[Mapping[str, Any]]) -> PairResult:
    client = next((record for record in records if record["role"] == "client"), None)
    said = client or next(iter(records), None)
    if said is None:
        return PairResult(rail, *pair, None, None, None, None, None, "neither host has a record of it")
    where = (rail, said["server"], said["client"])
    failure = _failure(records)
    if failure is None and client is not None:
        try:
            row = parse_bandwidth(client["stdout"]).rows[-1]
        except ParseError as error:
            failure = str(error)
        else:
            if row.average_gbps > 0:
                return PairResult(*where, row.average_gbps, row.size_bytes, row.iterations, client["started"], client["seconds"])
            failure = "perftest measured an average of zero, which is a failed measurement"
    return PairResult(*where, None, None, None, said["started"], said["seconds"], failure or "the client has no record of it")


def _failure(records: list[Mapping[str, Any]]) -> str | None:
    """Why a pair was not measured, from whichever end knows; None if both ends ended well."""
    for record in sorted(records, key=lambda item: str(item["role"])):
        if record["error"]:
            return f"{record['error']['class']}: {record['error']['detail']}"
        if record["exit_code"] != 0:
            failure = classify_failure(record["stdout"], record["stderr"], record["exit_code"])
            return f"{failure.kind}: {failure.line}"
    return None


def check_pairs(results: list[PairResult], settings: Mapping[str, Any], hosts: Iterable[str]) -> dict[str, list[Finding]]:
    """The findings of every host; none for a host without a result.

    settings: the intent's rdma_pairs. Rates in Gb/s (1e9 bit/s).
    """
    findings: dict[str, list[Finding]] = {host: [] for host in hosts}
    for rail in dict.fromkeys(result.rail for result in results):
        of_rail = [result for result in results if result.rail == rail]
        least, median = _bounds(of_rail, settings)
        for result in of_rail:
            for host in (result.server, result.client):
                findings[host].append(_judge(host, result, least, median))
    return findings


def judge_at(result: PairResult, results: list[PairResult], settings: Mapping[str, Any]) -> Finding:
    """What check_pairs says of one result, as its client sees it."""
    return _judge(result.client, result, *_bounds([each for each in results if each.rail == result.rail], settings))


def _bounds(of_rail: list[PairResult], settings: Mapping[str, Any]) -> tuple[float, float]:
    """What a pair of this rail must reach, and the rail's median, in Gb/s."""
    measured = [result.average_gbps for result in of_rail if result.average_gbps is not None]
    median = statistics.median(measured) if measured else 0.0
    return max(settings["floor_gbps"], settings["software_fail_below"] * median), median


def _judge(host: str, result: PairResult, least: float, median: float) -> Finding:
    subject = f"{result.rail} {result.client} to {result.server}"
    expected = f"at least {least:.3g} Gb/s"
    if result.average_gbps is None:
        return Finding(
            STAGE, CHECK, host, subject, UNKNOWN, f"not measured: {result.failure}", expected,
            f"Run the pairs stage again; if it fails again, look at {result.rail} of both hosts.",
        )  # fmt: skip
    good = result.average_gbps >= least
    return Finding(
        STAGE, CHECK, host, subject, OK if good else ERROR,
        observed=f"{result.average_gbps:.3g} Gb/s (median of {result.rail}: {median:.3g}){_proven(result)}",
        expected=expected,
        remedy="" if good else f"Look at {result.rail} of both hosts, in this order: MTU, flow control, cable or optic, PCIe, NUMA.",
    )  # fmt: skip


def _proven(result: PairResult) -> str:
    return f", proven by run {result.run}" if result.run else ""
