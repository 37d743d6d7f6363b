# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting for subnet managers, on a clock that only sleeping moves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.action import fabric_settle

RAIL = {"name": "rail0", "nic": {"pci": "0000:01:00.0"}, "link_layer": "infiniband", "plane": "blue"}


def facts(state: str = "ACTIVE", *keys: int) -> dict[str, Any]:
    table = {str(index): key for index, key in enumerate(keys or (0x7FFF,))}
    port = {"netdev": None, "physical_state": "LinkUp", "state": state, "link_layer": "InfiniBand", "pkeys": table, "gids": []}
    return {"netdevs": {}, "devices": {"mlx5_0": {"pci": {"address": "0000:01:00.0"}, "ports": {"1": port}}}}


def settle(
    monkeypatch: pytest.MonkeyPatch,
    now: dict[str, Any],
    *script: dict[str, Any],
    changed: bool = False,
    check_mode: bool = False,
    **planes: Any,
) -> tuple[dict[str, Any], float]:
    clock, left = [0.0], list(script)
    action = fabric_settle.ActionModule.__new__(fabric_settle.ActionModule)
    partitions = {"a": {"key": 1, "members": ["node1"], "membership": "full", "shared": False}}
    manager = {"subnet_manager": planes.get("manager", {"kind": "hosts", "hosts": ["sm1"]})}
    intent = {"rails": [RAIL], "fabric": {"planes": {"blue": manager}}, "partitions": partitions}
    hostvars = {"sm1": {"__subnet_manager_result": {"changed": changed}}}
    action.variables = {"inventory_hostname": "node1", "hostvars": hostvars}
    monkeypatch.setattr(fabric_settle.ActionModule, "all_facts", now)
    action._task = SimpleNamespace(check_mode=check_mode)

    def module(name: str, **arguments: Any) -> dict[str, Any]:
        assert (name, arguments) == ("rdma_facts", {"gather_subset": ["min"]})
        return left.pop(0)

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(action, "intent_of", {"node1": intent}.get, raising=False)
    monkeypatch.setattr(action, "module", module, raising=False)
    monkeypatch.setattr(fabric_settle, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    result = action.work({"timeout_seconds": 4})
    assert not left, "it did not look as often as it should"
    return result, clock[0]


def answer(tree: dict[str, Any]) -> dict[str, Any]:
    return {"ansible_facts": {"rdma": tree}}


GOOD = (0x7FFF, 0x8001)


def test_a_converged_host_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settle(monkeypatch, facts()) == ({"read": False}, 0.0)
    assert settle(monkeypatch, facts("INIT"), manager=None) == ({"read": False}, 0.0)
    assert settle(monkeypatch, facts("INIT"), check_mode=True, changed=True) == ({"read": False}, 0.0)


def test_a_port_that_waits_for_its_manager_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    result = settle(monkeypatch, facts("INIT"), answer(facts("INIT", *GOOD)), answer(facts("ACTIVE", *GOOD)))
    assert result == ({"read": True, "settled": True}, 2.0)


def test_so_are_keys_where_a_manager_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    result = settle(monkeypatch, facts("ACTIVE"), answer(facts("ACTIVE")), answer(facts("ACTIVE", *GOOD)), changed=True)
    assert result == ({"read": True, "settled": True}, 2.0)


def test_what_does_not_come_is_left_to_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    result = settle(monkeypatch, facts("INIT"), *[answer(facts("INIT"))] * 3)
    assert result == ({"read": True, "settled": False}, 4.0)


def test_a_host_that_is_lost_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settle(monkeypatch, facts("INIT"), {"unreachable": True, "msg": "no route"})[0] == {"unreachable": True, "msg": "no route"}
