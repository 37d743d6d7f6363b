# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each endpoint of a plan allows, and the same for a matrix."""

from __future__ import annotations

import math
from array import array
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import Limit, grid, limits
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import NoLimit
from tests.unit.builders.cards import card_facts, card_rails
from tests.unit.builders.hosts import lab_facts, lab_intent

LINK_GBPS = 400 * 4096 / 4178


def plan_of(*hosts: str, rails: tuple[str, ...] = ("rail0", "rail1"), **test: Any) -> dict[str, Any]:
    tests = [{"name": "bandwidth", "bidirectional": False, "mtu_bytes": None, **test}]
    return {"hosts": list(hosts), "rails": [{"name": rail} for rail in rails], "tests": tests}


def card_host(rate_gbps: float = 400.0) -> dict[str, Any]:
    """Facts; the rate is that of the first card."""
    facts = card_facts()
    facts["devices"]["mlx5_0"]["ports"]["1"]["rate_gbps"] = rate_gbps
    facts["netdevs"]["ens1np0"]["ethtool"]["speed_mbps"] = int(1000 * rate_gbps)
    return comparable({**facts, "stack": lab_facts()["stack"]})


def limits_of(plan: dict[str, Any], intents: dict[str, Any], trees: dict[str, dict[str, Any]]) -> Any:
    return limits(plan, intents, {host: from_dict(tree) for host, tree in trees.items()})


CARDS = {"rails": card_rails()}


def gbps(found: dict[str, Any] | Any) -> dict[str, Any]:
    return {rail: limit.gbps if isinstance(limit, Limit) else limit.status for rail, limit in found.items()}


def test_each_rail_of_a_host_has_its_limit() -> None:
    found = limits_of(plan_of("a", "b"), {"a": CARDS, "b": CARDS}, {"a": card_host(), "b": card_host(200.0)})
    assert gbps(found["a"]) == pytest.approx({"rail0": LINK_GBPS, "rail1": LINK_GBPS})
    assert gbps(found["b"]) == pytest.approx({"rail0": LINK_GBPS / 2, "rail1": LINK_GBPS})


@pytest.mark.parametrize(
    ("test", "expected"),
    [({"mtu_bytes": 1024}, 400 * 1024 / (1024 + 82)), ({"bidirectional": True}, 1.9 * LINK_GBPS)],
    ids=["MTU", "both directions"],
)
def test_it_is_the_limit_of_what_is_measured(test: dict[str, Any], expected: float) -> None:
    found = limits_of(plan_of("a", **test), {"a": CARDS}, {"a": card_host()})
    assert gbps(found["a"])["rail0"] == pytest.approx(expected)


def test_a_rail_that_is_not_measured_has_none() -> None:
    assert list(limits_of(plan_of("a", rails=("rail1",)), {"a": CARDS}, {"a": card_host()})["a"]) == ["rail1"]


def test_only_hosts_of_the_plan_and_of_the_play_have_limits() -> None:
    found = limits_of(plan_of("a", "beyond"), {"a": CARDS, "other": CARDS}, {"a": card_host(), "other": card_host()})
    assert list(found) == ["a"]


def test_cards_that_share_a_bridge_share_what_it_carries_if_both_are_measured() -> None:
    facts = card_facts()
    hop = {"address": "0000:3a:01.0", "speed_gtps": 32.0, "width": 16}
    for device in facts["devices"].values():
        device["pci"]["hops"] = [hop]
    shared = comparable({**facts, "stack": lab_facts()["stack"]})
    together = limits_of(plan_of("a"), {"a": CARDS}, {"a": shared})["a"]["rail0"]
    alone = limits_of(plan_of("a", rails=("rail0",)), {"a": CARDS}, {"a": shared})["a"]["rail0"]
    assert isinstance(together, Limit)
    assert isinstance(alone, Limit)
    assert (together.bound, round(together.gbps)) == ("pcie", 229)
    assert (alone.bound, round(alone.gbps)) == ("link", round(LINK_GBPS))


def test_software_has_no_limit_and_says_why() -> None:
    found = limits_of(plan_of("node1"), {"node1": lab_intent()}, {"node1": comparable(lab_facts())})["node1"]
    assert list(found) == ["rail0", "rail1"]
    for limit in found.values():
        assert isinstance(limit, NoLimit)
        assert (limit.status, limit.reason) == ("not_applicable", "Soft-RoCE has no line rate")


def test_a_card_that_reports_no_rate_is_unknown_and_not_unlimited() -> None:
    facts = card_host()
    facts["devices"]["mlx5_0"]["ports"]["1"]["rate_gbps"] = None
    facts["netdevs"]["ens1np0"]["ethtool"] = {}
    found = limits_of(plan_of("a"), {"a": CARDS}, {"a": facts})
    assert gbps(found["a"]) == {"rail0": "unknown", "rail1": pytest.approx(LINK_GBPS)}
    assert grid(plan_of("a"), found)[0] == [None]


def test_the_grid_is_in_the_order_of_the_plan() -> None:
    plan = plan_of("b", "a", rails=("rail1", "rail0"))
    found = limits_of(plan, {"a": CARDS, "b": CARDS}, {"a": card_host(), "b": card_host(200.0)})
    assert grid(plan, found) == [pytest.approx([LINK_GBPS, LINK_GBPS]), pytest.approx([LINK_GBPS / 2, LINK_GBPS])]


def test_of_a_partner_of_another_play_nothing_is_asked_and_of_a_rail_that_is_not_there_nothing_is_known() -> None:
    plan = plan_of("a", "beyond", rails=("rail0", "rail7"))
    found = limits_of(plan, {"a": CARDS}, {"a": card_host()})
    assert grid(plan, found) == [[pytest.approx(LINK_GBPS), math.inf], [None, math.inf]]


def test_with_a_partner_of_another_play_the_hosts_own_limit_counts() -> None:
    plan = plan_of("a", "beyond", rails=("rail0",))
    values = Matrix.of(["a", "beyond"], ["rail0"], [(0, 1, 0, LINK_GBPS / 2)])
    matrix = values.with_limits(grid(plan, limits_of(plan, {"a": CARDS}, {"a": card_host()})))
    assert matrix.ratio == array("d", [0.5])
