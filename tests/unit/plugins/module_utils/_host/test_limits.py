# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What services and logins get: the kernel's own words, and the files that say it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed, SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._host import limits as host_limits
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import (
    Limit,
    LimitsRequest,
    Memlock,
    ServiceLimits,
    files,
    parse_limits,
    read_service_limits,
)
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.limits import BOUND, FREE, LIMITED, MEMLOCK, limits, service


def test_parse_limits() -> None:
    found = parse_limits(LIMITED)
    assert len(found) == 16
    assert found["Max locked memory"] == Limit(8388608, 8388608, "bytes")
    assert found["Max stack size"] == Limit(8388608, None, "bytes")
    assert found["Max nice priority"] == Limit(0, 0, None)
    assert found["Max realtime timeout"] == Limit(None, None, "us")


def test_parse_the_limits_of_this_process() -> None:
    text = Path("/proc/self/limits").read_text(encoding="ascii")
    assert {"Max locked memory", "Max open files"} <= parse_limits(text).keys()


def test_the_largest_numbers_leave_one_space() -> None:
    line = f"{'Max locked memory':<25} {2**64 - 2:<20} {2**64 - 2:<20} {'bytes':<10}"
    found = parse_limits(LIMITED.replace(MEMLOCK, line))
    assert found["Max locked memory"] == Limit(2**64 - 2, 2**64 - 2, "bytes")


BROKEN = [
    ("", "not the limits of a process: ''"),
    ("no such process\n", "not the limits of a process: 'no such process'"),
    (LIMITED.replace("8388608", "much"), r"not a limit: 'Max stack size +much"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_what_is_no_limits_file_is_quoted(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_limits(text)


SERVICES = [
    (FREE, ServiceLimits(Memlock(unlimited=True, bytes=None), 131072)),
    (BOUND, ServiceLimits(Memlock(unlimited=False, bytes=8388608), 20000)),
    # The kernel compares with the soft limit (ib_umem_get); that a process may raise it helps none that does not.
    (service(limits("65536", "unlimited")), ServiceLimits(Memlock(unlimited=False, bytes=65536), 20000)),
    (service("", rc=1), None),
]


@pytest.mark.parametrize(("call", "expected"), SERVICES)
def test_read_service_limits(call: tuple[list[str], int, str, str], expected: ServiceLimits | None) -> None:
    assert read_service_limits(FakeRunner([call])) == expected


def test_a_host_without_systemd_run_reports_nothing() -> None:
    class Bare:
        def run(self, argv, *, timeout_seconds: float = 30.0) -> Completed:  # type: ignore[no-untyped-def]
            raise CommandError(f"command not found: {argv[0]}")

    assert read_service_limits(Bare()) is None


def test_a_service_that_answers_something_else_is_an_error() -> None:
    with pytest.raises(ParseError, match="show no limit 'Max locked memory'"):
        read_service_limits(FakeRunner([service(LIMITED.splitlines()[0])]))


@pytest.mark.skipif(not os.path.isdir("/run/systemd/system"), reason="this machine has not been booted with systemd")
def test_a_real_service() -> None:
    assert read_service_limits(SubprocessRunner()) is not None


def test_the_files_say_what_is_requested_and_nothing_of_the_stack() -> None:
    texts = {file.path: file.content for file in files(LimitsRequest(memlock_unlimited=True, open_files=131072, keep_ipc=True))}
    assert (texts[host_limits.LOGIN_FILE] or "").splitlines()[1:] == [
        "* - memlock unlimited",
        "root - memlock unlimited",
        "* soft nofile 131072",
        "* hard nofile 1048576",
        "root soft nofile 131072",
        "root hard nofile 1048576",
    ]
    assert (texts[host_limits.SYSTEM_FILE] or "").splitlines()[1:] == [
        "[Manager]",
        "DefaultLimitMEMLOCK=infinity",
        "DefaultLimitNOFILE=131072:1048576",
    ]
    assert texts[host_limits.USER_FILE] == texts[host_limits.SYSTEM_FILE]
    assert (texts[host_limits.LOGIND_FILE] or "").splitlines()[1:] == ["[Login]", "RemoveIPC=no"]
    assert "stack" not in "".join(text or "" for text in texts.values()).lower()


def test_what_is_not_requested_is_in_no_file() -> None:
    assert {file.content for file in files(LimitsRequest(memlock_unlimited=False, open_files=0, keep_ipc=False))} == {None}
    (login, *_others) = files(LimitsRequest(memlock_unlimited=False, open_files=131072, keep_ipc=False))
    assert "memlock" not in "".join((login.content or "").splitlines()[1:])
