# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task that configures a switch: with a plan for FRR, with one for another system, and without a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.action import router_config
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.render import router_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import plan_file
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.clos import routed

NVUE = {"syntax": "nvue", "port_prefix": None, "port_lanes": None}
SONIC = {"syntax": "sonic", "port_prefix": "Ethernet", "port_lanes": 8}
PLANE = routed(bfd=False, switches={"leaf1": NVUE, "spine1": SONIC})


def configure(path: Path, monkeypatch: pytest.MonkeyPatch, switch: str) -> tuple[dict[str, Any], list[str]]:
    """Return the result of the task for a switch, and the modules that it ran."""
    folder, called = RunFolder(path / "R1"), []
    for name, router in PLANE.routers.items():
        for suffix, text in router_files(PLANE, router).items():
            folder.write(plan_file(name, suffix), text)
    action = router_config.ActionModule.__new__(router_config.ActionModule)
    action.variables, action.folder = {"inventory_hostname": switch}, folder

    def module(name: str, **given: Any) -> dict[str, Any]:
        assert "router bgp" in given["conf"]
        called.append(name)
        return {"changed": True}

    monkeypatch.setattr(action, "module", module, raising=False)
    result: dict[str, Any] = action.work({"replace_allowed": False})
    return result, called


def test_a_switch_with_frr_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert configure(tmp_path, monkeypatch, "leaf2") == ({"changed": True}, ["router_config"])


@pytest.mark.parametrize(
    ("switch", "files"),
    [("leaf1", "plan/switch-leaf1.routing.nv"), ("spine1", "plan/switch-spine1.config_db.json and plan/switch-spine1.frr.conf")],
)
def test_a_switch_with_another_system_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switch: str, files: str) -> None:
    result, called = configure(tmp_path, monkeypatch, switch)
    assert called == []
    # What the role reads of the result.
    assert (result["changed"], result["changes"], result["refused"], result["installed"]) == (False, [], "", True)
    assert f"your network team applies {files} of the run folder" in result["msg"]


def test_a_switch_without_a_plan_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, called = configure(tmp_path, monkeypatch, "leaf9")
    assert (result["failed"], called) == (True, [])
    assert "This run has no plan for leaf9" in result["msg"]
