# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times of collectives: published examples, the rates of the collectives stage, and monotony."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.expected import Rate, _between
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.collectives import (
    ALGORITHMS,
    ALL_GATHER,
    ALL_REDUCE,
    ALLTOALL,
    HIERARCHICAL,
    OPERATIONS,
    REDUCE_SCATTER,
    RING,
    SHARP,
    TREE,
    CollectiveTime,
    Network,
    NoTime,
    collective_time,
    ring_bytes,
    ring_steps,
)

#: 64 GPUs with a NIC each; 50 GB/s.
FLAT = Network(hosts=64, gpus_per_host=1, nics_per_host=1, nic_gbps=400, latency_usec=0)
#: 32 hosts with 8 GPUs and 8 NICs; NVLink 4 has 450 GB/s in one direction.
DGX = Network(hosts=32, gpus_per_host=8, nics_per_host=8, nic_gbps=400, nvlink_gbytes_per_s=450)


def timed(network: Network, operation: str, size_bytes: float, algorithm: str = RING) -> CollectiveTime:
    found = collective_time(network, operation, size_bytes, algorithm)
    assert isinstance(found, CollectiveTime)
    return found


# Published examples


def test_a_ring_of_64_sends_nearly_twice_the_size_and_sharp_once() -> None:
    assert ring_bytes(1e9, 64) == pytest.approx(1.96875e9)
    assert timed(FLAT, ALL_REDUCE, 1e9).nic_bytes == pytest.approx(1.96875e9)
    assert timed(FLAT, ALL_REDUCE, 1e9, SHARP).nic_bytes == 1e9


def test_gradients_of_14_gb_are_28_gb_in_a_large_ring() -> None:
    assert ring_bytes(14e9, 256) == pytest.approx(28e9, rel=0.005)
    network = replace(FLAT, hosts=256)
    assert timed(network, ALL_REDUCE, 14e9).seconds == pytest.approx(0.56, rel=0.005)
    assert timed(replace(network, oversubscription=2), ALL_REDUCE, 14e9).seconds == pytest.approx(1.12, rel=0.005)


def test_256_ranks_take_510_steps_and_10_usec_more_a_step_are_5_ms() -> None:
    assert ring_steps(256) == 510
    network = replace(FLAT, hosts=256)
    more = timed(replace(network, latency_usec=10), ALL_REDUCE, 1e9).seconds - timed(network, ALL_REDUCE, 1e9).seconds
    assert more == pytest.approx(5.1e-3)


def test_per_nic_and_not_per_gpu() -> None:
    """With 8 NICs for 8 GPUs, a NIC carries an eighth of 2(n-1)/n × S: 64 GPUs on 8 hosts do not send 1.97 GB by each NIC."""
    network = Network(hosts=8, gpus_per_host=8, nics_per_host=8, nic_gbps=400, nvlink_gbytes_per_s=450)
    assert timed(network, ALL_REDUCE, 1e9, HIERARCHICAL).nic_bytes == pytest.approx(2 * 7 / 8 * 1e9 / 8)
    assert timed(network, ALL_REDUCE, 1e9).nic_bytes == pytest.approx(1.96875e9 / 8)


def test_a_hierarchical_all_reduce_in_its_phases() -> None:
    """2 × 31/32 × 14 GB / 8 NICs / 50 GB/s, 2 × 7/8 × 14 GB / 450 GB/s, 62 steps of 10 µs and 14 of 3.5 µs."""
    found = timed(DGX, ALL_REDUCE, 14e9, HIERARCHICAL)
    assert found.bandwidth_seconds == pytest.approx(0.0678125 + 0.0544444, rel=1e-5)
    assert found.latency_seconds == pytest.approx(62 * 10e-6 + 14 * 3.5e-6)


def test_a_tree_has_fewer_steps_and_sends_slightly_more() -> None:
    small, large = (timed(replace(DGX, hosts=512), ALL_REDUCE, 1e3, name) for name in (RING, TREE))
    assert large.latency_seconds == pytest.approx(2 * (9 * 10e-6 + 7 * 3.5e-6))
    assert large.seconds < small.seconds
    assert timed(DGX, ALL_REDUCE, 1e12, TREE).seconds > timed(DGX, ALL_REDUCE, 1e12).seconds


# The same figures as the collectives stage expects


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_bandwidth_is_that_of_the_collectives_stage(operation: str) -> None:
    """busbw = S / T × factor of nccl-tests; the stage derives it from the NICs of a host."""
    network = replace(DGX, latency_usec=0, nvlink_latency_usec=0)
    ranks = network.ranks
    factor = {ALL_REDUCE: 2 * (ranks - 1) / ranks}.get(operation, (ranks - 1) / ranks)
    busbw_gbps = 8 * 64e9 / timed(network, operation, 64e9).seconds * factor / 1e9
    assert busbw_gbps == pytest.approx(_between(Rate(8 * 400.0), operation, 32, 8).gbps)


# Limits


def test_one_gpu_sends_nothing_and_one_host_uses_nvlink() -> None:
    assert timed(replace(DGX, hosts=1, gpus_per_host=1), ALL_REDUCE, 1e9).seconds == 0
    assert timed(replace(DGX, hosts=1, nvlink_latency_usec=0), ALL_REDUCE, 9e9).seconds == pytest.approx(1.75 * 9e9 / 450e9)
    why = collective_time(replace(DGX, hosts=1, nvlink_gbytes_per_s=None), ALL_REDUCE, 1e9)
    assert why == NoTime(ALL_REDUCE, RING, "there is one host, and training.nvlink_gbytes_per_s is not given")


@pytest.mark.parametrize("algorithm", [SHARP, HIERARCHICAL])
def test_without_a_rate_of_nvlink_there_is_no_time_and_no_zero(algorithm: str) -> None:
    found = collective_time(replace(DGX, nvlink_gbytes_per_s=None), ALL_REDUCE, 1e9, algorithm)
    assert found == NoTime(ALL_REDUCE, algorithm, "training.nvlink_gbytes_per_s is not given")
    assert isinstance(collective_time(replace(DGX, hosts=1), ALL_REDUCE, 1e9, algorithm), NoTime)


def test_other_operations_have_one_model() -> None:
    assert isinstance(collective_time(DGX, ALL_GATHER, 1e9, TREE), NoTime)
    with pytest.raises(ValueError, match="no model of broadcast by ring; known: all_reduce"):
        collective_time(DGX, "broadcast", 1e9)


@pytest.mark.parametrize(
    ("name", "value"),
    [("hosts", 0), ("nics_per_host", 0), ("nic_gbps", 0), ("efficiency", 1.1), ("oversubscription", 0.5), ("latency_usec", -1)],
)
def test_impossible_networks_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"{name} .*got .*{value}"):
        replace(DGX, **{name: value})
    with pytest.raises(ValueError, match="nvlink_gbytes_per_s"):
        replace(DGX, nvlink_gbytes_per_s=0)


# Monotony


NETWORKS = st.builds(
    Network,
    hosts=st.integers(2, 4096),
    gpus_per_host=st.sampled_from([1, 4, 8]),
    nics_per_host=st.sampled_from([1, 2, 8]),
    nic_gbps=st.sampled_from([100.0, 200.0, 400.0]),
    efficiency=st.floats(0.5, 1),
    oversubscription=st.floats(1, 8),
    latency_usec=st.floats(0, 100),
    nvlink_gbytes_per_s=st.just(450.0),
)
SIZES = st.integers(1, 10**12)


@given(NETWORKS, SIZES, st.sampled_from(OPERATIONS), st.sampled_from(ALGORITHMS))
def test_more_data_takes_longer_and_faster_nics_do_not(network: Network, size: int, operation: str, algorithm: str) -> None:
    found = collective_time(network, operation, size, algorithm)
    if isinstance(found, NoTime):
        assert operation != ALL_REDUCE
        return
    assert found.seconds >= found.bandwidth_seconds > 0
    assert timed(network, operation, 2 * size, algorithm).seconds > found.seconds
    faster = replace(network, nic_gbps=2 * network.nic_gbps)
    assert timed(faster, operation, size, algorithm).bandwidth_seconds < found.bandwidth_seconds
    worse = replace(network, oversubscription=2 * network.oversubscription)
    assert timed(worse, operation, size, algorithm).seconds > found.seconds


@given(NETWORKS, SIZES)
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(network: Network, size: int) -> None:
    halves = [timed(network, operation, size).seconds for operation in (REDUCE_SCATTER, ALL_GATHER)]
    assert timed(network, ALL_REDUCE, size).seconds == pytest.approx(sum(halves))


@given(NETWORKS, SIZES)
def test_sharp_sends_less_than_rings_of_hosts_unless_there_are_two(network: Network, size: int) -> None:
    sharp, rings = (timed(network, ALL_REDUCE, size, name).nic_bytes for name in (SHARP, HIERARCHICAL))
    assert sharp == pytest.approx(rings) if network.hosts == 2 else sharp < rings <= 2 * sharp


def test_alltoall_of_two_hosts_by_hand() -> None:
    """2 hosts with 2 GPUs: each GPU sends half of its 8 GB to the other host, so a host sends 8 GB by its 2 NICs."""
    network = Network(hosts=2, gpus_per_host=2, nics_per_host=2, nic_gbps=80, latency_usec=0)
    assert timed(network, ALLTOALL, 8e9).nic_bytes == 4e9
    assert timed(network, ALLTOALL, 8e9).seconds == pytest.approx(0.4)
