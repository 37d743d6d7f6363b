# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results that come home in pieces, from a module that plays a script."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.rdma.cluster.plugins.action import pair_results
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.result import Result
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

GONE = AnsibleConnectionFailure("no route to host")
UNREACHABLE = {"unreachable": True, "msg": "no route to host"}
BROKEN = {"failed": True, "msg": "there is no sweep a on this host"}


def piece(number: int, *, running: bool = True, finished: bool = False, more: bool = False, **changes: Any) -> dict[str, Any]:
    """An answer of perftest_rounds with one result, of this round."""
    result = [0, number, 0, 1, 0, 0, None, 0.0, 5.0, "dead", "gone"]
    answer = {"running": running, "finished": finished, "more": more, "reason": "", "next_byte": 100 * (number + 1), "unreadable": 0}
    return {**answer, "results": [result], "failures": [{"round": number}], "counters": None, "seconds": None, **changes}


class Run:
    """The action with a clock that only the module and sleeping move, and the calls that it makes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, script: list[Any], *, check_mode: bool = False) -> None:
        self.path = folder
        self.now, self.calls = 0.0, []  # type: float, list[dict[str, Any]]
        self._script = list(script)
        self.action = pair_results.ActionModule.__new__(pair_results.ActionModule)
        self.action.folder = RunFolder(folder)
        self.action.variables = {"inventory_hostname": "node1"}
        self.action._task = SimpleNamespace(check_mode=check_mode)
        monkeypatch.setattr(self.action, "module", self._module, raising=False)
        monkeypatch.setattr(pair_results, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep))

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _module(self, name: str, **arguments: Any) -> dict[str, Any]:
        assert name == "perftest_rounds"
        self.calls.append(arguments)
        self.now += arguments.get("wait_seconds", 0)
        answer = self._script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    def work(self, **options: Any) -> dict[str, Any]:
        given = {"sweep": "a", "wait_seconds": 40, "poll_seconds": 15, "folder": "pairs", "host": None, **options}
        result = self.action.work(given)
        assert not self._script, f"never asked for: {self._script}"
        return result

    def rounds(self, file: str = "pairs/node1.jsonl") -> list[int]:
        return [json.loads(line)[1] for line in (self.path / file).read_text().splitlines()]

    @property
    def asked(self) -> list[tuple[str, Any, Any]]:
        return [(call["state"], call.get("wait_seconds"), call.get("from_byte")) for call in self.calls]


def test_pieces_are_added_until_the_end_and_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counters = {"rail0": {"seconds": 30.0, "risen": {"symbol_error": 3}}}
    run = Run(tmp_path, monkeypatch, [piece(0), piece(1, running=False, finished=True, counters=counters, seconds=17.5)])
    result = run.work()
    assert run.asked == [("collected", 15, 0), ("collected", 15, 100)]
    assert run.rounds() == [0, 1]
    assert (tmp_path / "pairs/node1.jsonl").read_text().splitlines()[0] == '[0,0,0,1,0,0,null,0.0,5.0,"dead","gone"]'
    assert (tmp_path / "pairs/node1.failures.jsonl").read_text() == '{"round": 0}\n{"round": 1}\n'
    assert json.loads((tmp_path / "pairs/node1.counters.json").read_text()) == counters
    assert json.loads((tmp_path / "pairs/node1.end.json").read_text()) == {"finished": True, "reason": "", "seconds": 17.5}
    stored = str(tmp_path / "pairs/node1.jsonl")
    expected = {"records": 2, "unreadable": 0, "stored": stored, "running": False, "finished": True, "reason": ""}
    assert result == expected


def test_what_is_there_already_is_taken_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [piece(0, running=False, more=True), piece(1, running=False, finished=True)]
    run = Run(tmp_path, monkeypatch, script)
    run.work()
    assert run.asked == [("collected", 15, 0), ("collected", 0, 100)]


def test_at_the_limit_it_ends_with_what_there_is_and_leaves_the_sweep_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, [piece(0), piece(1), piece(2, reason="the sweep still runs")])
    result = run.work()
    assert [wait for _state, wait, _byte in run.asked] == [15, 15, 10]
    assert (result["running"], result["finished"], result["reason"], "failed" in result) == (True, False, "the sweep still runs", False)
    assert run.rounds() == [0, 1, 2]


def test_a_runner_that_died_keeps_its_files_for_another_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, [piece(0, running=False, reason="it ended without a last word")])
    assert run.work()["finished"] is False
    assert [state for state, _wait, _byte in run.asked] == ["collected"]


@pytest.mark.parametrize("trouble", [GONE, BROKEN, UNREACHABLE], ids=["lost", "failed", "unreachable"])
def test_trouble_that_passes_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Any) -> None:
    run = Run(tmp_path, monkeypatch, [piece(0), trouble, piece(1, running=False, finished=True)])
    assert run.work()["records"] == 2
    assert [byte for _state, _wait, byte in run.asked] == [0, 100, 100]
    assert run.rounds() == [0, 1]


@pytest.mark.parametrize(("trouble", "why"), [(GONE, "no route to host"), (BROKEN, "there is no sweep a")], ids=["lost", "failed"])
def test_trouble_that_stays_fails_and_what_has_come_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Any, why: str
) -> None:
    run = Run(tmp_path, monkeypatch, [piece(0), trouble, trouble])
    result = run.work()
    assert (result["failed"], result["finished"], result["records"]) == (True, False, 1)
    assert why in result["msg"]
    assert "(1 results were collected before and are kept)" in result["msg"]
    assert run.rounds() == [0]


def test_a_second_attempt_replaces_only_what_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Run(tmp_path, monkeypatch, [piece(0), GONE, GONE]).work()
    lost = Run(tmp_path, monkeypatch, [GONE, GONE])
    assert "no results were collected before" in lost.work()["msg"]
    assert lost.rounds() == [0]
    again = Run(tmp_path, monkeypatch, [piece(0), piece(1, running=False, finished=True)])
    again.work()
    assert again.rounds() == [0, 1]


def test_the_evidence_of_a_host_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [{"round": number} for number in range(20)]
    run = Run(tmp_path, monkeypatch, [piece(0, failures=many), piece(1, failures=many, running=False, finished=True)])
    run.work()
    assert len((tmp_path / "pairs/node1.failures.jsonl").read_text().splitlines()) == 32


def test_another_host_and_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, [piece(0, running=False, finished=True)])
    run.work(host="node7", folder="pairs/again")
    assert run.rounds("pairs/again/node7.jsonl") == [0]


def test_check_mode_asks_once_and_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, [piece(0)], check_mode=True)
    run.work()
    assert [state for state, _wait, _byte in run.asked] == ["collected"]


WRONG: list[tuple[str, Any]] = [
    ("running", "yes"),
    ("finished", 1),
    ("more", None),
    ("next_byte", "0"),
    ("next_byte", -1),
    ("next_byte", True),
    ("unreadable", 1.5),
    ("strangers", []),
    ("reason", None),
    ("results", {}),
    ("results", None),
    ("failures", "x"),
    ("seconds", float("inf")),
    ("seconds", float("nan")),
    ("seconds", "1"),
    ("counters", []),
    ("counters", {"rail0": None}),
    ("counters", {"rail0": {"seconds": 1.0}}),
    ("counters", {"rail0": {"seconds": "1", "risen": {}}}),
    ("counters", {"rail0": {"seconds": 1.0, "risen": {"symbol_error": "many"}}}),
    ("counters", {"rail0": {"seconds": 1.0, "risen": {}, "cnps": 7}}),
    ("counters", {"rail0": {"seconds": 1.0, "risen": {}, "priorities": {"3": None}}}),
]


@pytest.mark.parametrize(("key", "value"), WRONG, ids=str)
@pytest.mark.parametrize("outside", [None, "node7"])
def test_an_answer_of_another_type_fails_its_own_host_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, value: Any, outside: str | None
) -> None:
    run = Run(tmp_path, monkeypatch, [piece(0), piece(1, **{key: value})])
    result = run.work(host=outside)
    host = outside or "node1"
    (words,) = [result["msg"]] if outside is None else result["warnings"]
    assert f"{host} returned no valid result of perftest_rounds: {key} is not" in words
    assert (result["finished"], result.get("failed", False)) == (False, outside is None)
    assert run.rounds(f"pairs/{host}.jsonl") == [0]
    assert not list(tmp_path.glob("pairs/*.counters.json"))


@pytest.mark.parametrize("key", ["running", "finished", "more", "next_byte", "results", "failures", "seconds", "counters", "reason"])
def test_an_answer_without_one_of_its_parts_fails_its_own_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    run = Run(tmp_path, monkeypatch, [{name: value for name, value in piece(0).items() if name != key}])
    assert f"{key} is not" in run.work()["msg"]


def test_a_line_that_is_too_long_is_kept_short_and_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = [[0, 0, 0, 1, 0, 0, None, 0.0, 5.0, "dead", "x" * 10**6]]
    run = Run(tmp_path, monkeypatch, [piece(0, running=False, results=long, failures=[{"stdout": "y" * 10**6}])])
    assert run.work()["records"] == 1
    assert (tmp_path / "pairs/node1.jsonl").stat().st_size < 500
    assert (tmp_path / "pairs/node1.failures.jsonl").stat().st_size < 500
    with pytest.raises(ParseError):
        Result.from_line((tmp_path / "pairs/node1.jsonl").read_text())


@pytest.mark.parametrize("outside", [None, "node7"])
def test_a_host_that_always_has_more_has_an_end_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outside: str | None) -> None:
    """L3."""
    monkeypatch.setattr(pair_results, "MOST_BYTES", 1500)
    many = [[0, number, 0, 1, 0, 0, 97.5, 0.0, 5.0] for number in range(10)]
    run = Run(tmp_path, monkeypatch, [piece(number, more=True, results=many) for number in range(6)])
    result = run.work(host=outside)
    (words,) = [result["msg"]] if outside is None else result["warnings"]
    assert f"{outside or 'node1'} always answers that it has more results: " in words
    assert len(run.rounds(f"pairs/{outside or 'node1'}.jsonl")) == 60
    assert result["finished"] is False


def test_a_host_that_always_has_more_has_an_end_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L3: each answer takes ten seconds, of 40 that the sweep may take, and a minute for what is there already."""
    run = Run(tmp_path, monkeypatch, [piece(number, more=True, results=[]) for number in range(9)])
    module = run.action.module

    def slowly(name: str, **arguments: Any) -> dict[str, Any]:
        run.now += 10
        return dict(module(name, **arguments))

    monkeypatch.setattr(run.action, "module", slowly, raising=False)
    assert "node1 always answers that it has more results" in run.work()["msg"]


def test_more_that_comes_to_an_end_after_the_time_is_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, [piece(0), piece(1), piece(2, more=True), piece(3, more=True), piece(4, running=False, finished=True)])
    assert run.work()["finished"] is True
    assert run.rounds() == [0, 1, 2, 3, 4]


def test_strangers_at_perftest_s_ports_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, monkeypatch, [piece(0, strangers=2), piece(1, strangers=1, running=False, finished=True)])
    (warning,) = run.work()["warnings"]
    assert warning.startswith("node1: another process connected to perftest's ports 3 times before the partner did")
