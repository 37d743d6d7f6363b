# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab that this scenario runs on."""

from __future__ import annotations

import os

import pytest

from lab import cluster
from lab.cluster import Lab
from tests.verify.driver import Driver
from tests.verify.site import Site


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The scenario's own; RDMA_TEST_LAB names another one that is up with lockdown, to try a test by hand."""
    return cluster.load(os.environ.get("RDMA_TEST_LAB", "mlockdown"))


@pytest.fixture(scope="session")
def runs(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Driver:
    """The findings of the last run."""
    return Driver(site, tmp_path_factory.mktemp("runs"))
