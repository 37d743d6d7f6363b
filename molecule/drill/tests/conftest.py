# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The routed Clos network of this scenario: our plan on its switches, systemd in its nodes, and addresses on its hosts."""

from __future__ import annotations

import os

import pytest

from lab import clos, clos_systemd
from lab.clos import Clos
from tests.verify.clos import address_hosts, findings, is_clean, plan_of, texts, until


@pytest.fixture(scope="session")
def network() -> Clos:
    """The scenario's own; RDMA_TEST_CLOS names another one that is up, to try a test by hand."""
    network = clos.load(os.environ.get("RDMA_TEST_CLOS", "mdrill"))
    plane = plan_of(network)
    if not (network.folder.node("leaf1") / "init.pid").exists():
        for name, text in texts(plane).items():
            (network.folder.node(name) / "etc/frr.conf").write_text(text)
        clos_systemd.boot(network)
    address_hosts(network, plane)
    until(lambda: is_clean(findings(network, plane)), 30, 0.5)
    return network
