# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""peermem, driver_reload and kernel_modules as Ansible runs them: options in, JSON out. In check mode, on the machine of the test."""

from __future__ import annotations

import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.rdma.cluster.plugins.module_utils._base import command, sysroot
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver import kernel_modules
from ansible_collections.rdma.cluster.plugins.module_utils._gpu import peermem
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.trees import write_tree

MODULES = Path(__file__).parents[4] / "plugins/modules"
ABSENT = "no_such_module_here"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peermem, "BOOT_FILE", str(tmp_path / "gpudirect.conf"))
    monkeypatch.setattr(kernel_modules, "LOAD_FILE", str(tmp_path / "load.conf"))
    monkeypatch.setattr(kernel_modules, "OPTIONS_FILE", str(tmp_path / "options.conf"))


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, **options: Any) -> tuple[int, dict[str, Any]]:
    arguments = json.dumps({"ANSIBLE_MODULE_ARGS": {"_ansible_check_mode": True, **options}}).encode()
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", arguments, raising=False)
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(MODULES / f"{name}.py"), run_name="__main__")
    code = caught.value.code
    assert isinstance(code, int)
    return code, json.loads(capsys.readouterr().out)


def test_peermem(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, result = run(capsys, monkeypatch, "peermem")
    assert (code, result["changed"], result["rebuilt"]) == (0, True, None)
    code, result = run(capsys, monkeypatch, "peermem", state="not_at_boot")
    assert (code, result["changed"], result["diff"]) == (0, False, [])


@pytest.mark.parametrize(("allowed", "reason"), [(False, "not allowed"), (True, "job process 815 (slurmstepd)")])
def test_peermem_asks_who_uses_the_host_before_it_builds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, allowed: bool, reason: str
) -> None:
    """With a busy tree of /proc and every permission nothing is built: the module stops at the failed modprobe."""
    kernel = "/proc/sys/kernel/osrelease: 6.1.0-10-amd64\n"
    dkms = "/var/lib/dkms/nvidia/550.54.15/6.1.0-10-amd64/x86_64/module/nvidia-peermem.ko: x\n"
    dkms += "/var/lib/dkms/nvidia/550.54.15/source -> /usr/src/nvidia-550.54.15\n"
    dkms += "/var/lib/dkms/nvidia/kernel-6.1.0-10-amd64-x86_64 -> 550.54.15/6.1.0-10-amd64/x86_64\n"
    jobs = "/proc/1/comm: systemd\n/proc/815/comm: slurmstepd\n/proc/815/cmdline: slurmstepd\n"
    root = str(write_tree(tmp_path / "root", kernel + dkms + jobs))
    runner = FakeRunner([(["modprobe", "nvidia_peermem"], 1, "", "Invalid argument"), (["dmesg"], 0, "", "")])
    monkeypatch.setattr(sysroot, "SysRoot", lambda: SysRoot(root))
    monkeypatch.setattr(command, "SubprocessRunner", lambda: runner)
    code, result = run(capsys, monkeypatch, "peermem", rebuild_allowed=allowed, _ansible_check_mode=False)
    assert (code, result["loaded"], result["rebuilt"]) == (0, False, None), result
    assert result["withheld"] == f"nvidia/550.54.15 has to be built again by DKMS for the loaded RDMA stack: {reason}"


def test_driver_reload(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, result = run(capsys, monkeypatch, "driver_reload", modules=[ABSENT], load=[ABSENT], service="none")
    assert (code, result["unloaded"], result["loaded"], result["restarted"]) == (0, [], [ABSENT], None)
    code, result = run(capsys, monkeypatch, "driver_reload", modules=[ABSENT], service="none")
    assert (code, result["changed"]) == (0, False)


def test_kernel_modules_with_options(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, result = run(capsys, monkeypatch, "kernel_modules", names=[ABSENT], options={ABSENT: "a=1"})
    assert (code, result["loaded"]) == (0, [ABSENT])
    assert result["diff"][0]["after"].endswith(f"options {ABSENT} a=1\n")
    code, result = run(capsys, monkeypatch, "kernel_modules", names=[ABSENT], options={ABSENT: "="})
    assert (code, "no option of a kernel module" in result["msg"]) == (1, True)
