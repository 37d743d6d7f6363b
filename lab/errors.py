# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error that the lab shows to a person."""

from __future__ import annotations


class LabError(Exception):
    """Something that the person at the keyboard can act on: one sentence, or a list of what is missing, printed as it is, exit status 1."""
