# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it, against the stand-in for mstconfig: shown in check mode, written, left alone, after a reboot."""

from __future__ import annotations

import io
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

ROOT = Path(__file__).parents[4]
MODULE = ROOT / "plugins/modules/mlxconfig.py"
STANDIN = ROOT / "lab/standins/mstconfig"
CARD, OTHER = "0000:3d:00.0", "0000:5e:00.0"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    link_type = {"next_boot": "IB(1)", "values": ["IB(1)", "ETH(2)"]}
    settings = {"LINK_TYPE_P1": link_type, "LINK_TYPE_P2": {**link_type, "stuck": True}, "NUM_OF_VFS": {"current": "4", "next_boot": "8"}}
    cards = [{"addresses": [address], "type": "ConnectX6", "settings": settings} for address in (CARD, OTHER)]
    (tmp_path / "state.json").write_text(json.dumps({"cards": cards}), encoding="utf-8")
    monkeypatch.setenv("MSTCONFIG_STATE", str(tmp_path / "state.json"))
    monkeypatch.setenv("PATH", str(STANDIN.parent), prepend=":")

    def run(settings: dict[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
        devices = [{"device": device, "settings": requested} for device, requested in settings.items()]
        monkeypatch.setattr(
            basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": {"devices": devices, **more}}).encode(), raising=False
        )
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit):
            runpy.run_path(str(MODULE), run_name="__main__")
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return run


def test_shown_written_left_alone_and_in_force_after_a_reboot(call: Any) -> None:
    requested = {CARD: {"LINK_TYPE_P1": "ETH", "ATS_ENABLED": 1}, OTHER: {"LINK_TYPE_P1": 1}}
    shown = call(requested, _ansible_check_mode=True, _ansible_diff=True)
    assert shown["changed"]
    assert [(diff["before"], diff["after"]) for diff in shown["diff"]] == [("LINK_TYPE_P1 = IB(1)\n", "LINK_TYPE_P1 = ETH\n")]
    written = call(requested)
    assert (written["changed"], written["reboot_required"]) == (True, True)
    assert written["reset_commands"] == [f"mstfwreset -d {CARD} -y reset"]
    assert written["devices"][0]["written"] == {"LINK_TYPE_P1": {"before": "IB(1)", "after": "ETH(2)"}}
    assert written["devices"][0]["not_applicable"] == ["ATS_ENABLED"]
    assert written["devices"][0]["pending_others"] == {"NUM_OF_VFS": {"current": "4", "next_boot": "8"}}
    again = call(requested, _ansible_check_mode=True)
    assert (again["changed"], again["diff"], again["reboot_required"]) == (False, [], True)
    subprocess.run([str(STANDIN), "apply"], check=True)
    booted = call(requested)
    assert (booted["changed"], booted["reboot_required"], booted["reset_commands"]) == (False, False, [])


def test_one_card_that_fails_does_not_hide_the_other(call: Any) -> None:
    answer = call({"0000:99:00.0": {"LINK_TYPE_P1": 2}, CARD: {"LINK_TYPE_P2": 2}, OTHER: {"LINK_TYPE_P1": 2}})
    assert answer["failed"]
    assert "0000:99:00.0: mlxconfig could not answer: '-E- Failed to open the device'" in answer["msg"]
    assert f"{CARD}: did not stick: LINK_TYPE_P2 is IB(1) after it was set to 2" in answer["msg"]
    assert answer["devices"][2]["written"] == {"LINK_TYPE_P1": {"before": "IB(1)", "after": "ETH(2)"}}
    assert answer["changed"]
