# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""opensm on a host: files, service and signal, and nothing where all is as planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager import ensure as subnet_manager_ensure
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager import service
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager import state as subnet_manager_state
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.ensure import ManagerHost, ManagerResult, ensure_managers
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.guard import Fleet, Losses, MasterReading
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.partitions_conf import render_partitions
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.service import Instance, drop_in, ports_file
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.state import PROPERTIES
from tests.unit.builders.fakes import Call, FakeRunner

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
    #: Of /proc and of an opensm that is not ours.
    texts: ClassVar[dict[str, str]] = {}

    def text(self, path: str) -> str | None:
        return self.texts.get(path)

    def exists(self, path: str) -> bool:
        assert path == UMAD
        return self.umad

    def value(self, path: str, parser: Callable[[str], Any]) -> Any:
        assert path == "/sys/class/infiniband/mlx5_0/ports/1/state"
        return self.state


class StubGuard:
    """Stands for _subnet_manager.guard.Guard: what the fabric says is given, and how often it was read is counted."""

    foreign: ClassVar[list[str]] = []
    lost = Losses()
    reads = 0

    def __init__(self, instance: Instance, *_given: object) -> None:
        self.instance = instance
        type(self).reads += 1

    def read_master(self) -> MasterReading:
        return MasterReading(None)

    def takeover_reasons(self, _reading: MasterReading, *, active: bool, ours: bool) -> list[str]:
        return [*self.foreign, *(["not ours"] if active and not ours else [])]

    def losses_between(self, _present: str) -> Losses:
        return self.lost

    def losses_from_tables(self, _reading: MasterReading) -> Losses:
        return self.lost


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room, names in (
        (service, ("FOLDER", "UNIT_FOLDER")),
        (subnet_manager_ensure, ("FOLDER", "UNIT_FOLDER")),
        (subnet_manager_state, ("MEMORY",)),
    ):
        for name in names:
            monkeypatch.setattr(room, name, str(tmp_path / name))
    for room in (service, subnet_manager_ensure):
        monkeypatch.setattr(room, "PORTS_FILE", str(tmp_path / "default-opensm"))
        monkeypatch.setattr(room, "keys_path", lambda plane: str(tmp_path / f"FOLDER/diags-{plane}.conf"))
    monkeypatch.setattr(subnet_manager_ensure, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(subnet_manager_ensure, "TABLE_SECONDS", 0.0)
    monkeypatch.setattr(subnet_manager_ensure, "Guard", StubGuard)
    for name, value in (("foreign", []), ("lost", Losses()), ("reads", 0)):
        monkeypatch.setattr(StubGuard, name, value)
    monkeypatch.setattr(Ports, "texts", {})


def show(unit: str, active: str = "active", enabled: str = "static", invocation: str = "i1") -> Call:
    answer = f"Id={unit}\nActiveState={active}\nUnitFileState={enabled}\nInvocationID={invocation}\nExecMainStartTimestampMonotonic=1\n"
    return (["systemctl", "show", f"--property={PROPERTIES}", unit], 0, answer, "")


def running(unit: str) -> Call:
    """With a process."""
    argv, status, answer, problems = show(unit)
    return (argv, status, f"{answer}MainPID=7\n", problems)


def ran(*words: str) -> Call:
    return (["systemctl", *words], 0, "", "")


def units(*running: str) -> Call:
    return ([*LIST, "opensm@*.service", "opensmd.service"], 0, "".join(f"{unit} loaded active running x\n" for unit in running), "")


#: Debian's unit and our drop-in.
CAT: Call = (
    ["systemctl", "cat", UNIT],
    0,
    f"# /lib/x\n[Unit]\nConditionPathExists={UMAD}\nConditionPathExists=!/x\n\n{drop_in(INSTANCE)}",
    "",
)
RELOADED = ran("daemon-reload")
SHARP = "sharp_am.service"
STARTS = [units(), show(UNIT, "inactive"), RELOADED, ran("restart", UNIT)]
QUIET = [units(UNIT), show(UNIT)]
LIMITED = replace(INSTANCE, partitions="Default=0x7fff :\n    ALL=limited ;\n")
OTHER_LMC = replace(INSTANCE, config=INSTANCE.config.replace("lmc 0", "lmc 1"))


def ensure(
    calls: list[Call],
    *instances: Instance,
    check_mode: bool = False,
    allowed: Sequence[str] = (),
    busy: Mapping[str, str] | None = None,
    state: str | None = "ACTIVE",
    umad: bool = True,
    flavor: str = "debian",
    sharp: bool = False,
    ports: Mapping[str, str] | None = None,
) -> ManagerResult:
    sys = Ports()
    sys.state, sys.umad = state, umad
    runner = FakeRunner(calls)
    host, fleet = ManagerHost(sys, runner), Fleet(ports or {}, busy or {})
    return ensure_managers(instances, flavor, host, fleet=fleet, allowed=allowed, sharp=sharp, check_mode=check_mode)


def withheld(result: ManagerResult) -> dict[str, dict[str, list[str]]]:
    return {effect: planes for effect, planes in result.withheld.items() if planes}


def set_up() -> None:
    done = ensure([*STARTS, show(UNIT)], INSTANCE)
    assert done.steps == [f"start {UNIT}"]
    assert len(done.files) == 4


def written(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_it_is_set_up_and_then_nothing_is_left_to_do(tmp_path: Path) -> None:
    set_up()
    assert StubGuard.reads == 1
    assert (tmp_path / "FOLDER/opensm-a.conf").stat().st_mode & 0o777 == 0o600
    assert f"[Unit]\nWants={UNIT}\n" in (tmp_path / "UNIT_FOLDER/multi-user.target.d/rdma-cluster-opensm.conf").read_text()
    text = (tmp_path / f"UNIT_FOLDER/{UNIT}.d/rdma-cluster.conf").read_text()
    assert f"--guid {GUID} --priority 14" in text
    assert "\nRestart=on-failure\n" in text
    assert not ensure(QUIET, INSTANCE).changed
    assert StubGuard.reads == 1


def test_a_foreign_master_keeps_it_from_being_started(tmp_path: Path) -> None:
    StubGuard.foreign = ["switch 'sw1' is the master"]
    done = ensure([units(), show(UNIT, "inactive")], INSTANCE)
    assert (done.changed, withheld(done)) == (False, {"takeover": {"a": ["switch 'sw1' is the master"]}})
    assert written(tmp_path) == []
    busy = ensure([units(), show(UNIT, "inactive")], INSTANCE, allowed=["takeover"], busy={"n3": "job process 7 (slurmstepd)"})
    assert withheld(busy)["takeover"]["a"][1] == "refused while hosts are in use: n3: job process 7 (slurmstepd)"
    assert written(tmp_path) == []
    other = ensure([units(), show(UNIT, "inactive")], INSTANCE, allowed=["restart", "partition_change", "stop"])
    assert not other.changed
    taken = ensure([*STARTS, show(UNIT)], INSTANCE, allowed=["takeover"])
    assert (taken.steps, withheld(taken)) == ([f"start {UNIT}"], {})


def test_a_foreign_master_keeps_ours_from_being_changed(tmp_path: Path) -> None:
    set_up()
    StubGuard.foreign = ["switch 'sw1' is the master"]
    before = (tmp_path / "FOLDER/partitions-a.conf").read_text()
    done = ensure(QUIET, LIMITED)
    assert (done.changed, list(withheld(done))) == (False, ["takeover"])
    assert (tmp_path / "FOLDER/partitions-a.conf").read_text() == before
    assert UNIT in (tmp_path / "UNIT_FOLDER/multi-user.target.d/rdma-cluster-opensm.conf").read_text()


def test_units_that_are_not_ours_are_reported_and_never_stopped(tmp_path: Path) -> None:
    """The one on our own port is not adopted, and the distribution's list of ports stays its admin's."""
    (tmp_path / "default-opensm").write_text("PORTS=ALL\n")
    foreign = "opensm@0x0000000000000001.service"
    done = ensure([units(foreign, UNIT), show(UNIT)], INSTANCE)
    assert (done.foreign, done.changed, withheld(done)) == ([foreign, UNIT], False, {"takeover": {"a": ["not ours"]}})
    taken = ensure([units(foreign, UNIT), show(UNIT), RELOADED, ran("restart", UNIT), show(UNIT)], INSTANCE, allowed=["takeover"])
    assert taken.steps == [f"restart {UNIT} (the files that it has read are not known)"]
    assert ensure([units(foreign, UNIT), show(UNIT)], INSTANCE).foreign == [foreign]
    assert (tmp_path / "default-opensm").read_text() == "PORTS=ALL\n"


def test_our_own_list_of_ports_says_none(tmp_path: Path) -> None:
    """An earlier version named the ports there."""
    set_up()
    (tmp_path / "default-opensm").write_text(f'# Managed by rdma.cluster: the ports that opensm runs on.\nPORTS="{GUID}"\n')
    ensure([*QUIET, RELOADED], INSTANCE)
    assert (tmp_path / "default-opensm").read_text() == ports_file().text


def test_other_partitions_that_take_nothing_are_read_at_a_signal() -> None:
    set_up()
    calls = [*QUIET, RELOADED, ran("reload", UNIT), show(UNIT)]
    assert ensure(calls, LIMITED).steps == [f"reload {UNIT}"]
    assert not ensure(QUIET, LIMITED).changed


@pytest.mark.parametrize("check_mode", [False, True])
def test_partitions_that_take_something_are_withheld_with_the_ports(tmp_path: Path, check_mode: bool) -> None:
    set_up()
    StubGuard.lost = Losses(["n3 mlx5_0: 0x7fff full → limited"], ["n3"])
    done = ensure(QUIET, LIMITED, check_mode=check_mode)
    assert (done.changed, withheld(done)) == (False, {"partition_change": {"a": ["n3 mlx5_0: 0x7fff full → limited"]}})
    assert done.losses == {"a": ["n3 mlx5_0: 0x7fff full → limited"]}
    assert "n3 mlx5_0" in done.diffs[0]["after"]
    assert (tmp_path / "FOLDER/partitions-a.conf").read_text() == INSTANCE.partitions


def test_what_else_differs_is_applied_while_partitions_are_withheld(tmp_path: Path) -> None:
    set_up()
    StubGuard.lost = Losses(["n3 mlx5_0: loses 0x0101 (full)"], ["n3"])
    both = replace(LIMITED, config=INSTANCE.config.replace("sweep_interval 10", "sweep_interval 20"))
    done = ensure([*QUIET, RELOADED, ran("reload", UNIT), show(UNIT)], both)
    assert (done.steps, list(withheld(done))) == ([f"reload {UNIT}"], ["partition_change"])
    assert (tmp_path / "FOLDER/partitions-a.conf").read_text() == INSTANCE.partitions


def test_allowed_partitions_are_refused_while_a_host_that_loses_is_in_use() -> None:
    set_up()
    StubGuard.lost = Losses(["n3 mlx5_0: loses 0x0101 (full)"], ["n3"])
    refused = ensure(QUIET, LIMITED, allowed=["partition_change"], busy={"n3": "GPU process 9 (python3)", "n4": "x"})
    assert withheld(refused)["partition_change"]["a"][-1] == "refused while hosts are in use: n3: GPU process 9 (python3)"
    calls = [*QUIET, RELOADED, ran("reload", UNIT), show(UNIT)]
    done = ensure(calls, LIMITED, allowed=["partition_change"], busy={"n4": "another host"})
    assert (done.steps, withheld(done), list(done.losses)) == ([f"reload {UNIT}"], {}, ["a"])


def test_without_present_partitions_of_ours_nothing_is_started() -> None:
    """A loss must be seen in several readings: the other host of the plane may have started its own a moment ago."""
    StubGuard.lost = Losses([], [], ["the P_Keys of n3 could not be read"])
    done = ensure([units(), show(UNIT, "inactive")], INSTANCE)
    assert (done.changed, list(withheld(done))) == (False, ["partition_change"])


def test_unknown_losses_are_refused_also_where_a_change_is_allowed(tmp_path: Path) -> None:
    set_up()
    StubGuard.lost = Losses(["n3 mlx5_0: loses 0x0101 (full)"], ["n3"], ["the P_Keys of n4 could not be read"])
    for allowed in ([], ["partition_change"]):
        done = ensure(QUIET, LIMITED, allowed=allowed)
        assert withheld(done)["partition_change"]["a"] == [
            "n3 mlx5_0: loses 0x0101 (full)",
            "the P_Keys of n4 could not be read",
            "refused, also if it is allowed: it is not known what all ports would lose",
        ]
        assert not done.changed
    assert (tmp_path / "FOLDER/partitions-a.conf").read_text() == INSTANCE.partitions


def test_a_port_of_no_known_host_may_be_one_of_a_host_that_was_not_read() -> None:
    set_up()
    StubGuard.lost = Losses(["0x9 ('x', not in the inventory): loses 0x0101 (full)"], [], outside=True)
    ports, unread = {"0x3": "n3 mlx5_0"}, {"n4": "not read in this run"}
    refused = ensure(QUIET, LIMITED, allowed=["partition_change"], busy={**unread, "n3": "x"}, ports=ports)
    assert withheld(refused)["partition_change"]["a"][-1] == "refused while hosts are in use: n4: not read in this run"
    StubGuard.lost = replace(StubGuard.lost, outside=False)
    calls = [*QUIET, RELOADED, ran("reload", UNIT), show(UNIT)]
    assert not withheld(ensure(calls, LIMITED, allowed=["partition_change"], busy=unread, ports=ports))


def test_a_limited_default_partition_stays_where_the_intent_does_not_give_it(tmp_path: Path) -> None:
    ours = Instance(**{**vars(INSTANCE), "partitions": render_partitions("a", [], "limited")})
    done = ensure([*STARTS, show(UNIT)], ours)
    assert done.changed
    left = replace(ours, partitions=render_partitions("a", [], "full"), default_given=False)
    assert not ensure(QUIET, left).changed
    assert "ALL=limited" in (tmp_path / "FOLDER/partitions-a.conf").read_text()
    given = replace(left, default_given=True)
    assert ensure([*QUIET, RELOADED, ran("reload", UNIT), show(UNIT)], given).steps == [f"reload {UNIT}"]


LEFT = replace(INSTANCE, partitions=render_partitions("a", []), default_given=False)


def test_a_limited_default_partition_of_the_fabric_stays_where_our_opensm_starts(tmp_path: Path) -> None:
    StubGuard.lost = Losses(limited=["n3 mlx5_0"])
    ensure([*STARTS, show(UNIT)], LEFT)
    assert (tmp_path / "FOLDER/partitions-a.conf").read_text() == render_partitions("a", [], "limited")
    assert not ensure(QUIET, LEFT).changed


def test_a_full_default_partition_of_the_fabric_stays_full(tmp_path: Path) -> None:
    StubGuard.lost = Losses(full=["n3 mlx5_0"])
    ensure([*STARTS, show(UNIT)], LEFT)
    assert (tmp_path / "FOLDER/partitions-a.conf").read_text() == LEFT.partitions


@pytest.mark.parametrize("allowed", [[], ["partition_change", "takeover"]])
def test_a_default_partition_that_differs_by_port_must_be_given(tmp_path: Path, allowed: list[str]) -> None:
    StubGuard.lost = Losses(limited=["n3 mlx5_0"], full=["n4 mlx5_0", "n5 mlx5_0"])
    done = ensure([units(), show(UNIT, "inactive")], LEFT, allowed=allowed)
    assert withheld(done)["partition_change"]["a"] == [
        "in the default partition (0x7fff) 1 ports (n3 mlx5_0) are limited members and 2 ports (n4 mlx5_0, n5 mlx5_0) are full ones",
        "refused, also if it is allowed: set rdma_fabric.planes.a.subnet_manager.default_membership, or define 0x7fff in rdma_partitions",
    ]
    assert written(tmp_path) == []
    given = replace(LEFT, default_given=True)
    assert ensure([*STARTS, show(UNIT)], given).steps == [f"start {UNIT}"]


PROTECTED = replace(INSTANCE, config=INSTANCE.config.replace("ff", "fe") + "m_key_protection_level 2\nqos TRUE\n", diags="m_key=fe\n")


def test_keys_and_virtual_lanes_of_a_running_fabric_stay_until_a_change_is_allowed(tmp_path: Path) -> None:
    """opensm reads the file again in any heavy sweep, so that the new values must not be in it."""
    set_up()
    reasons = {"settings_change": {"a": ["m_key changes", "m_key_protection_level absent → 2", "qos absent → TRUE"]}}
    for allowed in ([], ["restart", "takeover", "partition_change", "stop"]):
        done = ensure(QUIET, PROTECTED, allowed=allowed)
        assert (done.changed, withheld(done)) == (False, reasons)
    assert (tmp_path / "FOLDER/opensm-a.conf").read_text() == INSTANCE.config
    assert not (tmp_path / "FOLDER/diags-a.conf").exists()
    busy = ensure(QUIET, PROTECTED, allowed=["settings_change"], busy={"n3": "GPU process 9 (python3)"})
    assert withheld(busy)["settings_change"]["a"][-1] == "refused while hosts are in use: n3: GPU process 9 (python3)"
    done = ensure([*QUIET, RELOADED, ran("reload", UNIT), show(UNIT)], PROTECTED, allowed=["settings_change"])
    assert (done.steps, withheld(done)) == ([f"reload {UNIT}"], {})
    assert (tmp_path / "FOLDER/opensm-a.conf").read_text() == PROTECTED.config


def test_what_touches_no_port_is_applied_while_keys_are_withheld(tmp_path: Path) -> None:
    set_up()
    both = replace(PROTECTED, config=PROTECTED.config.replace("sweep_interval 10", "sweep_interval 20"))
    done = ensure([*QUIET, RELOADED, ran("reload", UNIT), show(UNIT)], both)
    assert (done.steps, list(withheld(done))) == ([f"reload {UNIT}"], ["settings_change"])
    assert (tmp_path / "FOLDER/opensm-a.conf").read_text() == INSTANCE.config.replace("sweep_interval 10", "sweep_interval 20")


RHEL = "opensm.service"
RHEL_UNITS: Call = ([*LIST, "opensm@*.service", RHEL, "opensmd.service"], 0, f"{RHEL} loaded active running x\n", "")
OTHER_GUID = "0x0002c9030002fb06"


@pytest.mark.parametrize(
    ("texts", "port"),
    [
        ({"/proc/7/cmdline": f"/usr/sbin/opensm\0-g\0{OTHER_GUID}"}, f"on port {OTHER_GUID}"),
        (
            {"/proc/7/cmdline": "/usr/sbin/opensm\0--config=/x", "/x": f"guid {OTHER_GUID}\n", "/etc/opensm/opensm.conf": f"guid {GUID}\n"},
            f"on port {OTHER_GUID}",
        ),
        (
            {"/proc/7/cmdline": "/usr/sbin/opensm", "/etc/opensm/opensm.conf": "guid 0x0000000000000000\n"},
            "on a port that its command line",
        ),
        ({"/proc/7/cmdline": f"/usr/bin/bash\0/usr/libexec/opensm-launch\0-g\0{GUID}"}, "on a port that its command line"),
        ({}, "on a port that its command line"),
    ],
    ids=["argv", "config", "first-port", "launcher", "unreadable"],
)
def test_the_single_unit_is_not_taken_from_the_manager_of_another_plane(tmp_path: Path, texts: dict[str, str], port: str) -> None:
    """An allowed takeover of plane a would end it."""
    Ports.texts = texts
    for allowed in ([], ["takeover", "restart"]):
        done = ensure([RHEL_UNITS, running(RHEL)], INSTANCE, allowed=allowed, flavor="rhel")
        first, last = withheld(done)["takeover"]["a"]
        assert first.startswith(f"opensm.service runs an opensm that this role did not configure, {port}")
        assert last.startswith("refused, also if it is allowed: a takeover of plane a would stop it")
        assert (done.changed, written(tmp_path)) == (False, [])


def test_the_single_unit_on_our_own_port_is_taken_over_where_that_is_allowed() -> None:
    Ports.texts = {"/proc/7/cmdline": f"/usr/sbin/opensm\0--guid\0{GUID}"}
    assert withheld(ensure([RHEL_UNITS, running(RHEL)], INSTANCE, flavor="rhel"))["takeover"] == {"a": ["not ours"]}
    calls = [RHEL_UNITS, running(RHEL), RELOADED, show(RHEL, enabled="enabled"), ran("restart", RHEL), show(RHEL)]
    assert ensure(calls, INSTANCE, allowed=["takeover"], flavor="rhel").steps[0].startswith(f"restart {RHEL}")


def test_sharp_am_is_stopped_only_where_this_role_enabled_it_and_a_stop_is_allowed(tmp_path: Path) -> None:
    mark = tmp_path / "FOLDER/opensm-sharp_am"
    off, runs = show(SHARP, "inactive", "disabled"), show(SHARP, enabled="enabled")
    calls = [*STARTS, show(UNIT), off, off, ran("enable", "--now", SHARP)]
    assert ensure(calls, INSTANCE, sharp=True).steps[-1] == f"enable {SHARP}"
    assert mark.exists()
    assert not ensure([*QUIET, runs, runs], INSTANCE, sharp=True).changed
    # The unit of opensm does not run, so that it is cleared without leave. sharp_am runs.
    done = ensure([units(), show(UNIT, "inactive"), RELOADED, runs])
    assert withheld(done)["stop"]["a"] == [
        "sharp_am.service was enabled by this role, and rdma_fabric no longer gives plane a to this host"
    ]
    assert mark.exists()
    assert withheld(ensure([units(), runs]))["stop"] != {}
    gone = ensure([units(), runs, runs, ran("disable", "--now", SHARP)], allowed=["stop"])
    assert gone.steps == [f"disable {SHARP}"]
    assert not mark.exists()


def test_sharp_am_of_the_host_s_admin_is_left_alone(tmp_path: Path) -> None:
    """It was enabled before this role came."""
    runs = show(SHARP, enabled="enabled")
    ensure([*STARTS, show(UNIT), runs, runs], INSTANCE, sharp=True)
    assert not (tmp_path / "FOLDER/opensm-sharp_am").exists()
    gone = ensure([*QUIET, ran("stop", UNIT), RELOADED], allowed=["stop"])
    assert gone.steps == [f"stop {UNIT}"]


def test_a_restart_must_be_allowed_and_is_not_forgotten() -> None:
    set_up()
    first = ensure([*QUIET, RELOADED], OTHER_LMC)
    assert (first.steps, withheld(first)) == ([], {"restart": {"a": ["lmc 0 → 1"]}})
    second = ensure(QUIET, OTHER_LMC)
    assert (second.changed, list(second.withheld["restart"])) == (False, ["a"])
    refused = ensure(QUIET, OTHER_LMC, allowed=["restart"], busy={"n9": "job process 7 (slurmstepd)"})
    assert "refused while hosts are in use: n9: job process 7 (slurmstepd)" in refused.withheld["restart"]["a"]
    third = ensure([*QUIET, ran("restart", UNIT), show(UNIT, invocation="i2")], OTHER_LMC, allowed=["restart"])
    assert third.steps == [f"restart {UNIT} (opensm.conf is another than it has read)"]
    assert not withheld(ensure([units(UNIT), show(UNIT, invocation="i2")], OTHER_LMC))


def test_check_mode_says_all_and_touches_nothing(tmp_path: Path) -> None:
    done = ensure([units("opensm@0x1.service"), show(UNIT, "inactive")], INSTANCE, check_mode=True)
    assert (done.steps, done.foreign) == ([f"start {UNIT}"], ["opensm@0x1.service"])
    assert list(tmp_path.iterdir()) == []


def test_keys_are_not_in_the_diff_and_only_root_reads_them(tmp_path: Path) -> None:
    secret = replace(INSTANCE, diags="m_key=0x00000000000000ff\n")
    done = ensure([units(), show(UNIT, "inactive")], secret, check_mode=True)
    shown = "".join(text for diff in done.diffs for text in diff.values())
    assert "lmc 0" in shown
    assert "00ff" not in shown
    ensure([*STARTS, show(UNIT)], secret)
    assert (tmp_path / "FOLDER/diags-a.conf").stat().st_mode & 0o777 == 0o600
    ensure([*QUIET, RELOADED], INSTANCE)
    assert not (tmp_path / "FOLDER/diags-a.conf").exists()


def test_the_tools_have_the_keys_before_a_protected_fabric_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where our opensm is new to the plane, as on its second host."""
    secret, keys = replace(INSTANCE, diags="m_key=ff\n"), tmp_path / "FOLDER/diags-a.conf"
    seen: list[bool] = []

    def read_master(_self: StubGuard) -> MasterReading:
        seen.append(keys.exists())
        return MasterReading(None)

    monkeypatch.setattr(StubGuard, "read_master", read_master)
    ensure([units(), show(UNIT, "inactive")], secret, check_mode=True)
    assert (seen, keys.exists()) == ([False], False)
    done = ensure([*STARTS, show(UNIT)], secret)
    assert seen == [False, True]
    assert [Path(file.path).name for file in done.files].count("diags-a.conf") == 1


def test_a_port_that_does_not_come_up_is_an_error() -> None:
    with pytest.raises(ApplyError, match=r"its port mlx5_0/1 is INIT: see /var/log/opensm.0x0002c9030002fb05.log"):
        ensure([*STARTS, show(UNIT)], INSTANCE, state="INIT")


def test_one_that_dies_is_an_error() -> None:
    with pytest.raises(ApplyError, match=r"does not run any more"):
        ensure([*STARTS, show(UNIT, "failed"), CAT], INSTANCE)


@pytest.mark.parametrize("state", ["INIT", "ACTIVE"])
def test_one_that_its_condition_keeps_from_starting_is_reported_at_once(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """systemctl calls it a success. The port may be active by another manager."""
    monkeypatch.setattr(subnet_manager_ensure, "SETTLE_SECONDS", 60.0)
    with pytest.raises(ApplyError, match=rf"its condition ConditionPathExists={UMAD} is not met\. .*`modprobe ib_umad`"):
        ensure([*STARTS, show(UNIT, "inactive"), CAT], INSTANCE, state=state, umad=False)


def test_one_that_is_about_to_start_again_is_waited_for() -> None:
    with pytest.raises(ApplyError, match="after 0 s its port"):
        ensure([*STARTS, show(UNIT, "activating")], INSTANCE, state="INIT")


def test_a_host_that_runs_none_any_more_keeps_its_own_until_a_stop_is_allowed(tmp_path: Path) -> None:
    set_up()
    there = written(tmp_path)
    done = ensure(QUIET)
    assert (done.changed, list(withheld(done)), list(done.withheld["stop"])) == (False, ["stop"], ["a"])
    assert withheld(ensure(QUIET, allowed=["stop"], busy={"n1": "x"}))["stop"]["a"][-1] == "refused while hosts are in use: n1: x"
    assert written(tmp_path) == there
    gone = ensure([*QUIET, ran("stop", UNIT), RELOADED], allowed=["stop"])
    assert gone.steps == [f"stop {UNIT}"]
    assert all(file.after is None for file in gone.files)
    assert written(tmp_path / "FOLDER") == written(tmp_path / "UNIT_FOLDER") == []


def test_one_that_does_not_run_is_cleared_without_leave(tmp_path: Path) -> None:
    set_up()
    done = ensure([units(), show(UNIT, "inactive"), RELOADED])
    assert (done.steps, withheld(done)) == ([], {})
    assert written(tmp_path / "FOLDER") == written(tmp_path / "UNIT_FOLDER") == []


def test_a_distribution_s_single_service_gets_our_command() -> None:
    assert INSTANCE.unit("rhel") == "opensm.service"
    assert INSTANCE.unit("ofed") == "opensmd.service"
    assert "\nExecStart=\nExecStart=/usr/sbin/opensm --config " in drop_in(INSTANCE)
