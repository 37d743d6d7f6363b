# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node of a built lab has, asked over SSH, not by our own facts."""

from __future__ import annotations

import json

from lab import remote
from lab.cluster import Lab
from lab.plan import Node

MODULES = ["ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm", "rdma_rxe"]


def say(lab: Lab, node: Node, command: str) -> str:
    said = remote.execute(node, lab.folder, command)
    assert said.status == 0, f"{node.name}: `{command}`: {said.stderr}"
    return said.stdout


def assert_rails(lab: Lab, node: Node) -> None:
    links = {link["ifname"]: link for link in json.loads(say(lab, node, "rdma -j link show"))}
    addresses = {item["address"]: item for item in json.loads(say(lab, node, "ip -j address show"))}
    for rail in node.rails:
        nic = addresses[rail.mac]
        link = links[f"rxe_{rail.name}"]
        assert (link["state"], link["physical_state"], link["netdev"]) == ("ACTIVE", "LINK_UP", nic["ifname"])
        assert nic["mtu"] == 9000
        there = [f"{item['local']}/{item['prefixlen']}" for item in nic["addr_info"] if item["family"] == "inet"]
        assert there == [rail.address]


def assert_modules(lab: Lab, node: Node) -> None:
    loaded = {line.split()[0] for line in say(lab, node, "cat /proc/modules").splitlines()}
    assert loaded >= set(MODULES)
