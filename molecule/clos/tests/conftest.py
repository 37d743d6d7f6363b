# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machines of this scenario, and the switches between them: both as planned from files/request.yml."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from lab import clos, cluster
from lab.clos import Clos
from lab.cluster import Lab
from tests.verify.planned_clos import PlannedClos
from tests.verify.site import Site

REQUEST = Path(__file__).parents[1] / "files/request.yml"


@pytest.fixture(scope="session")
def planned(tmp_path_factory: pytest.TempPathFactory) -> PlannedClos:
    return PlannedClos.of(REQUEST, tmp_path_factory.mktemp("planned"))


@pytest.fixture(scope="session")
def lab(planned: PlannedClos) -> Lab:
    """The scenario's own; RDMA_TEST_LAB names another one that is up, to try a test by hand."""
    return planned.of_lab(cluster.load(os.environ.get("RDMA_TEST_LAB", "mclos")))


@pytest.fixture(scope="session")
def network(lab: Lab) -> Clos:
    return clos.load(lab.plan.name)


@pytest.fixture(scope="session")
def plane(planned: PlannedClos) -> RoutedPlane:
    return planned.plane


@pytest.fixture(scope="session")
def site(planned: PlannedClos, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return planned.site(lab, tmp_path_factory.mktemp("site"))
