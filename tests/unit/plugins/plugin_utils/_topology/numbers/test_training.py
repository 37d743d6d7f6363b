# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps of training: the published example, and how overlap hides communication."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import read_variable
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology_numbers import TRAINING
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.collectives import (
    HIERARCHICAL,
    RING,
    SHARP,
    TREE,
    Network,
    NoTime,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.training import (
    Model,
    read_training,
    step,
    training,
)

#: 256 GPUs with a NIC of 50 GB/s each, and a model of 7 × 10^9 parameters in BF16.
FLAT = Network(hosts=256, gpus_per_host=1, nics_per_host=1, nic_gbps=400, latency_usec=0)
SEVEN = Model("7B", 7e9, compute_seconds=2.0)
REQUEST = {"hosts": 32, "gpus_per_host": 8, "nics_per_host": 8, "nic_gbps": 400, "oversubscription": 2.0}


def section(**given: Any) -> dict[str, Any]:
    result: dict[str, Any] = read_variable({"rdma_plan.training": given}, "rdma_plan.training", TRAINING)
    return result


def test_gradients_in_bf16() -> None:
    assert SEVEN.gradient_bytes == 14e9
    assert Model("7B", 7e9, 4).gradient_bytes == 28e9


def test_two_to_one_costs_14_points_of_utilization() -> None:
    """0.56 s and 1.12 s of communication after 2 s of compute: 78 % and 64 %."""
    one, two = (training(SEVEN, replace(FLAT, oversubscription=ratio)).steps[RING][0] for ratio in (1.0, 2.0))
    assert one.communication_seconds == pytest.approx(0.558, abs=0.001)
    assert two.communication_seconds == pytest.approx(1.116, abs=0.001)
    assert (round(one.utilization, 2), round(two.utilization, 2)) == (0.78, 0.64)
    assert one.share == pytest.approx(1 - one.utilization)


def test_a_step_of_one_second_needs_28_gbytes_per_s() -> None:
    """NDR with 50 GB/s is enough, HDR with 25 GB/s is not."""
    need = training(Model("7B", 7e9, compute_seconds=1.0), FLAT).required_gbytes_per_s
    assert need == pytest.approx(28, rel=0.005)
    assert 25 < need < 50
    assert training(Model("7B", 7e9), FLAT).required_gbytes_per_s is None


def test_overlap_hides_communication_until_it_ends() -> None:
    assert step(2.0, 0.56, 0.67).exposed_seconds == 0
    assert step(2.0, 1.5, 0.5).exposed_seconds == pytest.approx(0.5)
    assert step(2.0, 1.5, 0.5).seconds == pytest.approx(2.5)
    assert step(2.0, 1.5).exposed_seconds == 1.5


@pytest.mark.parametrize("wrong", [(0.0, 1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, 1.1), (1.0, 1.0, -0.1)])
def test_impossible_steps_are_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="compute time above 0"):
        step(*wrong)


@given(st.floats(0.001, 1e3), st.floats(0, 1e3), st.floats(0, 1), st.floats(0, 1))
def test_more_overlap_is_never_slower(compute: float, communication: float, one: float, other: float) -> None:
    little, much = (step(compute, communication, overlap) for overlap in sorted((one, other)))
    assert much.seconds <= little.seconds <= compute + communication
    assert 0 <= much.share <= little.share < 1
    assert much.utilization + much.share == pytest.approx(1)


def test_the_section_of_a_plan() -> None:
    model, network, sizes = read_training(
        {**REQUEST, "training": section(parameters_billions=7, compute_seconds=2, message_sizes=["1 MiB", "2 GB"])}
    )
    assert (model.name, model.gradient_bytes, model.overlap) == ("7 billion parameters", 14e9, 0.67)
    assert (network.hosts, network.ranks, network.oversubscription, sizes) == (32, 256, 2.0, [2**20, 2 * 10**9])
    found = training(model, network, sizes)
    assert {name for name, time in found.times.items() if isinstance(time, NoTime)} == {SHARP, HIERARCHICAL}
    assert list(found.steps) == [RING, TREE]
    assert len(found.messages) == 4 * 2
    assert read_training({**REQUEST, "training": section(parameters_billions=7, hosts=4)})[1].hosts == 4
    assert read_training({**REQUEST, "training": section(parameters_billions=7)})[2] == [10**6, 64 * 10**6, 10**9]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "rdma_plan.training.parameters_billions is missing"),
        ({"parameters_billions": 7, "compute_second": 1}, "has no key 'compute_second': did you mean 'compute_seconds'"),
        ({"parameters_billions": 7, "message_sizes": ["1 Gb"]}, r"message_sizes\[0\] must be a size with its unit"),
        ({"parameters_billions": 7, "overlap": 2}, "overlap must be at most 1; got 2"),
    ],
)
def test_bad_sections_name_the_key(given: dict[str, Any], words: str) -> None:
    with pytest.raises(IntentError, match=words):
        section(**given)
