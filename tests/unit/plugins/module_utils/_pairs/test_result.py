# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compact results of pairs. The plan and the records have the shapes that the pair runner reads and writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import (
    CELLS,
    KIND,
    KINDS,
    LINE_CHARACTERS,
    RUNNER_KINDS,
    Positions,
    Result,
    are_measurements,
    is_result,
    result_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import ERROR_CLASSES
from tests.unit.builders.garbled import garbled, read_or_refused

DASHES = "-" * 87 + "\n"
BANDWIDTH = (
    DASHES
    + " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    + " 65536      1092             0.00               391.84               0.747376\n"
    + DASHES
)
NOTHING_SENT = BANDWIDTH.replace("391.84  ", "0.000000").replace("0.747376", "0.000000")
LATENCY = (
    DASHES
    + " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    + "99% percentile[usec]   99.9% percentile[usec] \n"
    + " 2       1000          1.57           9.65         1.84     \t       2.04        \t0.69   \t\t5.02    \t\t9.65   \n"
    + DASHES
)
DURATION_LATENCY = (
    DASHES + " #bytes        #iterations       t_avg[usec]    tps average\n 2       402187            2.48        402187.3\n" + DASHES
)
NO_DEVICE = " Did not detect devices \n If device exists, check if driver is up\n Unable to find the Infiniband/RoCE device\n"
RETRY = " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n"


DOCS = Path(__file__).parents[5] / "docs/pairs.md"


def plan(hosts: int = 4) -> dict[str, Any]:
    return {
        "schema": 2,
        "sweep": "S-1",
        "tests": [{"name": "bandwidth", "command": "ib_write_bw"}, {"name": "latency", "command": "ib_read_lat"}],
        "hosts": [f"node{number}" for number in range(hosts)],
        "rails": [{"name": "rail0"}, {"name": "rail1"}],
    }


def record(**changes: Any) -> dict[str, Any]:
    made = {"schema": 2, "sweep": "S-1", "rail": "rail1", "round": 2, "test": "bandwidth", "server": "node3", "client": "node1"}
    made.update(role="client", argv=["ib_write_bw"], exit_code=0, started=1.0, seconds=6.2449, waited_seconds=0.011)
    return {**made, "stdout": BANDWIDTH, "stderr": "", "error": None, **changes}


def error(name: str, detail: str = "node3 at 192.0.2.3 port 18500: timed out", **changes: Any) -> dict[str, Any]:
    return record(error={"class": name, "detail": detail}, **{"exit_code": None, "stdout": "", **changes})


def judged(made: dict[str, Any]) -> Result:
    result = result_of(made, plan())
    assert result is not None
    return result


MEASURED = Result(1, 2, 3, 1, 0, "client", 391.84, 6.24, 0.01)
FAILED = Result(1, 2, 3, 1, 0, "server", None, 6.24, 0.01, "retry_exceeded", "Failed status 12: wr_id 0 syndrom 0x81")


def test_a_clients_bandwidth_is_a_short_line() -> None:
    assert judged(record()) == MEASURED
    assert MEASURED.to_line() == "[1,2,3,1,0,0,391.84,6.24,0.01]"


def test_a_failure_says_why() -> None:
    assert judged(record(role="server", exit_code=1, stdout="", stderr=RETRY)) == FAILED
    assert FAILED.to_line() == '[1,2,3,1,0,1,null,6.24,0.01,"retry_exceeded","Failed status 12: wr_id 0 syndrom 0x81"]'


@pytest.mark.parametrize("result", [MEASURED, FAILED], ids=["measured", "failed"])
def test_a_line_is_read_back(result: Result) -> None:
    assert Result.from_line(result.to_line()) == Result.from_line(result.to_line() + "\n") == result


def test_a_servers_good_end_is_left_out() -> None:
    assert result_of(record(role="server"), plan()) is None
    assert result_of(record(role="server", stdout=""), plan()) is None


@pytest.mark.parametrize(
    ("stdout", "value"),
    [(LATENCY, 1.84), (DURATION_LATENCY, 2.48)],
    ids=["typical", "average-of-a-duration"],
)
def test_a_latency_is_in_microseconds(stdout: str, value: float) -> None:
    result = judged(record(test="latency", stdout=stdout))
    assert (result.test, result.value, result.kind) == (1, value, None)


@pytest.mark.parametrize("name", ERROR_CLASSES)
def test_the_runners_own_error_wins(name: str) -> None:
    result = judged(error(name))
    assert (result.value, result.kind, result.line) == (None, name, "node3 at 192.0.2.3 port 18500: timed out")


def test_the_runners_error_classes_are_kinds() -> None:
    assert set(RUNNER_KINDS) == set(ERROR_CLASSES) <= KINDS


@pytest.mark.parametrize(
    ("made", "kind", "line"),
    [
        (error("timeout", stderr=RETRY, exit_code=-9), "retry_exceeded", "Failed status 12: wr_id 0 syndrom 0x81"),
        (error("timeout", "did not end", stdout=" Number of qps : 1\n", exit_code=-9), "timeout", "did not end"),
        (error("timeout", "did not end", stdout="Requested mtu is higher than active mtu \n"), "timeout", "did not end"),
        (
            error("listen", "ended before it listened", stderr=NO_DEVICE, exit_code=1),
            "no_device",
            "Unable to find the Infiniband/RoCE device",
        ),
        (error("dead", "the partner left", stderr=RETRY, exit_code=1), "dead", "the partner left"),
        (
            error("start", "cannot start ib_write_bw: [Errno 2] No such file or directory: 'ib_write_bw'"),
            "no_perftest",
            "cannot start ib_write_bw: [Errno 2] No such file or directory: 'ib_write_bw'",
        ),
        (
            error("start", "cannot start ib_write_bw: [Errno 12] Cannot allocate memory"),
            "start",
            "cannot start ib_write_bw: [Errno 12] Cannot allocate memory",
        ),
        (
            record(exit_code=-9, stdout=" Number of qps : 1\n"),
            "signal",
            "perftest was ended by signal 9 (SIGKILL) from elsewhere; most likely the kernel, for want of memory",
        ),
        (record(exit_code=-11, stdout=""), "signal", "perftest was ended by signal 11 (SIGSEGV) from elsewhere"),
        (record(stdout=NOTHING_SENT), "zero", "65536 1092 0.00 0.000000 0.000000"),
        (record(stdout=LATENCY), "unknown", "ib_write_bw printed the table of another test"),
        (record(test="latency"), "unknown", "ib_read_lat printed the table of another test"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 16 else "",
)
def test_failures(made: dict[str, Any], kind: str, line: str) -> None:
    result = judged(made)
    assert (result.value, result.kind, result.line) == (None, kind, line)


@pytest.mark.parametrize("average", ["nan", "inf", "-nan", "-3.00"])
def test_an_average_that_is_no_number_is_unknown(average: str) -> None:
    result = judged(record(stdout=BANDWIDTH.replace("391.84", average)))
    assert (result.value, result.kind) == (None, "unknown")
    assert average in str(result.line)


def test_gpu_buffers_are_reported_by_the_command_line() -> None:
    refused = "Couldn't allocate MR with error=14\nfailed to create mr\nFailed to create MR\n"
    argv = ["ib_write_bw", "--use_cuda_bus_id=0000:1b:00.0"]
    assert judged(record(exit_code=1, stdout="", stderr=refused)).kind == "memory_registration"
    assert judged(record(exit_code=1, stdout="", stderr=refused, argv=argv)).kind == "gpu_memory"


def test_a_long_line_is_shortened_and_one_line() -> None:
    result = judged(error("dead", "node3:\n\t" + "x" * 500))
    assert result.line is not None
    assert (len(result.line), result.line[:8], result.line[-1]) == (LINE_CHARACTERS, "node3: x", "…")
    assert "\n" not in result.to_line()
    assert Result.from_line(result.to_line()) == result


@pytest.mark.parametrize(
    "changes",
    [
        {"rail": "rail9"},
        {"test": "other"},
        {"server": "node9"},
        {"client": "node9"},
        {"client": "node3"},
        {"sweep": "S-2"},
        {"schema": 99},
        {"schema": None},
        {"role": "observer"},
        {"role": ["client"]},
        {"round": -1},
        {"round": True},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"seconds": None},
        {"waited_seconds": -1},
        {"exit_code": "0"},
        {"stdout": None},
        {"argv": 1},
        {"error": "timeout"},
        {"error": {"class": "weather", "detail": "rain"}},
        {"error": {"class": "timeout"}},
        {"rail": ["rail0"]},
    ],
    ids=str,
)
def test_a_record_that_the_plan_does_not_have_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ParseError):
        result_of(record(**changes), plan())


def test_what_is_no_record_or_no_plan_is_refused() -> None:
    with pytest.raises(ParseError, match="not a record"):
        result_of({"schema": 2, "sweep": "S-1", "finished": True}, plan())
    with pytest.raises(ParseError, match="not a plan"):
        result_of(record(), {"schema": 2})


def test_positions_made_once_serve_for_many_records() -> None:
    assert result_of(record(), Positions.of(plan())) == MEASURED


GARBLED = [
    "",
    "[]",
    "{}",
    "null",
    "[1,2,3,1,0,0,391.84,6.2]",
    "[1,2,3,1,0,0,391.84,6.2,0.01,null,null]",
    "[1,2,3,1,0,0,null,6.2,0.01]",
    '[1,2,3,1,0,0,391.84,6.2,0.01,"dead","gone"]',
    '[1,2,3,1,0,0,null,6.2,0.01,"weather","rain"]',
    '[1,2,3,1,0,0,null,6.2,0.01,"dead",null]',
    f'[1,2,3,1,0,0,null,6.2,0.01,"dead","{"x" * 201}"]',
    "[1,2,3,3,0,0,391.84,6.2,0.01]",
    "[1,2,3,1,0,2,391.84,6.2,0.01]",
    "[1,2,-3,1,0,0,391.84,6.2,0.01]",
    "[1,2,true,1,0,0,391.84,6.2,0.01]",
    "[1,2,3.0,1,0,0,391.84,6.2,0.01]",
    "[1,2,3,1,0,0,0,6.2,0.01]",
    "[1,2,3,1,0,0,NaN,6.2,0.01]",
    "[1,2,3,1,0,0,1e999,6.2,0.01]",
    "[1,2,3,1,0,0,1e-300,6.2,0.01]",
    "[1,2,3,1,0,0,1e10,6.2,0.01]",
    "[1,2,3,1,0,0,391.84,1e300,0.01]",
    '[1,2,3,1,0,0,"391.84",6.2,0.01]',
    "[1,2,3,1,0,0,391.84,null,0.01]",
    "[" * 100_000,
]


@pytest.mark.parametrize("text", GARBLED, ids=lambda text: text[:48])
def test_a_garbled_line_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="not a result"):
        Result.from_line(text)


@given(garbled(FAILED.to_line()) | garbled(MEASURED.to_line()))
def test_nothing_but_a_parse_error_escapes_from_a_line(text: str) -> None:
    assert read_or_refused(Result.from_line, text)


@given(garbled(MEASURED.to_line()))
def test_what_is_taken_is_written_back(text: str) -> None:
    try:
        result = Result.from_line(text)
    except ParseError:
        return
    assert Result.from_line(result.to_line()) == result


OUTPUTS = garbled(BANDWIDTH) | garbled(LATENCY) | garbled(RETRY) | garbled(NOTHING_SENT)


RUNS = st.fixed_dictionaries(
    {
        "stdout": OUTPUTS,
        "stderr": OUTPUTS,
        "exit_code": st.none() | st.integers(-70, 300),
        "role": st.sampled_from(["client", "server"]),
        "test": st.sampled_from(["bandwidth", "latency"]),
        "error": st.none() | st.fixed_dictionaries({"class": st.sampled_from(ERROR_CLASSES), "detail": st.text(max_size=40)}),
    }
)


@given(RUNS)
def test_any_output_is_a_result(run: dict[str, Any]) -> None:
    made = record(**run)
    result = result_of(made, plan())
    if result is None:
        assert (run["role"], run["exit_code"], run["error"]) == ("server", 0, None)
    else:
        assert (result.value is None) == (result.kind in KINDS)
        assert Result.from_line(result.to_line()) == result


@given(OUTPUTS, OUTPUTS, st.sampled_from(["client", "server"]), st.sampled_from(["bandwidth", "latency"]))
def test_any_output_of_a_good_end_is_a_result(stdout: str, stderr: str, role: str, test: str) -> None:
    result = result_of(record(stdout=stdout, stderr=stderr, exit_code=0, error=None, role=role, test=test), plan())
    assert (result is None) == (role == "server")
    if result is not None:
        assert (result.value is None) == (result.kind in KINDS)
        assert Result.from_line(result.to_line()) == result


@given(
    st.dictionaries(
        st.sampled_from(sorted(record())),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
        ),
        max_size=4,
    )
)
def test_any_record_is_a_result_or_refused(changes: dict[str, Any]) -> None:
    assert read_or_refused(result_of, record(**changes), plan())


def test_a_full_sweeps_lines_are_short() -> None:
    measured = Result(7, 4094, 4095, 4094, 2, "client", 391.84, 11.24, 0.12)
    assert len(measured.to_line()) + 1 <= 50
    assert len(FAILED.to_line()) + 1 <= 120
    assert json.loads(measured.to_line())[6] == 391.84


def test_the_form_of_a_line_is_the_documented_one() -> None:
    lines = re.findall(r"^\[(rail, .*)\]$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    measured, failed = (line.split(", ") for line in lines)
    assert measured == list(CELLS[:KIND])
    assert failed == ["null" if name == "value" else name for name in CELLS]
    assert [len(json.loads(each.to_line())) for each in (MEASURED, FAILED)] == [KIND, len(CELLS)]


CELL = st.sampled_from([0, 1, 2, 7, -1, True, 1.0, 0.0, 385.25, 1e-9, 1e10, 10**400, float("nan"), float("inf"), None, "1", [1]])
GOOD_ROW = [0, 1, 2, 3, 0, 1, 385.0, 6.2, 0.1]


@given(st.lists(st.tuples(st.integers(0, 8), CELL), max_size=4), st.integers(1, 3))
def test_columns_are_judged_as_rows_are(changes: list[tuple[int, Any]], count: int) -> None:
    rows = [list(GOOD_ROW) for _number in range(count)]
    for number, (cell, value) in enumerate(changes):
        rows[number % count][cell] = value
    assert are_measurements(rows) == all(map(is_result, rows))
