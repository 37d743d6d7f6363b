# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Site runs that are killed at random moments, many in a row: the next one converges, and nothing differs."""

from __future__ import annotations

import os
import random

import pytest

from lab.cluster import Lab
from tests.verify.killed import kill_and_converge
from tests.verify.site import Site

KILLS = int(os.environ.get("RDMA_TEST_KILLS") or 10)
#: How many runs are killed before one may end: all of ten, since a run that ends costs minutes; one in `make test-all`.
IN_A_ROW = 1 if "RDMA_TEST_KILLS" in os.environ else KILLS


@pytest.mark.parametrize("round_number", range(KILLS // IN_A_ROW))
def test_killed_and_run_again_and_a_second_run_beside_that_names_it(lab: Lab, site: Site, seed: int, round_number: int) -> None:
    kill_and_converge(lab, site, random.Random(f"{seed} {round_number}"), IN_A_ROW)


def test_after_all_of_that_nothing_differs(site: Site) -> None:
    assert site.drift() == []
