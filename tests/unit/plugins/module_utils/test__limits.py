# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Locked memory: what a service may lock decides, not whether a file was written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils import _limits
from ansible_collections.rdma.cluster.plugins.module_utils._command import Completed, SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._limits import (
    Limit,
    Memlock,
    ensure_memlock,
    overriding_drop_in,
    parse_default_memlock,
    parse_limits,
    read_service_memlock,
)
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot
from tests.unit.fakes import FakeRunner
from tests.unit.trees import write_tree

ASK = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "cat", "/proc/self/limits"]
REEXEC = (["systemctl", "daemon-reexec"], 0, "", "")
LIMITED = (Path(__file__).parents[2] / "fixtures/proc/limits-6.18.txt").read_text(encoding="utf-8")
MEMLOCK = "Max locked memory         8388608              8388608              bytes     "


def limits(soft: str, hard: str) -> str:
    return LIMITED.replace(MEMLOCK, f"Max locked memory         {soft:<20} {hard:<20} bytes     ")


def service(text: str, rc: int = 0) -> tuple[list[str], int, str, str]:
    return (ASK, rc, text, "")


BOUND = service(LIMITED)
FREE = service(limits("unlimited", "unlimited"))


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("LOGIN_FILE", "SYSTEM_FILE", "USER_FILE"):
        monkeypatch.setattr(_limits, name, str(tmp_path) + getattr(_limits, name))
    return tmp_path


def written(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


FILES = [
    "etc/security/limits.d/90-rdma-cluster.conf",
    "etc/systemd/system.conf.d/90-rdma-cluster.conf",
    "etc/systemd/user.conf.d/90-rdma-cluster.conf",
]


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
    (FREE, Memlock(unlimited=True, bytes=None)),
    (BOUND, Memlock(unlimited=False, bytes=8388608)),
    # The kernel compares with the soft limit (ib_umem_get); that a process may raise it helps none that does not.
    (service(limits("65536", "unlimited")), Memlock(unlimited=False, bytes=65536)),
    (service("", rc=1), None),
]


@pytest.mark.parametrize(("call", "expected"), SERVICES)
def test_read_service_memlock(call: tuple[list[str], int, str, str], expected: Memlock | None) -> None:
    assert read_service_memlock(FakeRunner([call])) == expected


def test_a_host_without_systemd_run_tells_nothing() -> None:
    class Bare:
        def run(self, argv, *, timeout_seconds: float = 30.0) -> Completed:  # type: ignore[no-untyped-def]
            raise CommandError(f"command not found: {argv[0]}")

    assert read_service_memlock(Bare()) is None


def test_a_service_that_answers_something_else_is_an_error() -> None:
    with pytest.raises(ParseError, match="shows no limit 'Max locked memory'"):
        read_service_memlock(FakeRunner([service(LIMITED.splitlines()[0])]))


@pytest.mark.skipif(not os.path.isdir("/run/systemd/system"), reason="this machine has not been booted with systemd")
def test_a_real_service() -> None:
    assert read_service_memlock(SubprocessRunner()) is not None


def test_first_run_writes_reexecutes_and_reads_back(root: Path) -> None:
    runner = FakeRunner([BOUND, REEXEC, FREE])
    result = ensure_memlock(runner=runner, sys=SysRoot(str(root)), check_mode=False, unlimited=True)
    runner.assert_done()
    assert result.changed
    assert written(root) == FILES
    assert (root / FILES[0]).read_text().splitlines()[1:] == ["* - memlock unlimited", "root - memlock unlimited"]
    assert (root / FILES[1]).read_text().splitlines()[1:] == ["[Manager]", "DefaultLimitMEMLOCK=infinity"]
    assert (root / FILES[2]).read_text() == (root / FILES[1]).read_text()
    assert result.diffs[-1] == {
        "before_header": "memlock of services", "after_header": "memlock of services",
        "before": "8388608 bytes\n", "after": "unlimited\n",
    }  # fmt: skip
    again = FakeRunner([FREE])
    assert not ensure_memlock(runner=again, sys=SysRoot(str(root)), check_mode=False, unlimited=True).changed
    again.assert_done()


def test_a_run_that_died_after_the_files_is_made_good(root: Path) -> None:
    _limits.ensure_files(_limits.files(), check_mode=False)
    runner = FakeRunner([BOUND, REEXEC, FREE])
    result = ensure_memlock(runner=runner, sys=SysRoot(str(root)), check_mode=False, unlimited=True)
    runner.assert_done()
    assert (result.files, result.live) == ([], "8388608 bytes")


def test_files_that_differ_alone_do_not_reexecute(root: Path) -> None:
    runner = FakeRunner([FREE])
    result = ensure_memlock(runner=runner, sys=SysRoot(str(root)), check_mode=False, unlimited=True)
    runner.assert_done()
    assert (len(result.files), result.live) == (3, None)


@pytest.mark.parametrize(("call", "before"), [(BOUND, "8388608 bytes\n"), (service("", rc=1), "unknown\n")])
def test_check_mode_shows_all_and_changes_nothing(root: Path, call: tuple[list[str], int, str, str], before: str) -> None:
    runner = FakeRunner([call])
    result = ensure_memlock(runner=runner, sys=SysRoot(str(root)), check_mode=True, unlimited=True)
    runner.assert_done()
    assert result.changed
    assert len(result.diffs) == 4
    assert result.diffs[-1]["before"] == before
    assert written(root) == []


def test_false_removes_the_files_and_asks_nothing(root: Path) -> None:
    _limits.ensure_files(_limits.files(), check_mode=False)
    result = ensure_memlock(runner=FakeRunner([]), sys=SysRoot(str(root)), check_mode=False, unlimited=False)
    assert len(result.files) == 3
    assert written(root) == []
    assert not ensure_memlock(runner=FakeRunner([]), sys=SysRoot(str(root)), check_mode=False, unlimited=False).changed


def test_a_host_whose_services_cannot_be_seen_is_an_error(root: Path) -> None:
    with pytest.raises(ApplyError, match="Cannot see what services may lock: `systemd-run"):
        ensure_memlock(runner=FakeRunner([service("", rc=1)]), sys=SysRoot(str(root)), check_mode=False, unlimited=True)


def test_a_later_drop_in_that_overrides_is_named(root: Path) -> None:
    write_tree(root, r"/etc/systemd/system.conf.d/99-site.conf: [Manager]\nDefaultLimitMEMLOCK=64M")
    with pytest.raises(ApplyError, match=r"still lock 8388608 bytes\. /etc/systemd/system.conf.d/99-site.conf comes after"):
        ensure_memlock(runner=FakeRunner([BOUND, REEXEC, BOUND]), sys=SysRoot(str(root)), check_mode=False, unlimited=True)


def test_a_limit_that_stays_for_no_reason_in_sight_says_where_to_look(root: Path) -> None:
    with pytest.raises(ApplyError, match=r"still lock unknown\. Look for what sets it with `systemd-analyze cat-config"):
        ensure_memlock(runner=FakeRunner([BOUND, REEXEC, service("", rc=1)]), sys=SysRoot(str(root)), check_mode=False, unlimited=True)


SETS = r": [Manager]\nDefaultLimitMEMLOCK=64M"
DROP_INS = [
    (f"/etc/systemd/system.conf.d/10-site.conf{SETS}", None),
    (f"/usr/lib/systemd/system.conf.d/95-vendor.conf{SETS}", "/usr/lib/systemd/system.conf.d/95-vendor.conf"),
    (f"/etc/systemd/system.conf.d/95-site.txt{SETS}", None),
    ("/etc/systemd/system.conf.d/95-site.conf: [Manager]", None),
    # Hidden by an empty file of its name in /etc.
    (f"/usr/lib/systemd/system.conf.d/95.conf{SETS}\n/etc/systemd/system.conf.d/95.conf: ", None),
    (f"/run/systemd/system.conf.d/97.conf{SETS}\n/etc/systemd/system.conf.d/95.conf{SETS}", "/run/systemd/system.conf.d/97.conf"),
]


@pytest.mark.parametrize(("tree", "expected"), DROP_INS)
def test_overriding_drop_in(tmp_path: Path, tree: str, expected: str | None) -> None:
    assert overriding_drop_in(SysRoot(str(write_tree(tmp_path, tree)))) == expected


MANAGER_CONFS = [
    ("[Manager]\nDefaultLimitMEMLOCK=64M\n", "64M"),
    ("[Manager]\n DefaultLimitMEMLOCK = 64M \nDefaultLimitMEMLOCK=8M:infinity\n", "8M:infinity"),
    ("[Manager]\n#DefaultLimitMEMLOCK=64M\n;DefaultLimitMEMLOCK=64M\nDefaultLimitNOFILE=1024\n", None),
    ("DefaultLimitMEMLOCK=64M\n[Other]\nDefaultLimitMEMLOCK=64M\n", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "expected"), MANAGER_CONFS)
def test_parse_default_memlock(text: str, expected: str | None) -> None:
    assert parse_default_memlock(text) == expected
