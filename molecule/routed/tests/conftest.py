# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The routed Clos network that this scenario runs on, with our plan on its switches."""

from __future__ import annotations

import os

import pytest

from lab import clos
from lab.clos import Clos
from tests.verify.clos import SETTLED, findings, is_clean, plan_of, texts, until
from tests.verify.clos_start import start


@pytest.fixture(scope="session")
def network() -> Clos:
    """The scenario's own; RDMA_TEST_CLOS names another one that is up, to try a test by hand."""
    return clos.load(os.environ.get("RDMA_TEST_CLOS", "mrouted"))


@pytest.fixture
def routed(network: Clos) -> Clos:
    """The network as planned: every session is up, and there is no finding. A test that ends with settle() leaves it so."""
    if network.name in SETTLED:
        SETTLED.remove(network.name)
        return network
    plane = plan_of(network)
    if not is_clean(findings(network, plane)):
        start(network, texts(plane))
        until(lambda: is_clean(findings(network, plane)), 20, 0.3)
    return network
