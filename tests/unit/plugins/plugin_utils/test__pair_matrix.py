# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Result files of many hosts into columns, each measurement once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pair_result import Result
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_matrix import Failure, Matrix

NAN = math.nan


def plan(
    hosts: Sequence[str] = ("a", "b", "c"), rails: Sequence[str] = ("r0", "r1"), command: str = "ib_write_bw", **how: Any
) -> dict[str, Any]:
    tests = [{"name": "bandwidth", "command": command, **how}, {"name": "latency", "command": "ib_send_lat", "bidirectional": False}]
    return {"hosts": list(hosts), "rails": [{"name": rail} for rail in rails], "tests": tests}


def good(rail: int, server: int, client: int, value: float, test: int = 0) -> Result:
    return Result(rail, 0, server, client, test, "client", value, 6.21, 0.5)


def bad(rail: int, server: int, client: int, *, role: str = "client", kind: str = "qp", line: str = "Failed to modify QP") -> Result:
    return Result(rail, 0, server, client, 0, role, None, 6.21, 0.5, kind, line)


def file(folder: Path, name: str, *results: Result) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(f"{result.to_line()}\n" for result in results), encoding="utf-8")
    return path


def rows(matrix: Matrix) -> dict[tuple[int, int, int], float | None]:
    columns = zip(matrix.rail, matrix.server, matrix.client, matrix.value, strict=True)
    return {where: None if math.isnan(value) else value for *at, value in columns if (where := (at[0], at[1], at[2]))}


def test_what_clients_measured_of_one_test(tmp_path: Path) -> None:
    files = [
        file(tmp_path, "a", good(0, 1, 0, 11.0), good(1, 2, 0, 12.0), good(0, 1, 0, 4.5, test=1)),
        file(tmp_path, "b", good(0, 2, 1, 13.0)),
    ]
    matrix = Matrix.read([(plan(), files)], "bandwidth")
    assert (matrix.hosts, matrix.rails, len(matrix)) == (["a", "b", "c"], ["r0", "r1"], 3)
    assert rows(matrix) == {(0, 1, 0): 11.0, (1, 2, 0): 12.0, (0, 2, 1): 13.0}
    assert rows(Matrix.read([(plan(), files)], "latency")) == {(0, 1, 0): 4.5}


@pytest.mark.parametrize(
    ("client", "server", "value", "failure"),
    [
        ([bad(0, 1, 0)], [], None, Failure("qp", "Failed to modify QP")),
        ([], [bad(0, 1, 0, role="server", kind="dead", line="")], None, Failure("dead")),
        ([good(0, 1, 0, 9.0)], [bad(0, 1, 0, role="server", kind="zero", line="0.00")], None, Failure("zero", "0.00")),
        ([good(0, 1, 0, 9.0)], [bad(0, 1, 0, role="server", kind="refused", line="")], 9.0, None),
        ([good(0, 1, 0, 9.0)], [bad(0, 1, 0, role="server", kind="timeout", line="")], 9.0, None),
        ([good(0, 1, 0, 9.0)], [bad(0, 1, 0, role="server", kind="signal", line="")], 9.0, None),
        ([], [bad(0, 1, 0, role="server", kind="timeout", line="")], None, Failure("timeout")),
        ([bad(0, 1, 0)], [bad(0, 1, 0, role="server", kind="timeout", line="")], None, Failure("qp", "Failed to modify QP")),
        ([bad(0, 1, 0), good(0, 1, 0, 9.0)], [bad(0, 1, 0, role="server")], 9.0, None),
        ([good(0, 1, 0, 9.0), bad(0, 1, 0)], [], None, Failure("qp", "Failed to modify QP")),
        ([bad(0, 1, 0)], [bad(0, 1, 0, role="server", kind="dead", line="")], None, Failure("qp", "Failed to modify QP")),
    ],
    ids=[
        "client's failure",
        "server's alone",
        "server's beside a figure",
        "did not meet at first",
        "server lingers",
        "server is killed",
        "server alone is too late",
        "client fails and server lingers",
        "tried again",
        "a later failure",
        "both",
    ],
)
def test_two_ends_of_a_measurement(
    tmp_path: Path, client: list[Result], server: list[Result], value: float | None, failure: Failure | None
) -> None:
    files = [file(tmp_path, "a", *client), file(tmp_path, "b", *server)]
    for order in (files, files[::-1]):
        matrix = Matrix.read([(plan(), order)], "bandwidth")
        assert rows(matrix) == {(0, 1, 0): value}
        assert dict(matrix.failures) == ({0: failure} if failure else {})


def test_a_later_sweep_counts_and_finds_hosts_by_name(tmp_path: Path) -> None:
    first = file(tmp_path, "first", good(0, 1, 0, 1.0), bad(1, 1, 0), good(0, 2, 0, 3.0))
    second = file(tmp_path, "second", good(0, 0, 1, 9.0), bad(0, 1, 0))
    matrix = Matrix.read([(plan(), [first]), (plan(("b", "a"), ("r1",)), [second])], "bandwidth")
    assert rows(matrix) == {(1, 1, 0): 9.0, (0, 2, 0): 3.0, (0, 1, 0): 1.0, (1, 0, 1): None}
    assert {(matrix.rail[at], matrix.server[at]): why.kind for at, why in matrix.failures.items()} == {(1, 0): "qp"}


@pytest.mark.parametrize(
    "text",
    [
        "nonsense\n",
        '{"a":1}\n',
        "[1,2]\n",
        "[0,0,1,0,0,0,null,1,1]\n",
        "[0,0,3,0,0,0,1.0,1,1]\n",
        "[-1,0,1,0,0,0,1.0,1,1]\n",
        '[0,0,1,0,0,0,"x",1,1]\n',
    ],
    ids=["no JSON", "no array", "short", "failed without why", "no such host", "no such rail", "no number"],
)
def test_files_that_hold_something_else(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(good(0, 1, 0, 1.0).to_line() + "\n" + text, encoding="utf-8")
    with pytest.raises(ParseError, match=r"a\.jsonl"):
        Matrix.read([(plan(), [path])], "bandwidth")


@pytest.mark.parametrize("cut", range(1, 40, 7))
def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.jsonl"
    line = good(0, 2, 0, 1.0).to_line()
    path.write_text(good(0, 1, 0, 1.0).to_line() + "\n" + line[: min(cut, len(line) - 1)], encoding="utf-8")
    assert rows(Matrix.read([(plan(), [path])], "bandwidth")) == {(0, 1, 0): 1.0}


def test_no_results_at_all(tmp_path: Path) -> None:
    assert len(Matrix.read([(plan(), [])], "bandwidth")) == 0
    assert len(Matrix.read([(plan(), [file(tmp_path, "a")])], "bandwidth").with_level()) == 0


def test_a_pair_reaches_what_its_lesser_end_allows(tmp_path: Path) -> None:
    path = file(tmp_path, "a", good(0, 1, 0, 50.0), good(0, 2, 0, 90.0), bad(1, 1, 0), good(1, 2, 0, 80.0))
    matrix = Matrix.read([(plan(), [path])], "bandwidth").with_limits([[100.0, 50.0, 200.0], [100.0, None, None]])
    assert list(matrix.ratio)[:2] == [1.0, 0.9]
    assert math.isnan(matrix.ratio[2])
    assert (len(matrix), matrix.unjudged, matrix.failures[2].kind) == (3, {(1, 2): 1, (1, 0): 1}, "qp")
    assert matrix.with_limits([[None] * 3] * 2).unjudged == {(1, 2): 1, (1, 0): 1, (0, 0): 2, (0, 1): 1, (0, 2): 1}
    same = Matrix.read([(plan(), [path])], "bandwidth").with_expected(
        lambda rail, server, client: [100.0, 50.0, 100.0][server] if rail == 0 else None
    )
    assert list(same.ratio)[:2] == [1.0, 0.9]


def test_of_a_latency_less_is_better(tmp_path: Path) -> None:
    path = file(tmp_path, "a", good(0, 1, 0, 4.0, test=1), good(0, 2, 0, 2.0, test=1))
    matrix = Matrix.read([(plan(), [path])], "latency")
    assert list(matrix.with_limits([[1.0, 2.0, None], []]).ratio) == [0.5]
    assert list(matrix.with_level().ratio) == [0.5, 1.0]
    assert list(matrix.ratio) == [0.25, 0.5]


def test_the_fleets_own_level(tmp_path: Path) -> None:
    path = file(tmp_path, "a", *(good(0, 1, 0, 2.0), good(0, 2, 0, 4.0), good(1, 1, 0, 4.0), bad(1, 2, 0)))
    ratios = list(Matrix.read([(plan(), [path])], "bandwidth").with_level().ratio)
    assert ratios[:3] == [0.5, 1.0, 1.0]
    assert math.isnan(ratios[3])


def test_what_is_missing_is_counted_and_has_not_failed(tmp_path: Path) -> None:
    path = file(tmp_path, "a", good(0, 1, 0, 2.0), bad(1, 1, 0))
    planned = [(0, 0, 1, 0), (1, 0, 1, 0), (1, 3, 1, 0), (0, 1, 2, 0), (0, 2, 2, 1), (1, 2, 2, 1)]
    matrix = Matrix.read([(plan(), [path])], "bandwidth").with_missing(planned)
    assert matrix.missing == [(0, 2, 0), (0, 2, 1), (1, 2, 1)]
    assert len(matrix) == 2


def test_nothing_is_unjudged_where_all_is_known(tmp_path: Path) -> None:
    matrix = Matrix.read([(plan(), [file(tmp_path, "a", good(0, 1, 0, 2.0), bad(1, 1, 0))])], "bandwidth")
    assert (matrix.unjudged, matrix.with_level().unjudged, matrix.with_limits([[1.0] * 3] * 2).unjudged) == ({}, {}, {})


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize(
    ("command", "is_read"),
    [("ib_write_bw", False), ("ib_send_bw", False), ("ib_write_lat", False), ("ib_read_bw", True), ("ib_read_lat", True)],
)
def test_the_data_goes_from_client_to_server_in_the_columns(tmp_path: Path, command: str, is_read: bool, role: str) -> None:
    path = file(tmp_path, "a", good(0, 1, 0, 4.0), bad(1, 2, 0, role=role))
    matrix = Matrix.read([(plan(command=command), [path])], "bandwidth")
    assert rows(matrix) == ({(0, 0, 1): 4.0, (1, 0, 2): None} if is_read else {(0, 1, 0): 4.0, (1, 2, 0): None})
    assert {(matrix.server[at], matrix.client[at]) for at in matrix.failures} == {(0, 2) if is_read else (2, 0)}
    assert (matrix.is_read, matrix.is_latency) == (is_read, command.endswith("_lat"))
    missing = matrix.with_missing([(0, 0, 1, 0), (1, 0, 2, 0), (1, 1, 2, 1)]).missing
    assert missing == [(1, 1, 2) if is_read else (1, 2, 1)]


@pytest.mark.parametrize("how", [{}, {"bidirectional": False}, {"bidirectional": True}], ids=str)
def test_whether_data_went_both_ways(tmp_path: Path, how: dict[str, bool]) -> None:
    sweeps = [(plan(**how), [file(tmp_path, "a")])]
    assert Matrix.read(sweeps, "bandwidth").is_bidirectional is how.get("bidirectional", False)
    assert Matrix.read(sweeps, "latency").is_bidirectional is False


def unread() -> Iterator[tuple[int, int, int, int]]:
    pytest.fail("the plan was walked through")
    yield (0, 0, 0, 0)


def test_a_plan_is_not_walked_through_where_all_is_recorded(tmp_path: Path) -> None:
    matrix = Matrix.read([(plan(), [file(tmp_path, "a", good(0, 1, 0, 2.0), bad(1, 1, 0))])], "bandwidth")
    assert matrix.with_missing(unread(), 2).missing == ()
    planned = [(0, 0, 1, 0), (1, 0, 1, 0), (0, 1, 2, 0)]
    assert matrix.with_missing(planned, len(planned)).missing == [(0, 2, 0)]
    assert matrix.with_missing(planned).missing == [(0, 2, 0)]


@pytest.mark.parametrize(("client", "kind"), [("listen", "no_device"), ("qp", "qp")], ids=["the client only heard of it", "its own reason"])
def test_the_server_knows_why_it_did_not_listen(tmp_path: Path, client: str, kind: str) -> None:
    server = bad(0, 1, 0, role="server", kind="no_device", line="IB device rxe9 not found")
    files = [file(tmp_path, "a", bad(0, 1, 0, kind=client, line="b: it ended")), file(tmp_path, "b", server)]
    assert [each.kind for each in Matrix.read([(plan(), files)], "bandwidth").failures.values()] == [kind]


def test_the_same_pair_counts_in_each_round_where_rounds_are_kept(tmp_path: Path) -> None:
    one, other = good(0, 1, 0, 11.0), Result(0, 1, 1, 0, 0, "client", 12.0, 6.21, 0.5)
    files = [file(tmp_path, "a", one, other)]
    assert sorted(Matrix.read([(plan(), files)], "bandwidth", by_round=True).value) == [11.0, 12.0]
    assert list(Matrix.read([(plan(), files)], "bandwidth").value) == [12.0]
