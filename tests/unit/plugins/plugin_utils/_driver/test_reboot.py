# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What asks for a reboot, and what withholds it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._driver import reboot
from ansible_collections.rdma.cluster.plugins.plugin_utils._driver.plan import plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.driver_hosts import add_on, driver, installed, module

QUIET = {"needed": False, "first": False, "why": "no reason", "withheld": None, "drainable": False, "build_first": None}
BUSY = {"gpu_processes": [{"pid": 4711, "name": "python3"}], "jobs": []}
OLD = {name: {**each, "srcversion": "OLD"} for name, each in add_on().items()}
KO2IBLND = {
    "ib_core": {**OLD["ib_core"], "holders": [*OLD["ib_core"]["holders"], "ko2iblnd"]}, "ko2iblnd": module("ko2iblnd"),
}  # fmt: skip


def decide(intent: dict[str, Any], tree: dict[str, Any]) -> dict[str, Any]:
    return plan(intent, from_dict(tree), reboot_allowed=False)


def test_work_on_a_host_withholds_a_reboot_and_is_no_reason_for_one() -> None:
    found = decide(driver(), {**installed(modules=OLD), "load": BUSY})
    assert found["busy"] == "GPU process 4711 (python3)"
    assert (found["reload"]["needed"], found["reload"]["live"], found["reload"]["obstacles"]) == (True, False, [found["busy"]])
    assert found["reboot"] == QUIET
    found = decide(driver(), {**installed(modules={**OLD, **KO2IBLND}), "load": BUSY})["reboot"]
    assert (found["needed"], found["drainable"]) == (True, True)
    assert found["withheld"] == "GPU process 4711 (python3): drain the host (reboot_before), or wait"
    assert "GPU" not in found["why"]
    assert decide(driver(), installed())["busy"] == ""
    assert "unknown" in decide(driver(), {**installed(), "load": None})["busy"]


def test_a_boot_that_nobody_has_signed_the_driver_for_is_withheld() -> None:
    found = decide(driver(), installed(modules=OLD, secure_boot=True))
    assert found["reload"]["live"] is False
    assert "unsigned modules: ib_core" in found["reboot"]["withheld"]
    assert (found["reboot"]["needed"], found["reboot"]["drainable"]) == (False, False), "a reboot does not fix it"
    busy = decide(driver(), {**installed(modules={**OLD, **KO2IBLND}, secure_boot=True), "load": BUSY})["reboot"]
    assert (busy["needed"], busy["drainable"]) == (True, False), "nor does a drained host"


def test_an_option_that_is_not_taken_is_a_reload_and_after_a_boot_no_reboot() -> None:
    intent = driver(module_options={"mlx5_core": "prof_sel=3"})
    tree = {**installed(), "module_parameters": {"mlx5_core": {"prof_sel": "2"}}}
    found = decide(intent, tree)
    assert (found["change"], found["reload"]["always"], found["reload"]["live"], found["reboot"]) == ("none", True, True, QUIET)
    tree["session"] = {"netdev": "ens1"}
    assert decide(intent, tree)["reboot"]["needed"] is True
    tree["boot"]["uptime_seconds"] = 120.0
    assert decide(intent, tree)["reboot"]["needed"] is False
    assert "mlx5_core.prof_sel is 2, expected 3, after a boot 2 minutes ago" in decide(intent, tree)["reboot"]["why"]


@pytest.mark.parametrize(("uptime", "needed"), [(None, True), (1800.0, True), (1799.0, False)])
def test_firmware_settings_that_a_boot_has_not_brought(monkeypatch: pytest.MonkeyPatch, uptime: float | None, needed: bool) -> None:
    pending = [{"device": "0000:21:00.0", "name": "SRIOV_EN", "current": 0, "next_boot": 1}]
    monkeypatch.setattr(reboot, "firmware_pending", lambda intent, facts: pending)
    tree = installed()
    tree["boot"]["uptime_seconds"] = uptime
    found = decide({**driver(), "firmware": {}}, tree)["reboot"]
    assert found["needed"] is needed
    assert "SRIOV_EN of 0000:21:00.0" in found["why"]
    assert ("try a cold power cycle" in found["why"]) is not needed
    tree["files"] = {"/run/rdma-cluster/firmware-written": {}}
    assert decide({**driver(), "firmware": {}}, tree)["reboot"]["needed"] is True, "they were written after the boot"
    del tree["files"]
    assert decide({**driver(version="24.10-2.1.8.0"), "firmware": {}}, tree)["reboot"] == QUIET, "something is still to be installed"
