# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file that perftest writes with --out_json (valid JSON from version 6.20, release 24.01, on)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import words_of_json
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.bandwidth import BandwidthResult, bandwidth_result, bandwidth_row
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.latency import LatencyResult, latency_result, latency_row

_RATES = ("BW_peak", "BW_average", "MsgRate")
_LATENCIES = {
    "t_min": "min_usec",
    "t_max": "max_usec",
    "t_typical": "typical_usec",
    "t_avg": "average_usec",
    "t_stdev": "stdev_usec",
    "percentile_99": "percentile_99_usec",
    "percentile_99.9": "percentile_99_9_usec",
    "tps_average": "transactions_per_second",
}


def parse_json(text: str, *, report_gbits: bool) -> BandwidthResult | LatencyResult:
    """Parse one --out_json file; with -a it holds the largest size alone.

    The file names no unit: report_gbits says whether --report_gbits was given. Raises ParseError.
    """
    results = _results(text)
    quoted = json.dumps(results)
    if "BW_average" in results:
        unit = "Gb/sec" if report_gbits else "MiB/sec"
        peak, average, message_rate = (_number(results, name) for name in _RATES)
        return bandwidth_result([bandwidth_row(_integers(results), (peak, average, message_rate), unit, quoted)], unit)
    if "t_avg" not in results and "t_typical" not in results:
        raise ParseError(f"neither a bandwidth nor a latency in perftest's JSON: {quoted}")
    values = {field: _number(results, name) for name, field in _LATENCIES.items() if name in results}
    return latency_result([latency_row(_integers(results), values, quoted)])


def _results(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(words_of_json(text))
    except (ValueError, RecursionError) as exc:
        number = getattr(exc, "lineno", 1)
        line = [*text.split("\n"), ""][number - 1].strip()
        raise ParseError(
            f"perftest before version 6.20 (release 24.01) writes no valid JSON, or it was cut off, at line {number}: {line!r}"
        ) from exc
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, dict):
        raise ParseError(f"no results in perftest's JSON: {text.strip()!r}")
    return results


def _number(results: Mapping[str, Any], name: str) -> float:
    value = results.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ParseError(f"{name} is {value!r} in perftest's JSON: {json.dumps(results)}")
    try:
        return float(value)
    except OverflowError as exc:
        raise ParseError(f"{name} is beyond all measure in perftest's JSON") from exc


def _integers(results: Mapping[str, Any]) -> tuple[int, int]:
    size_bytes, iterations = results.get("MsgSize"), results.get("n_iterations")
    if isinstance(size_bytes, int) and isinstance(iterations, int) and not {type(size_bytes), type(iterations)} & {bool}:
        return size_bytes, iterations
    raise ParseError(f"MsgSize is {size_bytes!r} and n_iterations {iterations!r} in perftest's JSON")
