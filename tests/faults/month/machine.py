# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host of the month: what is wrong with it now, and what lasts from one run to the next: its boot and its counters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import COUNTERS, since
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.counters import FULL
from tests.faults.beds.hosts import HostBed
from tests.faults.fault import Fault, NearMiss
from tests.faults.month.upgrade import INSTALLED, LOADED

Leaf = tuple[str, ...]
SECONDS_PER_HOUR = 3600.0
_PORT = re.compile(r"/sys/class/infiniband/(\w+)/ports/(\d+)/state")
_CARRIER = re.compile(r"/sys/class/net/(\w+)/carrier")


@dataclass(eq=False)
class Event:
    """A fault on a host. Times in hours since the beginning of the month.

    ends: when it is repaired or gone, None while nobody knows it; short: it ends by itself before anybody repairs it.
    runs: how many runs have read the host while it was there, or right after a fault that left counters; named: the time of the run
    that named it first; at_run: which of these runs that was, from 1. reason: why it was named late or not at all.
    """

    fault: Fault
    host: str
    begins: float
    ends: float | None = None
    short: bool = False
    ended_by: str = ""
    runs: int = 0
    named: float | None = None
    at_run: int = 0
    reason: str = ""

    def lasts(self, now: float) -> bool:
        return self.begins <= now and (self.ends is None or now < self.ends)


@dataclass(eq=False)
class Noise:
    """A change that is no fault: a near miss of the catalogue."""

    near: NearMiss
    begins: float
    ends: float


@dataclass
class Machine:
    """One host. down_until: it does not answer before; totals: what its counters have counted since its boot.

    compared: whether the last run could compare the counters with an earlier reading of the same boot.
    """

    bed: HostBed
    name: str
    events: list[Event] = field(default_factory=list)
    noise: list[Noise] = field(default_factory=list)
    boots: int = 0
    booted: float = -48.0
    counted: float = 0.0
    down_until: float = 0.0
    compared: bool = False
    upgraded: str = ""
    totals: dict[Leaf, float] = field(default_factory=dict)
    stored: dict[str, Any] | None = None
    stored_run: str = ""

    def injects(self, now: float) -> list[Mapping[str, Any]]:
        """Everything that is changed on the host now."""
        changed = {"": [], "installed": [INSTALLED], "loaded": [INSTALLED, LOADED]}[self.upgraded]
        return [
            *changed,
            *(each.fault.inject for each in self.events if each.lasts(now)),
            *(each.near.inject for each in self.noise if each.begins <= now < each.ends),
        ]

    def count(self, now: float) -> None:
        """Let the counters count up to now, for as long as each fault lasted."""
        for event in self.events:
            hours = min(now, event.ends if event.ends is not None else now) - max(self.counted, event.begins)
            if hours > 0 and not _counts_once(event):
                for leaf, rate in self._rates(event.fault).items():
                    self._add(leaf, rate * hours)
        self.counted = now

    def arrive(self, event: Event) -> None:
        """A fault begins. A link that goes down is counted."""
        self.events.append(event)
        if _counts_once(event):
            for leaf, rate in self._rates(event.fault).items():
                self._add(leaf, rate)
        for leaf in _links_down(event.fault):
            self._add(leaf, 1)

    def reboot(self, now: float, down_hours: float) -> None:
        """The host stops, and starts again: its counters begin again."""
        self.totals.clear()
        self.boots += 1
        self.booted = self.counted = self.down_until = now + down_hours
        if self.upgraded == "installed":
            self.upgraded = "loaded"

    def clear_full(self) -> None:
        """What an admin does beside the repair, as the finding says: clear the counters that are full."""
        for leaf in [leaf for leaf, total in self.totals.items() if leaf[-1] in FULL and total >= FULL[leaf[-1]]]:
            self.totals[leaf] = 0

    def read(self, now: float, run: str) -> dict[str, Any]:
        """Its facts, with the changes of its counters since the run that read it before."""
        facts = self.bed.facts(self.name, self.injects(now))
        healthy = dict(_counters(self.bed.facts(self.name, [])))
        for leaf, _value in [*_counters(facts)]:
            if leaf in healthy:
                _put(facts, leaf, min(healthy[leaf] + int(self.totals.get(leaf, 0)), FULL.get(leaf[-1], 2**63)))
        facts["boot"].update(uptime_seconds=(now - self.booted) * SECONDS_PER_HOUR, boot_id=f"{self.name}-{self.boots}")
        facts["since"] = since(self.stored, facts, self.stored_run) if self.stored is not None else None
        self.stored, self.stored_run, self.compared = facts, run, facts["since"] is not None
        return facts

    def _rates(self, fault: Fault) -> dict[Leaf, float]:
        """What a fault adds to counters in an hour: the catalogue shows an hour of it."""
        healthy = dict(_counters(self.bed.facts(self.name, [])))
        hurt = _counters(self.bed.facts(self.name, [fault.inject]))
        return {leaf: value - healthy[leaf] for leaf, value in hurt if value > healthy.get(leaf, value)}

    def _add(self, leaf: Leaf, more: float) -> None:
        self.totals[leaf] = self.totals.get(leaf, 0) + more


def leaves_counters(fault: Fault) -> bool:
    """Whether counters show a fault of links after its end."""
    return any(each.check in ("link.flaps", "link.errors") for each in fault.expect) or bool(_links_down(fault))


def _counts_once(event: Event) -> bool:
    """Whether a fault is over at once, such as a link that went down once."""
    return event.ends is not None and event.ends == event.begins


def _links_down(fault: Fault) -> list[Leaf]:
    """The counters of links that this fault takes down."""
    if not any(each.check == "link.state" for each in fault.expect):
        return []
    found: list[Leaf] = []
    for path, value in (fault.inject.get("write") or {}).items():
        if carrier := _CARRIER.fullmatch(path):
            found.append(("netdevs", carrier[1], "carrier_downs"))
        elif (port := _PORT.fullmatch(path)) and "DOWN" in str(value) and fault.bed == "infiniband":
            found.append(("devices", port[1], "ports", port[2], "counters", "link_downed"))
    return found


def _counters(facts: Mapping[str, Any]) -> Iterator[tuple[Leaf, int]]:
    """The error counters in the facts of a host: where they are, and their values."""
    for name, device in (facts["devices"] or {}).items():
        for number, port in (device["ports"] or {}).items():
            for kind in ("counters", "hw_counters"):
                yield from _known(("devices", name, "ports", number, kind), port.get(kind))
    for name, netdev in (facts["netdevs"] or {}).items():
        yield from _known(("netdevs", name), {"carrier_downs": netdev.get("carrier_downs")})
        yield from _known(("netdevs", name, "ethtool", "counters"), (netdev.get("ethtool") or {}).get("counters"))


def _known(where: Leaf, counters: Mapping[str, Any] | None) -> Iterator[tuple[Leaf, int]]:
    yield from (((*where, name), value) for name, value in (counters or {}).items() if name in COUNTERS and isinstance(value, int))


def _put(facts: dict[str, Any], leaf: Leaf, value: int) -> None:
    place = facts
    for name in leaf[:-1]:
        place = place[name]
    place[leaf[-1]] = value
