# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each node after the build: asked over SSH, not by our own facts."""

from __future__ import annotations

import time

import pytest
import testinfra

from lab.cluster import Lab
from tests.verify.nodes import assert_modules, assert_rails, say

NODES = ["node1", "node2"]


def test_each_machine_is_one_of_its_own(lab: Lab) -> None:
    """They start from one saved state."""
    for node in lab.plan.nodes:
        before = time.time()
        now, name, machine_id, key, *macs = say(
            lab,
            node,
            "date +%s.%N; hostname; cat /etc/machine-id; cut -d' ' -f2 /etc/ssh/ssh_host_ed25519_key.pub; cat /sys/class/net/e*/address",
        ).split()
        assert before - 1 < float(now) < time.time() + 1
        assert (name, machine_id) == (node.name, node.machine_id)
        assert f"[127.0.0.1]:{node.ssh_port} ssh-ed25519 {key}" in lab.folder.known_hosts.read_text().splitlines()
        assert set(macs) == {node.management_mac, *(rail.mac for rail in node.rails)}
    keys = [line.split()[2] for line in lab.folder.known_hosts.read_text().splitlines()]
    # One key of the image's where KVM boots the machines, else one each.
    assert len(set(keys)) in {1, len(keys)}


@pytest.mark.parametrize("name", NODES)
def test_rails_and_modules(lab: Lab, name: str) -> None:
    node = lab.plan.node(name)
    assert_rails(lab, node)
    assert_modules(lab, node)


def test_packages_units_and_files(lab: Lab) -> None:
    # One node: each question is an SSH session of its own, seconds on an emulated machine.
    host = testinfra.get_host(f"ansible://node2?ansible_inventory={lab.folder.inventory}")
    assert host.package("perftest").is_installed
    assert host.service("rdma-soft-links").is_running
    assert host.service("rdma-soft-links").is_enabled
    assert host.file("/etc/modules-load.d/rdma-cluster.conf").content_string.splitlines()[1:] == ["rdma_rxe"]
    assert host.file("/etc/systemd/network/60-rdma-rail1.network").mode == 0o644
