# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All beds that are no whole hosts, by name."""

from __future__ import annotations

from tests.faults.beds import fabrics, jobs, measured
from tests.faults.beds.scene import Scene

BEDS: dict[str, Scene] = {**fabrics.BEDS, **measured.BEDS, **jobs.BEDS}
