# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The judgment of the many-to-one load: pause frames or congestion notifications must slow the senders down, and nothing may be lost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import PriorityCounters
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.checks import STAGE
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.qos_plan import FEWEST_SOURCES, SENDER, Funnel, planned_funnels
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Matrix

declare(
    {
        "qos.load": Check(
            "pairs",
            "one host of each RoCE rail while many send to it: pause frames or CNPs are counted, and nothing is discarded",
            "`ethtool -S`, `ports/N/hw_counters` of all participating hosts, before and after",
            "check PFC, ECN, buffer and headroom of the switch ports: `plan.yml --tags roce`",
            sources=(reads.result("many-to-one load"), reads.result("priority counters")),
        ),
    }
)

LOAD_CHECK = "qos.load"
#: If at least this many sources fill a line, something must have slowed them down.
MANY_SOURCES = 3
#: The sum of the sources' rates, relative to the target's line. Less does not fill it; with more, they did not send at once.
FULL_LINE = (0.8, 1.25)
#: The counters that show that a sender was slowed down.
NOTIFICATIONS = ("np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored")
DISCARDS = ("rx_discards", "rx_buffer_discards", "rx_congestion_discards")
#: perftest's sign that packets were lost until the queue pair gave up.
LOST = "retry_exceeded"
#: (host, rail) → its line rate, 10^9 bit/s; None if unknown.
Capacity = Callable[[str, str], float | None]


def counters_of(of_rail: Mapping[str, Any] | None) -> dict[int, PriorityCounters] | None:
    """Return the increase of the counters of each priority; None if they cannot be compared. of_rail: as in _pairs.counters.risen."""
    priorities = None if of_rail is None else of_rail.get("priorities")
    return None if priorities is None else {int(priority): PriorityCounters(**counters) for priority, counters in priorities.items()}


@dataclass(frozen=True)
class Load:
    """The result of a funnel. gbps: source → its rate, if measured. failures: kind → number of failed sources.

    counters: host → as in _pairs.counters.risen, if there are any. capacity_gbps: of the target's line.
    """

    funnel: Funnel
    priority: int
    gbps: Mapping[str, float]
    failures: Mapping[str, int]
    counters: Mapping[str, Mapping[str, Any]]
    capacity_gbps: float | None

    def finding(self) -> Finding:
        """Return the finding qos.load on the target's rail."""
        target, sources = self.funnel.target, ", ".join(self.funnel.sources)
        look = f"`ethtool -S INTERFACE | grep prio{self.priority}` on {target}, {sources}"
        switch = f"the switch ports of {self.funnel.rail}: PFC and ECN of priority {self.priority}, its buffer and headroom"
        plan = "`ansible-playbook rdma.cluster.plan --tags roce` shows the planned values"
        if self.discards or self.failures.get(LOST):
            return self._finding(ERROR, self._words(), f"1. Check {switch}; {plan}. 2. Run {look} to see where frames were dropped.")
        if len(self.gbps) < FEWEST_SOURCES:
            remedy = f"1. Read pairs/qos in the run folder. 2. Measure {target}, {sources} again with `-e rdma_measure=true`."
            return self._finding(UNKNOWN, self._words(), remedy)
        if not self.is_counted:
            return self._not_counted()
        if any(self.pauses.values()) or any(self.notifications.values()):
            return self._finding(OK, self._words())
        if self.is_shared:
            none = "nothing slowed the senders down: no pause frames, no CNPs and no loss"
            remedy = f"1. Check {switch}; {plan}. 2. Run {look} to see which counters rise."
            return self._finding(WARNING, f"{none}; {self._rates()}", remedy)
        return self._finding(NOT_APPLICABLE, f"{self._rates()}: they did not fill the line, so nothing had to slow them down")

    def _not_counted(self) -> Finding:
        """Return the finding without pause frames and CNPs: unknown if the counters of a host are missing, else the drivers have none."""
        lost = [host for host in (self.funnel.target, *self.funnel.sources) if counters_of(self.counters.get(host)) is None]
        if not lost:
            return self._finding(NOT_APPLICABLE, f"{self._rates()}; the drivers report neither pause frames by priority nor CNPs")
        why = f"the counters of {', '.join(lost)} before and after the load cannot be compared"
        return self._finding(UNKNOWN, f"{self._rates()}; {why}", "Measure again with `-e rdma_measure=true`.")

    @property
    def counted(self) -> dict[str, PriorityCounters]:
        """Host → the counters of the priority."""
        found = {host: (counters_of(each) or {}).get(self.priority) for host, each in self.counters.items()}
        return {host: each for host, each in found.items() if each is not None}

    @property
    def pauses(self) -> dict[str, int]:
        """Host → pause frames of the priority that it sent or received; hosts without these counters are omitted."""
        both = {host: [each.rx_pause, each.tx_pause] for host, each in self.counted.items()}
        return {host: sum(way or 0 for way in ways) for host, ways in both.items() if ways != [None, None]}

    @property
    def notifications(self) -> Counter[str]:
        """Counter → its increase on all hosts together."""
        found: Counter[str] = Counter()
        for each in self.counters.values():
            found.update({name: by for name, by in (each.get("cnps") or {}).items() if name in NOTIFICATIONS})
        return found

    @property
    def discards(self) -> dict[str, int]:
        """Host → frames of the priority that it dropped."""
        found = {host: sum(getattr(each, name) or 0 for name in DISCARDS) for host, each in self.counted.items()}
        return {host: count for host, count in found.items() if count}

    @property
    def is_counted(self) -> bool:
        return bool(self.pauses or self.notifications)

    @property
    def is_shared(self) -> bool:
        """Whether many sources filled the target's line together."""
        if len(self.gbps) < MANY_SOURCES or not self.capacity_gbps:
            return False
        return FULL_LINE[0] <= sum(self.gbps.values()) / self.capacity_gbps <= FULL_LINE[1]

    def _words(self) -> str:
        target = self.funnel.target
        paused = [f"{host} {count}" for host, count in self.pauses.items() if count]
        dropped = [f"{host} {count}" for host, count in self.discards.items()]
        parts = [
            self._rates(),
            f"pause frames: {', '.join(paused) or 'none' if self.pauses else 'not counted'}",
            f"CNPs: {', '.join(f'{name} {count}' for name, count in self.notifications.items()) or 'not counted'}",
            f"discards: {', '.join(dropped) or 'none' if target in self.counted else 'not counted'}",
        ]
        return "; ".join(parts)

    def _rates(self) -> str:
        total, line = sum(self.gbps.values()), self.capacity_gbps
        share = f" of {line:.4g}" if line else ""
        failed = "".join(f", {count} failed ({kind})" for kind, count in self.failures.items())
        lost = len(self.funnel.sources) - len(self.gbps) - sum(self.failures.values())
        left = f", {lost} left no record" if lost > 0 else ""
        return f"{len(self.gbps)} of {len(self.funnel.sources)} sources sent {total:.4g}{share} Gb/s together{failed}{left}"

    def _finding(self, status: str, observed: str, remedy: str = "") -> Finding:
        many = len(self.funnel.sources)
        expected = f"pause frames of priority {self.priority} or CNPs, and no discards, while {many} send to one"
        return Finding(STAGE, LOAD_CHECK, self.funnel.target, self.funnel.rail, status, observed, expected, remedy)


def check_load(
    plan: Mapping[str, Any],
    matrix: Matrix,
    counters: Mapping[str, Mapping[str, Any]],
    priorities: Mapping[str, int],
    capacity: Capacity,
) -> Iterator[Finding]:
    """Yield a finding `qos.load` on each target's rail. plan: of load_plan. matrix: its raw measurements.

    counters: host → rail of the plan → as in _pairs.counters.risen. priorities: host → the priority of its profile.
    """
    for funnel in planned_funnels(plan):
        if funnel.target in priorities:
            gbps, failures = _results(funnel, matrix)
            found = {host: _counters(funnel, counters.get(host, {})) for host in (funnel.target, *funnel.sources)}
            known = {host: each for host, each in found.items() if each is not None}
            line = capacity(funnel.target, funnel.rail)
            yield Load(funnel, priorities[funnel.target], gbps, failures, known, line).finding()


def _results(funnel: Funnel, matrix: Matrix) -> tuple[dict[str, float], Counter[str]]:
    gbps: dict[str, float] = {}
    failures: Counter[str] = Counter()
    of = {f"{funnel.rail}{SENDER}{source}": source for source in funnel.sources}
    for at, rail in enumerate(matrix.rail):
        source = of.get(matrix.rails[rail])
        if source is not None and math.isnan(matrix.value[at]):
            failures[matrix.failures[at].kind] += 1
        elif source is not None:
            gbps[source] = matrix.value[at]
    return gbps, failures


def _counters(funnel: Funnel, of_host: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the counters of a host on the rail. A source has one rail of the plan there; those of the target are all of one port."""
    names = (f"{funnel.rail}{SENDER}{source}" for source in funnel.sources)
    return next((of_host[name] for name in names if name in of_host), None)
