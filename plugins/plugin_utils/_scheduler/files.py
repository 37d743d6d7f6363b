# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files for schedulers, from the trees of the compute planes.

Sources: topology.conf(5) of Slurm 22.05 (tree) and 24.05 (block), topology.yaml(5) of Slurm 25.05; the label keys of NVIDIA topograph
(docs/reference/node-labels.md for 0.5, CHANGELOG.md for 1.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.hostlist import folded
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.tree import Element, Tree

#: rdma_scheduler.kubernetes_labels → the key of each level of the tree, leaves first.
LABELS = {
    "nvidia": ("network.topology.nvidia.com/leaf", "network.topology.nvidia.com/spine", "network.topology.nvidia.com/core"),
    "topograph": ("fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1", "fabric.topograph.run/tier-2"),
}
TREE_CONF, BLOCK_CONF, YAML, KUBERNETES, HOSTFILE = (
    "topology.conf", "topology-block.conf", "topology.yaml", "kubernetes-labels.sh", "hostfile",
)  # fmt: skip
WRITTEN = "Written by `rdma.cluster.plan --tags scheduler`"
#: The comment above leaves of one host.
ALONE = "Hosts that are not in the tree of the switches, a leaf each: Slurm runs jobs of one host there, and no job across them."
#: Host → its name in a scheduler.
Names = Mapping[str, str]


@dataclass(frozen=True)
class Planes:
    """trees: of all compute planes; chosen: the one of the files for a single topology. alone: hosts that are a leaf of their own."""

    trees: Sequence[Tree]
    chosen: Tree
    alone: Sequence[str] = ()


def files_of(planes: Planes, slurm: Names, kubernetes: Names, labels: str) -> dict[str, str]:
    """Return file name → text."""
    chosen = planes.chosen
    return {
        TREE_CONF: tree_conf(chosen, slurm, planes.alone),
        BLOCK_CONF: block_conf(chosen, slurm),
        YAML: topology_yaml(planes, slurm),
        KUBERNETES: kubernetes_labels(chosen, kubernetes, LABELS[labels]),
        HOSTFILE: "".join(f"{slurm[host]}\n" for host in chosen.hosts),
    }


def leaf_alone(name: str) -> str:
    """Return the name of the leaf of a host without a proof. No cable joins it to another one."""
    return f"alone-{name}"


def tree_conf(tree: Tree, names: Names, alone: Sequence[str] = ()) -> str:
    """Return topology.conf for the plugin topology/tree. alone: hosts that get a leaf of their own, without a switch above it."""
    lines = [f"# {WRITTEN} for plane {tree.plane}. slurm.conf: TopologyPlugin=topology/tree", *_parts(tree)]
    for element in tree.elements:
        lines += _comment(element, tree)
        if element.hosts:
            lines.append(f"SwitchName={element.name} Nodes={folded(names[host] for host in element.hosts)}")
        else:
            lines.append(f"SwitchName={element.name} Switches={folded(element.children)}")
    lines += [f"# {ALONE}"] if alone else []
    lines += [f"SwitchName={leaf_alone(names[host])} Nodes={names[host]}" for host in alone]
    return "\n".join(lines) + "\n"


def block_conf(tree: Tree, names: Names) -> str:
    """Return topology.conf for the plugin topology/block: the hosts of a leaf are a block."""
    lines = [f"# {WRITTEN} for plane {tree.plane}. slurm.conf: TopologyPlugin=topology/block (Slurm 23.11 or later)", *_parts(tree)]
    lines += [f"BlockName={group.name} Nodes={folded(names[host] for host in group.hosts)}" for group in tree.groups]
    return "\n".join([*lines, f"BlockSizes={block_size(tree)}"]) + "\n"


def block_size(tree: Tree) -> int:
    """Return the size of Slurm's base block: the number of hosts of the smallest leaf, because each block needs as many."""
    return min(len(group.hosts) for group in tree.groups)


def topology_yaml(planes: Planes, names: Names) -> str:
    """Return topology.yaml: a tree and blocks for each plane. The tree of the chosen plane is the default of the cluster."""
    items, chosen = [], planes.chosen
    alone = [{"switch": leaf_alone(names[host]), "nodes": names[host]} for host in planes.alone]
    for tree in [chosen, *(each for each in planes.trees if each is not chosen)]:
        switches = [*_switches(tree, names), *alone]
        items += [
            {"topology": f"{tree.plane}-tree", "cluster_default": tree is chosen, "tree": {"switches": switches}},
            {
                "topology": f"{tree.plane}-block",
                "cluster_default": False,
                "block": {
                    "block_sizes": [block_size(tree)],
                    "blocks": [{"block": each.name, "nodes": folded(names[host] for host in each.hosts)} for each in tree.groups],
                },
            },
        ]
    head = f"# {WRITTEN}. Slurm 25.05 or later. If this file exists, Slurm ignores topology.conf.\n---\n"
    return head + str(yaml.safe_dump(items, sort_keys=False, width=10**6))


def _switches(tree: Tree, names: Names) -> Iterator[dict[str, Any]]:
    # Slurm's manual has the root first.
    for level in reversed(tree.levels):
        for each in level:
            below = {"nodes": folded(names[host] for host in each.hosts)} if each.hosts else {"children": folded(each.children)}
            yield {"switch": each.name, **below}


def kubernetes_labels(tree: Tree, names: Names, keys: Sequence[str]) -> str:
    """Return a script of one `kubectl label` for each host. It changes no node that does not exist."""
    lines = ["#!/bin/sh", f"# {WRITTEN} for plane {tree.plane}. Run it with a kubeconfig that may label nodes.", "set -e"]
    paths = tree.paths()
    for host in tree.hosts:
        pairs = [f"{key}={value}" for key, value in zip(keys, paths[host], strict=False)]
        # A key of a level that the tree no longer has is removed.
        pairs += [f"{key}-" for key in keys[len(paths[host]) :]]
        lines.append(f"kubectl label --overwrite node {names[host]} {' '.join(pairs)}")
    return "\n".join(lines) + "\n"


def _comment(element: Element, tree: Tree) -> list[str]:
    """Return a line with the switches of an element that stands for several."""
    named = folded(tree.names[guid] for guid in element.switches)
    return [f"# {element.name}: {named}"] if len(element.switches) > 1 else []


def _parts(tree: Tree) -> list[str]:
    if len(tree.roots) < 2:
        return []
    return [f"# {len(tree.roots)} fabrics without a cable between them: {', '.join(each.name for each in tree.roots)}. No job spans them."]
