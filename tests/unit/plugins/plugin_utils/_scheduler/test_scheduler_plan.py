# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan for schedulers: its files, the hosts left out, and what is refused."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.plan import (
    SchedulerPlan,
    difference,
    plan_text,
    scheduler_plan,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.proven import SchedulerError, StoredPlane
from tests.unit.builders.small_fabrics import fabric


def intents(hosts: int, rails: int = 2, planes: bool = False, **scheduler: Any) -> dict[str, Any]:
    def rail(number: int) -> dict[str, Any]:
        plane = f"rail{number}" if planes else "default"
        return {"name": f"rail{number}", "nic": {"pci": f"0000:{16 + number:02x}:00.0"}, "link_layer": "infiniband", "plane": plane}

    intent = normalize({"rdma_rails": [rail(number) for number in range(rails)], "rdma_scheduler": scheduler})
    return {f"node{number}": intent for number in range(1, hosts + 1)}


def plan(
    hosts: int = 8, unproven: Mapping[str, str] | None = None, before: Mapping[str, Any] | None = None, **scheduler: Any
) -> SchedulerPlan:
    return scheduler_plan(intents(hosts, **scheduler), {"default": StoredPlane(View(fabric(hosts)), "R1")}, unproven or {}, before or {})


def test_the_files() -> None:
    files = plan().files
    assert files["topology.conf"].splitlines()[1:] == [
        "# leaf0: leaf[0-1]",
        "SwitchName=leaf0 Nodes=node[1-4]",
        "# leaf2: leaf[2-3]",
        "SwitchName=leaf2 Nodes=node[5-8]",
        "# spine0: spine[0-1]",
        "SwitchName=spine0 Switches=leaf[0,2]",
    ]
    assert files["topology-block.conf"].splitlines()[1:] == [
        "BlockName=leaf0 Nodes=node[1-4]",
        "BlockName=leaf2 Nodes=node[5-8]",
        "BlockSizes=4",
    ]
    assert files["hostfile"].split() == [f"node{number}" for number in range(1, 9)]
    assert yaml.safe_load(files["topology.yaml"]) == [
        {
            "topology": "default-tree",
            "cluster_default": True,
            "tree": {
                "switches": [
                    {"switch": "spine0", "children": "leaf[0,2]"},
                    {"switch": "leaf0", "nodes": "node[1-4]"},
                    {"switch": "leaf2", "nodes": "node[5-8]"},
                ]
            },
        },
        {
            "topology": "default-block",
            "cluster_default": False,
            "block": {"block_sizes": [4], "blocks": [{"block": "leaf0", "nodes": "node[1-4]"}, {"block": "leaf2", "nodes": "node[5-8]"}]},
        },
    ]


@pytest.mark.parametrize(
    ("labels", "leaf", "spine", "core"),
    [
        (
            "nvidia",
            "network.topology.nvidia.com/leaf=leaf0",
            "network.topology.nvidia.com/spine=spine0",
            "network.topology.nvidia.com/core-",
        ),
        ("topograph", "fabric.topograph.run/tier-0=leaf0", "fabric.topograph.run/tier-1=spine0", "fabric.topograph.run/tier-2-"),
    ],
)
def test_the_labels(labels: str, leaf: str, spine: str, core: str, tmp_path: Path) -> None:
    """The script is run with a kubectl that prints its arguments."""
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    script = plan(kubernetes_labels=labels).files["kubernetes-labels.sh"]
    done = subprocess.run(["/bin/sh"], input=script, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == f"label --overwrite node node1 {leaf} {spine} {core}"
    assert len(done.stdout.splitlines()) == 8


def test_hosts_without_a_proof_are_left_out_and_listed() -> None:
    made = plan(unproven={"node2": "rail0: never measured", "node3": "rail0: never measured"})
    assert "Nodes=node[1,4]" in made.files["topology.conf"]
    text = plan_text(made, 8, None, "")
    assert "6 of 8 hosts" in text
    assert "2 hosts are not in the tree. Slurm runs jobs of one host there, and no job across them:" in text
    assert "  node[2-3]: rail0: never measured" in text


def test_hosts_without_a_proof_are_leaves_of_their_own() -> None:
    made = plan(unproven={"node2": "rail0: never measured", "node3": "rail0: never measured"})
    assert made.alone == ("node2", "node3")
    assert made.files["topology.conf"].splitlines()[-2:] == ["SwitchName=alone-node2 Nodes=node2", "SwitchName=alone-node3 Nodes=node3"]
    tree, blocks = yaml.safe_load(made.files["topology.yaml"])[:2]
    assert tree["tree"]["switches"][-2:] == [{"switch": f"alone-node{each}", "nodes": f"node{each}"} for each in (2, 3)]
    for text in (made.files["hostfile"], made.files["kubernetes-labels.sh"], made.files["topology-block.conf"], str(blocks)):
        assert "node2" not in text
        assert "alone" not in text


def test_excluded_hosts_are_in_no_file_and_the_text_warns() -> None:
    planes = {"default": StoredPlane(View(fabric(8)), "R1")}
    made = scheduler_plan(intents(8, unproven="exclude"), planes, {"node2": "rail0: never measured"}, {})
    assert made.alone == ()
    assert not any("node2" in text for text in made.files.values())
    assert "WARNING: 1 host is in no file. With these files Slurm starts no job there, not even one of one host." in plan_text(
        made, 8, None, ""
    )


def test_hosts_without_a_proof_can_be_included() -> None:
    both = scheduler_plan(
        intents(8, unproven="include"), {"default": StoredPlane(View(fabric(8)), "R1")}, {"node2": "rail0: never measured"}, {}
    )
    assert "Nodes=node[1-4]" in both.files["topology.conf"]
    assert both.left_out == {}


def test_names_of_nodes() -> None:
    named = intents(8)
    for host in named:
        named[host] = {
            **named[host],
            "scheduler": {**named[host]["scheduler"], "slurm_name": f"gpu{host[4:]}", "kubernetes_name": f"{host}.k"},
        }
    files = scheduler_plan(named, {"default": StoredPlane(View(fabric(8)), "R1")}, {}, {}).files
    assert "Nodes=gpu[1-4]" in files["topology.conf"]
    assert "node node1.k " in files["kubernetes-labels.sh"]
    assert files["hostfile"].startswith("gpu1\n")


def of_rails(**changed: Graph) -> dict[str, StoredPlane]:
    """Two planes, each with the ports of one rail and leaves of its own."""
    graphs = {f"rail{number}": replace(fabric(8, rails=1), plane=f"rail{number}") for number in (0, 1)}
    return {name: StoredPlane(View(graph), "R1") for name, graph in {**graphs, **changed}.items()}


def test_planes_are_apart_in_topology_yaml() -> None:
    made = scheduler_plan(intents(8, planes=True), of_rails(), {}, {})
    assert [each["topology"] for each in yaml.safe_load(made.files["topology.yaml"])] == [
        "rail0-tree",
        "rail0-block",
        "rail1-tree",
        "rail1-block",
    ]
    assert made.chosen.plane == "rail0"


def test_planes_that_differ_need_a_choice() -> None:
    other = replace(fabric(8, rails=1, per_leaf=2), plane="rail1")
    with pytest.raises(SchedulerError, match=r"Planes rail0 and rail1 group hosts differently: node\[1-2\] share a leaf of rail1"):
        scheduler_plan(intents(8, planes=True), of_rails(rail1=other), {}, {})
    made = scheduler_plan(intents(8, planes=True, plane="rail1"), of_rails(rail1=other), {}, {})
    assert made.files["topology.conf"].count("Nodes=") == 4


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        ({"plane": "defualt"}, "rdma_scheduler.plane is defualt, but no compute rail is on this plane: did you mean 'default'"),
        ({"slurm_name": "node1"}, "rdma_scheduler.slurm_name of node1 and of node2 is node1: each host needs its own name"),
    ],
)
def test_what_is_refused(scheduler: dict[str, Any], message: str) -> None:
    with pytest.raises(SchedulerError, match=message):
        plan(**scheduler)


def test_hosts_that_differ_are_refused() -> None:
    mixed = {**intents(2), "node2": intents(1, unproven="include")["node1"]}
    with pytest.raises(SchedulerError, match=r"rdma_scheduler\.unproven is alone on node1 and include on node2"):
        scheduler_plan(mixed, {"default": StoredPlane(View(fabric(2)), "R1")}, {}, {})


def test_without_a_stored_graph_nothing_is_planned() -> None:
    with pytest.raises(SchedulerError, match="No run has stored a complete graph of plane default"):
        scheduler_plan(intents(2), {}, {}, {})


def test_without_any_proof_the_reason_is_given() -> None:
    with pytest.raises(SchedulerError, match=r"No host with a valid proof is on plane default\. node1: never measured"):
        plan(2, {"node1": "never measured", "node2": "never measured"})


def test_a_name_that_slurm_cannot_read_is_refused() -> None:
    strange = {"node 1": intents(1)["node1"]}
    with pytest.raises(SchedulerError, match="node 1 cannot have the name 'node 1'"):
        scheduler_plan(strange, {"default": StoredPlane(View(fabric(2)), "R1")}, {}, {})


def test_the_difference_from_the_last_plan() -> None:
    first, second = plan(), plan(unproven={"node5": "expired"})
    changed = difference(second.files, first.files)
    assert "-SwitchName=leaf2 Nodes=node[5-8]" in changed
    assert "+SwitchName=leaf2 Nodes=node[6-8]" in changed
    assert difference(first.files, plan(before=first.to_dict()).files) == ""
    text = plan_text(second, 8, "R0", changed)
    assert "Difference from the plan of run R0:" in text
    assert "No difference from the plan of run R0." in plan_text(first, 8, "R0", "")
