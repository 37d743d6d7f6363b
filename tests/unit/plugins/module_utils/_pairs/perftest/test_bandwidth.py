# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of perftest's bandwidth tests.

The tables here are written in the formats of perftest's source (perftest_parameters.h); outputs of real programs are in
tests/unit/fixtures/perftest and tests/compat.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.bandwidth import BandwidthRow, parse_bandwidth
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.perftest.failure import Failure, classify_failure
from tests.unit.builders.garbled import garbled, read_or_refused

FIXTURES = Path(__file__).parents[4] / "fixtures" / "perftest"
LINE = "-" * 87 + "\n"
GBITS = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
PREAMBLE = (
    "WARNING: BW peak won't be measured in this run.\n"
    + LINE
    + """                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : rxe_rail0
 Number of qps   : 1\t\tTransport type : IB
 Mtu             : 4096[B]
 Link type       : Ethernet
 GID index       : 1
 rdma_cm QPs\t : OFF
 Data ex. method : Ethernet
"""
    + LINE
    + """ local address: LID 0000 QPN 0x0012 PSN 0x6340e6 RKey 0x000300 VAddr 0x00ffffa271f000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:192:168:100:01
"""
    + LINE
)


def output(*rows: str, header: str = GBITS) -> str:
    return PREAMBLE + header + "\n" + "".join(row + "\n" for row in rows) + LINE


def test_a_run_by_duration_has_no_peak() -> None:
    result = parse_bandwidth(output(" 65536    1092             0.00               0.19   \t\t     0.000364"))
    assert (result.size_bytes, result.iterations, result.peak_gbps) == (65536, 1092, None)
    assert (result.average_gbps, result.message_rate_mpps, result.unit) == (0.19, 0.000364, "Gb/sec")


def test_small_averages_have_six_decimals() -> None:
    result = parse_bandwidth(output(" 65536    109           0.000000            0.019114            0.000036"))
    assert result.average_gbps == 0.019114


@pytest.mark.parametrize("unit", ["MB/sec", "MiB/sec"])
def test_both_names_of_the_binary_unit_are_converted(unit: str) -> None:
    text = output(" 65536      5000             11014.20           11000.00\t\t   0.176000", header=GBITS.replace("Gb/sec", unit))
    result = parse_bandwidth(text)
    assert result.average_gbps == pytest.approx(92.274688)
    assert result.peak_gbps == pytest.approx(92.39, abs=0.01)
    assert result.unit == unit


def test_all_sizes_are_rows_and_the_last_one_is_the_result() -> None:
    result = parse_bandwidth(output(" 2  5000  0.045656  0.045526  2.845402", " 8388608  5000  196.56  196.55  0.002929"))
    assert result.rows == (
        BandwidthRow(2, 5000, 0.045656, 0.045526, 2.845402),
        BandwidthRow(8388608, 5000, 196.56, 196.55, 0.002929),
    )
    assert (result.size_bytes, result.average_gbps) == (8388608, 196.55)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (GBITS + "    CPU_Util[%]", " 65536  5000  97.61  97.58  0.186 \t    3.14"),
        (
            " #bytes    #sl      #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]",
            " 65536  3  5000  97.61  97.58  0.186",
        ),
        (
            GBITS + "   BW Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]",
            " 65536  5000  97.61  97.58\t\t0.186  48.8  0.093  48.78  0.093",
        ),
    ],
)
def test_further_columns(header: str, row: str) -> None:
    result = parse_bandwidth(output(row, header=header))
    assert result.rows == (BandwidthRow(65536, 5000, 97.61, 97.58, 0.186),)


def test_warnings_among_the_rows_are_skipped() -> None:
    noise = " Conflicting CPU frequency values detected: 1200.535000 != 1251.336000. CPU Frequency is not max."
    kernel = "[   87.412596] BUG: Bad rss-counter state mm:(____ptrval____) idx:0 val:-1"
    assert parse_bandwidth(output(noise, kernel, " 65536  5000  92.42  92.40  0.176230")).average_gbps == 92.40


ROW = " 65536  5000  92.42  92.40  0.176230"


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", "''"),
        (PREAMBLE, "-----"),
        (output(), "#bytes"),
        (output(" 65536  5000  92.42"), "65536  5000  92.42"),
        (output(ROW + "  1"), "0.176230  1"),
        (output(" 65536  5000  92.42  nan  0.1"), "nan"),
        (output(" 65536  5000  92.42  inf  0.1"), "inf"),
        (output(" 65536  5000  92.42  -3.0  0.1"), "-3.0"),
        (output(" 65536  5000  92.42  9x2.40  0.1"), "9x2.40"),
        (output(" 65536.5  5000  92.42  92.40  0.1"), "65536.5"),
        (output() + output(ROW), "#bytes"),
        (output(ROW) + output(ROW.replace("92.40", "92.41")), "two different"),
        (output(ROW) + output(ROW, header=GBITS.replace("Gb/sec", "MB/sec")), "two different"),
        (output(ROW, header=GBITS.replace("average[Gb/sec]", "average[MB/sec]")), "average[MB/sec]"),
        (output(ROW, header=GBITS.replace("Gb/sec", "furlongs")), "furlongs"),
        (output(ROW, header=" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]"), "t_min[usec]"),
        (output(ROW, header=" #bytes        #iterations       t_avg[usec]    tps average"), "tps average"),
        (PREAMBLE + GBITS + "\n" + ROW[:-3], "0.176"),
    ],
)
def test_what_is_no_result_is_an_error_that_quotes_it(text: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_bandwidth(text)
    assert quoted in str(caught.value)


def test_the_same_table_twice_is_one_result() -> None:
    assert parse_bandwidth(output(ROW) + output(ROW)).average_gbps == 92.40


WORDS = st.sampled_from(
    [
        GBITS,
        ROW,
        LINE,
        "\n",
        " #bytes",
        " 65536",
        " 0.00",
        "\t",
        "nan",
        "#sl",
        " BW average[MiB/sec]",
        "MsgRate[Mpps]",
        "_1",
        "\u0663",
        "\x1c",
    ]
)


#: Anything, a table that is damaged anywhere, and a whole one of which a row is: of a whole output, nearly all of it is before the table.
TEXTS = st.lists(WORDS | st.text(max_size=8)).map("".join) | garbled(f"{GBITS}\n{ROW}\n{LINE}") | garbled(ROW).map(output)


@given(TEXTS, st.text(max_size=40), st.none() | st.integers(-15, 130))
def test_nothing_but_a_parse_error_escapes(text: str, stderr: str, exit_code: int | None) -> None:
    assert read_or_refused(parse_bandwidth, text)
    classify_failure(text, stderr, exit_code)


@given(st.integers(0, len(output(ROW)) - 1))
def test_a_truncated_output_is_no_result_unless_only_dashes_are_missing(length: int) -> None:
    text = output(ROW)
    if length < text.index(ROW) + len(ROW) + 1:
        with pytest.raises(ParseError):
            parse_bandwidth(text[:length])
    else:
        assert parse_bandwidth(text[:length]) == parse_bandwidth(text)


@pytest.mark.parametrize(
    ("stderr", "kind", "line"),
    [
        (
            "Couldn't connect to 192.0.2.1:18515\n Unable to init the socket connection\n",
            "refused",
            "Couldn't connect to 192.0.2.1:18515",
        ),
        (
            "Couldn't listen to port 18515\n Unable to open file descriptor for socket connection",
            "port_taken",
            "Couldn't listen to port 18515",
        ),
        (
            " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n",
            "retry_exceeded",
            "Failed status 12: wr_id 0 syndrom 0x81",
        ),
        (
            " Completion with error at client\n Failed status-transport retry counter exceeded (12): wr_id 0 syndrom 0x81\n",
            "retry_exceeded",
            "Failed status-transport retry counter exceeded (12): wr_id 0 syndrom 0x81",
        ),
        (" Failed status 10: wr_id 0 syndrom 0x88\n", "completion", "Failed status 10: wr_id 0 syndrom 0x88"),
        (
            "Couldn't allocate MR\nfailed to create mr\nFailed to create MR\n Couldn't create IB resources\n",
            "memory_registration",
            "Couldn't allocate MR",
        ),
        ("Failed to modify QP 18 to RTR\n Unable to Connect the HCA's through the link\n", "qp", "Failed to modify QP 18 to RTR"),
        (" Couldn't set Eth MTU\n", "mtu", "Couldn't set Eth MTU"),
        (" Did not get Message for 120 Seconds, exiting..\n", "timeout", "Did not get Message for 120 Seconds, exiting.."),
        ("", "unknown", ""),
    ],
)
def test_failures_are_reported_by_their_line(stderr: str, kind: str, line: str) -> None:
    assert classify_failure("", stderr, 1) == Failure(kind, line)


@pytest.mark.parametrize("exit_code", [None, -9, 124])
def test_what_had_to_be_ended_is_a_timeout(exit_code: int | None) -> None:
    found = classify_failure("************\n* Waiting for client to connect... *\n************\n", "", exit_code)
    assert found == Failure("timeout", "* Waiting for client to connect... *")


def test_an_average_of_zero_is_a_failure() -> None:
    row = " 65536    0           0.000000            0.000000            0.000000"
    assert classify_failure(output(row), "", 0) == Failure("zero", row.strip())


def test_success_is_no_failure_and_silence_is_one() -> None:
    assert classify_failure(output(ROW), "", 0) == Failure("unknown", "")
    assert classify_failure(output(ROW), "", 1) == Failure("unknown", ROW.strip())
    found = classify_failure("", "", 0)
    assert found.kind == "unknown"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("6.06-no-device", Failure("no_device", "Unable to find the Infiniband/RoCE device")),
        ("6.06-unknown-option", Failure("unknown", "ib_write_bw: unrecognized option '--foo'")),
    ],
)
def test_real_complaints(name: str, expected: Failure) -> None:
    assert classify_failure("", (FIXTURES / f"{name}.txt").read_text(encoding="utf-8"), 1) == expected
