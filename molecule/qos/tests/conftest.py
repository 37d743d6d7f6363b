# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab that this scenario runs on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab import cluster
from lab.cluster import Lab
from tests.verify.site import Site

VARIABLES = Path(__file__).parents[1] / "vars/main.yml"


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The scenario's own; RDMA_TEST_LAB names another one that is up and prepared, to try a test by hand."""
    return cluster.load(os.environ.get("RDMA_TEST_LAB", "mqos"))


@pytest.fixture(scope="session")
def site(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Of two machines."""
    return Site(lab.folder.inventory, tmp_path_factory.mktemp("site"), ["-e", f"@{VARIABLES}", "-e", "rdma_hosts=node1,node2"])


@pytest.fixture(scope="session")
def everyone(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(lab.folder.inventory, tmp_path_factory.mktemp("everyone"), ["-e", f"@{VARIABLES}"])
