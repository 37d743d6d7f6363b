# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What explains slow pairs across rails: precision and recall over simulated faults."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.cross_faults import CrossEnd, CrossResult, cross_faults
from tests.simulator.cross_rails import KINDS, cross_score, cross_sweep

SEEDS = range(20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("faults", [1, 2])
def test_faults_of_each_kind_are_named_and_little_else(kind: str, faults: int) -> None:
    score = cross_score([cross_sweep(32, kind, faults, seed) for seed in SEEDS])
    if kind == "none":
        assert (score.right, score.verdicts, score.faults) == (0, 0, 0)
        return
    figures = f"{kind}: {score}"
    assert score.precision >= 0.95, figures
    assert score.recall >= 0.95, figures


def result(sends: tuple[str, str], receives: tuple[str, str], share: float = 1.0) -> CrossResult:
    return CrossResult(CrossEnd(*sends, f"{sends[1]}-leaf"), CrossEnd(*receives, f"{receives[1]}-leaf"), share)


def test_a_single_slow_pair_is_named_alone() -> None:
    well = [result((f"node{one}", "rail0"), (f"node{other}", "rail1")) for one in range(4) for other in range(4) if one != other]
    slow = result(("node1", "rail0"), ("node9", "rail1"), 0.3)
    (fault,) = cross_faults([*well, slow], 0.8)
    assert (fault.place, fault.slow, fault.share) == (("pair", "node1 rail0", "node9 rail1"), [slow], 0.3)


def test_a_way_between_two_leaves_is_named_not_its_ports() -> None:
    well = [result((f"node{one}", "rail1"), (f"node{other}", "rail0")) for one in range(4) for other in range(4) if one != other]
    slow = [result((f"node{one}", "rail0"), (f"node{one + 1}", "rail1"), 0.0) for one in range(4)]
    (fault,) = cross_faults([*well, *slow], 0.8)
    assert (fault.place, len(fault.slow), fault.pairs) == (("leaves", "rail0-leaf", "rail1-leaf"), 4, 4)


def test_no_slow_pair_has_no_fault() -> None:
    assert cross_faults([result(("node1", "rail0"), ("node2", "rail1"))], 0.8) == []
