# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machines of this scenario, and the switches between them."""

from __future__ import annotations

import os

import pytest

from lab import clos, cluster
from lab.clos import Clos
from lab.cluster import Lab


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The scenario's own; RDMA_TEST_LAB names another one that is up, to try a test by hand."""
    return cluster.load(os.environ.get("RDMA_TEST_LAB", "mclos"))


@pytest.fixture(scope="session")
def network(lab: Lab) -> Clos:
    return clos.load(lab.plan.name)
