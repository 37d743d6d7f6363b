# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fabric that this scenario runs on."""

from __future__ import annotations

import os

import pytest

from lab import fabric
from lab.fabric import Fabric


@pytest.fixture(scope="session")
def there() -> Fabric:
    """The scenario's own; RDMA_TEST_LAB names another one that is up, to try a test by hand."""
    return fabric.load(os.environ.get("RDMA_TEST_LAB", "mfabric"))
