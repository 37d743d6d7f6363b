# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sweep of a run: grids for the heat map, distributions, and tables for readers without JavaScript.

A grid has a cell for each direction of each pair: two bytes for bandwidth, one for latency, in base64. 512 hosts with eight rails are
two million cells; as elements of a page they would take a gigabyte of a browser's memory.
"""

from __future__ import annotations

import base64
import gc
import itertools
import math
import statistics
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import SWEEP, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import Limit
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import SCHEMA
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.charts import histogram
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.hosts import HostFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import PLAN, Run

#: Values of a cell: 0 if nothing was measured, failed, planned without a result; from FIRST on, a figure.
FAILED, MISSING = 1, 2
FIRST = 3
MOST_GBPS_STEPS = 65535 - FIRST
MOST_USEC_STEPS = 255 - FIRST
BINS = 48
#: Low and failed pairs that the page lists at most, in tables and as raw results.
WORST, RAW, LINE_CHARACTERS = 20, 3000, 300
#: What a rail shows as low without an intent: rdma_pairs.warn_below and fail_below by default.
WARN_BELOW, FAIL_BELOW = 0.95, 0.80


@dataclass(frozen=True)
class Pair:
    """One measurement. sender, receiver: where data flows from and to. gbps: None if it failed, for the reason in why."""

    rail: str
    sender: str
    receiver: str
    gbps: float | None
    expected_gbps: float | None
    usec: float | None = None
    why: str = ""

    @property
    def share(self) -> float | None:
        return self.gbps / self.expected_gbps if self.gbps is not None and self.expected_gbps else None


@dataclass(frozen=True)
class Rail:
    """One rail. grids: base64; gbps_step: Gb/s of a step of the bandwidth grid; usec_low, usec_factor: latency = low × factor^step.

    limits: the expected Gb/s of each host, in the plan's order, None if unknown. quantiles: lowest, 1 %, 10 %, median, 90 %, highest.
    """

    name: str
    planned: int
    measured: int
    failed: int
    missing: int
    gbps_grid: str
    gbps_step: float
    usec_grid: str
    usec_low: float
    usec_factor: float
    limits: Sequence[float | None]
    leaves: Sequence[str]
    quantiles: Sequence[float]
    usec_median: float | None
    chart: Markup
    chart_words: str
    worst: Sequence[Pair]

    @property
    def lowest(self) -> Pair | None:
        """The pair with the lowest result; a failed one before others."""
        return self.worst[0] if self.worst else None

    def page_data(self) -> dict[str, Any]:
        """The data of the heat map."""
        keys = ("name", "gbps_grid", "gbps_step", "usec_grid", "usec_low", "usec_factor", "limits", "leaves")
        return {key: getattr(self, key) for key in keys}


@dataclass(frozen=True)
class HostRow:
    """The medians of a host as shares of the expected bandwidth, a rail each; None if not measured. failed: its measurements."""

    host: str
    shares: Sequence[float | None]
    failed: int


@dataclass(frozen=True)
class Sweep:
    """All rails of a sweep. tests: the tests of its plan. software: devices without a line rate are compared with their fleet's level."""

    hosts: Sequence[str]
    rails: Sequence[Rail]
    rows: Sequence[HostRow]
    tests: Sequence[Mapping[str, Any]]
    software: bool
    warn_below: float
    fail_below: float
    raw: Sequence[Sequence[Any]] = field(default_factory=list)

    def page_data(self) -> dict[str, Any]:
        """The data of the heat map, as JSON."""
        return {
            "hosts": list(self.hosts),
            "rails": [rail.page_data() for rail in self.rails],
            "raw": list(self.raw),
            "warn_below": self.warn_below,
            "fail_below": self.fail_below,
        }


def sweep_plan(run: Run) -> dict[str, Any] | None:
    """Return the plan of the run's sweep; None without one. Raises ParseError for one of another schema."""
    plan = run.mapping(PLAN)
    if not plan:
        return None
    if plan.get("schema") != SCHEMA:
        raise ParseError(f"the results of pairs have schema {plan.get('schema')!r}, and this version reads schema {SCHEMA}")
    return plan


def read_sweep(run: Run, plan: Mapping[str, Any], hosts: HostFacts, leaf_of: Mapping[str, str]) -> Sweep:
    """Return the sweep of a run. leaf_of: node GUID → the name of its leaf, "" if unknown."""
    evidence = Evidence(run.folder, SWEEP, plan, {}, {})
    with _without_collector():
        bandwidth, latency = evidence.measured, evidence.latency
    limits = [[_gbps(hosts, host, rail["name"]) for host in plan["hosts"]] for rail in plan["rails"]]
    software = all(limit is None for row in limits for limit in row)
    if software:
        level = _level(bandwidth)
        limits = [[level] * len(plan["hosts"]) for _each in plan["rails"]]
    positions = _positions(bandwidth)
    settings = _settings(run, software)
    usec = [{} for _each in plan["rails"]] if latency is None else _values(latency)
    rails = [
        _rail(
            plan,
            number,
            bandwidth,
            positions=positions[number],
            usec=usec[number],
            limits=limits[number],
            leaves=_leaves(plan, number, hosts, leaf_of),
            settings=settings,
        )
        for number in range(len(plan["rails"]))
    ]
    return Sweep(
        hosts=list(plan["hosts"]),
        rails=rails,
        rows=_rows(plan["hosts"], bandwidth, limits),
        tests=plan["tests"],
        software=software,
        warn_below=settings[0],
        fail_below=settings[1],
        raw=_raw(bandwidth),
    )


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the collector of cyclic garbage: it would search millions of lists of results, which have no cycles, again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _gbps(hosts: HostFacts, host: str, rail: str) -> float | None:
    limit = hosts.limits.get(host, {}).get(rail)
    return round(limit.gbps, 2) if isinstance(limit, Limit) else None


def _settings(run: Run, software: bool) -> tuple[float, float]:
    """Return (warn_below, fail_below) of the intent, else the defaults."""
    for _host, file in run.host_files("intent"):
        pairs = run.mapping(f"intent/{file.name}").get("pairs") or {}
        fail = pairs.get("software_fail_below" if software else "fail_below", FAIL_BELOW)
        return float(fail if software else pairs.get("warn_below", WARN_BELOW)), float(fail)
    return WARN_BELOW, FAIL_BELOW


def _level(matrix: Matrix) -> float | None:
    known = sorted(value for value in matrix.value if not math.isnan(value))
    return known[(3 * len(known)) // 4] if known else None


def _positions(matrix: Matrix) -> list[list[int]]:
    """Return the positions in the matrix of each rail."""
    found: list[list[int]] = [[] for _each in matrix.rails]
    for at, rail in enumerate(matrix.rail):
        found[rail].append(at)
    return found


def _values(matrix: Matrix) -> list[dict[int, float]]:
    """Return for each rail: cell (sender × hosts + receiver) → value of the good measurements."""
    n = len(matrix.hosts)
    found: list[dict[int, float]] = [{} for _each in matrix.rails]
    for rail, sender, receiver, value in zip(matrix.rail, matrix.client, matrix.server, matrix.value, strict=True):
        if not math.isnan(value):
            found[rail][sender * n + receiver] = value
    return found


def _leaves(plan: Mapping[str, Any], rail: int, hosts: HostFacts, leaf_of: Mapping[str, str]) -> list[str]:
    column = plan["rails"][rail]["profiles"]
    devices = ["" if number is None else str(plan["profiles"][number].get("device", "")) for number in column]
    return [leaf_of.get(hosts.guids.get((host, device), ""), "") for host, device in zip(plan["hosts"], devices, strict=True)]


def _least(limits: Sequence[float | None], one: int, other: int) -> float | None:
    first, second = limits[one], limits[other]
    if first is None or second is None:
        return second if first is None else first
    return first if first < second else second


def _rail(
    plan: Mapping[str, Any],
    number: int,
    matrix: Matrix,
    *,
    positions: Sequence[int],
    usec: Mapping[int, float],
    limits: Sequence[float | None],
    leaves: Sequence[str],
    settings: tuple[float, float],
) -> Rail:
    n, name = len(plan["hosts"]), str(plan["rails"][number]["name"])
    values = [value for at in positions if not math.isnan(value := matrix.value[at])]
    step = max(values, default=1.0) / MOST_GBPS_STEPS or 1.0
    # perftest prints hundredths: a step of a hundredth is exact.
    step = 0.01 if step <= 0.01 else step
    grid, slow = array("H", bytes(2 * n * n)), bytearray(n * n)
    missing = [(sender, receiver) for rail, receiver, sender in matrix.missing if rail == number]
    for sender, receiver in missing:
        grid[sender * n + receiver] = MISSING
    of_rail = list(usec.values())
    low = min(of_rail, default=1.0) or 0.01
    factor = max(1.0, max(of_rail, default=1.0) / low) ** (1 / MOST_USEC_STEPS)
    scale = math.log(factor) or 1.0
    for cell, value in usec.items():
        slow[cell] = FIRST + (round(math.log(value / low) / scale) if value > low else 0)
    lows: list[tuple[float, int]] = []
    for at in positions:
        sender, receiver, value = matrix.client[at], matrix.server[at], matrix.value[at]
        cell = sender * n + receiver
        if math.isnan(value):
            grid[cell] = FAILED
            lows.append((-1.0, at))
        else:
            grid[cell] = FIRST + min(MOST_GBPS_STEPS, round(value / step))
            limit = _least(limits, sender, receiver)
            share = value / limit if limit else None
            if share is not None and share < settings[0]:
                lows.append((share, at))
    lows.sort(key=lambda each: (each[0], each[1]))
    worst = [_pair(plan, matrix, at, limits, usec.get(matrix.client[at] * n + matrix.server[at])) for _share, at in lows[:WORST]]
    failed = len(positions) - len(values)
    values.sort()
    if values and not worst:
        at = min((at for at in positions if not math.isnan(matrix.value[at])), key=lambda at: matrix.value[at])
        worst = [_pair(plan, matrix, at, limits, usec.get(matrix.client[at] * n + matrix.server[at]))]
    chart, words = _chart(name, values, limits, settings)
    return Rail(
        name, len(positions) + len(missing), len(values), failed, len(missing),
        _encoded(grid), step, _encoded(slow) if of_rail else "", low, factor,
        limits, leaves, _quantiles(values), statistics.median(of_rail) if of_rail else None, chart, words, worst,
    )  # fmt: skip


def _encoded(cells: array[int] | bytearray) -> str:
    """Return the cells in base64, the lower byte first on any machine."""
    if isinstance(cells, array) and sys.byteorder != "little":
        cells.byteswap()
    return base64.b64encode(bytes(cells)).decode()


def _quantiles(values: Sequence[float]) -> list[float]:
    if not values:
        return []
    last = len(values) - 1
    return [values[round(share * last)] for share in (0, 0.01, 0.1, 0.5, 0.9, 1)]


def _pair(plan: Mapping[str, Any], matrix: Matrix, at: int, limits: Sequence[float | None], usec: float | None) -> Pair:
    value, failure = matrix.value[at], matrix.failures.get(at)
    sender, receiver = matrix.client[at], matrix.server[at]
    return Pair(
        rail=matrix.rails[matrix.rail[at]],
        sender=plan["hosts"][sender],
        receiver=plan["hosts"][receiver],
        gbps=None if math.isnan(value) else value,
        expected_gbps=_least(limits, sender, receiver),
        usec=None if usec is None or math.isnan(usec) else usec,
        why="" if failure is None else f"{failure.kind}: {failure.line}".removesuffix(": "),
    )


def _chart(name: str, values: Sequence[float], limits: Sequence[float | None], settings: tuple[float, float]) -> tuple[Markup, str]:
    known = [limit for limit in limits if limit]
    expected = statistics.median(known) if known else None
    if not values:
        return Markup(), ""
    high = max(values[-1], expected or 0.0)
    low = min(values[0], (settings[1] * expected if expected else values[0]) * 0.98)
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int((value - low) / (high - low) * BINS))] += 1
    marks = {} if expected is None else {"expected": expected, "warn": settings[0] * expected, "fail": settings[1] * expected}
    words = f"{name}: {len(values)} results from {values[0]:.4g} to {values[-1]:.4g} Gb/s, median {statistics.median(values):.4g} Gb/s"
    if expected is not None:
        words += f"; expected {expected:.4g} Gb/s, warning below {marks['warn']:.4g}, error below {marks['fail']:.4g}"
    return histogram(counts, low, high, marks, words), words


def _rows(hosts: Sequence[str], matrix: Matrix, limits: Sequence[Sequence[float | None]]) -> list[HostRow]:
    ratios: list[list[list[float]]] = [[[] for _host in hosts] for _each in matrix.rails]
    failed = [0] * len(hosts)
    for rail, server, client, value in zip(matrix.rail, matrix.server, matrix.client, matrix.value, strict=True):
        if math.isnan(value):
            failed[server] += 1
            failed[client] += 1
            continue
        limit = _least(limits[rail], server, client)
        if limit:
            ratios[rail][server].append(value / limit)
            ratios[rail][client].append(value / limit)
    return [HostRow(host, [statistics.median(of[at]) if of[at] else None for of in ratios], failed[at]) for at, host in enumerate(hosts)]


def _raw(matrix: Matrix) -> list[list[Any]]:
    """Return the failed measurements with their reason: [rail, sender, receiver, kind, line], RAW at most."""
    return [
        [matrix.rail[at], matrix.client[at], matrix.server[at], clean(failure.kind, 100), clean(failure.line, LINE_CHARACTERS)]
        for at, failure in itertools.islice(sorted(matrix.failures.items()), RAW)
    ]
