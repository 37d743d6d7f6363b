# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nccl-tests printed on two H200, and texts in the form of its source: launchers' tags, torn rows, other versions, several runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.parse import parse_nccl_tests
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import (
    Measured,
    NcclTestsResult,
    Rank,
    Row,
    Settings,
    nccl_version,
    whole_number_of_ranks,
)
from tests.unit.builders.garbled import garbled, read_or_refused
from tests.unit.builders.nccl_texts import h200

CLEAN = h200("all_reduce_perf.txt")
DEBUG = h200("all_reduce_perf_debug_info.txt")
HEADER = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
ROW = "     1048576        262144     float     sum      -1    15.28   68.64   68.64       0    14.83   70.71   70.71       0\n"
FOOTER = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 69.675 \n"


def measured(time_usec: float, algbw: float, wrong: int | None = 0) -> Measured:
    return Measured(time_usec, algbw, algbw, wrong)


def test_a_clean_run() -> None:
    rows = [
        (1048576, (15.28, 68.64), (14.83, 70.71)),
        (4194304, (35.27, 118.91), (34.59, 121.24)),
        (16777216, (78.76, 213.00), (77.01, 217.87)),
        (67108864, (249.36, 269.13), (249.65, 268.81)),
        (268435456, (898.21, 298.86), (897.32, 299.15)),
        (1073741824, (3286.52, 326.71), (3267.72, 328.59)),
    ]
    assert parse_nccl_tests(CLEAN) == NcclTestsResult(
        version="2.19.6",
        headers_version="2.28.9",
        library_version="2.28.9",
        test="all_reduce_perf",
        settings=Settings(1, 2, 1048576, 1073741824, 1, 20, 1),
        ranks=(
            Rank(0, 0, 1648, "vm", 0, "0000:00:06", "NVIDIA H200"),
            Rank(1, 0, 1648, "vm", 1, "0000:00:07", "NVIDIA H200"),
        ),
        nranks=2,
        rows=tuple(Row(size, size // 4, "float", "sum", -1, measured(*out), measured(*place)) for size, out, place in rows),
        average_busbw_gbytes_per_s=216.801,
        average_ok=None,
        out_of_bounds=0,
        out_of_bounds_ok=True,
        errors=(),
        runs=1,
        truncated=False,
        elided=False,
    )


@pytest.mark.parametrize(
    ("name", "test", "rows", "average", "last"),
    [
        ("all_gather_perf", "all_gather_perf", 6, 169.98, (1073741824, 2000.27, 536.80, 268.40, 0, 1805.24, 594.79, 297.40, 0)),
        ("alltoall_perf", "alltoall_perf", 6, 195.154, (1073741824, 1617.95, 663.64, 331.82, 0, 1517.27, 707.68, 353.84, None)),
        ("reduce_scatter_perf", "reduce_scatter_perf", 6, 167.771, (1073741824, 1947.82, 551.25, 275.63, 0, 1924.47, 557.94, 278.97, 0)),
        ("all_reduce_perf_debug_info", "all_reduce_perf", 28, 88.1354, (1073741824, 3295.39, 325.83, 325.83, 0, 3276.64, 327.7, 327.7, 0)),
        (
            "all_reduce_perf_p2p_disabled_debug_info",
            "all_reduce_perf",
            5,
            24.4993,
            (2**28, 9743.68, 27.55, 27.55, 0, 9786.46, 27.43, 27.43, 0),
        ),
        ("all_reduce_perf_via_socket_debug_info", "all_reduce_perf", 4, 3.91555, (2**26, 13846.6, 4.85, 4.85, 0, 13249.4, 5.07, 5.07, 0)),
        (
            "all_reduce_perf_topo_file_missing_debug_info",
            "all_reduce_perf",
            1,
            76.8305,
            (2**20, 13.61, 77.07, 77.07, 0, 13.69, 76.59, 76.59, 0),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "_perf" in value else "",
)
def test_two_h200(name: str, test: str, rows: int, average: float, last: tuple[float | None, ...]) -> None:
    result = parse_nccl_tests(h200(f"{name}.txt"))
    row = result.rows[-1]
    halves = [value for half in row.halves for value in (half.time_usec, half.algbw_gbytes_per_s, half.busbw_gbytes_per_s, half.wrong)]
    assert (result.test, len(result.rows), result.average_busbw_gbytes_per_s) == (test, rows, average)
    assert (row.size_bytes, *halves) == last
    assert (result.nranks, result.out_of_bounds, result.out_of_bounds_ok) == (2, 0, True)
    assert (result.runs, result.truncated, result.elided) == (1, False, False)
    busbw = [half.busbw_gbytes_per_s for row in result.rows for half in row.halves if half.busbw_gbytes_per_s is not None]
    assert sum(busbw) / len(busbw) == pytest.approx(average, abs=0.006)


def test_a_run_that_failed_has_no_rows_and_says_why() -> None:
    result = parse_nccl_tests(h200("all_reduce_perf_no_ib_device_failed.txt"))
    assert (result.rows, result.nranks, result.truncated, result.out_of_bounds) == ((), 2, True, None)
    assert result.errors == (
        "vm: Test NCCL failure common.cu:222 'invalid usage (run with NCCL_DEBUG=WARN for details) / '",
        ".. vm pid 1674: Test failure common.cu:1620",
        ".. vm pid 1674: Test failure common.cu:1454",
    )


@pytest.mark.parametrize(
    "tag",
    ["[1,0]<stdout>:", "[prterun-gpu001-4711@1,0]<stdout>: ", "0: ", "  0: ", "2026-11-20T09:29:38.123456789Z ", "launcher-x7k | "],
)
def test_what_a_launcher_puts_before_a_line_changes_nothing(tag: str) -> None:
    assert parse_nccl_tests("".join(f"{tag}{line}" for line in DEBUG.splitlines(keepends=True))) == parse_nccl_tests(DEBUG)


def test_line_ends_of_windows_and_a_terminal() -> None:
    assert parse_nccl_tests(CLEAN.replace("\n", "\r\n")) == parse_nccl_tests(CLEAN)


@pytest.mark.parametrize("at", [52, 86])
def test_a_row_that_the_log_has_torn_apart_is_put_together(at: int) -> None:
    log = "vm:1355:1378 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer\n"
    torn = CLEAN.replace(ROW, f"{ROW[:at]}{log}{log}{ROW[at:]}")
    assert torn != CLEAN
    assert parse_nccl_tests(torn) == parse_nccl_tests(CLEAN)


@pytest.mark.parametrize("at", [51, 57, 76, 80, 110])
def test_a_row_that_was_torn_within_a_cell_is_left_out(at: int) -> None:
    """Two processes that write into one pipe: it is unknown where the number went on."""
    log = "vm:1355:1378 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer\n"
    result = parse_nccl_tests(CLEAN.replace(ROW, f"{ROW[:at]}{log}{ROW[at:]}"))
    assert (result.rows, result.elided) == (parse_nccl_tests(CLEAN).rows[1:], True)


def test_a_row_whose_rest_never_came_is_left_out_and_reported_to_be() -> None:
    result = parse_nccl_tests(CLEAN.replace(ROW, f"{ROW[:52]}\n"))
    assert ([row.size_bytes for row in result.rows][:1], len(result.rows)) == ([4194304], 5)
    assert (result.truncated, result.elided) == (False, True)


@pytest.mark.parametrize("end", range(0, len(CLEAN), 5))
def test_what_was_cut_off_is_never_whole_and_claims_nothing(end: int) -> None:
    whole = parse_nccl_tests(CLEAN)
    try:
        result = parse_nccl_tests(CLEAN[:end])
    except ParseError:
        assert end < 130
        return
    assert result.rows == whole.rows[: len(result.rows)]
    assert result.average_busbw_gbytes_per_s == (None if result.truncated else 216.801)
    assert result.truncated == (end <= CLEAN.index("216.801") + len("216.801"))
    assert (result.nranks, result.settings) in ((None, None), (None, whole.settings), (2, whole.settings))


def test_separate_runs_are_counted() -> None:
    """A build without MPI: each process is a test of its own."""
    text = "".join(CLEAN.replace("Rank  1", "Rank  0") for _process in range(16))
    result = parse_nccl_tests(text)
    assert (result.runs, result.nranks, len(result.ranks), len(result.rows)) == (16, 1, 32, 96)
    assert (result.test, result.settings, result.average_busbw_gbytes_per_s, result.out_of_bounds) == (
        "all_reduce_perf",
        parse_nccl_tests(CLEAN).settings,
        None,
        0,
    )
    assert (result.truncated, parse_nccl_tests(text[:-60]).truncated) == (False, True)


def test_different_runs_have_no_name_in_common() -> None:
    other = h200("all_gather_perf.txt").replace("maxBytes 1073741824", "maxBytes 4").replace("values : 0 OK", "values : 3 FAILED")
    result = parse_nccl_tests(CLEAN + other)
    assert (result.runs, result.test, result.settings, len(result.rows)) == (2, None, None, 12)
    assert (result.out_of_bounds, result.out_of_bounds_ok, result.average_busbw_gbytes_per_s) == (3, False, None)


def test_a_list_of_devices_with_a_gap_reports_no_number_of_ranks() -> None:
    result = parse_nccl_tests(CLEAN.replace("#  Rank  0", "#  Rank  7"))
    assert (len(result.ranks), result.nranks, result.elided) == (2, None, True)


def test_lines_left_out_are_seen() -> None:
    assert parse_nccl_tests(CLEAN.replace(ROW, "...\n")).elided
    assert parse_nccl_tests(HEADER + ROW + FOOTER).elided


def test_old_columns_count_no_wrong_values_and_have_neither_group_nor_root() -> None:
    text = (
        "# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 validation: 1 \n#\n# Using devices\n"
        "#   Rank  0 Pid   3442 on       dgx1 device  0 [0x06] Tesla V100-SXM2-32GB\n#\n"
        "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
        "           8             2   float     sum   2193.5    0.00    0.00  0e+00    132.2    0.00    0.00  2e-07\n"
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.001 OK\n#\n"
    )
    result = parse_nccl_tests(text)
    halves = (Measured(2193.5, 0.0, 0.0, None, 0.0), Measured(132.2, 0.0, 0.0, None, 2e-07))
    assert result.rows == (Row(8, 2, "float", "sum", None, *halves),)
    assert result.ranks == (Rank(0, None, 3442, "dgx1", 0, "0x06", "Tesla V100-SXM2-32GB"),)
    assert (result.version, result.test, result.average_ok, result.truncated, result.elided) == (None, None, True, False, False)


def test_wrong_values_and_a_mean_that_is_too_low() -> None:
    wrong = ROW.replace("       0\n", "   1e+06\n").replace("68.64       0", "68.64      17")
    footer = "# Out of bounds values : 2 FAILED\n# Avg bus bandwidth    : 69.675 FAILED\n"
    result = parse_nccl_tests(HEADER + wrong + footer)
    assert [half.wrong for half in result.rows[0].halves] == [17, 1000000]
    assert (result.out_of_bounds, result.out_of_bounds_ok, result.average_ok) == (2, False, False)


def test_no_number_is_none_and_not_zero() -> None:
    result = parse_nccl_tests(HEADER + ROW.replace("15.28   68.64", "  nan     inf") + FOOTER.replace("69.675", "-nan"))
    out_of_place = result.rows[0].out_of_place
    assert out_of_place == Measured(None, None, 68.64, 0)
    assert (result.average_busbw_gbytes_per_s, result.truncated) == (None, False)


def test_errors_are_reported_once_and_not_without_end() -> None:
    lines = [f"[1,{rank}]<stderr>:gpu{rank}: Test CUDA failure common.cu:897 'out of memory'\n" for rank in range(300)]
    launcher = "[1,0]<stdout>:srun: error: gpu001: task 3: Exited with exit code 3\n"
    result = parse_nccl_tests(CLEAN + launcher + "".join(lines * 2))
    assert (result.errors[0], len(result.errors)) == ("srun: error: gpu001: task 3: Exited with exit code 3", 100)
    assert result.errors[1] == "gpu0: Test CUDA failure common.cu:897 'out of memory'"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "all_reduce_perf: command not found\n",
        "#bytes #iterations BW peak[MiB/sec] BW average[MiB/sec] MsgRate[Mpps]\n 65536 5000 11050.12 11049.99 0.176800\n",
        "# OSU MPI All-to-All Personalized Exchange Latency Test\n# Size       Avg Latency(us)\n1  3.4\n",
        "vm:1355:1370 [0] NCCL INFO NET/IB : No device found.\n",
        "1048576 262144 float sum -1\n",
    ],
    ids=["nothing", "no program", "perftest", "OSU", "NCCL alone", "half a row"],
)
def test_what_is_not_the_output_of_nccl_tests_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="not the output of nccl-tests"):
        parse_nccl_tests(text)


@given(st.one_of(garbled(CLEAN), garbled(DEBUG)))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read_or_refused(parse_nccl_tests, text)


@pytest.mark.parametrize(
    ("code", "text"),
    [(22809, "2.28.9"), (21805, "2.18.5"), (2804, "2.8.4"), (2408, "2.4.8"), (20906, "2.9.6"), (0, None), (999, None)],
    ids=str,
)
def test_the_code_of_a_version(code: int, text: str | None) -> None:
    assert nccl_version(code) == text


def test_no_ranks_are_not_zero_ranks() -> None:
    assert whole_number_of_ranks(()) is None
