# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a host on the control node's clock, checked where it enters the control node."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.events import BOOT, LOST, START, STEP
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.journal import LONGEST_TEXT, MOST_LINES
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.snapshot import KINDS, LONGEST
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.window import MOST_EVENTS

#: The folder of the records in a run.
FOLDER = "recorded"
ALL_KINDS = (*KINDS, BOOT, START, STEP, LOST)
_MOST_ENTRIES, _MOST_GAPS = 64, 1000
Value = str | int | None


@dataclass(frozen=True)
class Change:
    """A change of a host. time, earliest: seconds since 1970 by the control node's clock; it happened in between. earliest: None, unknown.

    was, now: a value, or for merged changes the value of each entry. more: further entries that were not recorded.
    """

    time: float
    earliest: float | None
    kind: str
    of: str
    was: Value | dict[str, Value]
    now: Value | dict[str, Value]
    pci: str | None = None
    more: int = 0


@dataclass(frozen=True)
class Line:
    """A line of a host's journal; time as in Change."""

    time: float
    source: str
    text: str


@dataclass(frozen=True)
class Clock:
    """How far a host's clock is ahead of the control node's, and how exactly that is known, in seconds; None if it was not measured."""

    offset_seconds: float | None
    error_seconds: float | None


@dataclass(frozen=True)
class HostRecord:
    """What a host has recorded. recorded: whether it has a record; gaps: times within the window in which nothing was read.

    middle: the time in question, None if there is none; damaged: lines that could not be read; cut: more events than were read.
    journal: None if it was not requested; journal_unread: why it could not be read, "" if it was; journal_cut: not all lines were read.
    """

    host: str
    recorded: bool
    since: float
    until: float
    clock: Clock
    changes: Sequence[Change] = ()
    gaps: Sequence[tuple[float, float]] = ()
    middle: float | None = None
    damaged: int = 0
    cut: bool = False
    journal: Sequence[Line] | None = None
    journal_unread: str = ""
    journal_cut: bool = False
    rails: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_answer(host: str, tree: Any, clock: Clock) -> HostRecord:
    """Return the record from the answer of recorder_read. Its times become those of the control node. Raises ParseError."""
    tree = _mapping(tree, "record")
    shift = clock.offset_seconds or 0.0
    journal = None if tree.get("journal") is None else _mapping(tree["journal"], "journal")
    lines = [] if journal is None else _items(journal.get("lines"), 2 * MOST_LINES, "journal")
    return HostRecord(
        host=host,
        recorded=tree.get("recorded") is True,
        since=_time(tree.get("since"), "since") - shift,
        until=_time(tree.get("until"), "until") - shift,
        clock=clock,
        changes=[_change(each, shift) for each in _items(tree.get("events"), MOST_EVENTS, "events")],
        gaps=[_gap(each, shift) for each in _items(tree.get("gaps"), _MOST_GAPS, "gaps")],
        middle=None if tree.get("middle") is None else _time(tree["middle"], "middle") - shift,
        damaged=_count(tree.get("damaged")),
        cut=tree.get("cut") is True,
        journal=None if journal is None else [_journal_line(each, shift) for each in lines],
        journal_unread="" if journal is None else clean(str(journal.get("unread") or ""), LONGEST_TEXT),
        journal_cut=journal is not None and journal.get("cut") is True,
    )


def from_stored(tree: Mapping[str, Any]) -> HostRecord:
    """Return the record that to_dict has stored in the run folder."""
    journal = tree["journal"]
    return HostRecord(
        **{
            **tree,
            "clock": Clock(**tree["clock"]),
            "changes": [Change(**each) for each in tree["changes"]],
            "gaps": [tuple(gap) for gap in tree["gaps"]],
            "journal": None if journal is None else [Line(**each) for each in journal],
        }
    )


def _change(tree: Any, shift: float) -> Change:
    tree = _mapping(tree, "event")
    if tree.get("kind") not in ALL_KINDS:
        raise ParseError(f"an event has the kind {quoted(tree.get('kind'))}, expected one of {', '.join(ALL_KINDS)}")
    earliest = tree.get("earliest")
    pci = tree.get("pci")
    return Change(
        time=_time(tree.get("time"), "time") - shift,
        earliest=None if earliest is None else _time(earliest, "earliest") - shift,
        kind=tree["kind"],
        of=clean(str(tree.get("of")), LONGEST),
        was=_value(tree.get("was")),
        now=_value(tree.get("now")),
        pci=clean(pci, 20) if isinstance(pci, str) else None,
        more=_count(tree.get("more")),
    )


def _journal_line(tree: Any, shift: float) -> Line:
    tree = _mapping(tree, "journal")
    return Line(_time(tree.get("time"), "time") - shift, clean(str(tree.get("source")), 60), clean(str(tree.get("text")), LONGEST_TEXT))


def _gap(value: Any, shift: float) -> tuple[float, float]:
    first, last = _items(value, 2, "gap") if isinstance(value, list) and len(value) == 2 else (None, None)
    return _time(first, "gap") - shift, _time(last, "gap") - shift


def _value(value: Any) -> Value | dict[str, Value]:
    if isinstance(value, Mapping) and len(value) <= _MOST_ENTRIES:
        return {clean(str(name), LONGEST): _scalar(each) for name, each in value.items()}
    return _scalar(value)


def _scalar(value: Any) -> Value:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**64):
        return value
    if isinstance(value, str):
        return clean(value, LONGEST)
    raise ParseError(f"an event has the value {quoted(value)}, expected a text, a number or nothing")


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ParseError(f"{name} is {type(value).__name__}, expected an object")
    return value


def _items(value: Any, most: int, name: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise ParseError(f"{name} is not a list of at most {most}")
    return value


def _time(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or abs(value) > 1e11:
        raise ParseError(f"{name} is {quoted(value)}, expected seconds since 1970")
    return float(value)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 10**9 else 0
