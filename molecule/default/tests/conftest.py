# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab that this scenario runs on, seen from outside."""

from __future__ import annotations

import pytest

from lab import cluster
from lab.cluster import Lab
from tests.verify.site import Site


@pytest.fixture(scope="session")
def lab() -> Lab:
    return cluster.load("molecule")


@pytest.fixture(scope="session")
def site(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(lab, tmp_path_factory.mktemp("site"))
