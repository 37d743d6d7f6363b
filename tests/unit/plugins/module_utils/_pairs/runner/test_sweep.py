# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state that the rails of a host share."""

from __future__ import annotations

import json
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.plan import Plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.results import Results
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.sweep import RUMOURS, Sweep
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.wire import MESSAGE_BYTES


def test_rumours_are_bounded_and_those_who_answer_are_no_longer_called_dead(tmp_path: Path) -> None:
    content = {"hosts": [f"n{number}" for number in range(100)], "tests": [], "start_deadline_seconds": 1, "sweep": "x"}
    sweep = Sweep(Plan(content, "", 0, []), b"x", Results(tmp_path / "r", "x", False))
    sweep.hear_rumours({"dead": [*range(20), -1, 100, "x", None, 1.5]})
    for number in range(20, 60):
        sweep.found_dead(number)
    assert sweep.rumours()["dead"] == list(range(28, 60))
    assert not sweep.is_called_dead(0)  # that is this host
    sweep.saw(50)
    assert sweep.rumours()["dead"] == [27, *range(28, 50), *range(51, 60)][-RUMOURS:]
    sweep.hear_rumours({"dead": "everybody"})
    sweep.hear_rumours({"dead": [70, 71], "gone": [71, 72]})
    assert [sweep.may_be_late(host) for host in (70, 71, 72)] == [True, False, True]
    sweep.saw(72)
    sweep.found_dead(72)
    assert sweep.rumours()["gone"] == [71, 72]
    sweep.saw(71)
    assert sweep.rumours()["gone"] == [72]
    assert not sweep.is_called_dead(99)
    assert len(json.dumps(sweep.rumours())) < MESSAGE_BYTES / 4
