# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""perftest's --out_json files, in the formats of perftest's source (perftest_parameters.c), before and since 24.01."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.bandwidth import BandwidthResult, BandwidthRow
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.failure import Failure, classify_failure, parse_result
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.latency import LatencyResult, LatencyRow
from tests.unit.builders.garbled import garbled, read_or_refused

INFO = """{
"test_info": {
"test": "RDMA_Write_BW_Test",
"Dual_port": "OFF",
"Device": "mlx5_0",
"Number_of_qps": 1,
"Transport_type": "IB",
"Connection_type": "RC",
"Using_SRQ": "OFF",
"PCIe_relax_order": "ON",
"ibv_wr_API": "ON",
"TX_depth": 128,
"CQ_Moderation": 1,
"Mtu": 4096,
"Link_type": "Ethernet",
"GID_index": 3,
"Max_inline_data": 0,
"rdma_cm_QPs": "OFF",
"Data_ex_method": "Ethernet"
},
"results": {
"""
BANDWIDTH = INFO + '"MsgSize": 65536,\n"n_iterations": 5000,\n"BW_peak": 97.61,\n"BW_average": 97.58,\n"MsgRate": 0.186119\n}\n}\n'
LATENCY = (
    INFO
    + '"MsgSize": 2,\n"n_iterations": 1000,\n"t_min": 1.57,\n"t_max": 9.65,\n"t_typical": 1.84,\n"t_avg": 2.04,\n'
    + '"t_stdev": 0.69,\n"percentile_99": 5.02,\n"percentile_99.9": 9.65\n}\n}\n'
)
DURATION_LATENCY = INFO + '"MsgSize": 2,\n"n_iterations": 402187,\n"t_avg": 2.48,\n"tps_average": 402187.31\n}\n}\n'
BEFORE_24_01 = """{
test_info: {
test: RDMA_Write_BW_Test,
Device: mlx5_0,
},
results: {
MsgSize: 65536,
n_iterations: 5000,
BW_peak: 97.61,
BW_average: 97.58,
MsgRate: 0.186119,
},
}
"""


def test_a_bandwidth() -> None:
    result = parse_result(BANDWIDTH, report_gbits=True)
    assert isinstance(result, BandwidthResult)
    assert (result.rows, result.unit) == ((BandwidthRow(65536, 5000, 97.61, 97.58, 0.186119),), "Gb/sec")


def test_the_caller_says_the_unit() -> None:
    result = parse_result(BANDWIDTH, report_gbits=False)
    assert isinstance(result, BandwidthResult)
    assert (result.unit, result.average_gbps) == ("MiB/sec", pytest.approx(97.58 * 2**20 * 8 / 1e9))


def test_a_peak_that_was_not_measured_is_absent() -> None:
    result = parse_result(BANDWIDTH.replace("97.61", "0.00"), report_gbits=True)
    assert isinstance(result, BandwidthResult)
    assert result.peak_gbps is None


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (LATENCY, LatencyRow(2, 1000, 1.57, 9.65, 1.84, 2.04, 0.69, 5.02, 9.65)),
        (DURATION_LATENCY, LatencyRow(2, 402187, average_usec=2.48, transactions_per_second=402187.31)),
        (LATENCY.replace("0.69", "-nan"), LatencyRow(2, 1000, 1.57, 9.65, 1.84, 2.04, None, 5.02, 9.65)),
    ],
    ids=["iterations", "duration", "deviation-that-overflowed"],
)
def test_a_latency(text: str, row: LatencyRow) -> None:
    result = parse_result(text, report_gbits=True)
    assert isinstance(result, LatencyResult)
    assert result.rows == (row,)


def test_a_cpu_utilisation_changes_nothing() -> None:
    text = BANDWIDTH.replace("0.186119", '0.186119,\n"CPU_util": 3.14')
    assert parse_result(text, report_gbits=True) == parse_result(BANDWIDTH, report_gbits=True)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (BEFORE_24_01, "test_info: {"),
        (
            BANDWIDTH.replace("0.186119", "0.186119,"),
            "0.186119," if sys.version_info >= (3, 13) else "}",
        ),  # 3.13 points at the comma itself
        (BANDWIDTH.replace('"n_iterations"', 'sl: 3,\n"n_iterations"'), "sl: 3"),
        (BANDWIDTH[:-40], "BW_a"),
        ("{", "{"),
    ],
    ids=["before-24.01", "trailing-comma", "unquoted-sl", "cut-off", "brace"],
)
def test_json_that_is_none_names_the_version_that_writes_it(text: str, quoted: str) -> None:
    with pytest.raises(ParseError, match=r"before version 6\.20 \(release 24\.01\)") as caught:
        parse_result(text, report_gbits=True)
    assert quoted in str(caught.value)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('{"test_info": {}}', "no results"),
        ('{"results": []}', "no results"),
        ('{"results": {}}', "neither"),
        (INFO + '"avg_lat": 2.04\n}\n}\n', "avg_lat"),
        (INFO + '"t_avg": 2.04\n}\n}\n', "MsgSize is None"),
        (BANDWIDTH.replace("97.58", '"97.58"'), "BW_average"),
        (BANDWIDTH.replace("97.58", "true"), "BW_average"),
        (BANDWIDTH.replace("97.58", "nan"), "no measurement"),
        (BANDWIDTH.replace("97.58", "-inf"), "no measurement"),
        (BANDWIDTH.replace("97.58", "-97.58"), "no measurement"),
        (BANDWIDTH.replace("97.58", "1" + "0" * 400), "BW_average"),
        (BANDWIDTH.replace("65536", "65536.5"), "MsgSize"),
        (BANDWIDTH.replace("65536", "-1"), "no measurement"),
        (BANDWIDTH.replace('"MsgRate": 0.186119', '"MsgRate_": 1'), "MsgRate is None"),
        (LATENCY.replace("1.84", "nan"), "no measurement"),
    ],
    ids=lambda text: text[-40:].strip("\n}") or "plain",
)
def test_what_is_no_result_is_an_error_that_says_why(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_result(text, report_gbits=True)
    assert quoted in str(caught.value)


def test_an_average_of_zero_is_a_failure() -> None:
    found = classify_failure(BANDWIDTH.replace("97.58", "0.00"), "", 0)
    assert (found.kind, '"BW_average": 0.00' in found.line) == ("zero", True)
    assert classify_failure(BANDWIDTH, "", 0) == Failure("unknown", "")


def test_invalid_json_is_a_failure_that_is_not_guessed() -> None:
    found = classify_failure(BEFORE_24_01, "", 0)
    assert found.kind == "unknown"


@given(garbled(BANDWIDTH) | garbled(LATENCY) | garbled(BEFORE_24_01), st.booleans())
def test_nothing_but_a_parse_error_escapes(text: str, report_gbits: bool) -> None:
    assert read_or_refused(lambda: parse_result(text, report_gbits=report_gbits))
    classify_failure(text, "", 0)


@given(st.floats(0, 1e6, allow_nan=False), st.booleans())
def test_a_number_is_never_changed_but_for_its_unit(average: float, report_gbits: bool) -> None:
    result = parse_result(BANDWIDTH.replace("97.58", f"{average:.6f}"), report_gbits=report_gbits)
    assert isinstance(result, BandwidthResult)
    factor = 1.0 if report_gbits else 2**20 * 8 / 1e9
    assert math.isclose(result.average_gbps, float(f"{average:.6f}") * factor)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(ParseError):
        parse_result('{"results": ' + "[" * 100_000, report_gbits=True)
