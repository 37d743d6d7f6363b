# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for the tests of all scenarios."""

from tests.verify.failures import pytest_runtest_call, pytest_runtest_setup

__all__ = ["pytest_runtest_call", "pytest_runtest_setup"]
