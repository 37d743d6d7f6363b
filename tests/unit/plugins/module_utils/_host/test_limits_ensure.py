# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits made to hold: what a service gets decides, not whether a file was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ensure_files
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host import limits as _logind
from ansible_collections.rdma.cluster.plugins.module_utils._host import limits as host_limits
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import LimitsRequest, parse_bool_property
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits_ensure import ensure_limits
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.limits import BOUND, FREE, REEXEC, limits, service, with_files
from tests.unit.builders.trees import write_tree

MEMLOCK_ONLY = LimitsRequest(memlock_unlimited=True, open_files=0, keep_ipc=False)
NOTHING = LimitsRequest(memlock_unlimited=False, open_files=0, keep_ipc=False)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("LOGIN_FILE", "SYSTEM_FILE", "USER_FILE", "LOGIND_FILE"):
        monkeypatch.setattr(host_limits, name, str(tmp_path) + getattr(host_limits, name))
    return tmp_path


def written(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


FILES = [
    "etc/security/limits.d/90-rdma-cluster.conf",
    "etc/systemd/system.conf.d/90-rdma-cluster.conf",
    "etc/systemd/user.conf.d/90-rdma-cluster.conf",
]


def test_first_run_writes_reexecutes_and_reads_back(root: Path) -> None:
    runner = FakeRunner([BOUND, REEXEC, FREE])
    result = ensure_limits(MEMLOCK_ONLY, runner=runner, sys=SysRoot(str(root)), check_mode=False)
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
    assert not ensure_limits(MEMLOCK_ONLY, runner=again, sys=SysRoot(str(root)), check_mode=False).changed


def test_a_run_that_died_after_the_files_is_made_good(root: Path) -> None:
    ensure_files(host_limits.files(MEMLOCK_ONLY), check_mode=False)
    runner = FakeRunner([BOUND, REEXEC, FREE])
    result = ensure_limits(MEMLOCK_ONLY, runner=runner, sys=SysRoot(str(root)), check_mode=False)
    assert (result.files, result.live) == ([], [("memlock of services", "8388608 bytes", "unlimited")])


def test_files_that_differ_alone_do_not_reexecute(root: Path) -> None:
    runner = FakeRunner([FREE])
    result = ensure_limits(MEMLOCK_ONLY, runner=runner, sys=SysRoot(str(root)), check_mode=False)
    assert (len(result.files), result.live) == (3, [])


@pytest.mark.parametrize(("call", "before"), [(BOUND, "8388608 bytes\n"), (service("", rc=1), "unknown\n")])
def test_check_mode_shows_all_and_changes_nothing(root: Path, call: tuple[list[str], int, str, str], before: str) -> None:
    runner = FakeRunner([call])
    result = ensure_limits(MEMLOCK_ONLY, runner=runner, sys=SysRoot(str(root)), check_mode=True)
    assert result.changed
    assert len(result.diffs) == 4
    assert result.diffs[-1]["before"] == before
    assert written(root) == []


def test_false_removes_the_files_and_asks_nothing(root: Path) -> None:
    ensure_files(host_limits.files(MEMLOCK_ONLY), check_mode=False)
    result = ensure_limits(NOTHING, runner=FakeRunner([]), sys=SysRoot(str(root)), check_mode=False)
    assert len(result.files) == 3
    assert written(root) == []
    assert not ensure_limits(NOTHING, runner=FakeRunner([]), sys=SysRoot(str(root)), check_mode=False).changed


def test_a_host_whose_services_cannot_be_seen_is_an_error(root: Path) -> None:
    with pytest.raises(ApplyError, match="Cannot read the limits of services: `systemd-run"):
        ensure_limits(MEMLOCK_ONLY, runner=FakeRunner([service("", rc=1)]), sys=SysRoot(str(root)), check_mode=False)


def test_a_later_drop_in_that_overrides_is_named(root: Path) -> None:
    write_tree(root, r"/etc/systemd/system.conf.d/99-site.conf: [Manager]\nDefaultLimitMEMLOCK=64M")
    with pytest.raises(ApplyError, match=r"instead of unlimited\. Line 2 of /etc/systemd/system.conf.d/99-site.conf sets 64M"):
        ensure_limits(MEMLOCK_ONLY, runner=FakeRunner([BOUND, REEXEC, BOUND]), sys=SysRoot(str(root)), check_mode=False)


def test_a_limit_that_stays_for_no_reason_in_sight_says_where_to_look(root: Path) -> None:
    with pytest.raises(
        ApplyError, match=r"unknown instead of as requested\. Look for other settings than 90-rdma-cluster.conf in `systemd-an"
    ):
        ensure_limits(MEMLOCK_ONLY, runner=FakeRunner([BOUND, REEXEC, service("", rc=1)]), sys=SysRoot(str(root)), check_mode=False)


def test_too_few_open_files_are_a_reason_as_well(root: Path) -> None:
    few = service(with_files(limits("unlimited", "unlimited"), 1024))
    runner = FakeRunner([few, REEXEC, FREE])
    request = LimitsRequest(memlock_unlimited=True, open_files=131072, keep_ipc=False)
    result = ensure_limits(request, runner=runner, sys=SysRoot(str(root)), check_mode=False)
    assert result.live == [("open files of services", "1024", "131072")]


LOGIND = "/sys/fs/cgroup/system.slice/systemd-logind.service/cgroup.procs: 412"
IPC = ["busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "RemoveIPC"]
REMOVES, KEEPS = (IPC, 0, "b true\n", ""), (IPC, 0, "b false\n", "")
RELOAD = (["systemctl", "kill", "--signal=HUP", "systemd-logind.service"], 0, "", "")
KEEP = LimitsRequest(memlock_unlimited=False, open_files=0, keep_ipc=True)


def test_logind_is_reported_and_looked_at(root: Path) -> None:
    sys = SysRoot(str(write_tree(root, LOGIND)))
    runner = FakeRunner([REMOVES, RELOAD, KEEPS])
    result = ensure_limits(KEEP, runner=runner, sys=sys, check_mode=False)
    assert ([change.path for change in result.files], result.live) == ([host_limits.LOGIND_FILE], [("RemoveIPC of logind", "yes", "no")])
    again = FakeRunner([KEEPS])
    assert not ensure_limits(KEEP, runner=again, sys=sys, check_mode=False).changed


def test_check_mode_asks_logind_and_changes_nothing(root: Path) -> None:
    runner = FakeRunner([REMOVES])
    result = ensure_limits(KEEP, runner=runner, sys=SysRoot(str(write_tree(root, LOGIND))), check_mode=True)
    assert result.live
    assert not Path(host_limits.LOGIND_FILE).exists()


def test_logind_may_take_a_moment(root: Path) -> None:
    runner = FakeRunner([REMOVES, RELOAD, REMOVES, KEEPS])
    ensure_limits(KEEP, runner=runner, sys=SysRoot(str(write_tree(root, LOGIND))), check_mode=False)
    assert runner.ran == [tuple(call[0]) for call in (REMOVES, RELOAD, REMOVES, KEEPS)]


def test_a_logind_that_goes_on_removing_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_logind, "SETTLE_SECONDS", -1.0)
    runner = FakeRunner([REMOVES, RELOAD, REMOVES])
    with pytest.raises(ApplyError, match="still has RemoveIPC=yes"):
        ensure_limits(KEEP, runner=runner, sys=SysRoot(str(write_tree(root, LOGIND))), check_mode=False)


def test_a_host_without_logind_is_not_asked(root: Path) -> None:
    result = ensure_limits(KEEP, runner=FakeRunner([]), sys=SysRoot(str(root)), check_mode=False)
    assert ([change.path for change in result.files], result.live) == ([host_limits.LOGIND_FILE], [])


@pytest.mark.parametrize("text", ["", "b", "s true", "b yes", "b true false"])
def test_what_is_no_boolean_property_is_quoted(text: str) -> None:
    with pytest.raises(ParseError, match="not a boolean property"):
        parse_bool_property(text)
