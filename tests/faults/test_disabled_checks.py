# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The test of the test: with a check that always passes, the faults of this check are no longer named right.

RDMA_TEST_EXAMPLES=new draws other checks.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base import findings
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import OK
from tests.faults.fault import Fault, exceptions, faults
from tests.faults.score import RIGHT, forget, judge

SAMPLE = 5


def sampled() -> list[str]:
    """Some checks that have a fault, the same ones in every run unless RDMA_TEST_EXAMPLES is new."""
    known = sorted({each.check for fault in faults() for each in fault.expect} - exceptions("no_fault").keys())
    seed = None if os.environ.get("RDMA_TEST_EXAMPLES") == "new" else 59
    return random.Random(seed).sample(known, int(os.environ.get("RDMA_TEST_DISABLED", SAMPLE)))


def first(check: str) -> Fault:
    """The first fault without near misses that a check must report."""
    return replace(next(fault for fault in faults() if check in {each.check for each in fault.expect}), near=())


@contextlib.contextmanager
def passing(check: str) -> Iterator[None]:
    """Let every finding of a check be `ok`."""
    built = findings.Finding.__post_init__

    def is_ok(self: findings.Finding) -> None:
        if self.check == check:
            object.__setattr__(self, "status", OK)
        built(self)

    forget()
    with mock.patch.object(findings.Finding, "__post_init__", is_ok):
        yield
    forget()


@pytest.mark.parametrize("check", sampled())
def test_a_check_that_always_passes_fails_its_fault(check: str) -> None:
    fault = first(check)
    with passing(check):
        assert judge(fault).verdict != RIGHT
    assert judge(fault).verdict == RIGHT
