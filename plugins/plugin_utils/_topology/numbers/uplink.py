# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The links to storage and to other networks: their load, their number and rate, and the management plane.

Rates are in 10^9 bit/s. A rate that is not given is not zero: it is listed as not given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology_numbers import parse_size
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.units import BITS_PER_BYTE, transfer_seconds

#: Bytes of a parameter in weights of 16 bits.
WEIGHT_BYTES = 2
#: The rates of links in Gb/s if none are given.
LINK_RATES = (10.0, 25.0, 100.0, 200.0, 400.0)


@dataclass(frozen=True)
class Workload:
    """The usual loads of a kind of work, in Gb/s. Source: a published table for clusters of 4 hosts; replace it by your own figures."""

    sustained_gbps: float
    burst_gbps: float | None


WORKLOADS = {
    "text": Workload(4, 20),
    "images": Workload(150, 200),
    "tuning": Workload(20, 50),
    "inference": Workload(50, None),
}
WORKLOAD_SOURCE = "upper ends of the ranges for a cluster of 4 hosts (rdma_plan.uplink.workload)"


@dataclass(frozen=True)
class Load:
    """A named rate. gbps: None if not given. source: where the figure comes from."""

    name: str
    gbps: float | None
    source: str


@dataclass(frozen=True)
class Demand:
    """What an uplink must carry. sustained: loads that run at the same time; burst: the largest rate for a short time."""

    sustained: tuple[Load, ...]
    burst: Load
    headroom: float

    @property
    def sustained_gbps(self) -> float:
        """Return the sum of the given sustained loads."""
        return sum(load.gbps for load in self.sustained if load.gbps is not None)

    @property
    def needed_gbps(self) -> float:
        """Return max(sum of the sustained loads / headroom, burst). headroom: the part of a link that may be planned, such as 0.8."""
        return max(self.sustained_gbps / self.headroom, self.burst.gbps or 0.0)

    @property
    def missing(self) -> list[str]:
        """The names of the loads that are not given."""
        return [load.name for load in (*self.sustained, self.burst) if load.gbps is None]


@dataclass(frozen=True)
class Lag:
    """Equal links to one place. A flow uses one link: links do not add up for a single flow.

    needed: links for the load; spare: links that may fail. why_not: why it does not hold the bounds, "" if it does.
    """

    link_gbps: float
    needed: int
    spare: int
    why_not: str = ""

    @property
    def links(self) -> int:
        return self.needed + self.spare

    @property
    def total_gbps(self) -> float:
        """Return links × rate: for many flows."""
        return self.links * self.link_gbps

    def flows_gbps(self, flows: int) -> float:
        """Return the expected total of equal flows that a hash spreads over the links: L × (1 - (1 - 1/L)^F) × rate.

        L: links, F: flows. The factor is the expected number of links that at least one flow uses. One flow has the rate of one link.
        """
        return self.links * (1 - (1 - 1 / self.links) ** flows) * self.link_gbps


@dataclass(frozen=True)
class Uplink:
    """The sized uplink. lags: one for each rate; chosen: the one with the fewest links, then the lowest rate, None if none holds."""

    demand: Demand
    lags: tuple[Lag, ...]
    chosen: Lag | None
    warnings: tuple[str, ...]


def ingest_gbps(gpus: int, gbytes_per_s_per_gpu: float) -> float:
    """Return the rate at which GPUs read data: GPUs × GB/s of a GPU × 8. Example: 16 GPUs × 1 GB/s: 128 Gb/s."""
    return gpus * gbytes_per_s_per_gpu * BITS_PER_BYTE


def demand(given: Mapping[str, Any], gpus: int) -> Demand:
    """Return the demand of the normalized rdma_plan.uplink. gpus: of the cluster. Raises ValueError if nothing is given."""
    usual = WORKLOADS.get(given["workload"] or "")
    ingest = given["ingest_gbps"]
    source = "rdma_plan.uplink.ingest_gbps"
    if given["ingest_gbytes_per_s_per_gpu"] is not None:
        if ingest is not None:
            raise ValueError("rdma_plan.uplink: give ingest_gbps or ingest_gbytes_per_s_per_gpu, not both")
        ingest = ingest_gbps(gpus, given["ingest_gbytes_per_s_per_gpu"])
        source = f"{gpus} GPUs × {given['ingest_gbytes_per_s_per_gpu']:g} GB/s × 8"
    elif ingest is None and usual is not None:
        ingest, source = usual.sustained_gbps, WORKLOAD_SOURCE
    checkpoint, checkpoint_source = _checkpoint_gbps(given)
    burst, burst_source = given["burst_gbps"], "rdma_plan.uplink.burst_gbps"
    if burst is None and usual is not None:
        burst, burst_source = usual.burst_gbps, WORKLOAD_SOURCE
    sustained = (
        Load("ingest", ingest, source),
        Load("checkpoint", checkpoint, checkpoint_source),
        Load("inference", given["inference_gbps"], "rdma_plan.uplink.inference_gbps"),
    )
    found = Demand(sustained, Load("burst", burst, burst_source), given["headroom"])
    if not found.needed_gbps:
        raise ValueError(
            "rdma_plan.uplink: no load is given. Set at least one of ingest_gbps, ingest_gbytes_per_s_per_gpu, checkpoint_gbps, "
            "inference_gbps, burst_gbps and workload"
        )
    return found


def _checkpoint_gbps(given: Mapping[str, Any]) -> tuple[float | None, str]:
    """Return the rate for a checkpoint: as given, or its size × 8 / the time in which it must be written."""
    size, seconds = checkpoint_bytes(given), given["checkpoint_seconds"]
    if given["checkpoint_gbps"] is not None or size is None or seconds is None:
        return given["checkpoint_gbps"], "rdma_plan.uplink.checkpoint_gbps"
    return size * BITS_PER_BYTE / seconds / 1e9, f"{size / 1e9:.4g} GB × 8 / {seconds:g} s"


def checkpoint_bytes(given: Mapping[str, Any]) -> float | None:
    """Return the size of a checkpoint in bytes: parameters × bytes of a parameter. Example: 70 × 10^9 × 14: 980 GB. None if not given."""
    if given["parameters_billions"] is None:
        return None
    size: float = given["parameters_billions"] * 1e9 * given["checkpoint_bytes_per_parameter"]
    return size


def size_uplink(found: Demand, given: Mapping[str, Any]) -> Uplink:
    """Return the uplink for a demand, from the link rates, the largest number of links and the spare links of rdma_plan.uplink."""
    flow_gbps = given["flow_gbps"]
    lags = tuple(_lag(rate, found, given) for rate in sorted(set(given["link_gbps"] or LINK_RATES)))
    fitting = [lag for lag in lags if not lag.why_not]
    chosen = min(fitting, key=lambda lag: (lag.links, lag.link_gbps), default=None)
    return Uplink(found, lags, chosen, tuple(_warnings(found, chosen, flow_gbps, given["flows"])))


def _lag(rate: float, found: Demand, given: Mapping[str, Any]) -> Lag:
    needed = max(1, math.ceil(found.needed_gbps / rate - 1e-9))
    lag = Lag(rate, needed, given["spare_links"])
    flow, most = given["flow_gbps"], given["max_links"]
    if lag.links > most:
        return Lag(rate, needed, given["spare_links"], f"{lag.links} links, and at most {most} are allowed (uplink.max_links)")
    if flow is not None and flow > rate:
        return Lag(rate, needed, given["spare_links"], f"one flow of {flow:g} Gb/s does not fit into a link of {rate:g} Gb/s")
    return lag


def _warnings(found: Demand, chosen: Lag | None, flow_gbps: float | None, flows: int | None) -> list[str]:
    if chosen is None:
        return ["No choice of links holds the load. Allow more links (uplink.max_links) or faster ones (uplink.link_gbps)."]
    words = []
    if chosen.links > 1:
        words.append(
            f"One flow uses one link: a single stream gets at most {chosen.link_gbps:g} of the {chosen.total_gbps:g} Gb/s. "
            f"Read with several streams at once."
        )
    if chosen.links > 1 and flow_gbps is None:
        words.append("The largest single flow is not given (uplink.flow_gbps), so it is not compared with a link.")
    if flows is not None and (reached := chosen.flows_gbps(flows)) < found.needed_gbps:
        words.append(
            f"{flows} equal flows reach about {reached:.0f} of the {found.needed_gbps:.0f} Gb/s on average, because a hash puts several on "
            f"one link. Use more flows."
        )
    if chosen.links == 1:
        words.append("A single link has no second path: if it fails, the uplink is lost (uplink.spare_links).")
    return words


@dataclass(frozen=True)
class Transfer:
    """A transfer at one rate. size_bytes: what is sent; seconds: how long it takes at that rate."""

    name: str
    size_bytes: float
    gbps: float
    seconds: float


def transfers(given: Mapping[str, Any], rates: Sequence[float]) -> list[Transfer]:
    """Return the times of the weights (2 bytes a parameter), the checkpoint and the files of rdma_plan.uplink, at each rate.

    Formula: size × 8 / rate. Example: 140 GB take 44.8 s at 25 Gb/s, and 11.2 s at 100.
    """
    sizes: dict[str, float] = {}
    checkpoint = checkpoint_bytes(given)
    if checkpoint is not None:
        sizes["weights"] = given["parameters_billions"] * 1e9 * WEIGHT_BYTES
        sizes["checkpoint"] = checkpoint
    sizes.update({name: parse_size(size) for name, size in given["files"].items()})
    return [Transfer(name, size, rate, transfer_seconds(size, rate)) for name, size in sizes.items() for rate in rates]


@dataclass(frozen=True)
class CheckpointWrite:
    """How long a checkpoint takes. by: what limits it ("uplink", "storage"). share: of the interval, None if that is not given."""

    size_bytes: float
    gbps: float
    by: str
    seconds: float
    share: float | None


def checkpoint_write(given: Mapping[str, Any], uplink_gbps: float | None) -> CheckpointWrite | None:
    """Return the time of writing a checkpoint at the lower rate of uplink and storage. None if the size or both rates are missing.

    Formula: size × 8 / min(uplink, storage); share = time / interval.
    """
    size = checkpoint_bytes(given)
    rates = {"uplink": uplink_gbps, "storage": given["storage_gbps"]}
    known = {name: rate for name, rate in rates.items() if rate is not None}
    if size is None or not known:
        return None
    by = min(known, key=lambda name: known[name])
    seconds = transfer_seconds(size, known[by])
    interval = given["checkpoint_interval_minutes"]
    return CheckpointWrite(size, known[by], by, seconds, None if interval is None else seconds / (60 * interval))


@dataclass(frozen=True)
class Management:
    """The management plane. ports: of all hosts and switches; install_gbps: None if no image is given."""

    ports: int
    switches: int
    switch_ports: int
    uplinks: int
    install_gbps: float | None
    warnings: tuple[str, ...]


def management(given: Mapping[str, Any], hosts: int, fabric_switches: int | None) -> Management:
    """Return the size of the management plane. given: rdma_plan.uplink.management; fabric_switches: None if they are not planned yet.

    Ports = hosts × ports of a host (system and BMC) + ports of the fabric's switches. Switches = ports / (ports of a switch - uplinks),
    rounded up. Installing = hosts at once × image × 8 / time.
    """
    usable = given["switch_ports"] - given["switch_uplinks"]
    if usable < 1:
        raise ValueError(
            f"rdma_plan.uplink.management: {given['switch_uplinks']} uplinks leave no port of a switch with {given['switch_ports']} ports"
        )
    ports = hosts * given["ports_per_host"] + (fabric_switches or 0)
    switches = math.ceil(ports / usable)
    warnings = [] if fabric_switches is not None else ["The management ports of the fabric's switches are not counted."]
    at_once = min(given["install_hosts"], hosts)
    rate = None
    if given["install_image"] is not None:
        rate = at_once * parse_size(given["install_image"]) * BITS_PER_BYTE / (60 * given["install_minutes"]) / 1e9
        each = rate / at_once
        if each > given["port_gbps"]:
            warnings.append(f"One host needs {each:.3g} Gb/s to be installed in time, and its port has {given['port_gbps']:g} Gb/s.")
    return Management(ports, switches, given["switch_ports"], switches * given["switch_uplinks"], rate, tuple(warnings))
