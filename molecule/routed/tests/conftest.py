# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The routed Clos network that this scenario runs on, with our plan on its switches."""

from __future__ import annotations

import os

import pytest

from lab import clos
from lab.clos import Clos
from tests.verify.clos import are_established, findings, is_clean, plan_of, texts, until


@pytest.fixture(scope="session")
def network() -> Clos:
    """The scenario's own; RDMA_TEST_CLOS names another one that is up, to try a test by hand."""
    return clos.load(os.environ.get("RDMA_TEST_CLOS", "mrouted"))


@pytest.fixture
def routed(network: Clos) -> Clos:
    """The network as planned: every session is up, and there is no finding."""
    plane = plan_of(network)
    if not are_established(network, plane) or not is_clean(findings(network, plane)):
        clos.route(network, texts(plane))
        until(lambda: are_established(network, plane) and is_clean(findings(network, plane)), 20)
    return network
