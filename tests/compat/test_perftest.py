# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""perftest outputs of real clusters, read where they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.bandwidth import parse_bandwidth
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.failure import (
    Failure,
    classify_failure,
    parse_result,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.latency import parse_latency

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "perftest"
MIB_PER_SECOND_GBPS = 2**20 * 8 / 1e9


def capture(name: str) -> str:
    return (CAPTURES / f"{name}.txt").read_text(encoding="utf-8")


RESULTS = {
    "aks-read_bw-a-gbits": (23, 8388608, 197.48, 197.48, 0.002943, "Gb/sec"),
    "aks-write_bw-a-gbits": (23, 8388608, 196.56, 196.55, 0.002929, "Gb/sec"),
    "deepops-write_bw-rdma_cm-cx5-roce": (1, 65536, 92.42, 92.40, 0.176230, "Gb/sec"),
    "ml-read_bw-rxe-drops": (23, 8388608, 18.09 * MIB_PER_SECOND_GBPS, 17.82 * MIB_PER_SECOND_GBPS, 0.000002, "MB/sec"),
    "ml-read_bw-rxe-fixed": (23, 8388608, 110.37 * MIB_PER_SECOND_GBPS, 110.37 * MIB_PER_SECOND_GBPS, 0.000014, "MB/sec"),
    "sb-ib_loopback_8M_size": (1, 8388608, 24056.74 * MIB_PER_SECOND_GBPS, 24056.72 * MIB_PER_SECOND_GBPS, 0.003007, "MB/sec"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str) -> None:
    rows, size_bytes, peak_gbps, average_gbps, message_rate_mpps, unit = RESULTS[name]
    result = parse_bandwidth(capture(name))
    assert (len(result.rows), result.size_bytes, result.message_rate_mpps, result.unit) == (rows, size_bytes, message_rate_mpps, unit)
    assert result.peak_gbps == pytest.approx(peak_gbps)
    assert result.average_gbps == pytest.approx(average_gbps)


def test_several_runs_in_one_text_are_refused_and_each_alone_is_read() -> None:
    text = capture("ml-read_bw-hns-with-kernel-bug")
    with pytest.raises(ParseError, match="two different result tables"):
        parse_bandwidth(text)
    runs = [run for run in text.split("root@(none)$") if "BW average" in run]
    averages = [parse_bandwidth(run).average_gbps / MIB_PER_SECOND_GBPS for run in runs]
    assert len(averages) > 3
    assert averages[0] == pytest.approx(6468.60)


def test_a_latency_table_is_not_a_bandwidth() -> None:
    with pytest.raises(ParseError, match="t_typical"):
        parse_bandwidth(capture("ml-write_lat-rxe-loopback"))


def test_a_latency_table_with_a_blank_line_between_its_rows() -> None:
    result = parse_latency(capture("ml-write_lat-rxe-loopback"))
    assert [row.size_bytes for row in result.rows] == [2**power for power in range(1, 13)]
    assert (result.rows[0].typical_usec, result.rows[0].percentile_99_usec, result.rows[0].percentile_99_9_usec) == (1.84, 5.02, 9.65)
    assert (result.size_bytes, result.iterations, result.usec, result.max_usec) == (4096, 1000, 2.58, 11.66)


@pytest.mark.parametrize("name", [*RESULTS, "ml-write_lat-rxe-loopback"])
def test_one_entry_reads_both_kinds(name: str) -> None:
    text = capture(name)
    parser = parse_latency if "_lat-" in name else parse_bandwidth
    assert parse_result(text, report_gbits=False) == parser(text)
    assert classify_failure(text, "", 0) == Failure("unknown", "")


def test_a_failure_is_reported_by_its_line() -> None:
    assert classify_failure("", capture("ml-write_bw-couldnt-get-device-attributes"), 1) == Failure("qp", "Unable to create QP.")
