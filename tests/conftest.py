# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings for every test."""

from __future__ import annotations

import os

from hypothesis import settings

# A busy machine is not a slow function; and what the continuous integration finds must be found again.
settings.register_profile("project", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("project")
