# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A month of one cluster: faults, drift, repairs, reboots and an upgrade of the driver at random times, and the product on its schedule."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from tests.faults.beds.hosts import BEDS, HostBed
from tests.faults.combinations import collide, is_alone
from tests.faults.fault import Expected, Fault, NearMiss, faults
from tests.faults.month.machine import Event, Machine, Noise, leaves_counters
from tests.faults.month.upgrade import INSTALLED, LOADED
from tests.faults.score import is_bad

SEED = 59
DAYS, RUN_EVERY_HOURS = 30, 12
HOURS = 24 * DAYS
#: Hosts of each cluster. The bed "dcb" is a mesh: its two hosts are cabled to each other.
CLUSTERS = {"roce": 5, "infiniband": 4, "dcb": 2}
#: The mean time between two of them in a cluster, in hours.
BETWEEN = {"fault": {"roce": 12.0, "infiniband": 18.0, "dcb": 36.0}, "noise": 24.0, "reboot": 30.0, "power": 360.0}
#: A repair begins so long after the alarm; a fault that nobody named is found in another way after a week.
REPAIR_HOURS, UNNOTICED_HOURS = (1.0, 36.0), 168.0
REBOOT_HOURS, POWER_HOURS, NOISE_HOURS, SHORT_HOURS = 0.2, (2.0, 20.0), (6.0, 72.0), (0.1, 1.0)
#: Live states that the configuration of the boot sets right.
HEALED = frozenset(
    {
        *("mtu-1500", "rdma-mtu-1024", "port-set-down", "sysctl-changed-live", "irqbalance-runs", "governor-powersave", "rings-small"),
        *("memory-used-up", "shm-full", "recorder-stopped", "loaded-module-not-that-on-disk", "sshd-started-before-the-limits"),
    }
)
#: A link that goes down and comes back by itself. Others of the same kind last until they are repaired.
ONCE = "link-flapped-once"
POWER = Fault(
    "power-lost", "month", "A host has lost its power and does not answer.", "", ("",), {"lost": "preflight"},
    (Expected("stage.completed", "unknown", ""),), "Switch it on.", "facts",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What one run of the product reported. hours: when; read: the hosts that it could read."""

    hours: float
    findings: tuple[Finding, ...]
    read: frozenset[str]


@dataclass
class Cluster:
    """The hosts of one bed, and the calendar of what happens to them."""

    kind: str
    seed: int = SEED
    events: list[Event] = field(default_factory=list)
    noise: list[Noise] = field(default_factory=list)
    reboots: int = 0

    def __post_init__(self) -> None:
        self.bed = HostBed(self.kind, CLUSTERS[self.kind], BEDS[self.kind].prior)
        self.machines = {name: Machine(self.bed, name) for name in self.bed.hosts}
        self.chance = random.Random(f"{self.seed} {self.kind}")
        self.pool = [fault for fault in faults() if fault.bed == self.kind and is_alone(fault)]
        self.near = [near for fault in self.pool for near in fault.near if near.bed in ("", self.kind) and len(near.on) <= 1]
        self._order = itertools.count()
        self._calendar: list[tuple[float, int, Callable[[float], None]]] = []
        self._again("fault", self._fault)
        self._again("noise", self._noise)
        self._again("reboot", self._reboot)
        self._again("power", self._power)
        if self.kind == "roce":
            for number, name in enumerate(self.bed.hosts):
                self.at(15 * 24 + 1.0 + 5.0 * number, lambda now, name=name: self._upgrade(now, name))  # type: ignore[misc]

    def at(self, hours: float, what: Callable[[float], None]) -> None:
        """Enter something into the calendar."""
        heapq.heappush(self._calendar, (hours, next(self._order), what))

    def run(self, now: float) -> Run:
        """Let everything happen up to now, and let the product read and judge the hosts."""
        while self._calendar and self._calendar[0][0] <= now:
            hours, _order, what = heapq.heappop(self._calendar)
            what(hours)
        day, hour = divmod(int(now), 24)
        facts, injects = {}, {}
        for name, machine in self.machines.items():
            machine.count(now)
            injects[name] = machine.injects(now)
            if now >= machine.down_until:
                facts[name] = machine.read(now, f"202611{day + 1:02d}T{hour:02d}0000Z-1")
        read = frozenset(facts)
        # A host that does not answer has no facts in this run: those of its bed stand for it and are read by no gate.
        whole = {name: facts.get(name) or self.bed.facts(name, []) for name in self.machines}
        asked: Mapping[str, Any] = {name: injects[name] if name in read else [POWER.inject] for name in self.machines}
        return Run(now, tuple(each for each in self.bed.judge_facts(whole, asked) if is_bad(each)), read)

    def named(self, event: Event, now: float) -> None:
        """The product has named a fault: its repair begins."""
        if event.ends is None:
            ends = now + self.chance.uniform(*REPAIR_HOURS)
            self._end(event, ends, "repaired")

    def _again(self, kind: str, what: Callable[[float], None], now: float = 0.0) -> None:
        """Let something happen again and again, with a mean time between."""
        mean = BETWEEN[kind]
        hours = now + self.chance.expovariate(1 / (mean[self.kind] if isinstance(mean, dict) else mean))

        def happen(then: float) -> None:
            what(then)
            self._again(kind, what, then)

        self.at(hours, happen)

    def _free(self, fault: Fault | NearMiss, now: float) -> Machine | None:
        """A random host that is up, and on which nothing has changed the same place."""
        machine = self.machines[self.chance.choice(self.bed.hosts)]
        # Places that the upgrade changes are left alone before it, too.
        changed = [*machine.injects(now), INSTALLED, LOADED] if self.kind == "roce" else machine.injects(now)
        free = now >= machine.down_until and not any(collide(fault.inject, each) for each in changed)
        return machine if free else None

    def _fault(self, now: float) -> None:
        fault = self.chance.choice(self.pool)
        machine = self._free(fault, now)
        if machine is None:
            return
        machine.count(now)
        event = Event(fault, machine.name, now)
        self.events.append(event)
        if fault.id == ONCE:
            event.ends, event.short, event.ended_by = now, True, "over at once"
        elif any(each.check == "link.state" for each in fault.expect) and self.chance.random() < 0.5:
            event.ends, event.short, event.ended_by = now + self.chance.uniform(*SHORT_HOURS), True, "by itself"
        else:
            self.at(now + UNNOTICED_HOURS, lambda then: self._end(event, then, "found otherwise") if event.ends is None else None)
        machine.arrive(event)

    def _end(self, event: Event, hours: float, by: str) -> None:
        event.ends, event.ended_by = hours, by

        def end(now: float) -> None:
            machine = self.machines[event.host]
            machine.count(now)
            if event.ends == now and leaves_counters(event.fault):
                machine.clear_full()

        self.at(hours, end)

    def _noise(self, now: float) -> None:
        near = self.chance.choice(self.near)
        machine = self._free(near, now)
        # A near miss with a value of one host, such as a MAC address, is a fault on any other.
        if machine is not None and machine.name in (near.on or self.bed.hosts):
            noise = Noise(near, now, now + self.chance.uniform(*NOISE_HOURS))
            machine.noise.append(noise)
            self.noise.append(noise)

    def _reboot(self, now: float) -> None:
        machine = self.machines[self.chance.choice(self.bed.hosts)]
        if now >= machine.down_until:
            self._down(machine, now, REBOOT_HOURS)

    def _power(self, now: float) -> None:
        """A host loses its power for hours."""
        machine = self.machines[self.chance.choice(self.bed.hosts)]
        if now < machine.down_until:
            return
        hours = self.chance.uniform(*POWER_HOURS)
        event = Event(POWER, machine.name, now, now + hours, ended_by="switched on")
        self.events.append(event)
        self._down(machine, now, hours)

    def _down(self, machine: Machine, now: float, hours: float) -> None:
        machine.count(now)
        machine.reboot(now, hours)
        self.reboots += 1
        for event in machine.events:
            if event.fault.id in HEALED and event.lasts(now):
                event.ends, event.ended_by = now, "healed by a reboot"

    def _upgrade(self, now: float, name: str) -> None:
        """The new driver is installed on one host, which reboots half an hour later."""
        self.machines[name].upgraded = "installed"
        self.at(now + 0.5, lambda then: self._down(self.machines[name], then, REBOOT_HOURS))
