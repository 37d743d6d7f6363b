# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of perftest's latency tests, in the formats of perftest's source (perftest_parameters.h)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.latency import LatencyRow, parse_latency
from tests.unit.builders.garbled import garbled, read_or_refused

DASHES = "-" * 87 + "\n"
PREAMBLE = DASHES + "                    RDMA_Write Latency Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n" + DASHES
HEADER = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec] "
)
ROW = " 2       1000          1.57           9.65         1.84     \t       2.04        \t0.69   \t\t5.02    \t\t9.65   "
DURATION_HEADER = " #bytes        #iterations       t_avg[usec]    tps average"
DURATION_ROW = " 2       402187            2.48        402187.31"


def output(*rows: str, header: str = HEADER) -> str:
    return PREAMBLE + header + "\n" + "".join(row + "\n" for row in rows) + DASHES


def test_every_column_is_read() -> None:
    result = parse_latency(output(ROW))
    assert result.rows == (LatencyRow(2, 1000, 1.57, 9.65, 1.84, 2.04, 0.69, 5.02, 9.65),)
    assert (result.size_bytes, result.typical_usec, result.transactions_per_second, result.usec) == (2, 1.84, None, 1.84)


def test_a_run_by_duration_has_an_average_alone() -> None:
    result = parse_latency(output(DURATION_ROW, header=DURATION_HEADER))
    assert result.rows == (LatencyRow(2, 402187, average_usec=2.48, transactions_per_second=402187.31),)
    assert (result.typical_usec, result.usec) == (None, 2.48)


def test_the_short_table_of_old_versions_has_no_average() -> None:
    result = parse_latency(
        output(" 2  1000  1.57  9.65  1.84", header=" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]")
    )
    assert (result.average_usec, result.usec) == (None, 1.84)


def test_all_sizes_are_rows_and_the_last_one_is_the_result() -> None:
    result = parse_latency(output(ROW, "", ROW.replace(" 2 ", " 4096 ").replace("1.84", "2.58")))
    assert [(row.size_bytes, row.usec) for row in result.rows] == [(2, 1.84), (4096, 2.58)]
    assert (result.size_bytes, result.usec) == (4096, 2.58)


@pytest.mark.parametrize(
    ("header", "row"),
    [(HEADER + "    CPU_Util[%]", ROW + "\t    3.14"), (DURATION_HEADER + "    CPU_Util[%]", DURATION_ROW + "\t    3.14")],
    ids=["iterations", "duration"],
)
def test_a_further_column(header: str, row: str) -> None:
    plain = parse_latency(output(ROW) if "t_min" in header else output(DURATION_ROW, header=DURATION_HEADER))
    assert parse_latency(output(row, header=header)) == plain


def test_warnings_among_the_rows_are_skipped() -> None:
    noise = " Conflicting CPU frequency values detected: 1200.535000 != 1251.336000. CPU Frequency is not max."
    assert parse_latency(output(noise, ROW)).usec == 1.84


def test_a_list_of_samples_is_no_row() -> None:
    text = PREAMBLE + HEADER + "\n#, usec\n1, 1.57\n2, 1.84\n" + DASHES + HEADER + "\n" + ROW + "\n" + DASHES
    assert parse_latency(text) == parse_latency(output(ROW))


@pytest.mark.parametrize("deviation", ["-nan", "nan"])
def test_a_deviation_that_overflowed_is_absent(deviation: str) -> None:
    result = parse_latency(output(ROW.replace("0.69", deviation)))
    assert (result.stdev_usec, result.usec) == (None, 1.84)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        (output(), "#bytes"),
        (output(" 2       1000          1.57"), "1000          1.57"),
        (output(ROW + "  1"), "9.65     1"),
        (output(ROW.replace("1.84", "nan")), "nan"),
        (output(ROW.replace("1.84", "inf")), "inf"),
        (output(ROW.replace("1.84", "-1.84")), "-1.84"),
        (output(ROW.replace("1.84", "1x84")), "1x84"),
        (output(ROW.replace(" 2 ", " 2.5 ")), "2.5"),
        (output(ROW) + output(ROW.replace("1.84", "1.85")), "two different"),
        (output(ROW) + output(), "two different"),
        (output(ROW, header=HEADER.replace("t_typical[usec]", "t_typical[cycles]")), "t_typical[cycles]"),
        (output(ROW, header=HEADER.replace("t_typical", "typical").replace("t_avg", "avg")), "typical[usec]"),
        (output(ROW, header=HEADER.replace("t_max", "t_min")), "twice"),
        (output(ROW, header=" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"), "BW peak"),
        (PREAMBLE + HEADER + "\n" + ROW.rstrip(), "9.65"),
        (PREAMBLE + HEADER + "\n" + ROW.rstrip()[:-2], "9."),
    ],
    ids=lambda text: text[-24:].strip("-\n ") or "plain",
)
def test_what_is_no_result_is_an_error_that_quotes_it(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_latency(text)
    assert quoted in str(caught.value)


def test_the_same_table_twice_is_one_result() -> None:
    assert parse_latency(output(ROW) + output(ROW)).usec == 1.84


@given(garbled(output(ROW)) | garbled(output(DURATION_ROW, header=DURATION_HEADER)))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_latency, text)


@given(st.integers(0, len(output(ROW)) - 1))
def test_a_truncated_output_is_no_result_unless_only_dashes_are_missing(length: int) -> None:
    text = output(ROW)
    if length < text.index(ROW) + len(ROW) + 1:
        with pytest.raises(ParseError):
            parse_latency(text[:length])
    else:
        assert parse_latency(text[:length]) == parse_latency(text)
