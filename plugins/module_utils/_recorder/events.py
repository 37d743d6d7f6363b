# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes between two readings of a host, as events of one line each.

An event has "kind", "of" (its subject), "was" and "now" (None: not there), and the time: see ring.py. Changes of one kind that come
together are merged: the counters of a port, the GID table of a port, the interrupts of an interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._recorder.snapshot import (
    CARRIER,
    COUNTER,
    DEVICE,
    GID,
    INTERFACE,
    IRQ,
    MTU,
    RATE,
    STATE,
    Reading,
    Values,
)

#: The kinds that the recorder adds by itself.
START, BOOT, STEP, LOST = "start", "boot", "clock_step", "lost"
#: The kinds whose changes are merged into one event for each port or interface: its "was" and "now" are objects.
MERGED = (COUNTER, GID, IRQ)
#: The most entries of a merged event; the event counts the rest in "more".
MOST_MERGED = 32
#: The kinds that vanish with their interface or device, which is one event.
_DEPENDENT = {INTERFACE: (CARRIER, COUNTER, RATE, MTU, IRQ), DEVICE: (STATE, COUNTER, RATE, GID)}

Event = dict[str, Any]


def differences(before: Mapping[str, Values], reading: Reading, *, same_boot: bool = True) -> list[Event]:
    """Return the events of the change from earlier values (kind → values) to a reading, for the kinds that it has.

    A kind without earlier values is new to the record: nothing is known of its changes. Counters are compared within one boot, and only
    if they rose: they start at 0 with the driver.
    """
    changed = {kind: new for kind, new in reading.values.items() if kind in before and before[kind] != new}
    gone = _moved(before, reading, changed)
    events: list[Event] = []
    for kind, new in changed.items():
        old, merged = before[kind], dict[str, dict[str, tuple[Any, Any]]]()
        for of in sorted(of for of in {**old, **new} if old.get(of) != new.get(of)):
            was, now = old.get(of), new.get(of)
            owner, _space, entry = of.partition(" ")
            if (_is_count(was, now) and not _rose(was, now, same_boot)) or _owner(owner) in gone.get(kind, ()):
                continue
            if kind in MERGED:
                merged.setdefault(owner, {})[entry] = (was, now)
            else:
                events.append({"kind": kind, "of": of, "was": was, "now": now})
        events += [_merge(kind, owner, entries) for owner, entries in merged.items()]
    return [_with_place(event, reading) for event in _without_double_losses(events)]


def _is_count(was: Any, now: Any) -> bool:
    return isinstance(was, int) or isinstance(now, int)


def _rose(was: Any, now: Any, same_boot: bool) -> bool:
    return same_boot and isinstance(was, int) and isinstance(now, int) and now > was


def _owner(name: str) -> str:
    """Return the device of a port ("mlx5_0/1"), or the interface itself."""
    return name.partition("/")[0]


def _moved(before: Mapping[str, Values], reading: Reading, changed: Iterable[str]) -> dict[str, set[str]]:
    """Return kind → the interfaces and devices that came or went, of which it needs no event of its own."""
    found: dict[str, set[str]] = {}
    for kind in changed:
        for dependent in _DEPENDENT.get(kind, ()):
            found.setdefault(dependent, set()).update(before[kind].keys() ^ reading.values[kind].keys())
    return found


def _without_double_losses(events: list[Event]) -> list[Event]:
    """Leave out the count of losses of an interface whose carrier changed: the change says it, unless more than one was lost."""
    moved = {event["of"] for event in events if event["kind"] == CARRIER and event["now"] in ("no carrier", "down")}
    return [
        event
        for event in events
        if not (
            event["kind"] == CARRIER
            and event["of"].endswith(" losses")
            and event["of"].rpartition(" ")[0] in moved
            and event["now"] == event["was"] + 1
        )
    ]


def _merge(kind: str, of: str, entries: Mapping[str, tuple[Any, Any]]) -> Event:
    shown = dict(sorted(entries.items())[:MOST_MERGED])
    event = {"kind": kind, "of": of, "was": {name: was for name, (was, _now) in shown.items()}}
    event["now"] = {name: now for name, (_was, now) in shown.items()}
    return {**event, "more": len(entries) - len(shown)} if len(entries) > len(shown) else event


def _with_place(event: Event, reading: Reading) -> Event:
    place = reading.pci.get(_owner(event["of"].partition(" ")[0]))
    return {**event, "pci": place} if place is not None else event
