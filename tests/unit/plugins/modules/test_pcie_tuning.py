# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it, on a tree of its own: reported in check mode, written, left alone, and refused."""

from __future__ import annotations

import io
import json
import runpy
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.rdma.cluster.plugins.module_utils._base import boot_service, command, sysroot
from ansible_collections.rdma.cluster.plugins.module_utils._pci import port as pci_port
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning import service
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.pcie_host import NIC, SECOND, DeafPort, pcie_host

MODULE = Path(__file__).parents[4] / "plugins/modules/pcie_tuning.py"
UNIT = service.UNIT
SHOW = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", UNIT]
NEW = (SHOW, 0, f"Id={UNIT}\nActiveState=inactive\nUnitFileState=\n", "")
RUNNING = (SHOW, 0, f"Id={UNIT}\nActiveState=active\nUnitFileState=enabled\n", "")
STARTED = [NEW, (["systemctl", "enable", UNIT], 0, "", ""), (["systemctl", "restart", UNIT], 0, "", "")]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    root = pcie_host(tmp_path / "host")
    own = {"config": str(tmp_path / "pcie.json"), "program": str(tmp_path / "pcie_tuning.pyz")}
    monkeypatch.setattr(service, "BOOT", replace(service.BOOT, **own))
    monkeypatch.setattr(boot_service, "UNITS", str(tmp_path))
    monkeypatch.setattr(sysroot, "SysRoot", partial(sysroot.SysRoot, str(root)))
    port = pci_port.SysfsPort

    def run(calls: list[Any], *, deaf: bool = False, **given: Any) -> dict[str, Any]:
        runner = FakeRunner(calls)
        monkeypatch.setattr(command, "SubprocessRunner", lambda: runner)
        monkeypatch.setattr(pci_port, "SysfsPort", partial(DeafPort if deaf else port, str(root)))
        arguments = {"ANSIBLE_MODULE_ARGS": {"nics": [NIC], **given}}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps(arguments).encode(), raising=False)
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit):
            runpy.run_path(str(MODULE), run_name="__main__")
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return run


def test_reported_written_and_left_alone(call: Any) -> None:
    shown = call([NEW], mrrs_bytes=4096, _ansible_check_mode=True, _ansible_diff=True)
    assert shown["changed"]
    assert [diff["after_header"] for diff in shown["diff"][-2:]] == [f"MRRS of {address}" for address in (NIC, SECOND)]
    assert {diff["after"] for diff in shown["diff"][-2:]} == {"MRRS of 4096 bytes\n"}
    written = call(STARTED, mrrs_bytes=4096)
    assert written["changed"]
    assert written["functions"] == [{"address": address, "setting": "mrrs_bytes", "old": 512, "new": 4096} for address in (NIC, SECOND)]
    assert (written["acs"], written["payload_bytes"], written["left"]) == ("leave", {NIC: 256, SECOND: 256}, [])
    assert call([RUNNING], mrrs_bytes=4096)["changed"] is False
    reported = call([RUNNING], mrrs_bytes=4096, acs="vm", _ansible_check_mode=True)
    reason = "ACS SrcValid, TransBlk, ReqRedir, CmpltRedir, UpstreamFwd stays: acs is vm"
    assert [each["reason"] for each in reported["left"]] == [reason] * 3


def test_refused(call: Any) -> None:
    assert "MRRS of 512 bytes is read back" in call([], deaf=True, mrrs_bytes=4096)["msg"]
    assert call([], nics=["eth0"], mrrs_bytes=4096)["msg"].startswith("not a PCI address: 'eth0'")
    assert "value of mrrs_bytes must be one of: 128, 256" in call([], mrrs_bytes=300)["msg"]
