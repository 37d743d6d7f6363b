# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What perftest says that it has sent was on the cables: on both ends of every pair, and on no other."""

from __future__ import annotations

from lab.cluster import Lab
from tests.verify.observers import Recorder
from tests.verify.site import Site


def test_every_byte_that_is_reported_was_on_its_cables(lab: Lab, site: Site) -> None:
    with Recorder(lab) as recorder:
        done = site.run("pairs", "-e", "rdma_measure=true")
    assert done.returncode == 0, done.stdout
    assert len(site.results()) == 12
    recorder.assert_bytes(*site.sweeps())
