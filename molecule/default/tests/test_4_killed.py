# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site run that is killed at a random moment: the next one converges, and nothing differs."""

from __future__ import annotations

import random

from lab.cluster import Lab
from tests.verify.killed import kill_and_converge
from tests.verify.site import Site


def test_killed_and_run_again_and_a_second_run_beside_that_names_it(lab: Lab, site: Site, seed: int) -> None:
    kill_and_converge(lab, site, random.Random(seed), kills=1)


def test_after_that_nothing_differs(site: Site) -> None:
    assert site.drift() == []
