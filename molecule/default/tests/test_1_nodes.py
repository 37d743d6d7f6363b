# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each node after the build: asked over SSH, not by our own facts."""

from __future__ import annotations

import pytest
import testinfra

from lab.cluster import Lab
from tests.verify.nodes import assert_identity, assert_modules, assert_rails, host_keys

NODES = ["node1", "node2"]


def test_each_machine_is_one_of_its_own(lab: Lab) -> None:
    for node in lab.plan.nodes:
        assert_identity(lab, node)
    assert len(host_keys(lab)) in {1, len(lab.plan.nodes)}


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
