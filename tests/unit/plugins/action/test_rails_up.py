# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting for rails, on a clock that only sleeping moves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.action import rails_up
from tests.unit.builders.hosts import lab_facts, lab_intent


def facts(*down: str) -> dict[str, Any]:
    """An answer of rdma_facts in which the ports of these devices are down."""
    tree = lab_facts()
    for device in down:
        tree["devices"][device]["ports"]["1"]["state"] = "DOWN"
    return {"ansible_facts": {"rdma": tree}}


def wait(
    monkeypatch: pytest.MonkeyPatch, script: list[dict[str, Any]], *, check_mode: bool = False, **options: Any
) -> tuple[dict[str, Any], float]:
    now = [0.0]
    action = rails_up.ActionModule.__new__(rails_up.ActionModule)
    action.variables = {"inventory_hostname": "node1"}
    monkeypatch.setattr(action, "intent_of", {"node1": lab_intent()}.get, raising=False)
    action._task = SimpleNamespace(check_mode=check_mode)

    def module(name: str, **arguments: Any) -> dict[str, Any]:
        assert (name, arguments) == ("rdma_facts", {"gather_subset": ["min"]})
        return script.pop(0)

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(action, "module", module, raising=False)
    monkeypatch.setattr(rails_up, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    result = action.work({"rails": None, "timeout_seconds": 0, **options})
    assert not script, "it did not look as often as it should"
    return result, now[0]


def test_it_reports_which_are_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wait(monkeypatch, [facts("rxe_rail1")]) == ({"up": ["rail0"]}, 0.0)


def test_it_waits_for_those_that_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    script = [facts("rxe_rail0", "rxe_rail1"), facts("rxe_rail1"), facts()]
    assert wait(monkeypatch, script, rails=["rail0", "rail1"], timeout_seconds=60) == ({"up": ["rail0", "rail1"]}, 10.0)


def test_what_does_not_come_back_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = facts()
    del gone["ansible_facts"]["rdma"]["devices"]["rxe_rail0"]
    result, _seconds = wait(monkeypatch, [gone, gone, gone], rails=["rail0", "rail9"], timeout_seconds=10)
    assert result["failed"]
    assert result["msg"].endswith(": these rails are not up after 10 s: rail0 (no RDMA device), rail9 (no longer planned).")


def test_a_host_that_does_not_answer_fails_with_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _seconds = wait(monkeypatch, [{"unreachable": True, "msg": "no route"}], rails=["rail0"])
    assert result == {"unreachable": True, "msg": "no route", "failed": True}


def test_check_mode_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wait(monkeypatch, [facts("rxe_rail0")], check_mode=True, rails=["rail0"], timeout_seconds=60) == ({"up": ["rail1"]}, 0.0)
