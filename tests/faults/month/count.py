# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts the alarms of a month: what each finding is about, and when each fault was named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import is_group
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import cause_key
from tests.faults.fault import Expected
from tests.faults.month.cluster import HOURS, RUN_EVERY_HOURS, SEED, Cluster, Run
from tests.faults.month.machine import Event, leaves_counters
from tests.faults.score import brief, names

TRUE, LATE, FOLLOWS, FALSE = "true", "late", "follows", "false"
#: The counters of links: the status depends on the time over which they are averaged.
RATES = ("link.flaps", "link.errors")
Key = tuple[str, str, str]


@dataclass
class Count:
    """The alarms of one cluster. An alarm is a finding until it goes away: (check, host, subject) → its kind."""

    cluster: Cluster
    runs: int = 0
    alarms: dict[str, int] = field(default_factory=lambda: dict.fromkeys((TRUE, LATE, FOLLOWS, FALSE), 0))
    false: list[str] = field(default_factory=list)
    standing: frozenset[Key] = frozenset()

    def add(self, run: Run) -> None:
        """Count what a run reported."""
        self.runs += 1
        before = run.hours - RUN_EVERY_HOURS
        visible = {name: [*self._visible(name, before, run)] for name in self.cluster.machines}
        for events in visible.values():
            for event in events:
                event.runs += 1
        kinds = self._kinds(run, visible, before)
        for finding, kind in kinds:
            key = (finding.check, finding.host, finding.subject)
            if key not in self.standing and finding.caused_by is None:
                self.alarms[kind] += 1
                if kind == FALSE:
                    self.false.append(f"hour {run.hours:g}: {brief(finding)}")
        for event in (each for events in visible.values() for each in events if each.named is None):
            event.reason = self._reason(event, run)
        self.standing = frozenset((each.check, each.host, each.subject) for each, _kind in kinds)

    def _visible(self, host: str, before: float, run: Run) -> Iterator[Event]:
        """The faults of a host that this run could see."""
        for event in self.cluster.events:
            if event.host != host:
                continue
            is_power = event.fault.id == "power-lost"
            lasts = event.lasts(run.hours) and (host in run.read) != is_power
            left = _ended_since(event, before, run.hours) and event.named is None and leaves_counters(event.fault)
            if lasts or (left and host in run.read):
                yield event

    def _kinds(self, run: Run, visible: dict[str, list[Event]], before: float) -> list[tuple[Finding, str]]:
        """Each finding with its kind. Notes which faults were named."""
        kinds: dict[int, str] = {}
        causes: set[str] = set()
        for at, finding in enumerate(run.findings):
            about = [event for name in self._hosts(finding) for event in visible[name]]
            named = [each for each in about if finding.caused_by is None and _names(finding, each, run.hours)]
            for event in named:
                if event.named is None:
                    event.named, event.at_run = run.hours, event.runs
                    self.cluster.named(event, run.hours)
            if named:
                late = all(each.at_run > 1 and each.named == run.hours for each in named)
                kinds[at] = LATE if late else TRUE
                causes.add(cause_key(finding))
            elif self._may(finding, about, before, run.hours):
                kinds[at] = FOLLOWS
                causes.add(cause_key(finding))
        return [
            (each, kinds.get(at, FOLLOWS if each.caused_by in causes else FALSE)) for at, each in enumerate(run.findings)
        ]  # fmt: skip

    def _hosts(self, finding: Finding) -> list[str]:
        """The hosts that a finding may be about: its own, and of a finding of a plane or of the fleet, which accuses no host, all."""
        return [*self.cluster.machines] if is_group(finding.host) else [finding.host]

    def _reason(self, event: Event, run: Run) -> str:
        """Why a run that could see a fault does not name it, as far as its findings show; "" if they do not."""
        hidden = [each for each in run.findings if each.host == event.host and any(_matches(each, wanted) for wanted in event.fault.expect)]
        if hidden:
            return f"attributed to {hidden[0].caused_by} of another fault on that host"
        if leaves_counters(event.fault) and not self.cluster.machines[event.host].compared:
            return "a reboot cleared the counters, and no earlier run of this boot was there to compare with"
        others = sorted({each.check for each in run.findings if each.host == event.host and each.caused_by is None})
        return f"hidden by {', '.join(others)} on that host" if others else ""

    def _may(self, finding: Finding, visible: Sequence[Event], before: float, now: float) -> bool:
        """Whether a finding is true and names no fault: a consequence, the end of a fault, a reboot, or an upgrade that is under way."""
        machines = [self.cluster.machines[name] for name in self._hosts(finding)]
        if any(check == finding.check for event in visible for check, _host in event.fault.may):
            return True
        for event in (event for machine in machines for event in machine.events):
            if _ended_since(event, before, now):
                after = {check for check, _host in event.fault.after} | (set(RATES) if leaves_counters(event.fault) else set())
                if finding.check in after:
                    return True
        noises = (noise for machine in machines for noise in machine.noise)
        if any(finding.check in noise.near.may for noise in noises if noise.begins <= now < noise.ends):
            return True
        # The subnet manager of a host that is down does not answer either.
        if finding.check in ("stage.completed", "link.sm") and any(now < machine.down_until for machine in machines):
            return True
        states = {each.upgraded for each in self.cluster.machines.values()}
        mixed = len(states) > 1
        installed = finding.check == "driver.loaded" and any(machine.upgraded == "installed" for machine in machines)
        return installed or (mixed and finding.check == "alike.driver")


def _ended_since(event: Event, before: float, now: float) -> bool:
    return event.ends is not None and before < event.ends <= now


def _names(finding: Finding, event: Event, now: float) -> bool:
    """Whether a finding is what the catalogue expects of a fault, or the counters that a fault has left."""
    if any(_matches(finding, wanted) for wanted in event.fault.expect):
        return True
    over = event.ends is not None and event.ends <= now
    return over and finding.check == "link.flaps" and leaves_counters(event.fault)


def _matches(finding: Finding, wanted: Expected) -> bool:
    status = finding.status in (ERROR, WARNING) if finding.check in RATES else finding.status == wanted.status
    return names(finding, wanted) or (finding.check == wanted.check and status and fnmatchcase(finding.subject, wanted.subject))


def month(kind: str, seed: int = SEED, hours: float = HOURS) -> Count:
    """Simulate a cluster, and count. hours: end of the simulation."""
    cluster = Cluster(kind, seed)
    count = Count(cluster)
    for number in range(1, int(hours / RUN_EVERY_HOURS) + 1):
        count.add(cluster.run(number * float(RUN_EVERY_HOURS)))
    return count
