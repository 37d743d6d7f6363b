# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets of a Makefile one after the other, and again where it was ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tools import steps
from tests.tools.repository import RECORD
from tests.unit.builders.clones import commit_all, git

#: Each target says so in a file that git ignores, and fails if there is a file of its name in broken/.
MAKEFILE = """
%:
\t@echo $@ >> ran; test ! -e broken/$@
"""
RECORDS = [
    {"name": "qos", "minutes": 21, "paths": [], "green": None, "thorough_minutes": 49},
    {"name": "pairs", "minutes": 0, "paths": [], "green": None},
]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / ".gitignore").write_text("/ran\n/broken/\n/tests/output/\n")
    (tmp_path / RECORD).parent.mkdir(parents=True)
    (tmp_path / RECORD).write_text(json.dumps(RECORDS))
    (tmp_path / "broken").mkdir()
    git(tmp_path, "init", "--quiet")
    commit_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MAKE", raising=False)
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    return tmp_path


def ran(root: Path) -> list[str]:
    """What was run since the last call."""
    names = (root / "ran").read_text().split() if (root / "ran").exists() else []
    (root / "ran").unlink(missing_ok=True)
    return names


def test_steps_that_passed_are_not_run_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--resume", "first=1", "second=1", "third=1"]
    (root / "broken/second").touch()
    assert (steps.main(words), ran(root)) == (1, ["first", "second", "third"])
    assert "taken over" not in capsys.readouterr().out
    (root / "broken/second").unlink()
    assert (steps.main(words), ran(root)) == (0, ["second"])
    taken = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "taken over: it has passed at this commit" in line]
    assert taken == ["first", "third"]


def test_it_goes_on_where_it_was_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(target: str, minutes: float) -> steps.Row:
        if target == "second":
            raise KeyboardInterrupt
        return once(target, minutes)

    once, words = steps.run, ["--resume", "first=1", "second=1", "third=1"]
    monkeypatch.setattr(steps, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        steps.main(words)
    assert ran(root) == ["first"]
    monkeypatch.setattr(steps, "run", once)
    assert (steps.main(words), ran(root)) == (0, ["second", "third"])


def test_without_resume_everything_is_run(root: Path) -> None:
    assert (steps.main(["--resume", "first=1"]), ran(root)) == (0, ["first"])
    assert (steps.main(["first=1"]), ran(root)) == (0, ["first"])


def test_another_commit_is_another_matter(root: Path) -> None:
    assert (steps.main(["--resume", "first=1"]), ran(root)) == (0, ["first"])
    (root / "new").touch()
    commit_all(root)
    assert (steps.main(["--resume", "first=1"]), ran(root)) == (0, ["first"])
    assert (steps.main(["--resume", "first=1"]), ran(root)) == (0, [])


def test_changed_files_say_nothing_of_the_commit(root: Path) -> None:
    (root / "new").touch()
    for _turn in range(2):
        assert (steps.main(["--resume", "first=1"]), ran(root)) == (0, ["first"])
    (root / "new").unlink()
    assert (steps.main(["--resume", "first=1"]), ran(root)) == (0, ["first"])
    (root / "new").touch()
    assert (steps.main(["--resume", "first=1"]), ran(root)) == (0, ["first"])


def test_a_step_that_changes_a_file_is_not_kept(root: Path) -> None:
    (root / "Makefile").write_text(MAKEFILE + "\nchanging:\n\t@echo $@ >> ran; touch new\n")
    commit_all(root)
    words = ["--resume", "first=1", "changing=1"]
    assert (steps.main(words), ran(root)) == (0, ["first", "changing"])
    (root / "new").unlink()
    assert (steps.main(words), ran(root)) == (0, ["changing"])


def test_a_new_record_of_a_scenario_changes_nothing(root: Path) -> None:
    (root / "Makefile").write_text(MAKEFILE + f"\nscenario-%:\n\t@echo $@ >> ran; echo >> {RECORD}\n")
    commit_all(root)
    assert (steps.main(["--resume", "scenarios"]), ran(root)) == (0, ["scenario-qos", "scenario-pairs"])
    assert (steps.main(["--resume", "scenarios"]), ran(root)) == (0, [])


def test_minutes_of_scenarios_are_those_of_the_record(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RDMA_TEST_KILLS", raising=False)
    monkeypatch.setenv("RDMA_TEST_EACH", "")
    assert list(steps.planned(["unit=3", "scenario-qos"], root)) == [("unit", 3.0), ("scenario-qos", 21)]
    monkeypatch.setenv("RDMA_TEST_EACH", "1")
    assert list(steps.planned(["scenarios"], root)) == [("scenario-qos", 49), ("scenario-pairs", 0)]
    assert steps.main(["scenario-pairs"]) == 0
    assert "OVER ITS BUDGET of 0 min" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["scenario-nonsense", "unit", "unit=soon"])
def test_a_step_without_minutes_is_refused(root: Path, word: str) -> None:
    with pytest.raises(SystemExit):
        steps.main([word])
    assert ran(root) == []


@pytest.mark.parametrize(("words", "expected"), [([], ["second", "third"]), (["--stop"], ["second"])])
def test_what_comes_after_a_failure(root: Path, words: list[str], expected: list[str]) -> None:
    (root / "broken/second").touch()
    assert (steps.main([*words, "first=1", "second=1", "third=1"]), ran(root)) == (1, ["first", *expected])
    (root / "broken/first").touch()
    assert (steps.main([*words, "first=1", "second=1", "third=1"]), ran(root)) == (1, ["first"])
