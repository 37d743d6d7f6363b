# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each node after the build, and after a reboot of its own: asked over SSH, not by our own facts."""

from __future__ import annotations

import json

import pytest
import testinfra

from lab import remote
from lab.cluster import Lab
from lab.plan import Node
from tests.verify.driver import Hosts

NODES = ["node1", "node2", "node3", "node4"]
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


@pytest.mark.parametrize("name", NODES)
def test_rails_and_modules(lab: Lab, name: str) -> None:
    node = lab.plan.node(name)
    assert_rails(lab, node)
    assert_modules(lab, node)


def test_packages_units_and_files(lab: Lab) -> None:
    # One node: each question is an SSH session of its own, seconds on an emulated machine.
    host = testinfra.get_host(f"ansible://node4?ansible_inventory={lab.folder.inventory}")
    assert host.package("perftest").is_installed
    assert host.service("rdma-soft-links").is_running
    assert host.service("rdma-soft-links").is_enabled
    assert host.file("/etc/modules-load.d/rdma-cluster.conf").content_string.splitlines()[1:] == ["rdma_rxe"]
    assert host.file("/etc/systemd/network/60-rdma-rail1.network").mode == 0o644


def test_after_a_reboot_everything_is_back_by_itself(lab: Lab) -> None:
    node = lab.plan.node("node2")
    Hosts(lab).reboot("node2")
    assert say(lab, node, "systemctl is-system-running").strip() == "running"
    assert_rails(lab, node)
    assert_modules(lab, node)
