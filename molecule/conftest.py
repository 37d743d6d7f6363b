# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for the tests of all scenarios. A scenario says in its own conftest.py which lab is `lab`."""

from __future__ import annotations

import os
import random

import pytest

from lab.cluster import Lab
from tests.verify import fault_record
from tests.verify.driver import Driver, Hosts
from tests.verify.failures import pytest_runtest_call, pytest_runtest_setup
from tests.verify.site import Site

__all__ = ["pytest_runtest_call", "pytest_runtest_setup"]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(fault_record, "fault-record")
    fault_record.pytest_configure(config)


@pytest.fixture(scope="session")
def site(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(lab.folder.inventory, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def seed() -> int:
    """What is drawn at random is drawn from this; RDMA_TEST_SEED draws it again."""
    drawn = int(os.environ.get("RDMA_TEST_SEED") or random.SystemRandom().randrange(10**6))
    print(f"\nRDMA_TEST_SEED={drawn}")
    return drawn


@pytest.fixture(scope="session")
def hosts(lab: Lab) -> Hosts:
    return Hosts(lab)


@pytest.fixture(scope="session")
def driver(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return Driver(site, tmp_path_factory.mktemp("driver"))
