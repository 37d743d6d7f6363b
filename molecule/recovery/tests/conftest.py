# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab that this scenario runs on, seen from outside."""

from __future__ import annotations

import os
import random

import pytest

from lab import cluster
from lab.cluster import Lab
from tests.verify.site import Site


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The scenario's own; RDMA_TEST_LAB names another one that is up and built, to try a test by hand."""
    return cluster.load(os.environ.get("RDMA_TEST_LAB", "mrecovery"))


@pytest.fixture(scope="session")
def site(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(lab.folder.inventory, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def seed() -> int:
    """What is drawn at random is drawn from this; RDMA_TEST_SEED draws it again."""
    drawn = int(os.environ.get("RDMA_TEST_SEED") or random.SystemRandom().randrange(10**6))
    print(f"\nRDMA_TEST_SEED={drawn}")
    return drawn
