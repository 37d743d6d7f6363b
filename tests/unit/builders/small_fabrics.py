# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fabrics of leaves and spines whose GUIDs, LIDs and ports show what they belong to; all is counted from 0, but for hosts and ports."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from tests.unit.builders.fabrics import Fabric

UPLINK = 101


def guid(kind: str, number: int) -> str:
    """A GUID by what it is of: "spine", "leaf" or "hca", and its number."""
    return f"0x{('spine', 'leaf', 'hca').index(kind) + 1:04x}{number:012x}"


def hca(rail: int, host: int) -> str:
    return guid("hca", rail * 4096 + host)


def fabric(
    hosts: int, *, rails: int = 2, per_leaf: int = 4, spines: int = 2, cables: int = 1, plan: str = "rails", slow: Iterable[str] = ()
) -> Graph:
    """plan: "rails", each rail on leaves of its own, or "shared". cables: between each leaf and spine. slow: "leaf1/101" runs at 1X."""
    found = Fabric()
    groups = -(-hosts // per_leaf)
    leaves = groups * (rails if plan == "rails" else 1)
    for kind, count in (("leaf", leaves), ("spine", spines)):
        for number in range(count):
            found.node(f"{kind}{number}", "switch", guid(kind, number))
    for leaf in range(leaves):
        for spine in range(spines):
            for cable in range(cables):
                found.join((f"leaf{leaf}", UPLINK + spine * cables + cable), (f"spine{spine}", 1 + leaf * cables + cable))
    for host in range(hosts):
        for rail in range(rails):
            leaf = (host // per_leaf) * rails + rail if plan == "rails" else host // per_leaf
            place = host % per_leaf + 1 if plan == "rails" else host % per_leaf * rails + rail + 1
            name = f"node{host + 1} mlx5_{rail}"
            found.node(name, "host", hca(rail, host))
            found.join((name, 1), (f"leaf{leaf}", place))
            reported = {"lid": 1 + rail * 4096 + host, "state": "ACTIVE", "physical": "LinkUp", "width": 4, "speed": "NDR"}
            found.ports[name, 1] = reported
    for each in slow:
        leaf_name, _slash, port = each.partition("/")
        found.slow((leaf_name, int(port)), width=1)
    return found.graph()
