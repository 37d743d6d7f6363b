# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Error and congestion counters as rates between runs: a baseline in, findings and the next baseline out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.counters import (
    ERRORS_PER_HOUR,
    FEWEST_ERRORS,
    FEWEST_FLAPS,
    FLAPS_PER_HOUR,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Cause, Reporter, counted
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.links import link_name
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural

declare(
    {
        "fabric.counters": Check(
            "fabric",
            "the increase of the error and congestion counters of every port since the last run",
            "`ibqueryerrors`",
            "check cable and optic of the link that the finding names; for congestion, find the slow receiver; clear a full counter",
            sources=(reads.GRAPH, reads.result("ibqueryerrors")),
        ),
    }
)

CABLE, FLAP, REMOTE, CONGESTION, REFUSED = "cable", "flap", "remote", "congestion", "refused"
DROPS_PER_HOUR = 1000.0
FEWEST_DROPS = 100


@dataclass(frozen=True)
class Limit:
    """kind: its meaning. per_hour, fewest: both must be reached for a finding. full: the value at which the classic counter stops."""

    kind: str
    per_hour: float
    fewest: int
    full: int

    def passed(self, count: int, hours: float) -> bool:
        return count >= self.fewest and count >= self.per_hour * hours


LIMITS: dict[str, Limit] = {
    "SymbolErrorCounter": Limit(CABLE, ERRORS_PER_HOUR, FEWEST_ERRORS, 0xFFFF),
    "PortRcvErrors": Limit(CABLE, ERRORS_PER_HOUR, FEWEST_ERRORS, 0xFFFF),
    # Four bits wide, so it cannot count to a hundred.
    "LocalLinkIntegrityErrors": Limit(CABLE, float(FEWEST_ERRORS), FEWEST_ERRORS, 0xF),
    "ExcessiveBufferOverrunErrors": Limit(CABLE, float(FEWEST_ERRORS), FEWEST_ERRORS, 0xF),
    "LinkErrorRecoveryCounter": Limit(FLAP, FLAPS_PER_HOUR, FEWEST_FLAPS, 0xFF),
    "LinkDownedCounter": Limit(FLAP, FLAPS_PER_HOUR, FEWEST_FLAPS, 0xFF),
    "PortRcvRemotePhysicalErrors": Limit(REMOTE, ERRORS_PER_HOUR, FEWEST_ERRORS, 0xFFFF),
    "PortXmitDiscards": Limit(CONGESTION, DROPS_PER_HOUR, FEWEST_DROPS, 0xFFFF),
    "VL15Dropped": Limit(CONGESTION, DROPS_PER_HOUR, FEWEST_DROPS, 0xFFFF),
    "PortRcvSwitchRelayErrors": Limit(REFUSED, DROPS_PER_HOUR, FEWEST_DROPS, 0xFFFF),
    "PortXmitConstraintErrors": Limit(REFUSED, DROPS_PER_HOUR, FEWEST_DROPS, 0xFF),
    "PortRcvConstraintErrors": Limit(REFUSED, DROPS_PER_HOUR, FEWEST_DROPS, 0xFF),
}
#: Ticks that a port waited with data to send; the length of a tick depends on the vendor. Compared with the words sent in the same time.
WAIT, SENT = "PortXmitWait", "PortXmitData"
#: The maximum of classic counters that are not error counters.
FULL_WAIT = 0xFFFFFFFF
REMEDIES = {
    CABLE: "1. Clean and reseat both ends of the cable. 2. If errors go on, replace the cable.",
    FLAP: "If this was no reboot or manual change: 1. Clean and reseat both ends of the cable. 2. If it goes on, replace the cable.",
    REMOTE: "The packets were damaged on another link. Look for the link with symbol errors.",
    CONGESTION: "This is congestion, not a cable fault. 1. Find the slow receiver. 2. Check the balance over the spines (fabric.balance).",
    REFUSED: "The packets belong to a foreign partition or have no route. Check the P_Keys of both ends, and multicast.",
}
#: The worse kind is named first.
ORDER = (CABLE, FLAP, REMOTE, REFUSED, CONGESTION)

CHECK = "fabric.counters"
EXPECTED = "no error counter that rises as fast as its limit"
SCHEMA = 1
SECONDS_PER_HOUR = 3600
#: The counters stored from run to run.
KEPT = (*LIMITS, WAIT, SENT)
Baseline = Mapping[str, Any]


@dataclass(frozen=True)
class Risen:
    """One counter of one port. cleared: it was cleared since, so count is a minimum."""

    end: End
    name: str
    count: int
    kind: str
    cleared: bool


def baseline(view: View, seconds: float, run: str) -> dict[str, Any]:
    """Return the data to store for the next run. seconds: since 1970. run: its id."""
    ports = {
        f"{guid}/{number}": {name: port.counters[name] for name in KEPT if name in port.counters}
        for guid, node in sorted(view.nodes.items())
        for number, port in sorted(node.ports.items())
        if port.counters
    }
    return {"schema": SCHEMA, "seconds": seconds, "run": run, "ports": {end: counters for end, counters in ports.items() if counters}}


def parse_baseline(data: Any) -> Baseline:
    """Return the baseline in a file. Raises ParseError for a damaged one."""
    try:
        ports = {str(end): {str(name): _count(value) for name, value in counters.items()} for end, counters in data["ports"].items()}
        return {"schema": data.get("schema"), "seconds": _seconds(data["seconds"]), "run": str(data["run"]), "ports": ports}
    except (KeyError, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ParseError(f"not a baseline of counters: {type(error).__name__} {error}") from error


def _count(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"a counter is an integer, got {quoted(value)}")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError(f"seconds is a number, got {quoted(value)}")
    return float(value)


def check_counters(reporter: Reporter, before: Baseline | None, seconds: float, named: Collection[End]) -> list[Cause]:
    """Return the findings fabric.counters: one for each link whose counters rise too fast, and one for all congestion.

    seconds: the time of this reading since 1970. named: ends of links that another finding names.
    """
    view = reporter.view
    counting = sum(bool(port.counters) for node in view.nodes.values() for port in node.ports.values())
    if not counting:
        return [reporter.skip(CHECK, "no counters were read", EXPECTED)]
    full = _full(reporter)
    if before is None or before.get("schema") != SCHEMA or seconds <= before["seconds"]:
        return [*full, reporter.skip(CHECK, "no earlier run to compare with; this run is the baseline for the next one", EXPECTED)]
    hours = (seconds - before["seconds"]) / SECONDS_PER_HOUR
    risen = [each for each in _risen(view, before["ports"], hours) if each.end not in named]
    time = f"in {hours:.3g} h since run {before['run']}"
    by_link: dict[str, list[Risen]] = defaultdict(list)
    for each in risen:
        if each.kind != CONGESTION:
            by_link[_name(view, each.end)].append(each)
    if any(each.kind in (CABLE, FLAP) for each in risen):
        by_link = {name: those for name, those in by_link.items() if {each.kind for each in those} != {REMOTE}}
    causes = [_link(reporter, name, by_link[name], time, hours) for name in sorted(by_link, key=natural)]
    causes += _congestion(reporter, [each for each in risen if each.kind == CONGESTION], time)
    causes += full
    return causes or [reporter.well(CHECK, f"none {time}, on {counted(range(counting), 'port')} with counters", EXPECTED)]


def _risen(view: View, before: Mapping[str, Mapping[str, int]], hours: float) -> list[Risen]:
    """Return the counters that rose at least as fast as their limits, in order."""
    found = []
    for guid, node in sorted(view.nodes.items()):
        for number, port in sorted(node.ports.items()):
            earlier = before.get(f"{guid}/{number}")
            if earlier is None or not port.counters:
                continue
            found += _of_port((guid, number), port.counters, earlier, hours)
    return found


def _of_port(end: End, now: Mapping[str, int], then: Mapping[str, int], hours: float) -> list[Risen]:
    found = []
    rises = {name: (now[name] - then[name], False) if now[name] >= then[name] else (now[name], True) for name in now.keys() & then.keys()}
    for name, limit in LIMITS.items():
        if name in rises and limit.passed(rises[name][0], hours):
            found.append(Risen(end, name, rises[name][0], limit.kind, rises[name][1]))
    waited, sent = rises.get(WAIT, (0, False))[0], rises.get(SENT)
    if sent is not None and now.get(WAIT) != FULL_WAIT and waited > sent[0] and waited >= _wait_limit().fewest:
        found.append(Risen(end, WAIT, waited, CONGESTION, rises[WAIT][1]))
    return found


def _wait_limit() -> Limit:
    return LIMITS["PortXmitDiscards"]


def _name(view: View, end: End) -> str:
    link = view.link_at.get(end)
    return link_name(view, link) if link is not None else view.end(end)


def _link(reporter: Reporter, name: str, risen: Sequence[Risen], time: str, hours: float) -> Cause:
    view = reporter.view
    worst_first = sorted(risen, key=lambda each: (ORDER.index(each.kind), -each.count, each.name, natural(view.end(each.end))))
    words = ", ".join(_words(view, each, hours) for each in worst_first)
    kinds = {each.kind for each in risen}
    link = view.link_at.get(risen[0].end)
    ends = (link.a, link.b) if link is not None else (risen[0].end,)
    hosts = [view.host(guid) for guid, _port in ends if view.is_host(guid)]
    status = WARNING if kinds <= {REFUSED} else ERROR
    remedy = REMEDIES[worst_first[0].kind]
    return reporter.cause(CHECK, status, name, f"{words} {time}", EXPECTED, remedy, host=hosts[0] if hosts else None, ends=ends)


def _words(view: View, each: Risen, hours: float) -> str:
    """ "SymbolErrorCounter 420 at leaf3 port 14 (210 an hour, a bit error rate of at least 1e-13)"."""
    rate = f"{each.count / hours:.3g} an hour"
    link = view.link_at.get(each.end)
    gbps = link.rate_gbps if link is not None and each.name == "SymbolErrorCounter" else None
    errors = f", a bit error rate of at least {each.count / (gbps * 1e9 * hours * SECONDS_PER_HOUR):.0e}" if gbps else ""
    cleared = ", cleared since" if each.cleared else ""
    return f"{each.name} {each.count} at {view.end(each.end)} ({rate}{errors}{cleared})"


def _congestion(reporter: Reporter, risen: Sequence[Risen], time: str) -> list[Cause]:
    """Return one finding for all congestion, the worst first: one slow receiver makes senders wait everywhere."""
    if not risen:
        return []
    view = reporter.view
    worst = sorted(risen, key=lambda each: (each.name == WAIT, -each.count, natural(view.end(each.end))))
    names = some([f"{each.name} {each.count} at {view.end(each.end)}" for each in worst])
    return [reporter.cause(CHECK, WARNING, "congestion", f"{names} {time}", EXPECTED, REMEDIES[CONGESTION])]


def _full(reporter: Reporter) -> list[Cause]:
    """Return a finding on counters at their maximum, which no longer count."""
    view = reporter.view
    full = [
        f"{name} at {view.end((guid, number))}"
        for guid, node in view.nodes.items()
        for number, port in node.ports.items()
        for name, limit in LIMITS.items()
        if port.counters.get(name) == limit.full and limit.full > limit.fewest
    ]
    if not full:
        return []
    observed = f"at their maximum, so they no longer count: {some(sorted(full, key=natural))}"
    remedy = "Clear them with `ibqueryerrors -k`, so that they count again."
    return [reporter.cause(CHECK, WARNING, "full counters", observed, EXPECTED, remedy)]
