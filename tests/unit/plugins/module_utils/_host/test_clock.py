# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What chrony says of the clock, by real output."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.clock import (
    ASK,
    PID_FILE,
    Chrony,
    ClockSource,
    parse_chrony,
    read_chrony,
    read_clocksource,
)
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.garbled import garbled, read_or_refused
from tests.unit.builders.trees import write_tree

FIXTURES = Path(__file__).parents[3] / "fixtures/chrony"
IN_STEP, OUT_OF_STEP = (FIXTURES.joinpath(f"4.3-{name}.csv").read_text(encoding="ascii") for name in ("synchronized", "not-synchronized"))


def test_a_clock_in_step() -> None:
    # The plain form of the same chronyd says "fast of NTP time" where the value is below zero.
    assert parse_chrony(IN_STEP) == Chrony(
        synchronized=True,
        source="localhost",
        stratum=9,
        offset_seconds=0.000001579,
        sources={"localhost": "*", "time.example.invalid": "?", "127.0.0.2": "?"},
    )


def test_a_source_without_a_name_is_named_by_its_reference() -> None:
    reference, name, *rest = IN_STEP.splitlines()[0].split(",")
    assert name == "localhost"
    assert parse_chrony(",".join([reference, "", *rest])).source == reference


CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0"


def test_the_clock_source_of_the_kernel(tmp_path: Path) -> None:
    assert read_clocksource(SysRoot(str(tmp_path))) is None
    write_tree(tmp_path, f"{CLOCKSOURCE}/current_clocksource: tsc\n{CLOCKSOURCE}/available_clocksource: tsc hpet acpi_pm")
    assert read_clocksource(SysRoot(str(tmp_path))) == ClockSource("tsc", ["tsc", "hpet", "acpi_pm"])


def test_a_clock_that_follows_nothing_has_no_offset() -> None:
    assert parse_chrony(OUT_OF_STEP) == Chrony(False, None, None, None, {"127.0.0.2": "?"})


BROKEN = [
    ("", "not chronyc's line of tracking: ''"),
    ("506 Cannot talk to daemon\n", "not chronyc's line of tracking: '506 Cannot"),
    (IN_STEP.replace("Normal", "Often"), "the last of Normal, Insert second"),
    (IN_STEP.replace("-0.000001579", "nan"), "not a number: 'nan'"),
    (IN_STEP.replace("^,*", "^,!"), "not a source of chronyc: '\\^,!,localhost"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_what_is_none_is_quoted(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_chrony(text)


@given(garbled(IN_STEP))
def test_damaged_output_is_read_or_refused(text: str) -> None:
    assert read_or_refused(parse_chrony, text)


@pytest.fixture
def chronyd(tmp_path: Path) -> SysRoot:
    return SysRoot(str(write_tree(tmp_path, f"{PID_FILE}: 612")))


def test_a_daemon_that_runs_is_asked_once(chronyd: SysRoot) -> None:
    runner = FakeRunner([(ASK, 0, IN_STEP, "")])
    assert read_chrony(chronyd, runner) == (parse_chrony(IN_STEP), None)


def test_without_a_daemon_nothing_is_run(tmp_path: Path) -> None:
    assert read_chrony(SysRoot(str(tmp_path)), FakeRunner([])) == (None, None)


def test_of_a_captured_tree_nobody_is_asked(chronyd: SysRoot) -> None:
    assert read_chrony(chronyd, None) == (None, None)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((ASK, 1, "", "506 Cannot talk to daemon"), "`chronyc tracking` fails: 506 Cannot talk to daemon"),
        ((ASK, 0, "nonsense\n", ""), "not chronyc's line of tracking: 'nonsense'"),
    ],
    ids=["refused", "nonsense"],
)
def test_a_daemon_that_does_not_answer_is_not_known(chronyd: SysRoot, answer: tuple[tuple[str, ...], int, str, str], why: str) -> None:
    reported, unread = read_chrony(chronyd, FakeRunner([answer]))
    assert reported is None
    assert str(unread).startswith(why)


def test_a_host_whose_chronyc_is_missing(chronyd: SysRoot) -> None:
    class Bare:
        def run(self, argv, *, timeout_seconds: float = 30.0) -> Completed:  # type: ignore[no-untyped-def]
            assert tuple(argv) == ASK
            raise CommandError("command not found: chronyc")

    assert read_chrony(chronyd, Bare()) == (None, "command not found: chronyc")
