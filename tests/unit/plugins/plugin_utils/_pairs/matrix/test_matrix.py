# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Result files of many hosts into columns, each measurement once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import Result
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Failure, Matrix

NAN = math.nan
#: Every host meets every other one in both roles, one pair a round: (server, client) → its round.
ROUNDS = {pair: number for number, pair in enumerate(permutations(range(3), 2))}


def plan(
    hosts: Sequence[str] = ("a", "b", "c"), rails: Sequence[str] = ("r0", "r1"), command: str = "ib_write_bw", **how: Any
) -> dict[str, Any]:
    tests = [{"name": "bandwidth", "command": command, **how}, {"name": "latency", "command": "ib_send_lat", "bidirectional": False}]
    rounds = [[pair] for pair in ROUNDS if max(pair) < len(hosts)]
    return {
        "hosts": list(hosts),
        "schedule": {"kind": "meetings", "rails": [rounds] * len(rails)},
        "rails": [{"name": rail, "addresses": ["192.0.2.1"] * len(hosts)} for rail in rails],
        "tests": tests,
    }


def good(rail: int, server: int, client: int, value: float, test: int = 0) -> Result:
    return Result(rail, ROUNDS[server, client], server, client, test, "client", value, 6.21, 0.5)


def bad(rail: int, server: int, client: int, *, role: str = "client", kind: str = "qp", line: str = "Failed to modify QP") -> Result:
    return Result(rail, ROUNDS[server, client], server, client, 0, role, None, 6.21, 0.5, kind, line)


def read(files: Iterable[Path], test: str = "bandwidth", of: dict[str, Any] | None = None, **how: Any) -> Matrix:
    """One sweep's matrix; a file is called after its host."""
    return Matrix.read([(of or plan(), {path.stem: path for path in files})], [test], **how)[test]


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
    matrix = read(files)
    assert (matrix.hosts, matrix.rails, len(matrix)) == (["a", "b", "c"], ["r0", "r1"], 3)
    assert rows(matrix) == {(0, 1, 0): 11.0, (1, 2, 0): 12.0, (0, 2, 1): 13.0}
    assert rows(read(files, "latency")) == {(0, 1, 0): 4.5}


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
        matrix = read(order)
        assert rows(matrix) == {(0, 1, 0): value}
        assert dict(matrix.failures) == ({0: failure} if failure else {})


def test_a_later_sweep_counts_and_finds_hosts_by_name(tmp_path: Path) -> None:
    first = {"a": file(tmp_path, "first", good(0, 1, 0, 1.0), bad(1, 1, 0), good(0, 2, 0, 3.0))}
    later = plan(("b", "a"), ("r1",))
    swapped = {(0, 1): 0, (1, 0): 1}
    assert later["schedule"]["rails"] == [[[pair] for pair in swapped]]
    one, other = (replace(each, round=swapped[each.server, each.client]) for each in (good(0, 0, 1, 9.0), bad(0, 1, 0)))
    second = {"a": file(tmp_path, "second_a", one), "b": file(tmp_path, "second_b", other)}
    matrix = Matrix.read([(plan(), first), (later, second)], ["bandwidth"])["bandwidth"]
    assert matrix.refused == {}
    assert rows(matrix) == {(1, 1, 0): 9.0, (0, 2, 0): 3.0, (0, 1, 0): 1.0, (1, 0, 1): None}
    assert {(matrix.rail[at], matrix.server[at]): why.kind for at, why in matrix.failures.items()} == {(1, 0): "qp"}


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        '{"a":1}',
        "[1,2]",
        "[0,0,1,0,0,0,null,1,1]",
        "[0,0,3,0,0,0,1.0,1,1]",
        "[-1,0,1,0,0,0,1.0,1,1]",
        '[0,2,1,0,0,0,"x",1,1]',
        "[0,2,1,0,0,0,0.0,1,1]",
        "[0,2,1,0,0,0,1e-320,1,1]",
        "[0,2,1,0,0,0,Infinity,1,1]",
        "[0,2,1,0,0,0,NaN,1,1]",
        "[0,2,1,0,0,0,1e999,1,1]",
        f"[0,2,1,0,0,0,{'9' * 400},1,1]",
        f"[0,2,1,0,0,0,{'9' * 5000},1,1]",
        "[0,2,1,0,0,0,1.0,Infinity,1]",
        "[0,2,1,0,9,0,1.0,1,1]",
        "[0,2.0,1,0,0,0,1.0,1,1]",
        "[false,2,true,0,0,0,1.0,1,1]",
        '[0,2,1,0,0,0,null,1,1,"weather","rain"]',
        f'[0,2,1,0,0,0,null,1,1,"qp","{"x" * 201}"]',
        "[" * 100_000,
        "[0,2,1,0,0,0,1.0,1,1],[0,2,1,0,0,0,1.0,1,1]",
    ],
    ids=lambda text: text[:40],
)
@pytest.mark.parametrize("test", ["bandwidth", "latency"])
def test_a_line_that_is_no_result_costs_nobody_else_anything(tmp_path: Path, text: str, test: str) -> None:
    """M1 for results: it is refused, its host is named, and every other line counts."""
    number = ("bandwidth", "latency").index(test)
    files = [file(tmp_path, "a", good(0, 1, 0, 7.0, number)), file(tmp_path, "b", good(1, 0, 1, 8.0, number))]
    with files[0].open("a", encoding="utf-8") as stream:
        stream.write(f"{text}\n{good(0, 2, 0, 9.0, number).to_line()}\n")
    matrix = read(files, test)
    assert rows(matrix) == {(0, 1, 0): 7.0, (0, 2, 0): 9.0, (1, 0, 1): 8.0}
    assert all(map(math.isfinite, matrix.with_level().ratio))
    assert {host: (each.lines, len(each.first) <= 200) for host, each in matrix.refused.items()} == {"a": (1, True)}
    assert matrix.refused["a"].first[:20] == text[:20]


FORGED = {
    "a client's line of others": (good(0, 1, 0, 400.0), {(0, 1, 0): None}),
    "a client's failure of others": (bad(0, 0, 1, kind="retry_exceeded"), {(0, 0, 1): 50.0}),
    "a server's failure of others": (bad(0, 0, 1, role="server", kind="zero"), {(0, 0, 1): 50.0}),
    "a client's line in the server's file": (good(0, 2, 0, 400.0), {(0, 2, 0): None}),
    "a server's line in the client's file": (bad(0, 1, 2, role="server", kind="zero"), {(0, 1, 2): 60.0}),
    "a line of a round that the plan does not have": (replace(good(0, 0, 2, 1.0), round=99), {}),
}


@pytest.mark.parametrize(("line", "true"), FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("last", [True, False], ids=["c is read last", "c is read first"])
def test_a_host_is_believed_only_about_itself(
    tmp_path: Path, line: Result, true: dict[tuple[int, int, int], float | None], last: bool
) -> None:
    """H3: what c says of the pair of a and b changes nothing, and c is named for it."""
    honest = {
        "a": [bad(0, 1, 0, kind="retry_exceeded"), bad(0, 2, 0)],
        "b": [good(0, 0, 1, 50.0)],
        "c": [good(0, 1, 2, 60.0)],
    }
    before = read([file(tmp_path, host, *lines) for host, lines in honest.items()])
    files = [file(tmp_path, host, *lines, *([line] if host == "c" else [])) for host, lines in honest.items()]
    matrix = read(files if last else files[::-1])
    assert before.refused == {}
    assert rows(matrix) == rows(before)
    assert rows(matrix).items() >= true.items()
    assert sorted(each.kind for each in matrix.failures.values()) == ["qp", "retry_exceeded"]
    assert {host: (each.lines, each.first) for host, each in matrix.refused.items()} == {"c": (1, line.to_line())}


def test_the_refused_lines_of_several_sweeps_are_counted_together_and_outlive_a_choice(tmp_path: Path) -> None:
    forged = {"c": file(tmp_path, "c", good(0, 1, 0, 400.0), good(0, 0, 1, 400.0))}
    matrix = Matrix.read([(plan(), forged), (plan(), forged)], ["bandwidth"])["bandwidth"].part([]).with_level()
    assert matrix.refused["c"].lines == 4
    assert matrix.refused["c"].words == f"{good(0, 1, 0, 400.0).to_line()!r} and 3 more: not a measurement planned for this host"


@pytest.mark.parametrize("cut", range(1, 40, 7))
def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.jsonl"
    line = good(0, 2, 0, 1.0).to_line()
    path.write_text(good(0, 1, 0, 1.0).to_line() + "\n" + line[: min(cut, len(line) - 1)], encoding="utf-8")
    assert rows(read([path])) == {(0, 1, 0): 1.0}


def test_no_results_at_all(tmp_path: Path) -> None:
    assert len(read([])) == 0
    assert len(read([file(tmp_path, "a")]).with_level()) == 0


def test_a_pair_reaches_what_its_lesser_end_allows(tmp_path: Path) -> None:
    path = file(tmp_path, "a", good(0, 1, 0, 50.0), good(0, 2, 0, 90.0), bad(1, 1, 0), good(1, 2, 0, 80.0))
    matrix = read([path]).with_limits([[100.0, 50.0, 200.0], [100.0, None, None]])
    assert list(matrix.ratio)[:2] == [1.0, 0.9]
    assert math.isnan(matrix.ratio[2])
    assert (len(matrix), matrix.unjudged, matrix.failures[2].kind) == (3, {(1, 2): 1, (1, 0): 1}, "qp")
    assert matrix.with_limits([[None] * 3] * 2).unjudged == {(1, 2): 1, (1, 0): 1, (0, 0): 2, (0, 1): 1, (0, 2): 1}
    same = read([path]).with_expected(lambda rail, server, client: [100.0, 50.0, 100.0][server] if rail == 0 else None)
    assert list(same.ratio)[:2] == [1.0, 0.9]


def test_of_a_latency_less_is_better(tmp_path: Path) -> None:
    path = file(tmp_path, "a", good(0, 1, 0, 4.0, test=1), good(0, 2, 0, 2.0, test=1))
    matrix = read([path], "latency")
    assert list(matrix.with_limits([[1.0, 2.0, None], []]).ratio) == [0.5]
    assert list(matrix.with_level().ratio) == [0.5, 1.0]
    assert list(matrix.ratio) == [0.25, 0.5]


def test_the_fleets_own_level(tmp_path: Path) -> None:
    path = file(tmp_path, "a", *(good(0, 1, 0, 2.0), good(0, 2, 0, 4.0), good(1, 1, 0, 4.0), bad(1, 2, 0)))
    ratios = list(read([path]).with_level().ratio)
    assert ratios[:3] == [0.5, 1.0, 1.0]
    assert math.isnan(ratios[3])


def test_what_is_missing_is_counted_and_has_not_failed(tmp_path: Path) -> None:
    path = file(tmp_path, "a", good(0, 1, 0, 2.0), bad(1, 1, 0))
    planned = [(0, 0, 1, 0), (1, 0, 1, 0), (1, 3, 1, 0), (0, 1, 2, 0), (0, 2, 2, 1), (1, 2, 2, 1)]
    matrix = read([path]).with_missing(planned)
    assert matrix.missing == [(0, 2, 0), (0, 2, 1), (1, 2, 1)]
    assert len(matrix) == 2


def test_nothing_is_unjudged_where_all_is_known(tmp_path: Path) -> None:
    matrix = read([file(tmp_path, "a", good(0, 1, 0, 2.0), bad(1, 1, 0))])
    assert (matrix.unjudged, matrix.with_level().unjudged, matrix.with_limits([[1.0] * 3] * 2).unjudged) == ({}, {}, {})


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize(
    ("command", "is_read"),
    [("ib_write_bw", False), ("ib_send_bw", False), ("ib_write_lat", False), ("ib_read_bw", True), ("ib_read_lat", True)],
)
def test_the_data_goes_from_client_to_server_in_the_columns(tmp_path: Path, command: str, is_read: bool, role: str) -> None:
    failed = bad(1, 2, 0, role=role)
    path, other = (
        file(tmp_path, "a", good(0, 1, 0, 4.0), *[failed] * (role == "client")),
        file(tmp_path, "c", *[failed] * (role == "server")),
    )
    matrix = read([path, other], of=plan(command=command))
    assert rows(matrix) == ({(0, 0, 1): 4.0, (1, 0, 2): None} if is_read else {(0, 1, 0): 4.0, (1, 2, 0): None})
    assert {(matrix.server[at], matrix.client[at]) for at in matrix.failures} == {(0, 2) if is_read else (2, 0)}
    assert (matrix.is_read, matrix.is_latency) == (is_read, command.endswith("_lat"))
    missing = matrix.with_missing([(0, 0, 1, 0), (1, 0, 2, 0), (1, 1, 2, 1)]).missing
    assert missing == [(1, 1, 2) if is_read else (1, 2, 1)]


@pytest.mark.parametrize("how", [{}, {"bidirectional": False}, {"bidirectional": True}], ids=str)
def test_whether_data_went_both_ways(tmp_path: Path, how: dict[str, Any]) -> None:
    files = [file(tmp_path, "a")]
    assert read(files, of=plan(**how)).is_bidirectional is how.get("bidirectional", False)
    assert read(files, "latency", plan(**how)).is_bidirectional is False


def unread() -> Iterator[tuple[int, int, int, int]]:
    pytest.fail("the plan was walked through")
    yield (0, 0, 0, 0)


def test_a_plan_is_not_walked_through_where_all_is_recorded(tmp_path: Path) -> None:
    matrix = read([file(tmp_path, "a", good(0, 1, 0, 2.0), bad(1, 1, 0))])
    assert matrix.with_missing(unread(), 2).missing == ()
    planned = [(0, 0, 1, 0), (1, 0, 1, 0), (0, 1, 2, 0)]
    assert matrix.with_missing(planned, len(planned)).missing == [(0, 2, 0)]
    assert matrix.with_missing(planned).missing == [(0, 2, 0)]


@pytest.mark.parametrize(("client", "kind"), [("listen", "no_device"), ("qp", "qp")], ids=["the client only heard of it", "its own reason"])
def test_the_server_knows_why_it_did_not_listen(tmp_path: Path, client: str, kind: str) -> None:
    server = bad(0, 1, 0, role="server", kind="no_device", line="IB device rxe9 not found")
    files = [file(tmp_path, "a", bad(0, 1, 0, kind=client, line="b: it ended")), file(tmp_path, "b", server)]
    assert [each.kind for each in read(files).failures.values()] == [kind]


def test_the_same_pair_counts_in_each_round_where_rounds_are_kept(tmp_path: Path) -> None:
    one, other = (Result(0, number, 1, 0, 0, "client", 11.0 + number, 6.21, 0.5) for number in range(2))
    files, twice = [file(tmp_path, "a", one, other)], plan()
    twice["schedule"] = {"kind": "meetings", "rails": [[[[1, 0]], [[1, 0]]]]}
    assert sorted(read(files, of=twice, by_round=True).value) == [11.0, 12.0]
    assert list(read(files, of=twice).value) == [12.0]
