# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""opensm on a host: files, service and signal, and nothing where all is as it shall be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils import _opensm_ensure, _opensm_service, _opensm_state
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._opensm_ensure import ManagerHost, ManagerResult, ensure_managers
from ansible_collections.rdma.cluster.plugins.module_utils._opensm_service import Instance, drop_in
from ansible_collections.rdma.cluster.plugins.module_utils._opensm_state import PROPERTIES
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot
from tests.unit.fakes import Call, FakeRunner

GUID = "0x0002c9030002fb05"
UMAD = "/sys/class/infiniband_mad/abi_version"
UNIT = f"opensm@{GUID}.service"
INSTANCE = Instance(
    "a", GUID, "mlx5_0", "1", 14, "lmc 0\nsweep_interval 10\nm_key 0x00000000000000ff\n", "Default=0x7fff :\n    ALL=full ;\n"
)
LIST = ["systemctl", "list-units", "--plain", "--no-legend", "--state=active"]


class Ports(SysRoot):
    """The running system, but for one port."""

    state: str | None = "ACTIVE"
    umad = True

    def exists(self, path: str) -> bool:
        assert path == UMAD
        return self.umad

    def value(self, path: str, parser: Callable[[str], Any]) -> Any:
        assert path == "/sys/class/infiniband/mlx5_0/ports/1/state"
        return self.state


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room, names in (
        (_opensm_service, ("FOLDER", "UNIT_FOLDER")),
        (_opensm_ensure, ("FOLDER", "UNIT_FOLDER")),
        (_opensm_state, ("MEMORY",)),
    ):
        for name in names:
            monkeypatch.setattr(room, name, str(tmp_path / name))
    monkeypatch.setattr(_opensm_service, "PORTS_FILE", str(tmp_path / "default-opensm"))
    monkeypatch.setattr(_opensm_ensure, "SETTLE_SECONDS", 0.0)


def show(unit: str, active: str = "active", enabled: str = "static", invocation: str = "i1") -> Call:
    said = f"Id={unit}\nActiveState={active}\nUnitFileState={enabled}\nInvocationID={invocation}\nExecMainStartTimestampMonotonic=1\n"
    return (["systemctl", "show", f"--property={PROPERTIES}", unit], 0, said, "")


def ran(*words: str) -> Call:
    return (["systemctl", *words], 0, "", "")


def units(pattern: str = "opensm@*.service", *running: str) -> Call:
    return ([*LIST, pattern], 0, "".join(f"{unit} loaded active running x\n" for unit in running), "")


#: Debian's unit and our drop-in.
CAT: Call = (
    ["systemctl", "cat", UNIT],
    0,
    f"# /lib/x\n[Unit]\nConditionPathExists={UMAD}\nConditionPathExists=!/x\n\n{drop_in(INSTANCE)}",
    "",
)
ENABLED = show("opensm.service", "active", "enabled")


def ensure(
    calls: list[Call],
    *instances: Instance,
    check_mode: bool = False,
    allowed: bool = False,
    state: str | None = "ACTIVE",
    umad: bool = True,
) -> ManagerResult:
    sys = Ports()
    sys.state, sys.umad = state, umad
    sharp = [] if instances else [show("sharp_am.service", "inactive", "")]
    runner = FakeRunner([*calls, *sharp])
    done = ensure_managers(instances, "debian", ManagerHost(sys, runner), sharp=False, restart_allowed=allowed, check_mode=check_mode)
    runner.assert_done()
    return done


def set_up() -> None:
    steps = [
        show(UNIT, "inactive"),
        ran("daemon-reload"),
        units("opensm@*.service", "opensm@0x1.service"),
        ran("stop", "opensm@0x1.service"),
    ]
    done = ensure(
        [*steps, show("opensm.service", "active", "disabled"), ran("enable", "opensm.service"), ran("restart", UNIT), show(UNIT)], INSTANCE
    )
    assert done.steps == ["stop opensm@0x1.service", "enable opensm.service", f"start {UNIT}"]
    assert len(done.files) == 5


QUIET = [show(UNIT), units("opensm@*.service", UNIT), ENABLED]


def test_it_is_set_up_and_then_nothing_is_left_to_do(tmp_path: Path) -> None:
    set_up()
    assert f'PORTS="{GUID}"' in (tmp_path / "default-opensm").read_text()
    assert (tmp_path / "FOLDER/opensm-a.conf").stat().st_mode & 0o777 == 0o600
    assert "[Unit]\nWants=opensm.service\n" in (tmp_path / "UNIT_FOLDER/multi-user.target.d/rdma-cluster-opensm.conf").read_text()
    text = (tmp_path / f"UNIT_FOLDER/{UNIT}.d/rdma-cluster.conf").read_text()
    assert f"--guid {GUID} --priority 14" in text
    assert "\nRestart=on-failure\n" in text
    assert not ensure(QUIET, INSTANCE).changed


def test_other_partitions_are_told_by_a_signal() -> None:
    set_up()
    other = Instance(**{**vars(INSTANCE), "partitions": "Default=0x7fff :\n    ALL=limited ;\n"})
    calls = [show(UNIT), ran("daemon-reload"), units("opensm@*.service", UNIT), ENABLED, ran("reload", UNIT), show(UNIT)]
    assert ensure(calls, other).steps == [f"reload {UNIT}"]
    assert not ensure(QUIET, other).changed


def test_a_new_start_waits_for_leave_and_is_not_forgotten() -> None:
    set_up()
    other = Instance(**{**vars(INSTANCE), "config": INSTANCE.config.replace("lmc 0", "lmc 1")})
    first = ensure([show(UNIT), ran("daemon-reload"), units("opensm@*.service", UNIT), ENABLED], other)
    assert (first.steps, first.withheld) == ([], {"a": ["lmc 0 → 1"]})
    second = ensure(QUIET, other)
    assert (second.changed, list(second.withheld)) == (False, ["a"])
    third = ensure([*QUIET, ran("restart", UNIT), show(UNIT, invocation="i2")], other, allowed=True)
    assert third.steps == [f"restart {UNIT} (opensm.conf is another than it has read)"]
    assert not ensure([show(UNIT, invocation="i2"), *QUIET[1:]], other).withheld


def test_check_mode_says_all_and_touches_nothing(tmp_path: Path) -> None:
    calls = [show(UNIT, "inactive"), units("opensm@*.service", "opensm@0x1.service"), show("opensm.service", "inactive", "disabled")]
    done = ensure(calls, INSTANCE, check_mode=True)
    assert done.steps == ["stop opensm@0x1.service", "enable opensm.service", f"start {UNIT}"]
    assert list(tmp_path.iterdir()) == []


def test_keys_are_not_in_the_diff() -> None:
    done = ensure([show(UNIT, "inactive"), units(), show("opensm.service", "inactive", "disabled")], INSTANCE, check_mode=True)
    shown = "".join(text for diff in done.diffs for text in diff.values())
    assert "lmc 0" in shown
    assert "00ff" not in shown


def test_a_port_that_does_not_come_up_is_an_error() -> None:
    calls = [show(UNIT, "inactive"), ran("daemon-reload"), units(), ENABLED, ran("restart", UNIT), show(UNIT)]
    with pytest.raises(ApplyError, match=r"its port mlx5_0/1 is INIT: see /var/log/opensm.0x0002c9030002fb05.log"):
        ensure(calls, INSTANCE, state="INIT")


def test_one_that_dies_is_an_error() -> None:
    calls = [show(UNIT, "inactive"), ran("daemon-reload"), units(), ENABLED, ran("restart", UNIT), show(UNIT, "failed"), CAT]
    with pytest.raises(ApplyError, match=r"does not run any more"):
        ensure(calls, INSTANCE)


@pytest.mark.parametrize("state", ["INIT", "ACTIVE"])
def test_one_that_its_condition_keeps_from_starting_is_told_at_once(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """systemctl calls it a success. The port may be active by another manager."""
    monkeypatch.setattr(_opensm_ensure, "SETTLE_SECONDS", 60.0)
    calls = [show(UNIT, "inactive"), ran("daemon-reload"), units(), ENABLED, ran("restart", UNIT), show(UNIT, "inactive"), CAT]
    with pytest.raises(ApplyError, match=rf"its condition ConditionPathExists={UMAD} is not met\. .*`modprobe ib_umad`"):
        ensure(calls, INSTANCE, state=state, umad=False)


def test_one_that_is_about_to_start_again_is_waited_for() -> None:
    calls = [show(UNIT, "inactive"), ran("daemon-reload"), units(), ENABLED, ran("restart", UNIT), show(UNIT, "activating")]
    with pytest.raises(ApplyError, match="after 0 s its port"):
        ensure(calls, INSTANCE, state="INIT")


def test_a_host_that_runs_none_any_more_is_cleared(tmp_path: Path) -> None:
    set_up()
    calls = [ran("daemon-reload"), units("opensm@*.service", UNIT), ran("stop", UNIT), ENABLED, ran("disable", "opensm.service")]
    done = ensure(calls)
    assert sorted(file.after is None for file in done.files) == [False, True, True, True, True]
    assert 'PORTS="NONE"' in (tmp_path / "default-opensm").read_text()
    assert not list((tmp_path / "FOLDER").iterdir())


def test_a_distribution_s_single_service_gets_our_command() -> None:
    assert INSTANCE.unit("rhel") == "opensm.service"
    assert INSTANCE.unit("ofed") == "opensmd.service"
    assert "\nExecStart=\nExecStart=/usr/sbin/opensm --config " in drop_in(INSTANCE)
