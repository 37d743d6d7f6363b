# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RoCE profile on a host's NICs, now and at boot: installed, fixed, reported, and removed, with stand-ins of dcb and systemd."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base import boot_service
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._qos import service
from ansible_collections.rdma.cluster.plugins.module_utils._qos.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.module_utils._qos.service import QosResult, ensure_service, service_files
from tests.unit.builders.qos_hosts import profile
from tests.unit.builders.qos_nic import ALL, NAME, OTHER, qos_host
from tests.unit.builders.qos_service_host import QosMachine
from tests.unit.builders.trees import write_tree

NIC, SECOND = {"pci": "0000:3d:00.0"}, {"mac": "a0:88:c2:00:00:01"}
UNIT, OTHER_UNIT = f"rdma-qos@{NAME}.service", f"rdma-qos@{OTHER}.service"
OF_OTHER = [name for name in ALL if name != "np cnp_dscp"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own = {"config": f"{tmp_path}{service.BOOT.config}", "program": f"{tmp_path}{service.BOOT.program}"}
    monkeypatch.setattr(service, "BOOT", replace(service.BOOT, **own))
    monkeypatch.setattr(boot_service, "UNITS", f"{tmp_path}{boot_service.UNITS}")
    return tmp_path


def ensure(machine: QosMachine, *nics: dict[str, str], roce: dict[str, Any] | None = None, **options: bool) -> QosResult:
    """What the module does, on a host that is as it was left. roce: rdma_roce."""
    host = qos_host(machine.root, machine, "") if (machine.root / "sys/kernel/debug").exists() else qos_host(machine.root, machine)
    return ensure_service(
        profile(**roce or {}), nics, host, **{"check_mode": False, "change_allowed": True, "toggle_allowed": True, **options}
    )


def remove(machine: QosMachine, *, check_mode: bool = False) -> QosResult:
    return ensure_service(None, [], qos_host(machine.root, machine, ""), check_mode=check_mode, change_allowed=True, toggle_allowed=False)


def headers(result: QosResult) -> list[str]:
    return [diff["after_header"].rpartition("/")[2] for diff in result.diffs]


def test_the_first_run_sets_the_nics_and_installs_a_unit_for_each_and_the_second_does_nothing(root: Path) -> None:
    machine = QosMachine(root)
    result = ensure(machine, NIC, SECOND)
    assert result.written == {NAME: ALL, OTHER: OF_OTHER}
    reload, *units = machine.did
    assert (reload, units) == ("daemon-reload", [f"enable {UNIT}", f"restart {UNIT}", f"enable {OTHER_UNIT}", f"restart {OTHER_UNIT}"])
    plan = parse_plan((root / "etc/rdma-cluster/roce.json").read_text())
    assert (plan.profile, plan.nics) == (profile(), [NIC, SECOND])
    machine.did.clear()
    again = ensure(machine, NIC, SECOND)
    assert (again.changed, again.diffs, machine.did) == (False, [], [])


def test_each_setting_has_a_diff_of_its_own_and_each_file_one(root: Path) -> None:
    result = ensure(QosMachine(root), NIC, SECOND, check_mode=True)
    shown = [*(f"{name} of {NAME}" for name in ALL), *(f"{name} of {OTHER}" for name in OF_OTHER)]
    assert headers(result) == ["roce.json", "roce_qos.pyz", "rdma-qos@.service", UNIT, OTHER_UNIT, *shown]
    (pfc,) = [diff for diff in result.diffs if diff["after_header"] == f"pfc of {NAME}"]
    assert (pfc["before"], pfc["after"]) == ("0,0,0,0,0,0,0,0\n", "0,0,0,1,0,0,0,0\n")


def test_check_mode_writes_and_runs_nothing(root: Path) -> None:
    machine = QosMachine(root)
    assert ensure(machine, NIC, check_mode=True).changed
    assert (machine.did, machine.sets, (root / "etc/rdma-cluster").exists(), (root / "usr").exists()) == ([], [], False, False)


def test_another_profile_runs_each_unit_again_with_its_new_file(root: Path) -> None:
    machine = QosMachine(root)
    ensure(machine, NIC, SECOND)
    machine.did.clear()
    result = ensure(machine, NIC, SECOND, roce={"dscp": 24})
    assert [change.path.rpartition("/")[2] for change in result.files] == ["roce.json"]
    assert machine.did == [f"restart {UNIT}", f"restart {OTHER_UNIT}"]


def test_a_setting_that_was_changed_is_fixed_without_touching_the_units(root: Path) -> None:
    machine = QosMachine(root)
    ensure(machine, NIC, SECOND)
    machine.did.clear()
    machine.nics[OTHER].pfc = [True] * 8
    result = ensure(machine, NIC, SECOND)
    assert (headers(result), machine.did) == ([f"pfc of {OTHER}"], [])


def test_a_unit_that_was_disabled_is_enabled(root: Path) -> None:
    machine = QosMachine(root)
    ensure(machine, NIC)
    machine.run(("systemctl", "disable", "--now", UNIT))
    machine.did.clear()
    assert headers(ensure(machine, NIC)) == [UNIT]
    assert machine.did == [f"enable {UNIT}", f"restart {UNIT}"]


def test_what_takes_a_link_down_is_withheld_and_reported(root: Path) -> None:
    machine = QosMachine(root)
    result = ensure(machine, NIC, toggle_allowed=False)
    rest = [name for name in ALL if name != "pfc"]
    assert (result.withheld, result.waits, result.written) == ({NAME: ["pfc"]}, {NAME: rest}, {})
    assert f"pfc of {NAME}" not in headers(result)
    # The unit would take the link down, so it is enabled for the next boot and not started.
    assert machine.did == ["daemon-reload", f"enable {UNIT}"]
    assert not ensure(machine, NIC, toggle_allowed=False).changed
    assert ensure(machine, NIC, toggle_allowed=True).written == {NAME: ALL}
    assert machine.did[-1] == f"restart {UNIT}"


def test_on_a_host_in_use_no_unit_is_started_for_settings_that_wait(root: Path) -> None:
    machine = QosMachine(root)
    ensure(machine, NIC)
    machine.did.clear()
    result = ensure(machine, NIC, roce={"dscp": 24}, change_allowed=False)
    assert (result.waits, result.withheld, result.written) == ({NAME: ["dscp 24", "rdma_cm"]}, {}, {})
    assert machine.did == []
    shown = ensure(machine, NIC, roce={"dscp": 24}, change_allowed=False, check_mode=True)
    assert (shown.waits, shown.written) == (result.waits, result.waits)


def test_a_nic_that_fails_does_not_keep_the_others_from_it(root: Path) -> None:
    machine = QosMachine(root, refuses=f"pfc {NAME}")
    with pytest.raises(ApplyError, match=rf"^`dcb pfc set dev {NAME} [^;]*` failed: Attribute write: Operation not permitted$"):
        ensure(machine, NIC, SECOND)
    assert machine.nics[OTHER].pfc[3]
    # At a boot it is tried again; now the unit would fail as we did.
    assert machine.did[1:] == [f"enable {UNIT}", f"enable {OTHER_UNIT}", f"restart {OTHER_UNIT}"]


def test_a_file_of_the_kernel_that_refuses_is_that_nic_s_failure(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = QosMachine(root)
    host = qos_host(root, machine)

    def refuse(path: str, text: str) -> None:
        raise PermissionError(1, "Operation not permitted", path)

    monkeypatch.setattr(host.configfs, "write", refuse)
    with pytest.raises(ApplyError, match=r"np_cnp_dscp.*; .*default_roce_tos does not take '106': Operation not permitted"):
        ensure_service(profile(), [NIC, SECOND], host, check_mode=False, change_allowed=True, toggle_allowed=True)


def test_all_units_that_fail_are_reported(root: Path) -> None:
    machine = QosMachine(root, broken=[UNIT, OTHER_UNIT])
    with pytest.raises(ApplyError, match=rf"Job for {UNIT} failed.*; .*Job for {OTHER_UNIT} failed"):
        ensure(machine, NIC, SECOND)


def test_a_nic_that_is_not_there_is_reported_and_the_others_are_done(root: Path) -> None:
    machine = QosMachine(root)
    result = ensure(machine, NIC, {"pci": "0000:99:00.0"})
    assert (result.ports.missing, result.written) == (["0000:99:00.0"], {NAME: ALL})


def test_an_interface_without_its_device_is_reported(root: Path) -> None:
    host = qos_host(root, QosMachine(root))
    (root / "sys/class/infiniband/mlx5_1").unlink()
    result = ensure_service(profile(), [NIC, SECOND], host, check_mode=False, change_allowed=True, toggle_allowed=True)
    assert (result.ports.waiting, list(result.written)) == ([OTHER], [NAME])


def test_the_unit_of_a_rail_that_is_gone_is_disabled_and_its_nic_left(root: Path) -> None:
    machine = QosMachine(root)
    ensure(machine, NIC, SECOND)
    machine.did.clear()
    expected = ["roce.json", OTHER_UNIT]
    assert headers(ensure(machine, NIC, check_mode=True)) == expected
    assert machine.did == []
    assert headers(ensure(machine, NIC)) == expected
    assert machine.did == [f"disable --now {OTHER_UNIT}", f"restart {UNIT}"]
    assert machine.nics[OTHER].pfc[3]
    assert not ensure(machine, NIC).changed


def test_while_a_nic_is_missing_no_unit_is_taken_for_one_of_nobody(root: Path) -> None:
    machine = QosMachine(root)
    ensure(machine, NIC, SECOND)
    machine.did.clear()
    ensure(machine, NIC, {"mac": "a0:88:c2:00:00:99"})
    assert machine.did == [f"restart {UNIT}"]


def test_without_a_profile_all_of_ours_goes_once_and_the_nics_are_left(root: Path) -> None:
    machine = QosMachine(root)
    ensure(machine, NIC, SECOND)
    machine.did.clear()
    sets = list(machine.sets)
    reported = remove(machine, check_mode=True)
    assert (reported.removed, machine.did, (root / "etc/rdma-cluster/roce.json").exists()) == (True, [], True)
    assert headers(reported) == ["roce.json", "roce_qos.pyz", "rdma-qos@.service", UNIT, OTHER_UNIT]
    assert {diff["after"] for diff in reported.diffs} == {""}
    assert headers(remove(machine)) == headers(reported)
    assert machine.did == [f"disable --now {UNIT}", f"disable --now {OTHER_UNIT}", "daemon-reload"]
    assert not any((root / path).exists() for path in ("etc/rdma-cluster/roce.json", "usr/local/lib/rdma-cluster/roce_qos.pyz"))
    assert (machine.sets, machine.active) == (sets, set())
    again = remove(machine)
    assert (again.changed, again.removed, again.diffs) == (False, False, [])


def test_the_unit_runs_what_is_installed() -> None:
    config, program, unit = service_files(profile(), [NIC])
    assert isinstance(unit.content, str)
    assert f"ExecStart=/usr/bin/python3 {program.path} %I\n" in unit.content
    assert (config.path, unit.path, program.mode) == ("/etc/rdma-cluster/roce.json", "/etc/systemd/system/rdma-qos@.service", 0o755)


def test_the_tree_of_a_lab_machine_has_none(tmp_path: Path) -> None:
    write_tree(tmp_path, "/etc/systemd/system/multi-user.target.wants/rdma-pcie.service: x")
    assert not remove(QosMachine(tmp_path), check_mode=True).services
