# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sweeps among strangers: what counts as lost, and that a stranger of each kind really disturbs."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.schedule import make_schedule
from tests.bench import bars, hostile, strangers

GOOD = "#bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 65536 1000 0.00 97.50 0.185966\n"


def records(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """All good ones, as a runner writes them."""
    blank = {"round": 0, "test": "bandwidth", "argv": ["ib_write_bw"], "exit_code": 0, "stdout": GOOD, "stderr": "", "error": None}
    schedule, found = make_schedule(plan["schedule"], len(plan["hosts"])), []
    for rail, turn in product(plan["rails"], range(schedule.rounds)):
        for server, client in schedule.pairs(turn):
            names = {"rail": rail["name"], "server": plan["hosts"][server], "client": plan["hosts"][client], "round": turn}
            found += [{**blank, **names, "role": role, "seconds": 1.0, "waited_seconds": 0.0} for role in ("server", "client")]
    return found


def fail(of: list[dict[str, Any]], *hosts: str, rails: int = hostile.RAILS) -> list[dict[str, Any]]:
    """The same, but records of these hosts together have failed."""
    names = {f"rail{number}" for number in range(rails)}
    error = {"exit_code": None, "error": {"class": "dead", "detail": "x"}}
    return [{**each, **error} if each["rail"] in names and set(hosts) <= {each["server"], each["client"]} else each for each in of]


CULPRIT = f"node{hostile.CULPRIT + 1}"


@pytest.mark.parametrize(
    ("failed", "rails", "culprit_rails", "lost"),
    [
        ((), 2, 0, 0),
        (("node1", "node2"), 2, 0, 4),
        ((CULPRIT,), 2, 2, 0),
        ((CULPRIT,), 2, 1, 10),
        ((CULPRIT,), 1, 1, 0),
        (("node1", "node2"), 1, 1, 2),
    ],
)
def test_pairs_of_others_may_not_be_lost(tmp_path: Path, failed: tuple[str, ...], rails: int, culprit_rails: int, lost: int) -> None:
    plan = hostile.make_plan(6)
    of = records(plan)
    assert len(of) == hostile.RAILS * len(list(permutations(range(6), 2)))
    swept = hostile.judged(tmp_path, plan, fail(of, *failed, rails=rails) if failed else of, culprit_rails)
    assert swept.lost == lost
    assert hostile.judged(tmp_path, plan, of[:-3], 0).lost == 3


def test_verdicts_against_honest_hosts_count(tmp_path: Path) -> None:
    plan = hostile.make_plan(8)
    assert hostile.judged(tmp_path, plan, fail(records(plan), CULPRIT), hostile.RAILS).named == (CULPRIT,)
    swept = hostile.judged(tmp_path, plan, fail(records(plan), "node1"), hostile.RAILS)
    assert swept.accused == ("node1",)
    assert swept.lost > 0


@pytest.mark.parametrize(
    ("kind", "changes", "missed"),
    [
        ("flood", {}, [False, False]),
        ("flood", {"lost": 1}, [True, False]),
        ("scan", {"ended": False}, [True, False]),
        ("replay", {"accused": ("node1",), "seconds": 5.9}, [True, False]),
        ("replay", {"seconds": 6.1}, [False, True]),
        ("stopped", {"seconds": 23.9}, [False, False]),
        ("unkillable", {"seconds": 24.1}, [False, True]),
        ("pause", {"seconds": 10.1}, [False, True]),
    ],
)
def test_bars(tmp_path: Path, kind: str, changes: dict[str, Any], missed: list[bool]) -> None:
    plan = hostile.make_plan(4)
    quiet = replace(hostile.judged(tmp_path, plan, records(plan), 0), seconds=4.0, ended=True, did="quiet")
    lines = list(hostile.lines(kind, hostile.KINDS[kind], replace(quiet, **changes), quiet))
    assert [bars.missed(line) for line in lines] == missed, lines


def test_every_kind_has_its_bars() -> None:
    names = {name for name in bars.TABLE if name.startswith("pairs_hostile_") and bars.TABLE[name][1] is not None}
    assert names == {
        f"pairs_hostile_{name}_{what}" for name, kind in hostile.KINDS.items() for what in ("lost", "more_s" if kind.holds_up else "ratio")
    }


@pytest.mark.parametrize("name", ["flood", "handshake", "replay"])
def test_a_sweep_of_four_among_strangers(tmp_path: Path, name: str) -> None:
    swept = hostile.sweep(tmp_path, 4, hostile.KINDS[name], perftest_seconds=0.1)
    assert (swept.lost, swept.accused, swept.ended, swept.records) == (0, (), True, 24), swept
    assert int(swept.did.split()[0]) > 0, swept.did
    assert (swept.repeated > 0) == (name == "handshake")


def test_a_stranger_that_fails_is_no_sweep_among_strangers() -> None:
    class Failing(strangers.Stranger):
        def disturb(self) -> None:
            raise ValueError("x")

    stranger = Failing(hostile.make_plan(2))
    stranger.start()
    with pytest.raises(RuntimeError, match="the stranger failed"):
        stranger.close()
