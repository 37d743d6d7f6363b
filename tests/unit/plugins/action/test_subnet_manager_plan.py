# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts an allowed change of the fabric is refused for: those in use, and those of which that is not known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.action import subnet_manager_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize

IDLE: dict[str, Any] = {"gpu_processes": [], "jobs": []}
#: Host → its load; None: it has no facts in this run.
LOADS = {"idle": IDLE, "works": {**IDLE, "jobs": [{"pid": 7, "name": "slurmstepd"}]}, "silent": None, "gone": IDLE}


def busy(monkeypatch: pytest.MonkeyPatch, *, load: bool = True) -> dict[str, str]:
    """In a play of four hosts, of which one did not answer, and one failed after it was read; a fifth host is left out by --limit."""
    action = subnet_manager_plan.ActionModule.__new__(subnet_manager_plan.ActionModule)
    intent = normalize({"rdma_rails": [{"name": "r0", "nic": {"pci": "0000:18:00.0"}, "link_layer": "infiniband"}]})
    files: dict[str, Any] = {}
    for host, its in LOADS.items():
        files[f"intent/{host}"] = intent
        files[f"facts/{host}"] = None if its is None else {"devices": {}, "netdevs": {}, "files": {}, "load": its}
    folder = SimpleNamespace(host_file=lambda what, host: f"{what}/{host}", read_if_there=files.get)
    action.variables = {
        "inventory_hostname": "idle",
        "ansible_facts": {"rdma_intent": intent},
        "groups": {"all": [*LOADS, "left_out"]},
        "hostvars": {"left_out": {"rdma_rails": []}},
        "ansible_play_hosts_all": list(LOADS),
        "ansible_play_hosts": ["idle", "works"],
    }
    monkeypatch.setattr(action, "folder", folder, raising=False)
    found: dict[str, str] = action.work({"keys": {}, "load": load})["busy"]
    return found


def test_a_host_counts_as_idle_only_where_it_was_read_and_still_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert busy(monkeypatch) == {
        "gone": "not read again, because it failed or did not answer in this run",
        "left_out": "not read in this run",
        "silent": "not read in this run",
        "works": "job process 7 (slurmstepd)",
    }
    assert busy(monkeypatch, load=False) == {}


@pytest.mark.parametrize("checks", [True, False])
def test_check_mode_reports_a_plan_that_cannot_be_and_goes_on(monkeypatch: pytest.MonkeyPatch, *, checks: bool) -> None:
    """A run fails there."""
    action = subnet_manager_plan.ActionModule.__new__(subnet_manager_plan.ActionModule)
    fabric = {"planes": {"default": {"subnet_manager": {"hosts": ["node1"]}}}}
    rails = [{"name": "r0", "nic": {"pci": "0000:18:00.0"}, "link_layer": "infiniband"}]
    files: dict[str, Any] = {
        "intent/node1": normalize({"rdma_rails": rails, "rdma_fabric": fabric}),
        "facts/node1": {"devices": {}, "netdevs": {}, "files": {}, "load": IDLE},
    }
    folder = SimpleNamespace(host_file=lambda what, host: f"{what}/{host}", read_if_there=files.get)
    action.variables = {"inventory_hostname": "node1", "groups": {"all": ["node1"]}, "hostvars": {}, "ansible_check_mode": checks}
    monkeypatch.setattr(action, "folder", folder, raising=False)
    done = action.work({"keys": {}, "load": False})
    assert done["failed"] is not checks
    assert done["problems"] == ["node1 is planned to run the subnet manager of plane default, but has no known InfiniBand port on it"]
    assert done["problems"][0] in done["msg"]
