# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beds of fabrics, measurements and jobs."""

from __future__ import annotations

BEDS: dict = {}
