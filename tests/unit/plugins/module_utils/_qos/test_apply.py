# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A profile written on an interface: by a stand-in of dcb that keeps what is written, and files in a tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._qos.apply import Outcome, QosPort, ensure_qos
from tests.unit.builders.qos_hosts import profile
from tests.unit.builders.qos_nic import ALL, CM, DEVICE, NAME, Dcb, DcbState, qos_host

PORT = QosPort(NAME, DEVICE, "1")


def names(outcome: Outcome) -> tuple[list[str], list[str]]:
    return [each.name for each in outcome.written], [each.name for each in outcome.withheld]


def test_a_fresh_interface_gets_all_of_it_and_then_nothing(tmp_path: Path) -> None:
    dcb = Dcb()
    given = qos_host(tmp_path, dcb)
    assert names(ensure_qos(profile(), PORT, given, check_mode=False, change_allowed=True, toggle_allowed=True)) == (ALL, [])
    assert [words.split()[0] for words in dcb.sets] == ["dcbx", "app", "app", "pfc", "ets"]
    assert given.sys.text("/sys/kernel/debug/mlx5/0000:3d:00.0/cc_params/np_cnp_dscp") == "48"
    assert given.sys.text(f"{CM}/default_roce_tos") == "106"
    assert names(ensure_qos(profile(), PORT, given, check_mode=False, change_allowed=True, toggle_allowed=True)) == ([], [])
    assert len(dcb.sets) == 5


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    dcb = Dcb()
    assert names(ensure_qos(profile(), PORT, qos_host(tmp_path, dcb), check_mode=True, change_allowed=True, toggle_allowed=True)) == (
        ALL,
        [],
    )
    assert dcb.sets == []


WAITS = [name for name in ALL if name != "pfc"]


@pytest.mark.parametrize("check_mode", [False, True])
def test_while_pfc_is_withheld_nothing_of_the_interface_is_written(tmp_path: Path, check_mode: bool) -> None:
    dcb = Dcb()
    outcome = ensure_qos(profile(), PORT, qos_host(tmp_path, dcb), check_mode=check_mode, change_allowed=True, toggle_allowed=False)
    assert names(outcome) == (ALL if check_mode else [], ["pfc"])
    assert ([each.name for each in outcome.waits], dcb.sets) == (WAITS, [])


def test_traffic_does_not_move_to_a_priority_without_pfc(tmp_path: Path) -> None:
    """PFC is on for priority 3 on a live host, and the intent says 5."""
    dcb = Dcb()
    given = qos_host(tmp_path, dcb)
    ensure_qos(profile(), PORT, given, check_mode=False, change_allowed=True, toggle_allowed=True)
    dcb.sets.clear()
    outcome = ensure_qos(profile(priority=5), PORT, given, check_mode=False, change_allowed=True, toggle_allowed=False)
    assert ([each.name for each in outcome.waits], names(outcome)) == (["dscp 26", "ets"], ([], ["pfc"]))
    assert (dcb.sets, dcb.nics[NAME].codes[26], dcb.nics[NAME].pfc[3]) == ([], 3, True)


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_host_in_use_keeps_every_setting(tmp_path: Path, check_mode: bool) -> None:
    dcb = Dcb()
    given = qos_host(tmp_path, dcb)
    ensure_qos(profile(), PORT, given, check_mode=False, change_allowed=True, toggle_allowed=True)
    dcb.sets.clear()
    dcb.nics[NAME].codes[26] = 0
    outcome = ensure_qos(profile(), PORT, given, check_mode=check_mode, change_allowed=False, toggle_allowed=True)
    assert (names(outcome), [each.name for each in outcome.waits]) == ((["dscp 26"] if check_mode else [], []), ["dscp 26"])
    assert (dcb.sets, dcb.nics[NAME].codes[26]) == ([], 0)


def test_what_firmware_negotiates_withholds_nothing(tmp_path: Path) -> None:
    host = qos_host(tmp_path, Dcb())
    outcome = ensure_qos(profile(dcbx="firmware"), PORT, host, check_mode=False, change_allowed=True, toggle_allowed=False)
    assert names(outcome) == (["np cnp_dscp", "rdma_cm"], [])


def test_what_dcbx_negotiates_is_the_firmware_s(tmp_path: Path) -> None:
    dcb = Dcb()
    written, _withheld = names(
        ensure_qos(profile(dcbx="firmware"), PORT, qos_host(tmp_path, dcb), check_mode=False, change_allowed=True, toggle_allowed=True)
    )
    assert written == ["np cnp_dscp", "rdma_cm"]
    assert dcb.sets == []


def test_a_write_without_effect_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ApplyError, match=r"^pfc of ens1f0np0 was written, but is not 0,0,0,1,0,0,0,0$"):
        ensure_qos(profile(), PORT, qos_host(tmp_path, Dcb(deaf=["pfc"])), check_mode=False, change_allowed=True, toggle_allowed=True)


def test_a_refusal_is_reported_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(ApplyError, match=r"^`dcb ets set dev ens1f0np0 .*` failed: Attribute write: Operation not permitted$"):
        ensure_qos(profile(), PORT, qos_host(tmp_path, Dcb(refuses="ets")), check_mode=False, change_allowed=True, toggle_allowed=True)


def test_a_link_that_does_not_come_back_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Flapping(Dcb):
        def _set_pfc(self, words: Sequence[str], nic: DcbState) -> None:
            super()._set_pfc(words, nic)
            (tmp_path / f"sys/class/infiniband/{DEVICE}/ports/1/state").write_text("1: DOWN\n")

    monkeypatch.setattr("ansible_collections.rdma.cluster.plugins.module_utils._qos.apply.UP_SECONDS", 0.0)
    with pytest.raises(ApplyError, match=r"^pfc took the link of ens1f0np0 \(mlx5_0/1\) down, and it is not ACTIVE again after 0 s"):
        ensure_qos(profile(), PORT, qos_host(tmp_path, Flapping()), check_mode=False, change_allowed=True, toggle_allowed=True)
