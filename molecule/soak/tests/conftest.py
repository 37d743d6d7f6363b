# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab that this scenario runs on, seen from outside."""

from __future__ import annotations

import os

import pytest

from lab import cluster
from lab.cluster import Lab


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The scenario's own; RDMA_TEST_LAB names another one that is up and built, to try a test by hand."""
    return cluster.load(os.environ.get("RDMA_TEST_LAB", "msoak"))
