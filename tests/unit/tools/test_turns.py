# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which scenarios are run, what a run costs, and what is recorded of it."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tools import turns
from tests.tools.repository import RECORD, Clone
from tests.tools.turns import Counts, Green, Outcome, Row, Scenario, Turn
from tests.unit.builders.clones import commit_all, git
from tests.verify.patience import until

ROOT = Path(__file__).parents[3]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
DATE = "2026-11-25T22:10+00:00"


def scenario(
    name: str, minutes: float = 5, date: str | None = "2026-11-20", counts: Counts | None = None, commit: str = COMMIT
) -> Scenario:
    return Scenario(name, minutes, [f"roles/{name}"], Green(commit, date, 100, counts) if date else None)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A clone of three roles, and an empty record."""
    root = tmp_path / "clone"
    for name in ("driver", "pairs", "qos"):
        (root / "roles" / name).mkdir(parents=True)
        (root / "roles" / name / "main.yml").write_text("one\n")
    (root / RECORD).parent.mkdir(parents=True)
    (root / RECORD).write_text("[]\n")
    git(root, "init", "--quiet")
    commit_all(root)
    return Clone(root)


class TestOrder:
    def test_touched_ones_come_first_and_then_who_has_waited_longest(self) -> None:
        scenarios = [
            scenario("fresh", date="2026-11-25"),
            scenario("old", date="2026-11-20"),
            scenario("changed_lately", date="2026-11-24"),
            scenario("changed_long_ago", date="2026-11-21T09:00+00:00"),
            scenario("unknown", date=None),
        ]
        reasons = {"changed_lately": "touched", "changed_long_ago": "touched", "unknown": "no green run is known"}
        queue = turns.order(scenarios, reasons)
        assert [turn.scenario.name for turn in queue] == ["unknown", "changed_long_ago", "changed_lately", "old", "fresh"]
        assert [turn.reason for turn in queue[2:4]] == ["touched", "waiting since 2026-11-20"]

    def test_of_those_that_have_waited_as_long_the_shortest_comes_first(self) -> None:
        queue = turns.order([scenario("long", 56, None), scenario("short", 3, None)], {"long": "x", "short": "x"})
        assert [turn.scenario.name for turn in queue] == ["short", "long"]

    @pytest.mark.parametrize(("minutes", "expected"), [(60, ["a", "b", "c"]), (33, ["a", "c"]), (30, ["a"]), (10, ["c"]), (2.9, [])])
    def test_what_does_not_fit_gives_way_to_what_does(self, minutes: float, expected: list[str]) -> None:
        queue = [Turn(scenario("a", 30), ""), Turn(scenario("b", 20), ""), Turn(scenario("c", 3), "")]
        assert [turn.scenario.name for turn in turns.planned(queue, minutes)] == expected


class TestTouched:
    def test_by_path(self, clone: Clone) -> None:
        old = git(clone.root, "rev-parse", "HEAD")
        (clone.root / "roles/driver/main.yml").write_text("two\n")
        (clone.root / "roles/driver/new.yml").write_text("new\n")
        commit_all(clone.root)
        (clone.root / "roles/qos/main.yml").write_text("not committed\n")
        reasons = turns.touched([scenario(name, commit=old) for name in ("driver", "pairs", "qos")], clone)
        assert reasons == {
            "driver": f"touched since {old[:7]}: roles/driver/main.yml and 1 more",
            "qos": f"touched since {old[:7]}: roles/qos/main.yml",
        }

    def test_an_unknown_commit_counts_as_touched(self, clone: Clone) -> None:
        reasons = turns.touched([scenario("driver"), scenario("pairs", date=None)], clone)
        assert reasons == {"driver": "touched: 0123456 is not in this clone", "pairs": "no green run is known"}

    def test_a_shallow_clone_does_not_know_older_commits(self, clone: Clone, tmp_path: Path) -> None:
        old = git(clone.root, "rev-parse", "HEAD")
        (clone.root / "roles/qos/main.yml").write_text("two\n")
        new = commit_all(clone.root)
        git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{clone.root}", "shallow")
        shallow = Clone(tmp_path / "shallow")
        assert turns.touched([scenario("driver", commit=old)], shallow) == {"driver": f"touched: {old[:7]} is not in this clone"}
        assert turns.touched([scenario("driver", commit=new)], shallow) == {}

    def test_a_machine_without_git(self, clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nonexistent")
        assert clone.clean_commit() == ""
        assert list(turns.touched([scenario("driver")], clone)) == ["driver"]

    def test_a_folder_without_git(self, tmp_path: Path) -> None:
        assert Clone(tmp_path).clean_commit() == ""
        assert list(turns.touched([scenario("driver")], Clone(tmp_path))) == ["driver"]

    def test_what_has_passed_at_this_commit_is_left_out_unless_it_is_named(self, clone: Clone) -> None:
        head = git(clone.root, "rev-parse", "HEAD")
        scenarios = [scenario("driver", commit=head), scenario("pairs")]
        queue, passed = turns.queue_of([], scenarios, clone)
        assert [turn.scenario.name for turn in queue] == ["pairs"]
        assert passed == [Turn(scenarios[0], "passed at this commit")]
        assert turns.queue_of(["driver"], scenarios, clone) == ([Turn(scenarios[0], "named")], [])
        (clone.root / "roles/pairs/main.yml").write_text("not committed\n")
        queue, passed = turns.queue_of([], scenarios, clone)
        assert ([turn.scenario.name for turn in queue], passed) == (["pairs", "driver"], [])


def line(process: int, message: str) -> str:
    return f"2026-11-25 23:05:34,012 p={process} u=root n=ansible INFO| {message}"


LOG = "\n".join(
    [
        line(10, "1 plays in /clone/molecule/qos/create.yml"),
        line(10, "<localhost> EXEC /bin/sh -c 'lab up'"),
        line(11, "12 plays in /clone/playbooks/site.yml"),
        line(12, "3 plays in /clone/playbooks/drift.yml"),
        line(11, "<127.0.0.1> ESTABLISH SSH CONNECTION FOR USER: root"),
        line(11, "<127.0.0.1> SSH: EXEC ssh -C node1 /bin/sh -c python3"),
        "<127.0.0.1> SSH: EXEC a second line of a message is not a message",
        line(12, "<node2> EXEC /bin/sh -c python3"),
        line(11, "ok: [node1] => said: <node1> EXEC /bin/sh"),
        line(12, "<node1> EXEC /bin/sh -c python3"),
        line(10, "1 plays in /clone/molecule/qos/destroy.yml"),
        line(10, "<localhost> EXEC /bin/sh -c 'lab down'"),
    ]
)


class TestCounts:
    def test_runs_and_remote_executions_but_not_those_of_the_lab(self) -> None:
        assert turns.count(LOG) == Counts(2, 3)

    def test_a_process_id_may_come_twice(self) -> None:
        again = "\n".join([line(11, "1 plays in /clone/molecule/qos/destroy.yml"), line(11, "<localhost> EXEC /bin/sh -c 'lab down'")])
        assert turns.count(f"{LOG}\n{again}") == Counts(2, 3)

    def test_ansible_logs_what_is_counted(self, tmp_path: Path) -> None:
        """The real program, at its usual verbosity: one playbook, two hosts, one module of them each."""
        play = tmp_path / "play.yml"
        play.write_text("- hosts: all\n  gather_facts: false\n  connection: local\n  tasks:\n    - ansible.builtin.ping:\n")
        inventory = f"[all]\nnode[1:2] ansible_python_interpreter={sys.executable} ansible_pipelining=true\n"
        (tmp_path / "hosts").write_text(inventory)
        argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(tmp_path / "hosts"), str(play)]
        outcome = turns.run(scenario("qos"), argv, float("inf"), tmp_path)
        assert (outcome.passed, outcome.remark, outcome.counts) == (True, "", Counts(1, 2))

    @pytest.mark.parametrize(("made", "words"), [(110, ""), (111, "111 remote executions instead of 100")])
    def test_more_than_a_tenth_above_the_record_fails_by_both_figures(self, made: int, words: str) -> None:
        sentence = turns.excess(scenario("qos", counts=Counts(10, 100)), Counts(10, made))
        assert words in sentence
        assert bool(sentence) is bool(words)
        assert "\n" not in sentence

    def test_runs_are_held_against_the_record_too(self) -> None:
        sentence = turns.excess(scenario("qos", counts=Counts(10, 100)), Counts(12, 200))
        assert sentence.startswith("qos made 12 site runs instead of 10 and 200 remote executions instead of 100: ")

    def test_nothing_counted_is_not_nothing_done(self) -> None:
        assert "no run of a playbook was counted" in turns.excess(scenario("qos"), Counts(0, 0))
        assert turns.excess(scenario("qos"), Counts(1, 0)) == ""

    def test_where_chance_decides_no_count_is_kept_or_compared(self) -> None:
        drawn = replace(scenario("qos", counts=Counts(2, 2)), counted=False)
        assert turns.excess(drawn, Counts(3, 9)) == ""
        made = turns.recorded(replace(scenario("qos"), counted=False), Outcome(True, 9, counts=Counts(3, 9)), COMMIT, "2026-11-21")
        assert made.green == Green(COMMIT, "2026-11-21", 9, None)

    def test_the_record_follows_no_small_steps(self) -> None:
        assert turns.kept(None, Counts(3, 50)) == Counts(3, 50)
        assert turns.kept(Counts(10, 100), Counts(11, 109)) == Counts(10, 100)
        assert turns.kept(Counts(10, 100), Counts(10, 89)) == Counts(10, 89)


def program(log: str = "", status: int = 0) -> list[str]:
    """A command that writes to Ansible's log and ends."""
    return [sys.executable, "-c", f"import os, sys; open(os.environ['ANSIBLE_LOG_PATH'], 'a').write({log!r}); sys.exit({status})"]


class TestRun:
    def test_a_scenario_that_passes_is_counted(self, tmp_path: Path) -> None:
        (tmp_path / "qos.log").write_text(LOG)
        outcome = turns.run(scenario("qos"), program(LOG), float("inf"), tmp_path)
        assert (outcome.passed, outcome.remark, outcome.counts) == (True, "", Counts(2, 3))

    def test_one_that_costs_too_much_fails(self, tmp_path: Path) -> None:
        outcome = turns.run(scenario("qos", counts=Counts(2, 2)), program(LOG), float("inf"), tmp_path)
        assert not outcome.passed
        assert "3 remote executions instead of 2" in outcome.remark

    def test_a_thorough_run_is_not_held_against_the_record(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RDMA_TEST_EACH", "1")
        outcome = turns.run(scenario("qos", counts=Counts(2, 2)), program(LOG), float("inf"), tmp_path)
        assert (outcome.passed, outcome.counts) == (True, None)

    def test_one_that_fails_fails(self, tmp_path: Path) -> None:
        assert not turns.run(scenario("qos"), program(LOG, status=2), float("inf"), tmp_path).passed

    def test_the_wall_ends_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        # A shell may have started us with SIGINT ignored, and so is the program.
        monkeypatch.setattr(turns, "END_SECONDS", 0.1)
        outcome = turns.run(scenario("qos"), [sys.executable, "-c", "import time; time.sleep(600)"], 0.01, tmp_path)
        assert (outcome.passed, outcome.remark) == (False, turns.AT_THE_WALL)

    def test_what_is_ended_may_clean_up(self, tmp_path: Path) -> None:
        script = """
import pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with it ignored
here = pathlib.Path(sys.argv[1])
try:
    (here / "ready").touch()
    time.sleep(600)
except KeyboardInterrupt:
    (here / "cleaned").touch()
"""
        with subprocess.Popen([sys.executable, "-c", script, tmp_path], start_new_session=True) as process:
            until((tmp_path / "ready").exists, 60, "a program that runs")
            turns.end(process)
        assert (process.returncode, (tmp_path / "cleaned").exists()) == (0, True)

    def test_what_ignores_that_is_killed_with_all_it_has_started(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(turns, "END_SECONDS", 0.1)
        read, write = os.pipe()
        with (
            open(read, "rb") as alive,
            subprocess.Popen(
                ["bash", "-c", f"trap '' INT; sleep 600 & touch {tmp_path}/ready; wait; sleep 600"],
                start_new_session=True,
                pass_fds=[write],
            ) as process,
        ):
            os.close(write)
            until((tmp_path / "ready").exists, 60, "a program that runs")
            turns.end(process)
            # What is left of the group has the other end of the pipe open.
            assert select.select([alive], [], [], 60)[0], "a process has survived"
        assert process.returncode == -signal.SIGKILL


class TestRecord:
    def test_a_green_run_is_recorded_in_place(self, clone: Clone) -> None:
        file = clone.root / RECORD
        records = [scenario("pairs"), scenario("driver", date=None), replace(scenario("qos"), thorough_minutes=49, counted=False)]
        file.write_text(turns.dump(records))
        head = commit_all(clone.root)
        assert turns.note("driver", Outcome(True, 61.4, "", Counts(3, 40)), head, clone) == ""
        pairs, driver, qos = turns.load(file)
        assert [pairs, qos] == [records[0], records[2]]
        assert driver.green is not None
        assert (driver.green.commit, driver.green.seconds, driver.green.counts) == (head, 61, Counts(3, 40))
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d\+00:00", driver.green.date)
        # The record itself leaves the tree clean, so that the next scenario is recorded too.
        assert turns.note("qos", Outcome(True, 20.0), head, clone) == ""
        assert turns.queue_of([], turns.load(file), clone)[0] == [Turn(records[0], f"touched: {COMMIT[:7]} is not in this clone")]

    def test_a_run_of_changed_files_is_not_recorded(self, clone: Clone) -> None:
        file, head = clone.root / RECORD, clone.clean_commit()
        before = file.read_text()
        (clone.root / "roles/qos/main.yml").write_text("not committed\n")
        assert "not recorded" in turns.note("qos", Outcome(True, 20.0, "", Counts(1, 1)), head, clone)
        assert "not recorded" in turns.note("qos", Outcome(True, 20.0, "", Counts(1, 1)), clone.clean_commit(), clone)
        assert file.read_text() == before

    def test_a_thorough_run_keeps_the_counts(self) -> None:
        green = turns.recorded(scenario("qos", counts=Counts(1, 2)), Outcome(True, 9.0), COMMIT, DATE).green
        assert green == Green(COMMIT, DATE, 9, Counts(1, 2))


class TestTake:
    @pytest.fixture
    def ran(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Scenarios that were run; those called red fail, and those called late are ended at the wall."""
        names: list[str] = []

        def run(each: Scenario, argv: list[str], wall_minutes: float) -> Outcome:
            assert argv == [turns.RUN, "molecule", "test", "--scenario-name", each.name]
            assert wall_minutes == 85
            names.append(each.name)
            return Outcome(each.name not in ("red", "late"), 60.0, turns.AT_THE_WALL if each.name == "late" else "", Counts(1, 1))

        monkeypatch.setattr(turns, "run", run)
        monkeypatch.setattr(turns, "remove_lab", lambda name: names.append(f"remove {name}"))
        return names

    def take(self, clone: Clone, queue: list[Turn], minutes: list[float]) -> tuple[int, list[Row]]:
        return turns.take(queue, clone, iter(minutes).__next__, lambda: 85)

    def test_the_time_that_is_left_decides_each_time(self, clone: Clone, ran: list[str]) -> None:
        queue = [Turn(scenario("a", 30), "touched"), Turn(scenario("b", 20), "waiting"), Turn(scenario("c", 3), "waiting")]
        status, rows = self.take(clone, queue, [60, 10, 2, 2])
        assert (status, ran) == (0, ["a", "c"])
        assert [(row.turn.scenario.name, row.remark) for row in rows] == [("a", ""), ("c", ""), ("b", "does not fit into 2 min")]

    def test_the_others_are_run_after_one_has_failed(self, clone: Clone, ran: list[str]) -> None:
        status, rows = self.take(clone, [Turn(scenario("red"), ""), Turn(scenario("green"), "")], [60, 50, 40, 40])
        assert (status, ran) == (1, ["red", "green"])
        assert [row.outcome.passed for row in rows if row.outcome] == [False, True]

    def test_an_ended_scenario_leaves_no_lab(self, clone: Clone, ran: list[str]) -> None:
        status, rows = self.take(clone, [Turn(scenario("late"), "")], [60, -20, -20])
        assert (status, ran, rows[0].remark) == (1, ["late", "remove late"], turns.AT_THE_WALL)

    def test_an_interrupted_one_ends_the_rest(self, clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_words: object) -> Outcome:
            raise KeyboardInterrupt

        monkeypatch.setattr(turns, "run", interrupted)
        status, rows = self.take(clone, [Turn(scenario("a"), ""), Turn(scenario("b"), "")], [60])
        assert (status, [(row.remark, row.outcome) for row in rows]) == (130, [("interrupted", None), ("", None)])


def test_the_table_says_why() -> None:
    rows = [
        Row(Turn(scenario("qos", 1), "touched since 0123456: a.py"), "", Outcome(True, 61.0)),
        Row(Turn(scenario("driver", 56), "waiting since 2026-11-20"), "does not fit into 9 min"),
        Row(Turn(scenario("pairs"), "named"), "too much", Outcome(False, 3.0)),
    ]
    assert turns.table(rows).splitlines() == [
        "scenario       result   seconds  budget  why",
        "qos            passed        61   1 min  touched since 0123456: a.py; OVER ITS BUDGET",
        "driver         not run           56 min  waiting since 2026-11-20; does not fit into 9 min",
        "pairs          FAILED         3   5 min  named; too much",
    ]


class TestTheRecordOfThisClone:
    def test_every_scenario_has_one(self) -> None:
        names = {path.parent.name for path in ROOT.glob("molecule/*/molecule.yml")}
        assert sorted(each.name for each in turns.load(ROOT / RECORD)) == sorted(names)

    def test_it_is_written_as_it_is_read(self) -> None:
        text = (ROOT / RECORD).read_text()
        assert turns.dump(turns.load(ROOT / RECORD)) == text

    @pytest.mark.parametrize("each", turns.load(ROOT / RECORD), ids=lambda each: each.name)
    def test_each_path_is_there_and_its_own_code_is_among_them(self, each: Scenario) -> None:
        assert f"molecule/{each.name}" in each.paths
        for path in each.paths:
            plain = path.removeprefix(":!")
            folder = Path(plain) if not set(plain) & set("*?[") else None
            assert (ROOT / folder).exists() if folder else any(ROOT.glob(plain.replace("plugins/*/", "plugins/**/"))), path

    def test_budgets_of_a_thorough_run(self) -> None:
        qos = next(each for each in turns.load(ROOT / RECORD) if each.name == "qos")
        assert turns.budget(qos, {"RDMA_TEST_EACH": "1"}) > turns.budget(qos, {"RDMA_TEST_EACH": ""}) == qos.minutes

    def test_a_scenario_without_a_record_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            turns.main(["nonsense"])
        assert "tests/ci/scenarios.json has no scenario 'nonsense'" in capsys.readouterr().err

    def test_the_list_names_every_scenario_and_runs_none(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(turns, "take", None)
        assert turns.main(["--list", "--minutes", "0"]) == 0
        lines = capsys.readouterr().out.splitlines()[1:]
        assert sorted(line.split()[0] for line in lines) == sorted(each.name for each in turns.load(ROOT / RECORD))
        assert not any("would be run" in line for line in lines)
