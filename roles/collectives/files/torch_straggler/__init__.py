# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds ranks that come late to the collectives of a job, for training loops. The program is torch_collectives.py next to this package."""

from __future__ import annotations

from .training import Times, timed_collective

__all__ = ["Times", "timed_collective"]
