# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What changed on a fleet between two times, as text: a summary, the clocks, the events in order, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import listed, section, text_lines, wrap
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.record import Change, HostRecord
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.times import clock_words, time_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.words import change_words, summary

#: The most printed events; all are in the file.
MOST_EVENTS = 200
_HOST_WIDTH, _TIME_WIDTH = 16, 22


def changed_text(records: Sequence[HostRecord], since: float, until: float) -> str:
    """Return the text in lines of at most 120 columns, without a final line break."""
    events = sorted(((change.time, record, change) for record in records for change in record.changes), key=lambda each: each[0])
    with_events = {record.host for _time, record, _change in events}
    head = text_lines(f"between {time_words(since)} and {time_words(until)}:", 0)
    counted = f"{len(events)} changes on {len(with_events)} of {len(records)} hosts"
    head += text_lines(f"{counted}: {summary(records)}" if events else "no change was recorded", 0)
    parts = ["\n".join([*head, *clock_lines(records), *unknown_lines(records)])]
    if events:
        lines = [line for _time, record, change in events[:MOST_EVENTS] for line in _event_lines(record, change)]
        if len(events) > MOST_EVENTS:
            lines += text_lines(f"and {len(events) - MOST_EVENTS} more, all in changed.json")
        parts.append(section("EVENTS (UTC, by the clock of the control node)", lines))
    return "\n\n".join(parts)


def _event_lines(record: HostRecord, change: Change) -> list[str]:
    return event_lines(clock_words(change.time) + _uncertain(change), record.host, change_words(change, record.rails))


def _uncertain(change: Change) -> str:
    return "" if change.earliest is None else f" ({change.earliest - change.time:.1f} s)"


def event_lines(time: str, host: str, words: str) -> list[str]:
    """Return an event in columns: its time, its host, and what happened."""
    lead = f"  {time:<{_TIME_WIDTH}}  {host:<{_HOST_WIDTH}}  "
    first, *rest = wrap(words, max(120 - len(lead), 40))
    return [lead + first, *(" " * len(lead) + line for line in rest)]


def clock_lines(records: Sequence[HostRecord]) -> Iterator[str]:
    """Yield the sentence on the clocks: how far they are off, and how exactly that was measured."""
    measured = [(record.clock.offset_seconds, record.clock.error_seconds, record.host) for record in records]
    known = [(offset, error, host) for offset, error, host in measured if offset is not None and error is not None]
    if known:
        offset, _error, host = max(known, key=lambda each: abs(each[0]))
        worst = max(error for _offset, error, _host in known)
        yield from text_lines(f"clocks: at most {offset:+.3f} s off the control node's ({host}), measured to ± {worst:.3f} s, corrected", 0)
    unknown = [host for offset, _error, host in measured if offset is None]
    if unknown:
        yield from text_lines(f"The clock of {listed(unknown)} was not measured: its times are not corrected.", marked=True)


def unknown_lines(records: Sequence[HostRecord]) -> Iterator[str]:
    """Yield what is not known: hosts without a record, gaps, damaged lines, cut results."""
    without = [record.host for record in records if not record.recorded]
    if without:
        words = f"unknown: there is no record on {listed(without)}. Set `rdma_recorder: {{manage: true}}` and run the host stage."
        yield from text_lines(words, marked=True)
    for record in records:
        gaps = [f"{time_words(first)} to {clock_words(last)}" for first, last in record.gaps if last - first > 1.0]
        if record.recorded and gaps:
            yield from text_lines(f"unknown: {record.host} recorded nothing from {listed(gaps, 3)}", marked=True)
        if record.damaged:
            yield from text_lines(f"{record.host}: {record.damaged} damaged lines of its record were skipped", marked=True)
        if record.cut:
            yield from text_lines(f"{record.host}: only the last {len(record.changes)} events were read", marked=True)
