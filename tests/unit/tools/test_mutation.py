# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The mutation score: docs/mutation.md reaches its bar and lists what survived, and each explanation still fits a line of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation import equivalent, page
from tests.mutation.equivalent import explained, has_line, killed_although_explained
from tests.mutation.page import Fresh, Row

KEY = ("plugins/a.py", "if a < b:\nc = 1", "if a <= b:\nc = 1")
ROWS = [
    *(Row("_a", (f"plugins/{number}.py", "a", "b"), 1, killed=True) for number in range(17)),
    Row("_a", KEY, 1, killed=False),
    Row("_b", ("plugins/b.py", "x", "y"), 1, killed=False, why="Nobody sees it."),
]


def test_the_page_reaches_the_bar() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.score(text) >= page.LEAST_PERCENT


def test_each_reason_on_the_page_is_that_of_its_file() -> None:
    survivors = page.survivors(page.PAGE.read_text(encoding="utf-8"))
    assert survivors
    assert {key: why for key, why in survivors.items() if why and explained().get(key) != why} == {}


def test_explanations_fit_the_code() -> None:
    assert all(explained().values())


def test_a_page_is_read_as_it_was_written() -> None:
    unseen = ("plugins/c.py", "x", "z")
    fresh = Fresh(8, [Row("_c", unseen, 1, killed=False), Row("_c", ("plugins/c.py", "x", "u"), 1, killed=True)])
    text = page.render(ROWS, seed=7, date="2026-01-02", fresh=fresh)
    assert page.score(text) == pytest.approx(94.4)
    assert page.survivors(text) == {KEY: "", ("plugins/b.py", "x", "y"): "Nobody sees it.", unseen: ""}
    assert "`make mutation N=19 SEED=7 FRESH=2 FRESH_SEED=8`" in text
    assert "Seed 8 today: 1 of 2 are killed, 0 are explained, 1 are neither. Tests may have been written since.\n" in text
    assert "| `_b` | 1 | 0 | 1 | 100 % |" in text
    with pytest.raises(ValueError, match="no score"):
        page.score("")


def test_the_first_run_of_a_sample_is_recorded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "FIRST_RUNS", tmp_path / "first_runs.yml")
    page.FIRST_RUNS.write_text("---\n- {seed: 8, date: '2026-01-01', mutants: 150, killed: 120, explained: 10}\n")
    page.first_runs(9, ROWS, "2026-01-02")
    runs = page.first_runs(9, ROWS[:3], "2026-01-03")
    assert list(runs)[1:] == [{"seed": 9, "date": "2026-01-02", "mutants": 19, "killed": 17, "explained": 1}]
    text = page.render(ROWS, seed=7, date="2026-01-04", fresh=Fresh(9, ROWS, runs))
    assert "| 8 | 2026-01-01 | 150 | 120 | 10 | 85.7 % |\n| 9 | 2026-01-02 | 19 | 17 | 1 | 94.4 % |\n" in text


def test_an_explanation_of_a_line_that_has_gone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "equivalent.yml"
    monkeypatch.setattr(equivalent, "FILE", file)
    file.write_text("- {file: Makefile, before: no such line, after: x, why: y}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="Makefile has no line 'no such line'"):
        explained()
    file.write_text(2 * "- {file: Makefile, before: export MAKE, after: x, why: y}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="explained twice"):
        explained()


def test_an_explanation_of_a_killed_mutant_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalent, "FILE", tmp_path / "equivalent.yml")
    equivalent.FILE.write_text("- {file: Makefile, before: export MAKE, after: x, why: y}\n", encoding="utf-8")
    assert has_line("Makefile", "export MAKE\nexport VENV ?= .venv")
    assert killed_although_explained([("Makefile", "export MAKE", "x"), KEY]) == [("Makefile", "export MAKE", "x")]
