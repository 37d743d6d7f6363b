# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gradients of a model cost in a step of data-parallel training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology_numbers import parse_size
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.collectives import (
    ALGORITHMS,
    ALL_REDUCE,
    OPERATIONS,
    RING,
    TREE,
    CollectiveTime,
    Network,
    NoTime,
    collective_time,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.units import GIGA

#: The sizes of single messages if none are given.
MESSAGE_SIZES = ("1 MB", "64 MB", "1 GB")


@dataclass(frozen=True)
class Model:
    """A model and its step. parameters: their number; compute_seconds: a step without communication, None if not given.

    overlap: the part of the compute time that can hide communication, from 0 to 1.
    """

    name: str
    parameters: float
    bytes_per_gradient: float = 2.0
    compute_seconds: float | None = None
    overlap: float = 0.0

    @property
    def gradient_bytes(self) -> float:
        """Return the size of all gradients in bytes: parameters × bytes of a gradient. Example: 7 × 10^9 in BF16: 14 GB."""
        return self.parameters * self.bytes_per_gradient


@dataclass(frozen=True)
class Step:
    """A training step. Times in seconds; shares from 0 to 1. exposed: the communication that the step waits for."""

    compute_seconds: float
    communication_seconds: float
    exposed_seconds: float

    @property
    def seconds(self) -> float:
        return self.compute_seconds + self.exposed_seconds

    @property
    def share(self) -> float:
        """The part of the step that waits for communication: exposed / (compute + exposed)."""
        return self.exposed_seconds / self.seconds

    @property
    def utilization(self) -> float:
        """The part of the step that computes: compute / (compute + exposed)."""
        return self.compute_seconds / self.seconds


@dataclass(frozen=True)
class Training:
    """The communication of a model on a network: a time or a reason for each algorithm, of a step and of single messages.

    steps: algorithm → without and with the model's overlap, empty without compute_seconds. messages: by operation and size.
    """

    model: Model
    network: Network
    times: Mapping[str, CollectiveTime | NoTime]
    steps: Mapping[str, tuple[Step, Step]]
    messages: Sequence[CollectiveTime | NoTime]

    @property
    def required_gbytes_per_s(self) -> float | None:
        """Return the rate of a NIC, in 10^9 bytes/s, with which a ring's communication takes as long as the compute of a step.

        Formula: bytes of a NIC / compute time. Example: 28 GB in 1 s: 28 GB/s. None without a compute time.
        """
        ring = self.times[RING]
        if self.model.compute_seconds is None or isinstance(ring, NoTime):
            return None
        return ring.nic_bytes / self.model.compute_seconds / GIGA


def step(compute_seconds: float, communication_seconds: float, overlap: float = 0.0) -> Step:
    """Return a step: exposed = max(0, communication - overlap × compute), in seconds.

    overlap: the part of the compute that runs while gradients are sent, from 0 (none) to 1. The backward pass, in which gradients become
    ready one after another, is about two thirds of the compute. Raises ValueError for values that are not possible.
    """
    if compute_seconds <= 0 or communication_seconds < 0 or not 0 <= overlap <= 1:
        words = f"{compute_seconds} s, {communication_seconds} s and {overlap}"
        raise ValueError(f"compute time above 0, communication time from 0 and overlap from 0 to 1 are needed; got {words}")
    return Step(compute_seconds, communication_seconds, max(0.0, communication_seconds - overlap * compute_seconds))


def training(model: Model, network: Network, message_bytes: Sequence[int] = ()) -> Training:
    """Return the times of a model's gradients by each algorithm, and of single messages: all_reduce by the faster of ring and tree."""
    times = {algorithm: collective_time(network, ALL_REDUCE, model.gradient_bytes, algorithm) for algorithm in ALGORITHMS}
    steps = {}
    if model.compute_seconds is not None:
        for algorithm, time in times.items():
            if isinstance(time, CollectiveTime):
                pair = (step(model.compute_seconds, time.seconds), step(model.compute_seconds, time.seconds, model.overlap))
                steps[algorithm] = pair
    messages = [_message(network, operation, size) for operation in OPERATIONS for size in message_bytes]
    return Training(model, network, times, steps, messages)


def _message(network: Network, operation: str, size_bytes: int) -> CollectiveTime | NoTime:
    ring, tree = (collective_time(network, operation, size_bytes, algorithm) for algorithm in (RING, TREE))
    is_tree = isinstance(tree, CollectiveTime) and isinstance(ring, CollectiveTime) and tree.seconds < ring.seconds
    return tree if is_tree else ring


def read_training(plan: Mapping[str, Any]) -> tuple[Model, Network, list[int]]:
    """Return the model, the network and the message sizes of a normalized rdma_plan that has `training`."""
    given = plan["training"]
    name = given["model"] or f"{given['parameters_billions']:g} billion parameters"
    model = Model(name, given["parameters_billions"] * GIGA, given["bytes_per_gradient"], given["compute_seconds"], given["overlap"])
    network = Network(
        hosts=given["hosts"] or plan["hosts"],
        gpus_per_host=plan["gpus_per_host"],
        nics_per_host=plan["nics_per_host"],
        nic_gbps=plan["nic_gbps"],
        efficiency=given["efficiency"],
        oversubscription=plan["oversubscription"],
        latency_usec=given["latency_usec"],
        nvlink_gbytes_per_s=given["nvlink_gbytes_per_s"],
        nvlink_latency_usec=given["nvlink_latency_usec"],
    )
    return model, network, [parse_size(size) for size in given["message_sizes"] or MESSAGE_SIZES]


def gpu_hour(plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the summary of a run needs to compute what a finding costs, None if rdma_plan.gpu_hour is not given.

    plan: the normalized rdma_plan. Keys: price, gpus_per_host, job_hosts (None: all of the run), currency, and step: the times of a step
    by ring without failures, None if training.compute_seconds is not given.
    """
    if plan["gpu_hour"] is None:
        return None
    given = plan["training"]
    times = None
    if given is not None and given["compute_seconds"] is not None:
        model, network, _sizes = read_training(plan)
        time = collective_time(network, ALL_REDUCE, model.gradient_bytes)
        if isinstance(time, CollectiveTime):
            times = {
                "compute_seconds": given["compute_seconds"],
                "communication_seconds": time.seconds,
                "overlap": given["overlap"],
            }
    return {
        "price": plan["gpu_hour"],
        "gpus_per_host": plan["gpus_per_host"] or 1,
        "job_hosts": None if given is None else given["hosts"],
        "currency": plan["prices"]["currency"],
        "step": times,
    }
