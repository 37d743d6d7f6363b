# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small fabrics of leaves and spines for tests, with two- and three-tier shapes."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.rdma.cluster.plugins.module_utils._fabric_graph import Graph, Link, Node, Port

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
    groups = -(-hosts // per_leaf)
    leaves = groups * (rails if plan == "rails" else 1)
    nodes = {guid("leaf", number): switch("leaf", number) for number in range(leaves)}
    nodes |= {guid("spine", number): switch("spine", number) for number in range(spines)}
    links = []
    for leaf in range(leaves):
        for spine in range(spines):
            for cable in range(cables):
                up, down = UPLINK + spine * cables + cable, 1 + leaf * cables + cable
                width = 1 if f"leaf{leaf}/{up}" in slow else 4
                links.append(Link((guid("leaf", leaf), up), (guid("spine", spine), down), width, "NDR"))
    for host in range(hosts):
        for rail in range(rails):
            leaf = (host // per_leaf) * rails + rail if plan == "rails" else host // per_leaf
            place = host % per_leaf + 1 if plan == "rails" else host % per_leaf * rails + rail + 1
            name = f"node{host + 1}"
            port = Port(number=1, guid=hca(rail, host), lid=1 + rail * 4096 + host, state="ACTIVE", physical="LinkUp", width=4, speed="NDR")
            nodes[hca(rail, host)] = Node(
                guid=hca(rail, host),
                kind="host",
                name=name,
                description=f"{name} mlx5_{rail}",
                device=f"mlx5_{rail}",
                system_guid=None,
                vendor_id=None,
                device_id=None,
                lid=None,
                ports={1: port},
            )
            width = 1 if f"leaf{leaf}/{place}" in slow else 4
            links.append(Link(*sorted(((guid("leaf", leaf), place), (hca(rail, host), 1))), width, "NDR"))
    links = [Link(*sorted((link.a, link.b)), link.width, link.speed) for link in links]
    return Graph(plane="default", nodes=nodes, links=links, source="ibnetdiscover", complete=True, problems=[])


def switch(kind: str, number: int) -> Node:
    return Node(
        guid=guid(kind, number),
        kind="switch",
        name=f"{kind}{number}",
        description=f"{kind}{number}",
        device=None,
        system_guid=None,
        vendor_id=None,
        device_id=None,
        lid=None,
        ports={},
    )
