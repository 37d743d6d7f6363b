# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes in words, with the rails that they concern, and the outages of ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import CABLE_ERRORS, CONGESTION, FLAPS
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.events import BOOT, LOST, START, STEP
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.snapshot import (
    CARRIER,
    COUNTER,
    DEVICE,
    DRIVER,
    FIRMWARE,
    GID,
    INTERFACE,
    IRQ,
    KERNEL,
    MODULE,
    MTU,
    RATE,
    STATE,
    SYSCTL,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import listed
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.record import Change, HostRecord, Value

#: The kinds in the order of a summary, in words.
LABELS = {
    CARRIER: "carrier",
    STATE: "port state",
    INTERFACE: "interfaces",
    DEVICE: "RDMA devices",
    BOOT: "boot",
    KERNEL: "kernel",
    DRIVER: "driver",
    FIRMWARE: "firmware",
    MODULE: "modules",
    GID: "GID table",
    RATE: "rate",
    MTU: "MTU",
    SYSCTL: "kernel parameters",
    COUNTER: "error counters",
    IRQ: "interrupt affinity",
    STEP: "clock step",
    START: "recorder",
    LOST: "recorder's disk",
}
_ACTIVE = ("up", "4: ACTIVE")
_UNSTEADY = FLAPS | CABLE_ERRORS


@dataclass(frozen=True)
class Outage:
    """A time in which a port was down. start: the last time at which it was seen up, and the first at which it was seen down.

    end: when it was seen up again, None if not within the window. of: its name in words.
    """

    of: str
    start: tuple[float | None, float]
    end: float | None


def rail_names(intent: Intent | None, facts: RunFacts | None) -> dict[str, str]:
    """Return name of an interface, RDMA device or PCI function → rail. Without facts, only rails that the intent names by PCI address."""
    if intent is None:
        return {}
    found = {str(rail["nic"]["pci"]): str(rail["name"]) for rail in intent["rails"] if rail["nic"].get("pci")}
    try:
        rails = resolve(intent["rails"], facts) if facts is not None else []
    except ParseError:
        return found
    for rail in rails:
        found |= {name: rail.name for name in (*rail.interfaces, rail.device) if name is not None}
    return found


def subject(change: Change, rails: Mapping[str, str]) -> str:
    """Return the subject of a change, with its rail if it has one: "rail1 (ens1f0)"."""
    name = change.of.removesuffix(" losses")
    rail = rails.get(name) or rails.get(name.partition("/")[0]) or rails.get(change.pci or "")
    return f"{rail} ({name})" if rail is not None else name


def change_words(change: Change, rails: Mapping[str, str]) -> str:
    """Return a change as one sentence without its time."""
    of, was, now = subject(change, rails), change.was, change.now
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        return _merged_words(change, of, was, now)
    moved = "vanished" if now is None else "appeared" if was is None else f"moved from {was} to {now}"
    name = "" if change.kind == KERNEL else f"{LABELS[change.kind]} of "
    words = {
        CARRIER: _carrier_words(change, of),
        INTERFACE: f"interface {of} {moved}",
        DEVICE: f"RDMA device {of} {moved}",
        MODULE: f"module {of} was {'unloaded' if now is None else 'loaded'}",
        BOOT: "the host booted",
        START: f"recorder: {now}",
        LOST: f"recorder: {now}",
        STEP: f"the clock was stepped by {now}",
    }
    return words.get(change.kind, f"{name}{of}: {_shown(was)} → {_shown(now)}")


def _carrier_words(change: Change, of: str) -> str:
    if change.of.endswith(" losses"):
        return f"{of} lost its carrier {_by(change.was, change.now)} times, and had it again before the next reading"
    words = {"up": "has carrier again", "no carrier": "lost its carrier", "down": "was set down"}
    return f"{of} {words.get(str(change.now), f'has the carrier {change.now}, before {change.was}')}"


def _merged_words(change: Change, of: str, was: Mapping[str, Value], now: Mapping[str, Value]) -> str:
    if change.kind == IRQ:
        return f"{len(now) + change.more} interrupts of {of} moved to other CPUs"
    if change.kind == COUNTER:
        entries, most, between = [f"{name} +{_by(was.get(name), value)}" for name, value in now.items()], 4, ", "
    else:
        of = f"GID table of {of}"
        entries, most, between = [f"index {name} {_shown(was.get(name))} → {_shown(value)}" for name, value in now.items()], 2, "; "
    more = change.more + max(0, len(entries) - most)
    return f"{of}: {between.join(entries[:most])}{f' and {more} more' if more else ''}"


def _by(was: object, now: object) -> str:
    return f"{now - was:,}" if isinstance(was, int) and isinstance(now, int) else "?"


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def outages(changes: Iterable[Change], rails: Mapping[str, str]) -> list[Outage]:
    """Return the outages of ports by their starts: lost carriers, states other than ACTIVE, vanished interfaces and devices."""
    found: list[Outage] = []
    down: dict[tuple[str, str], int] = {}
    for change in changes:
        if change.kind not in (CARRIER, STATE, INTERFACE, DEVICE):
            continue
        key, name = (change.kind, change.of), subject(change, rails)
        if change.of.endswith(" losses"):
            found.append(Outage(name, (change.earliest, change.time), change.time))
        elif change.now is None or (change.kind in (CARRIER, STATE) and change.now not in _ACTIVE):
            if key not in down:
                down[key] = len(found)
                found.append(Outage(name, (change.earliest, change.time), None))
        elif key in down:
            at = down.pop(key)
            found[at] = replace(found[at], end=change.time)
    return found


def bad_counters(change: Change) -> list[str]:
    """Return the counters of damaged data, lost links and dropped packets that rose: "symbol_error +12"."""
    if change.kind != COUNTER or not isinstance(change.now, Mapping) or not isinstance(change.was, Mapping):
        return []
    names = [name for name in change.now if name in _UNSTEADY or name in CONGESTION]
    return [f"{name} +{_by(change.was.get(name), change.now[name])}" for name in names]


def summary(records: Sequence[HostRecord]) -> str:
    """Return what changed on how many hosts: "GID table of 3 hosts, kernel of node1"."""
    hosts: dict[str, dict[str, None]] = {}
    for record in records:
        for change in record.changes:
            hosts.setdefault(change.kind, {})[record.host] = None
    return "; ".join(f"{LABELS[kind]}: {listed(list(hosts[kind]))}" for kind in LABELS if kind in hosts)
