# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rail in this process, without its thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.plan import Plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.rail import Rail
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.results import Results
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.schedule import own_meetings
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.sweep import Sweep
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import MeetingError
from tests.unit.builders.pair_runners import Fleet


@pytest.fixture
def one_rail(fleet: Fleet, tmp_path: Path) -> Iterator[Rail]:
    """A rail in this process that nobody works on, with room for no more than a few rings."""
    results = Results(tmp_path / "results", "x", False)
    rail = Rail(Sweep(Plan(fleet.plan, "", 0, own_meetings(fleet.plan, 0)), b"secret", results), 0)
    yield rail
    os.waitpid(rail.group.number, 0)


def test_the_reception_does_not_wait_for_a_rail_that_reads_no_rings(one_rail: Rail) -> None:
    """L2: a slow rail has thousands of callers parked, and the next one is taken all the same."""

    def park() -> None:
        for number in range(20_000):
            assert one_rail._park(number, MeetingError("refused", "x")) is None

    caller = threading.Thread(target=park, daemon=True)
    caller.start()
    caller.join(10)
    assert not caller.is_alive()
    assert one_rail._bell.recv(8) == b"." * 8
