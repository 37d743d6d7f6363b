# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host reports between two times: events, gaps, and the journal, by real output of journalctl."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._recorder import journal
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.journal import MOST_LINES, SERVICES, parse_journal, read_journal
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.ring import Moment, Ring
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.window import local_seconds, read_record, read_window
from tests.unit.builders.fakes import FakeRunner

BOOT = "aed15043-de8e-499a-b2c1-71cb48a76dae"
KERNEL = Path(__file__).parents[4] / "unit/fixtures/journal/kernel-252.json"
#: The moment of the fixture's last line, by both clocks.
LAST_WALL, LAST_MONO = 1795733956.940408, 10494.384178


def event(kind: str, at: float, after: float | None = None, boot: str = BOOT, **more: object) -> dict[str, object]:
    return {"kind": kind, "of": "eth1", "was": "up", "now": "no carrier", "after": after, "at": at, "mono": at - 1000, "boot": boot, **more}


def record(folder: Path, *events: dict[str, object]) -> str:
    Ring(str(folder)).append(events)
    return str(folder)


def test_events_of_the_window_and_those_that_may_be_in_it(tmp_path: Path) -> None:
    folder = record(
        tmp_path, event("start", 1100.0), event("carrier", 1500.0, 498.0), event("carrier", 2011.0, 990.0), event("mtu", 3000.0, 1998.0)
    )
    found = read_window(folder, 1400.0, 2000.0, Moment(3001.0, 2001.0, BOOT))
    assert [each["time"] for each in found["events"]] == [1500.0, 2011.0]
    assert (found["gaps"], found["recorded"], found["cut"]) == ([], True, False)


def test_what_was_not_recorded_is_a_gap(tmp_path: Path) -> None:
    events = [event("start", 1100.0), event("start", 1600.0, 300.0), event("lost", 1700.0, 680.0), event("carrier", 1710.0, 708.0)]
    folder = record(tmp_path, *events)
    found = read_window(folder, 1000.0, 2000.0, Moment(2500.0, 1500.0, BOOT))
    # Before the first event; a stop of the recorder; a full disk; and since the last sign of life.
    assert found["gaps"] == [[1000.0, 1100.0], [1300.0, 1600.0], [1680.0, 1700.0], [1710.0, 2000.0]]
    Ring(folder).touch(Moment(2495.0, 1495.0, BOOT))
    assert read_window(folder, 1000.0, 2000.0, Moment(2500.0, 1500.0, BOOT))["gaps"][-1] == [1680.0, 1700.0]


def test_a_boot_is_a_gap_from_the_last_reading_to_the_first(tmp_path: Path) -> None:
    old = event("start", 1100.0, boot="old")
    boot = {**event("boot", 1400.0, boot="new", last_at=1300.0), "mono": 0.0}
    after = {**event("carrier", 1430.0, boot="new"), "mono": 30.0}
    folder = record(tmp_path, old, boot, after)
    Ring(folder).touch(Moment(1500.0, 100.0, "new"))
    assert read_window(folder, 1200.0, 1500.0, Moment(1500.0, 100.0, "new"))["gaps"] == [[1300.0, 1430.0]]


def test_a_host_without_a_recorder_knows_nothing(tmp_path: Path) -> None:
    found = read_window(str(tmp_path / "none"), 1.0, 2.0, Moment(3.0, 3.0, BOOT))
    assert found == {"recorded": False, "events": [], "gaps": [[1.0, 2.0]], "damaged": 0, "cut": False}


def test_the_journal_of_this_boot_is_timed_by_the_monotonic_clock() -> None:
    now = Moment(LAST_WALL + 100, LAST_MONO + 100, BOOT)
    lines = parse_journal(KERNEL.read_text(), now)
    assert len(lines) == 6
    assert (lines[-1].source, lines[-1].text) == ("kernel", "rail1: port 11(n11r1) entered disabled state")
    assert lines[-1].time == pytest.approx(LAST_WALL, abs=0.001)
    # The clock was an hour slow then, and has been stepped since.
    stepped = parse_journal(KERNEL.read_text(), Moment(LAST_WALL + 3700, LAST_MONO + 100, BOOT))
    assert stepped[-1].time == pytest.approx(LAST_WALL + 3600, abs=0.001)
    other = parse_journal(KERNEL.read_text(), Moment(LAST_WALL + 3700, 50.0, "another"))
    assert other[-1].time == pytest.approx(LAST_WALL, abs=0.001)


@pytest.mark.parametrize("message", [None, [104, 105, 255], ["one", "two"], "a\x1b[31m\nb", "x" * 5000])
def test_any_message_is_a_bounded_text(message: object) -> None:
    line = {"__REALTIME_TIMESTAMP": "1", "__MONOTONIC_TIMESTAMP": "1", "_BOOT_ID": "b", "MESSAGE": message}
    (found,) = parse_journal(json.dumps(line), Moment(1.0, 1.0, BOOT))
    assert found.text.isprintable()
    assert len(found.text) <= 400


def test_a_line_without_a_time_is_refused() -> None:
    with pytest.raises(ParseError):
        parse_journal('{"MESSAGE": "x"}', Moment(1.0, 1.0, BOOT))


def argv(first: int, last: int, most: int = MOST_LINES) -> list[str]:
    fields = "MESSAGE,SYSLOG_IDENTIFIER,_TRANSPORT,_SYSTEMD_UNIT,_BOOT_ID"
    words = ["journalctl", "--quiet", "--no-pager", "--output=json", f"--output-fields={fields}", f"--lines={most}"]
    units = [f"_SYSTEMD_UNIT={unit}" for unit in SERVICES]
    times = [f"--since=@{first}", f"--until=@{last}"]
    return [*words, *times, "_TRANSPORT=kernel", "+", *units, "+", "SYSLOG_IDENTIFIER=opensm", "SYSLOG_IDENTIFIER=OpenSM"]


def test_the_journal_is_read_before_and_after_the_time_with_bounded_lines() -> None:
    runner = FakeRunner([(argv(100, 701), 0, KERNEL.read_text(), ""), (argv(700, 1001), 0, KERNEL.read_text(), "")])
    found = read_journal(runner, 100.5, 1000.5, 700.5, Moment(LAST_WALL + 100, LAST_MONO + 100, BOOT))
    # Lines of the second that both halves contain are one line; so are two equal lines of one millisecond.
    assert (len(found["lines"]), found["cut"], found["unread"]) == (5, False, "")
    refused = FakeRunner([(argv(100, 701), 1, "", "No journal files were opened due to insufficient permissions.")])
    assert read_journal(refused, 100.5, 1000.5, 700.5, Moment(1.0, 1.0, BOOT))["unread"].startswith("No journal files were opened")


@pytest.mark.parametrize(("most", "first", "second", "cut"), [(3, 3, 0, True), (3, 0, 3, True), (4, 3, 3, False), (3, 2, 2, False)])
def test_as_many_lines_as_journalctl_may_print_are_a_cut_journal(
    monkeypatch: pytest.MonkeyPatch, most: int, first: int, second: int, cut: bool
) -> None:
    """Each half of the time is cut by itself."""
    monkeypatch.setattr(journal, "MOST_LINES", most)
    lines = KERNEL.read_text().splitlines(keepends=True)
    outputs = ["".join(lines[:first]), "".join(lines[-second:] if second else [])]
    runner = FakeRunner([(argv(100, 701, most), 0, outputs[0], ""), (argv(700, 1001, most), 0, outputs[1], "")])
    found = read_journal(runner, 100.5, 1000.5, 700.5, Moment(LAST_WALL + 100, LAST_MONO + 100, BOOT))
    assert (found["cut"], found["unread"]) == (cut, "")


@pytest.mark.skipif(subprocess.run(["journalctl", "--version"], capture_output=True, check=False).returncode != 0, reason="no journalctl")
def test_the_real_journalctl_takes_the_command(tmp_path: Path) -> None:
    """Whether or not this machine has a journal: the answer is lines, or a reason."""
    found = read_record(str(tmp_path / "none"), SubprocessRunner(), time.time(), (600.0, 300.0))
    assert found["journal"]["unread"] == "" or "journal" in found["journal"]["unread"].lower()
    assert found["recorded"] is False
    assert found["until"] - found["since"] == 900.0


def test_a_time_of_a_log_is_in_the_time_zone_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    summer, winter = local_seconds("2026-07-01 12:00:00"), local_seconds("2026-11-23 12:00:00")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert (summer, winter) == (local_seconds("2026-07-01 10:00:00"), local_seconds("2026-11-23 11:00:00"))
    with pytest.raises(ParseError):
        local_seconds("yesterday")
