# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The time of collectives: T = bytes of a NIC / rate of a NIC + steps × latency of a step.

N: ranks (GPUs), n: hosts, g = N / n: GPUs of a host, k: NICs of a host, S: size of the operation in bytes, B: payload rate of a NIC in
bytes/s, V: rate of a GPU's NVLink in one direction in bytes/s, t: latency of a step between hosts, t': within a host.

The size S is what nccl-tests prints: the vector of all_reduce and alltoall, the complete output of all_gather, the complete input of
reduce_scatter. Between hosts, all rings together use all NICs, so a NIC carries 1/k of the bytes of a ring. The rates agree with the
expected busbw of the collectives stage. Steps of ring and tree are those of NCCL's tuning model (NCCL, src/graph/tuning.cc).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.units import BITS_PER_BYTE, GIGA

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALLTOALL = "all_reduce", "all_gather", "reduce_scatter", "alltoall"
OPERATIONS = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALLTOALL)
RING, TREE, SHARP, HIERARCHICAL = "ring", "tree", "sharp", "hierarchical"
#: The only model of alltoall.
DIRECT = "direct"
ALGORITHMS = (RING, TREE, SHARP, HIERARCHICAL)
MICRO = 1e-6


@dataclass(frozen=True)
class Network:
    """The hosts of a job and their links.

    efficiency: the part of a NIC's rate that carries payload; oversubscription: r of r:1, 1 without; latency_usec: t, of a step between
    hosts; nvlink_gbytes_per_s: V in 10^9 bytes/s in one direction, None if not given; nvlink_latency_usec: t'; switch_tiers: tiers of
    switches that SHARP reduces in. Raises ValueError for values that are not possible.
    """

    hosts: int
    gpus_per_host: int
    nics_per_host: int
    nic_gbps: float
    efficiency: float = 1.0
    oversubscription: float = 1.0
    latency_usec: float = 10.0
    nvlink_gbytes_per_s: float | None = None
    nvlink_latency_usec: float = 3.5
    switch_tiers: int = 2

    def __post_init__(self) -> None:
        least = {"hosts": 1, "gpus_per_host": 1, "nics_per_host": 1, "oversubscription": 1, "switch_tiers": 1, "latency_usec": 0}
        for name, minimum in {**least, "nvlink_latency_usec": 0}.items():
            if not getattr(self, name) >= minimum:
                raise ValueError(f"{name} must be at least {minimum}; got {getattr(self, name)}")
        if self.nic_gbps <= 0 or not 0 < self.efficiency <= 1:
            raise ValueError(f"nic_gbps must be above 0, efficiency above 0 and at most 1; got {self.nic_gbps} and {self.efficiency}")
        if self.nvlink_gbytes_per_s is not None and not self.nvlink_gbytes_per_s > 0:
            raise ValueError(f"nvlink_gbytes_per_s must be above 0; got {self.nvlink_gbytes_per_s}")

    @property
    def ranks(self) -> int:
        """N."""
        return self.hosts * self.gpus_per_host

    @property
    def nic_bytes_per_s(self) -> float:
        """Return B in bytes/s: rate × efficiency / 8, divided by r of an oversubscription r:1.

        The division by r is the worst case, in which all NICs send through the oversubscribed links at once. A ring in the order of the
        racks crosses a leaf once in each direction, and loses less.
        """
        return self.nic_gbps * GIGA / BITS_PER_BYTE * self.efficiency / self.oversubscription

    @property
    def nvlink_bytes_per_s(self) -> float | None:
        """V in bytes/s, None if not given."""
        return None if self.nvlink_gbytes_per_s is None else self.nvlink_gbytes_per_s * GIGA


@dataclass(frozen=True)
class CollectiveTime:
    """The time of one collective. nic_bytes: what a NIC sends; it receives the same. formula: with the symbols of this module."""

    operation: str
    algorithm: str
    size_bytes: float
    nic_bytes: float
    bandwidth_seconds: float
    latency_seconds: float
    formula: str

    @property
    def seconds(self) -> float:
        return self.bandwidth_seconds + self.latency_seconds


@dataclass(frozen=True)
class NoTime:
    """Why there is no time for an algorithm."""

    operation: str
    algorithm: str
    why: str


def ring_bytes(size_bytes: float, ranks: int) -> float:
    """Return what each rank of a ring sends in an all_reduce, in bytes: 2 × (N - 1) / N × S. It receives the same.

    Example: 64 ranks and 1 GB: 1.97 GB. Source: nccl-tests, doc/PERFORMANCE.md.
    """
    return 2 * (ranks - 1) / ranks * size_bytes


def ring_steps(ranks: int) -> int:
    """Return the steps of a ring all_reduce: 2 × (N - 1). Example: 256 ranks take 510 steps."""
    return 2 * (ranks - 1)


def collective_time(network: Network, operation: str, size_bytes: float, algorithm: str = RING) -> CollectiveTime | NoTime:
    """Return the time of a collective. size_bytes: S. Raises ValueError for an unknown operation or algorithm."""
    if operation not in OPERATIONS or algorithm not in ALGORITHMS:
        raise ValueError(f"no model of {operation} by {algorithm}; known: {', '.join(OPERATIONS)} and {', '.join(ALGORITHMS)}")
    if operation != ALL_REDUCE:
        if algorithm != RING:
            return NoTime(operation, algorithm, "it is an algorithm of all_reduce only")
        return _alltoall(network, size_bytes) if operation == ALLTOALL else _half_ring(network, operation, size_bytes)
    return _ALL_REDUCE[algorithm](network, size_bytes)


def _ring(network: Network, size_bytes: float) -> CollectiveTime | NoTime:
    """T = 2(N-1)/N × S/k / B + 2(n-1) × t + 2(N-n) × t'. On one host: 2(N-1)/N × S / V."""
    ranks, hosts = network.ranks, network.hosts
    latency = _steps(network, ring_steps(ranks), 2 * (hosts - 1))
    return _timed(network, ALL_REDUCE, size_bytes, host_bytes=ring_bytes(size_bytes, ranks), latency=latency, formula="2(N-1)/N × S")


def _half_ring(network: Network, operation: str, size_bytes: float) -> CollectiveTime | NoTime:
    """T = (N-1)/N × S/k / B + (n-1) × t + (N-n) × t'."""
    ranks = network.ranks
    latency = _steps(network, ranks - 1, network.hosts - 1)
    return _timed(network, operation, size_bytes, host_bytes=ring_bytes(size_bytes, ranks) / 2, latency=latency, formula="(N-1)/N × S")


def _tree(network: Network, size_bytes: float) -> CollectiveTime | NoTime:
    """T = 2 × S/k / B + 2 × ⌈log2 n⌉ × t + 2(g-1) × t': a double binary tree, in which each host sends 2 × S."""
    depth = math.ceil(math.log2(network.hosts)) if network.hosts > 1 else 0
    latency = 2 * (depth * network.latency_usec + (network.gpus_per_host - 1) * network.nvlink_latency_usec) * MICRO
    moved = 2 * size_bytes if network.ranks > 1 else 0.0
    return _timed(network, ALL_REDUCE, size_bytes, host_bytes=moved, latency=latency, formula="2 × S", algorithm=TREE)


def _sharp(network: Network, size_bytes: float) -> CollectiveTime | NoTime:
    """T = S/k / B + 2 × tiers × t, with the phases of NVLink: the switches reduce, so each host sends S once and receives it once."""
    if network.hosts == 1:
        return NoTime(ALL_REDUCE, SHARP, "one host sends nothing through switches")
    inside = _inside_seconds(network, size_bytes)
    if inside is None:
        return NoTime(ALL_REDUCE, SHARP, "training.nvlink_gbytes_per_s is not given")
    nic_bytes = size_bytes / network.nics_per_host
    latency = 2 * network.switch_tiers * network.latency_usec * MICRO + _inside_latency(network)
    formula = f"S/k / B{_inside_words(network)} + 2 × tiers × t"
    return CollectiveTime(ALL_REDUCE, SHARP, size_bytes, nic_bytes, nic_bytes / network.nic_bytes_per_s + inside, latency, formula)


def _hierarchical(network: Network, size_bytes: float) -> CollectiveTime | NoTime:
    """T = 2(n-1)/n × S/k / B + 2(g-1)/g × S / V + 2(n-1) × t + 2(g-1) × t'.

    NVLink reduces and scatters within each host, rings of n hosts reduce the parts, and NVLink gathers them. The phases follow one another,
    so this is an upper limit: a pipelined implementation hides the shorter phase.
    """
    if network.hosts == 1:
        return NoTime(ALL_REDUCE, HIERARCHICAL, "there is one host: ring is the same")
    inside = _inside_seconds(network, size_bytes)
    if inside is None:
        return NoTime(ALL_REDUCE, HIERARCHICAL, "training.nvlink_gbytes_per_s is not given")
    nic_bytes = ring_bytes(size_bytes, network.hosts) / network.nics_per_host
    latency = ring_steps(network.hosts) * network.latency_usec * MICRO + _inside_latency(network)
    formula = f"2(n-1)/n × S/k / B{_inside_words(network)} + 2(n-1) × t"
    seconds = nic_bytes / network.nic_bytes_per_s + inside
    return CollectiveTime(ALL_REDUCE, HIERARCHICAL, size_bytes, nic_bytes, seconds, latency, formula)


def _alltoall(network: Network, size_bytes: float) -> CollectiveTime | NoTime:
    """T = g × (N-g)/N × S/k / B + (n-1) × t: each rank sends S/N to every rank, and (N-g)/N of its data to other hosts."""
    ranks, gpus = network.ranks, network.gpus_per_host
    if network.hosts == 1:
        return _timed(
            network, ALLTOALL, size_bytes, host_bytes=(ranks - 1) / ranks * size_bytes, latency=0.0, formula="(N-1)/N × S", algorithm=DIRECT
        )
    latency = (network.hosts - 1) * network.latency_usec * MICRO
    sent = gpus * (ranks - gpus) / ranks * size_bytes
    return _timed(network, ALLTOALL, size_bytes, host_bytes=sent, latency=latency, formula="g × (N-g)/N × S", algorithm=DIRECT)


_ALL_REDUCE: dict[str, Callable[[Network, float], CollectiveTime | NoTime]] = {
    RING: _ring,
    TREE: _tree,
    SHARP: _sharp,
    HIERARCHICAL: _hierarchical,
}


def _timed(
    network: Network, operation: str, size_bytes: float, *, host_bytes: float, latency: float, formula: str, algorithm: str = RING
) -> CollectiveTime | NoTime:
    """Return the time if all NICs of a host share what it sends; on one host, the time over NVLink."""
    if network.hosts > 1:
        nic_bytes = host_bytes / network.nics_per_host
        seconds = nic_bytes / network.nic_bytes_per_s
        return CollectiveTime(operation, algorithm, size_bytes, nic_bytes, seconds, latency, f"{formula} / k / B + steps × t")
    if network.ranks == 1:
        return CollectiveTime(operation, algorithm, size_bytes, 0.0, 0.0, 0.0, "0: one GPU sends nothing")
    if network.nvlink_bytes_per_s is None:
        return NoTime(operation, algorithm, "there is one host, and training.nvlink_gbytes_per_s is not given")
    return CollectiveTime(operation, algorithm, size_bytes, 0.0, host_bytes / network.nvlink_bytes_per_s, latency, f"{formula} / V")


def _steps(network: Network, steps: int, between_hosts: int) -> float:
    """Return the latency of a ring in seconds: of its steps, some are between hosts."""
    return (between_hosts * network.latency_usec + (steps - between_hosts) * network.nvlink_latency_usec) * MICRO


def _inside_seconds(network: Network, size_bytes: float) -> float | None:
    """Return the time of both phases within a host in seconds: 2(g-1)/g × S / V. None if V is needed and not given."""
    if network.gpus_per_host == 1:
        return 0.0
    if network.nvlink_bytes_per_s is None:
        return None
    return ring_bytes(size_bytes, network.gpus_per_host) / network.nvlink_bytes_per_s


def _inside_latency(network: Network) -> float:
    return ring_steps(network.gpus_per_host) * network.nvlink_latency_usec * MICRO


def _inside_words(network: Network) -> str:
    return " + 2(g-1)/g × S / V" if network.gpus_per_host > 1 else ""
