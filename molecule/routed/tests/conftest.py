# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The routed Clos network that this scenario runs on, with our plan on its switches."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lab import clos
from lab.clos import Clos
from lab.clos_plan import ClosShape
from tests.verify.clos import SETTLED, findings, is_clean, plan_of, texts, until
from tests.verify.clos_start import start


@pytest.fixture(scope="session")
def network() -> Iterator[Clos]:
    """The scenario's own, or the one that the second worker makes. RDMA_TEST_CLOS names another one that is up, to try a test by hand."""
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0" or "RDMA_TEST_CLOS" in os.environ:
        yield clos.load(os.environ.get("RDMA_TEST_CLOS", "mrouted"))
        return
    yield clos.up("mrouted2", ClosShape(2, 2, 1))
    clos.down("mrouted2")


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
