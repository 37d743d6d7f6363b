# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quality of service, proven with traffic: both ports must count perftest's traffic in the priority of RDMA."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import PriorityCounters
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import LOAD, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.checks import STAGE
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.qos import Capacity, check_load, counters_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

declare(
    {
        "qos.traffic": Check(
            "pairs",
            "each measured RoCE rail: at least 99 % of the bytes that perftest sent and received are in the priority of `rdma_roce`",
            "`ethtool -S` (bytes and pauses of each priority) before and after the sweep; perftest's arguments, or its rate and time",
            "run the QoS stage; `ethtool -S INTERFACE | grep prio` shows where it is counted",
            sources=(reads.result("priority counters"),),
        ),
    }
)

TRAFFIC_CHECK = "qos.traffic"
#: The minimum share of its own priority, of the sent traffic and of all traffic that a port counted.
LEAST_SHARE = 0.99
#: perftest counts only the middle half of its duration (-D), so at least this share was sent.
COUNTED_SHARE = 0.5
COUNTED = {"tx": "sent", "rx": "received"}
#: Host → rail → {"tx", "rx"}: bytes of payload.
Payloads = Mapping[str, Mapping[str, Mapping[str, float]]]


def payloads(test: Mapping[str, Any], matrix: Matrix) -> dict[str, dict[str, dict[str, float]]]:
    """Return the minimum that each endpoint has sent and received, by the good measurements of a bandwidth test, from either end.

    test: of the plan. matrix: its raw measurements. Exact if iterations are given, else from rate and duration.
    """
    sent: defaultdict[tuple[int, int], float] = defaultdict(float)
    received: defaultdict[tuple[int, int], float] = defaultdict(float)
    ways = 2 if matrix.is_bidirectional else 1
    for rail, sink, source, gbps in zip(matrix.rail, matrix.server, matrix.client, matrix.value, strict=True):
        if math.isnan(gbps):
            continue
        payload = _payload_bytes(test, gbps / ways)
        sent[rail, source] += payload
        received[rail, sink] += payload
        if ways > 1:
            sent[rail, sink] += payload
            received[rail, source] += payload
    found: dict[str, dict[str, dict[str, float]]] = {}
    for rail, host in dict.fromkeys((*sent, *received)):
        both = {"tx": sent.get((rail, host), 0.0), "rx": received.get((rail, host), 0.0)}
        found.setdefault(matrix.hosts[host], {})[matrix.rails[rail]] = both
    return found


def _payload_bytes(test: Mapping[str, Any], gbps: float) -> float:
    """Return the payload of one direction. gbps: its rate, in 10^9 bit/s."""
    if test["iterations"] is not None:
        return float(test["iterations"] * test["size_bytes"] * test["queue_pairs"])
    return gbps * 1e9 / 8 * float(test["duration_seconds"]) * COUNTED_SHARE


@dataclass(frozen=True)
class Traffic:
    """One RoCE rail of a host. counters: as in _pairs.counters.risen, None if there are none. payload: {"tx", "rx"} of its port."""

    host: str
    rail: str
    profile: Mapping[str, Any]
    counters: Mapping[str, Any] | None
    payload: Mapping[str, float]

    @property
    def priority(self) -> int:
        return int(self.profile["priority"])

    @property
    def netdev(self) -> str:
        return str((self.counters or {}).get("netdev"))

    def finding(self) -> Finding:
        """Return the finding qos.traffic."""
        counted = counters_of(self.counters)
        if counted is None:
            remedy = f"1. On {self.host}, check with `dmesg` whether the driver was reloaded. 2. Measure again with `-e rdma_measure=true`."
            return self._finding(UNKNOWN, "its counters before and after the sweep cannot be compared", remedy)
        if not any(self.payload.values()):
            return self._not_applicable("no successful measurement here")
        own = counted.get(self.priority, PriorityCounters())
        if own.rx_bytes is None and own.tx_bytes is None:
            what = "does not count bytes by priority" if counted else "does not count by priority"
            return self._not_applicable(f"the driver of {self.netdev} {what}")
        cnps = int(self.profile["cnp_priority"])
        ways = [_Way(way, self.priority, cnps, counted, self.payload[way]) for way in ("tx", "rx") if self.payload[way]]
        observed = "; ".join(way.words() for way in ways)
        if self.profile["pfc"][self.priority] and own.says_pfc_is_off():
            pfc = f"PFC is disabled: the driver has no pause counters for priority {self.priority}"
            allowed = "with `-e roce_qos_link_toggle_allowed=true` while no job runs: the link goes down for a moment"
            return self._finding(ERROR, f"{pfc}; {observed}", f"Run the QoS stage for {self.host} {allowed}.")
        return self._judged(ways, observed)

    def _judged(self, ways: list[_Way], observed: str) -> Finding:
        look = f"`ethtool -S {self.netdev} | grep prio` on {self.host}"
        if any(not way.is_counted for way in ways):
            return self._not_applicable(f"the driver of {self.netdev} does not report the bytes of each direction: {observed}")
        if any(way.is_unseen for way in ways):
            remedy = f"1. Run {look}. 2. Check that RDMA traffic uses this port: the driver may not count it, or another port carries it."
            return self._finding(UNKNOWN, observed, remedy)
        bad = [way.way for way in ways if not way.is_good]
        if not bad:
            return self._finding(OK, observed)
        others = "" if "tx" in bad else ". It sends correctly, so check the DSCP marks of its partners and the switch too"
        remedy = f"Run the QoS stage for {self.host}. {look} shows where traffic is counted{others}."
        return self._finding(ERROR, observed, remedy)

    def _not_applicable(self, why: str) -> Finding:
        return self._finding(NOT_APPLICABLE, why)

    def _finding(self, status: str, observed: str, remedy: str = "") -> Finding:
        expected = f"{LEAST_SHARE:.0%} of perftest's traffic, and of the port's traffic without CNPs, in priority {self.priority}"
        return Finding(STAGE, TRAFFIC_CHECK, self.host, self.rail, status, observed, expected, remedy)


@dataclass(frozen=True)
class _Way:
    """One direction of a port. cnps: their priority. counted: by priority. payload: perftest's traffic there, in bytes."""

    way: str
    priority: int
    cnps: int
    counted: Mapping[int, PriorityCounters]
    payload: float

    @property
    def by_priority(self) -> dict[int, int]:
        counts = {priority: getattr(counters, f"{self.way}_bytes") for priority, counters in self.counted.items()}
        return {priority: value for priority, value in counts.items() if value is not None}

    @property
    def is_counted(self) -> bool:
        return self.priority in self.by_priority

    @property
    def own(self) -> int:
        return self.by_priority.get(self.priority, 0)

    @property
    def is_unseen(self) -> bool:
        """Whether all priorities together have less than was sent."""
        return sum(self.by_priority.values()) < LEAST_SHARE * self.payload

    @property
    def is_good(self) -> bool:
        return self.own >= LEAST_SHARE * self.payload and self.own >= LEAST_SHARE * self.beside_cnps

    @property
    def beside_cnps(self) -> int:
        """All counted traffic except that in the priority of CNPs, which appear by themselves if a switch marks packets."""
        return self.own + sum(self.by_priority[priority] for priority in self._others - {self.cnps})

    @property
    def _others(self) -> set[int]:
        return set(self.by_priority) - {self.priority}

    def words(self) -> str:
        done, total = COUNTED[self.way], self.beside_cnps
        share = f"{self.own / total:.1%} of what it {done}" if total else f"it {done} nothing else"
        text = f"{done} {_size(self.own)} in priority {self.priority} ({share}), perftest {_size(self.payload)}"
        return text if self.is_good or self.is_unseen or not self.is_counted else f"{text}; {self._elsewhere()}"

    def _elsewhere(self) -> str:
        """Return where most of the other traffic was counted."""
        most, total = max(self._others, key=self.by_priority.__getitem__), sum(self.by_priority.values())
        why = "unmarked, or DSCP is not trusted" if most == 0 else "a different DSCP, or a different map"
        return f"{self.by_priority[most] / total:.1%} in priority {most}: {why}"


def _size(count: float) -> str:
    return f"{count / 1e9:.4g} GB"


def check_traffic(
    host: str, rails: Iterable[str], profile: Mapping[str, Any], counters: Mapping[str, Any], sent: Payloads
) -> Iterator[Finding]:
    """Yield the findings `qos.traffic` on a host's measured RoCE rails. counters: rail → as in _pairs.counters.risen.

    sent: as in payloads. The traffic of rails on the same interface is summed.
    """
    of_host = sent.get(host, {})
    for rail in rails:
        of_rail = counters.get(rail)
        shared = [other for other in of_host if other == rail or (of_rail and _netdev(counters, other) == of_rail.get("netdev"))]
        payload = {way: sum(of_host[other][way] for other in shared) for way in COUNTED}
        yield Traffic(host, rail, profile, of_rail, payload).finding()


def _netdev(counters: Mapping[str, Any], rail: str) -> str | None:
    return (counters.get(rail) or {}).get("netdev")


@dataclass(frozen=True)
class QosGate:
    """sweep: that of this run, None if nothing was measured. capacity: returns the line rate of an endpoint."""

    folder: RunFolder
    fleet: Fleet
    sweep: Evidence | None
    capacity: Capacity

    @cached_property
    def profiles(self) -> Mapping[str, Mapping[str, Any]]:
        """Host → its RoCE profile; hosts whose traffic is not marked are omitted."""
        known = {host: roce_profile(intent) for host, intent in self.fleet.intents.items()}
        return {host: profile for host, profile in known.items() if profile is not None}

    @cached_property
    def sent(self) -> Payloads:
        """The traffic that perftest sent from and to each endpoint."""
        return {} if self.sweep is None else payloads(self.sweep.plan["tests"][0], self.sweep.measured)

    @cached_property
    def loads(self) -> Mapping[str, list[Finding]]:
        """Host → findings on the load on its rails, if it was a target."""
        evidence = None if self.sweep is None else Evidence.of(self.folder, LOAD, self.fleet.intents, self.fleet.facts)
        found: dict[str, list[Finding]] = {}
        if evidence is not None:
            priorities = {host: profile["priority"] for host, profile in self.profiles.items()}
            for finding in check_load(evidence.plan, evidence.measured, evidence.counters(), priorities, self.capacity):
                found.setdefault(finding.host, []).append(finding)
        return found

    def traffic(self, host: str, measured: Sequence[str], counters: Mapping[str, Any]) -> Iterator[Finding]:
        """Yield findings on whether a host's RoCE traffic was counted in its own priority. counters: rail → as in counters.risen."""
        if host in self.profiles:
            roce = {rail["name"] for rail in self.fleet.intents[host]["rails"] if rail["link_layer"] == "roce"}
            yield from check_traffic(host, [rail for rail in measured if rail in roce], self.profiles[host], counters, self.sent)

    def load(self, host: str) -> list[Finding]:
        """Return the findings of the load for which a host was the target."""
        return self.loads.get(host, [])
