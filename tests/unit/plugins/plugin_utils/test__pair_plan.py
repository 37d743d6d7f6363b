# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a sweep."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent import PAIRS
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_plan import make_plan, runtime_max_seconds
from tests.unit.hosts import lab_facts, lab_rails


def intent() -> dict[str, Any]:
    return {"rails": lab_rails(), "pairs": {name: key.default for name, key in PAIRS.items()}}


def test_the_endpoints_of_a_lab_machine() -> None:
    plan = make_plan("s1", {"node1": intent()}, {"node1": lab_facts()})
    assert plan["hosts"] == ["node1"]
    assert [rail["name"] for rail in plan["rails"]] == ["rail0", "rail1"]
    assert plan["rails"][1]["endpoints"] == {
        "node1": {"address": "192.168.101.1", "device": "rxe_rail1", "port": 1, "gid_index": 1, "numa_node": 1}
    }


def test_a_rail_without_gid_has_no_endpoint() -> None:
    facts = lab_facts()
    facts["devices"]["rxe_rail0"]["ports"]["1"]["gids"] = []
    plan = make_plan("s1", {"node1": intent()}, {"node1": facts})
    assert [list(rail["endpoints"]) for rail in plan["rails"]] == [[], ["node1"]]


def test_the_time_limit_grows_with_the_hosts() -> None:
    one = make_plan("s1", {"a": intent()}, {"a": lab_facts()})
    two = make_plan("s1", {"a": intent(), "b": intent()}, {"a": lab_facts(), "b": lab_facts()})
    assert runtime_max_seconds(two) > runtime_max_seconds(one)
