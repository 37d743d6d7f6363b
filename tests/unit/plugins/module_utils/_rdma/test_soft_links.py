# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Soft-RoCE service: its files, and when it runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base import boot_service
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import host_program
from ansible_collections.rdma.cluster.plugins.module_utils._rdma import soft_links, soft_links_runner
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.soft_links import UNIT, ensure_soft_links
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.trees import write_tree

LINK = {"name": "rxe_rail0", "type": "rxe", "nic": {"pci": "0000:21:00.0"}}
SHOW = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", UNIT]
NEW = (SHOW, 0, f"Id={UNIT}\nActiveState=inactive\nUnitFileState=\n", "")
RUNNING = (SHOW, 0, f"Id={UNIT}\nActiveState=active\nUnitFileState=enabled\n", "")


def systemctl(*words: str, rc: int = 0, stderr: str = "") -> tuple[list[str], int, str, str]:
    return (["systemctl", *words], rc, "", stderr)


@pytest.fixture(autouse=True)
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own = {"config": str(tmp_path / "links.json"), "program": str(tmp_path / "soft_links.pyz")}
    monkeypatch.setattr(soft_links, "BOOT", replace(soft_links.BOOT, **own))
    monkeypatch.setattr(boot_service, "UNITS", str(tmp_path))
    return tmp_path


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Whether the links are as planned, look by look."""
    looks: dict[str, Any] = {"right": [False, True]}
    monkeypatch.setattr(soft_links_runner, "is_right", lambda link: looks["right"].pop(0))
    return looks


def test_first_run_installs_enables_and_runs_the_service(paths: Path, state: dict[str, Any]) -> None:
    runner = FakeRunner([NEW, systemctl("enable", UNIT), systemctl("restart", UNIT)])
    result = ensure_soft_links([LINK], runner=runner, check_mode=False)
    assert result.created == ["rxe_rail0"]
    assert [(diff["after_header"], diff["after"]) for diff in result.diffs[-2:]] == [
        (UNIT, "enabled\nstarted\n"),
        ("Soft-RoCE devices", "rxe_rail0\n"),
    ]
    assert json.loads((paths / "links.json").read_text()) == [LINK]
    assert (paths / "soft_links.pyz").read_bytes() == host_program("_rdma.soft_links_runner")
    state["right"] = [True, True]
    again = FakeRunner([RUNNING])
    assert not ensure_soft_links([LINK], runner=again, check_mode=False).changed


def test_a_deleted_link_runs_the_service_again(state: dict[str, Any]) -> None:
    ensure_soft_links(
        [LINK],
        runner=FakeRunner([NEW, systemctl("enable", UNIT), systemctl("restart", UNIT)]),
        check_mode=False,
    )
    state["right"] = [False, True]
    runner = FakeRunner([RUNNING, systemctl("restart", UNIT)])
    assert ensure_soft_links([LINK], runner=runner, check_mode=False).created == ["rxe_rail0"]


def test_a_changed_unit_that_is_enabled_is_reloaded(paths: Path, state: dict[str, Any]) -> None:
    state["right"] = [True, True]
    runner = FakeRunner([RUNNING, systemctl("daemon-reload")])
    assert ensure_soft_links([LINK], runner=runner, check_mode=False).changed


def test_check_mode_writes_and_runs_nothing(paths: Path, state: dict[str, Any]) -> None:
    runner = FakeRunner([NEW])
    assert ensure_soft_links([LINK], runner=runner, check_mode=True).changed
    assert list(paths.iterdir()) == []


def test_a_service_that_fails_is_quoted(state: dict[str, Any]) -> None:
    failed = systemctl("restart", UNIT, rc=1, stderr="Job for rdma-soft-links.service failed.")
    runner = FakeRunner([NEW, systemctl("enable", UNIT), failed])
    with pytest.raises(ApplyError, match=r"Job for rdma-soft-links.service failed"):
        ensure_soft_links([LINK], runner=runner, check_mode=False)


def test_a_link_that_is_still_missing_is_an_error(state: dict[str, Any]) -> None:
    state["right"] = [False, False]
    runner = FakeRunner([NEW, systemctl("enable", UNIT), systemctl("restart", UNIT)])
    with pytest.raises(ApplyError, match="still not there: rxe_rail0"):
        ensure_soft_links([LINK], runner=runner, check_mode=False)


def test_a_device_on_another_nic_stays_while_the_host_is_in_use(
    paths: Path, state: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soft_links_runner, "parent_of", lambda name: "ens9")
    result = ensure_soft_links([LINK], runner=FakeRunner([]), check_mode=False, refused="job process 812 (slurmstepd)")
    assert (result.changed, result.withheld, list(paths.iterdir())) == (False, ("rxe_rail0",), [])
    state["right"] = [False]
    shown = ensure_soft_links([LINK], runner=FakeRunner([NEW]), check_mode=True, refused="job process 812 (slurmstepd)")
    assert (shown.changed, shown.created, shown.withheld, list(paths.iterdir())) == (True, ["rxe_rail0"], ("rxe_rail0",), [])
    # A missing device interrupts nobody, so it is created on a host in use as well.
    monkeypatch.setattr(soft_links_runner, "parent_of", lambda name: None)
    state["right"] = [False, True]
    runner = FakeRunner([NEW, systemctl("enable", UNIT), systemctl("restart", UNIT)])
    assert ensure_soft_links([LINK], runner=runner, check_mode=False, refused="job process 812 (slurmstepd)").created == ["rxe_rail0"]


def delete(name: str) -> tuple[list[str], int, str, str]:
    return (["rdma", "link", "delete", name], 0, "", "")


def test_devices_on_each_other_s_nic_are_both_deleted_first(state: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A NIC has one Soft-RoCE device: to create the first one fails while the second one is there."""
    other = {"name": "rxe_rail1", "type": "rxe", "nic": {"pci": "0000:41:00.0"}}
    monkeypatch.setattr(soft_links_runner, "parent_of", {"rxe_rail0": "ens2", "rxe_rail1": "ens1"}.get)
    state["right"] = [False, False, True, True]
    runner = FakeRunner([delete("rxe_rail0"), delete("rxe_rail1"), NEW, systemctl("enable", UNIT), systemctl("restart", UNIT)])
    assert ensure_soft_links([LINK, other], runner=runner, check_mode=False).created == ["rxe_rail0", "rxe_rail1"]


def test_a_renamed_rail_replaces_the_device_with_its_former_name(
    paths: Path, state: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mesh that gets another cable: the rail of a NIC has a new name. Devices on other NICs, and those of other programs, stay."""
    former = [{**LINK, "name": name} for name in ("rxe_cable13", "rxe_gone", "rxe_elsewhere")]
    (paths / "links.json").write_text(json.dumps(former))
    monkeypatch.setattr(soft_links_runner, "find_netdev", lambda nic: "ens1")
    monkeypatch.setattr(soft_links_runner, "parent_of", {"rxe_cable13": "ens1", "rxe_elsewhere": "ens9", "rxe_of_others": "ens1"}.get)
    used = "job process 812 (slurmstepd)"
    state["right"] = [False]
    kept = ensure_soft_links([LINK], runner=FakeRunner([]), check_mode=False, refused=used)
    assert (kept.changed, kept.withheld, json.loads((paths / "links.json").read_text())) == (False, ("rxe_cable13",), former)
    state["right"] = [False]
    shown = ensure_soft_links([LINK], runner=FakeRunner([NEW]), check_mode=True)
    assert (shown.created, shown.withheld) == (["rxe_rail0"], ())
    state["right"] = [False, True]
    runner = FakeRunner([delete("rxe_cable13"), NEW, systemctl("enable", UNIT), systemctl("restart", UNIT)])
    assert ensure_soft_links([LINK], runner=runner, check_mode=False).created == ["rxe_rail0"]


@pytest.mark.parametrize("text", ["", "{", "7", "[7]", '[{"nic": {}}]'])
def test_a_damaged_file_of_the_last_run_is_replaced(paths: Path, state: dict[str, Any], text: str) -> None:
    (paths / "links.json").write_text(text)
    runner = FakeRunner([NEW, systemctl("enable", UNIT), systemctl("restart", UNIT)])
    assert ensure_soft_links([LINK], runner=runner, check_mode=False).created == ["rxe_rail0"]
    assert json.loads((paths / "links.json").read_text()) == [LINK]


def test_no_links_removes_the_files(paths: Path, state: dict[str, Any]) -> None:
    (paths / "links.json").write_text("[]")
    (paths / UNIT).write_text("[Unit]\n")
    runner = FakeRunner([RUNNING, systemctl("disable", "--now", UNIT), systemctl("daemon-reload")])
    assert ensure_soft_links([], runner=runner, check_mode=False).changed
    assert list(paths.iterdir()) == []
    assert not ensure_soft_links([], runner=FakeRunner([NEW]), check_mode=False).changed


TREE = """
    /sys/bus/pci/devices/0000:21:00.0/virtio4/net/ens1/address: 52:54:00:1a:00:01
    /sys/bus/pci/devices/0000:3d:00.0/net/eth7/address: a0:88:c2:00:00:01
    /sys/class/net/ens1/address: 52:54:00:1a:00:01
    /sys/class/infiniband/rxe_rail0/parent: ens1
"""
NICS = [
    ({"pci": "0000:21:00.0"}, "ens1"),
    ({"pci": "0000:3D:00.0"}, "eth7"),
    ({"pci": "0000:99:00.0"}, None),
    ({"mac": "52:54:00:1A:00:01"}, "ens1"),
    ({"mac": "52:54:00:1a:00:99"}, None),
]


@pytest.mark.parametrize(("nic", "expected"), NICS)
def test_find_netdev(tmp_path: Path, nic: dict[str, str], expected: str | None) -> None:
    assert soft_links_runner.find_netdev(nic, write_tree(tmp_path, TREE)) == expected


def test_parent_of(tmp_path: Path) -> None:
    root = write_tree(tmp_path, TREE)
    assert soft_links_runner.parent_of("rxe_rail0", root) == "ens1"
    assert soft_links_runner.parent_of("rxe_rail9", root) is None
