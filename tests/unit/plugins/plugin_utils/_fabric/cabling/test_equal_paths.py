# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The equal paths of a cabling plan, and the queue pairs that they need."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.equal_paths import (
    LeafPaths,
    check_queue_pairs,
    forecast_text,
    leaf_paths,
    planned_paths,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize


def clos(leaves: int, spines: int, *, cables: int = 1, hosts: int = 4) -> str:
    """The text of a plan: every leaf to every spine."""
    names = [f"{tier}{number}" for tier, count in (("leaf", leaves), ("spine", spines)) for number in range(1, count + 1)]
    links = [
        {"from": f"node{leaf}-{host} mlx5_0", "to": f"leaf{leaf}/{100 + host}"} for leaf in range(1, leaves + 1) for host in range(hosts)
    ]
    for leaf in range(1, leaves + 1):
        for spine in range(1, spines + 1):
            for cable in range(cables):
                links.append({"from": f"leaf{leaf}/{spine * cables + cable}", "to": f"spine{spine}/{leaf * cables + cable}"})
    return yaml.safe_dump({"switches": dict.fromkeys(names), "links": links})


def intent(layer: str = "roce", **more: Any) -> Any:
    address = {"address": "192.168.100.1/24"} if layer == "roce" else {}
    rail = {"name": "rail0", "nic": {"pci": "0000:21:00.0"}, "link_layer": layer, **address, **more}
    return normalize({"rdma_rails": [rail], "rdma_fabric": {"planes": {"default": {"plan": "cables.yml"}}}})


def test_every_cable_to_a_spine_is_a_path() -> None:
    assert leaf_paths(parse_plan(clos(2, 4))) == [LeafPaths("leaf1", 4, 4, 4), LeafPaths("leaf2", 4, 4, 4)]
    assert leaf_paths(parse_plan(clos(2, 2, cables=3)))[0] == LeafPaths("leaf1", 4, 6, 2)


@pytest.mark.parametrize("text", [clos(2, 1), clos(1, 4), clos(2, 4, hosts=0)], ids=["one spine", "one leaf", "no hosts"])
def test_without_several_paths_between_leaves_nothing_is_known(text: str) -> None:
    assert leaf_paths(parse_plan(text)) == []


def test_the_shortest_paths_count_and_the_leaf_with_the_fewest() -> None:
    """leaf3 hangs on spine1 alone: to it there is one path, also from the others."""
    plan = yaml.safe_load(clos(2, 2))
    plan["switches"]["leaf3"] = None
    plan["links"] += [{"from": "node3 mlx5_0", "to": "leaf3/1"}, {"from": "leaf3/2", "to": "spine1/50"}]
    assert leaf_paths(parse_plan(yaml.safe_dump(plan))) == []


def test_planes_whose_switches_do_not_hash_are_left_out() -> None:
    read = {"cables.yml": clos(2, 4)}.__getitem__
    assert list(planned_paths([intent()], read)) == ["default"]
    assert planned_paths([intent("infiniband")], read) == {}
    assert planned_paths([intent(role="storage")], read) == {}
    assert planned_paths([intent(soft=True)], read) == {}


def test_an_invalid_plan_is_named() -> None:
    with pytest.raises(ParseError, match=r"rdma_fabric\.planes\.default\.plan, cables\.yml: the cabling plan is empty"):
        planned_paths([intent()], lambda _file: "")


def test_the_text_for_a_person() -> None:
    text = forecast_text({"default": leaf_paths(parse_plan(clos(3, 4))), "other": []})
    assert (
        "Plane default:\n  leaf1, leaf2, leaf3: 4 ports over 4 equal paths to 4 spines\n    1: 68% (68%); 2: 77% (57%); 4: 83% (65%)"
        in text
    )
    assert "Plane other" not in text
    assert forecast_text({"default": []}) == ""


def judged(variables: dict[str, str], leaves: int = 2, spines: int = 4, hosts: int = 4, least: float | None = None) -> Finding:
    planes = {"default": leaf_paths(parse_plan(clos(leaves, spines, hosts=hosts)))}
    (finding,) = check_queue_pairs("node1", intent(), variables, planes, least)
    return finding


def test_one_queue_pair_is_too_few() -> None:
    finding = judged({})
    assert (finding.status, finding.subject) == (WARNING, "plane default")
    assert finding.observed == (
        "NCCL_IB_QPS_PER_CONNECTION=1 over 4 equal paths to 4 spines of leaf1: expect 68% of line rate when its 4 ports send by "
        "one connection each"
    )
    assert finding.expected == "at least 80% of the rate that the equal paths carry"
    assert finding.remedy == (
        "1. Set NCCL_IB_QPS_PER_CONNECTION: 4 in rdma_nccl.variables of all hosts: expect 83%. "
        "2. If the switches have adaptive routing, enable it there, and set NCCL_IB_ADAPTIVE_ROUTING: 1."
    )


@pytest.mark.parametrize(
    ("variables", "status"),
    [
        ({"NCCL_IB_QPS_PER_CONNECTION": "4"}, OK),
        ({"NCCL_IB_QPS_PER_CONNECTION": "2"}, WARNING),
        ({"NCCL_IB_ADAPTIVE_ROUTING": "1"}, NOT_APPLICABLE),
        ({"NCCL_IB_QPS_PER_CONNECTION": "many"}, UNKNOWN),
        ({"NCCL_IB_QPS_PER_CONNECTION": "129"}, UNKNOWN),
        ({"NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_IB_SPLIT_DATA_ON_QPS": "1"}, WARNING),
    ],
)
def test_each_value(variables: dict[str, str], status: str) -> None:
    finding = judged(variables)
    assert (finding.status, bool(finding.remedy)) == (status, status in (WARNING, UNKNOWN))


def test_split_data_waits_for_the_busiest_path() -> None:
    remedy = judged({"NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_IB_SPLIT_DATA_ON_QPS": "1"}).remedy
    assert remedy.startswith("1. Set NCCL_IB_SPLIT_DATA_ON_QPS: 0. With 1, each message waits for the busiest path. 2. If the switches")


def test_one_queue_pair_has_nothing_to_split() -> None:
    assert judged({"NCCL_IB_SPLIT_DATA_ON_QPS": "1"}) == judged({})


@pytest.mark.parametrize(("version", "status"), [(None, OK), ("2.17.1", OK), ("2.18.3", WARNING), ("2.19.4", WARNING), ("2.20.3", OK)])
def test_the_default_of_split_depends_on_the_version(version: str | None, status: str) -> None:
    planned = intent()
    planned["nccl"]["version"] = version
    leaves = {"default": leaf_paths(parse_plan(clos(2, 4)))}
    (finding,) = check_queue_pairs("node1", planned, {"NCCL_IB_QPS_PER_CONNECTION": "4"}, leaves)
    assert finding.status == status


def test_an_oversubscribed_leaf_is_judged_by_what_its_paths_carry() -> None:
    finding = judged({}, hosts=16)
    assert (finding.status, "expect 25% of line rate when its 16 ports send" in finding.observed) == (OK, True)


def test_a_threshold_of_the_site() -> None:
    assert judged({}, least=0.6).status == OK
    assert judged({"NCCL_IB_QPS_PER_CONNECTION": "4"}, least=0.9).status == WARNING


def test_without_a_planned_graph_nothing_is_said() -> None:
    assert check_queue_pairs("node1", intent(), {}, {}) == []
    assert check_queue_pairs("node1", intent(), {}, {"default": []}) == []
    assert check_queue_pairs("node1", intent("infiniband"), {}, {"default": [LeafPaths("leaf1", 4, 4, 4)]}) == []
