# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the hosts recorded around the failure of a job: when it failed, and the causes that only the past shows."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._recorder.events import BOOT
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.snapshot import DRIVER, FIRMWARE, GID, KERNEL, MODULE, SYSCTL
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.kinds.meanings import MEANINGS
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import JobLog, Occurrence
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Answer, Scene, confirmed, excluded, unknown
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import ERROR, SYMPTOM
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signatures.every import find_signature
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import listed
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.record import Change, HostRecord, Line
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.times import time_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.words import bad_counters, change_words, outages

#: How much later than the failure an event may be seen that came before it: readings are 2 s apart.
LATE_SECONDS = 3.0
_LOG_TIME = re.compile(r"([0-9]{2}-[0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]+)?")
_DAY = 86400.0


@dataclass(frozen=True)
class JobTime:
    """When a job failed. seconds: since 1970, None if it is not known so far; local: the time of the log in the time zone of its host.

    host: the name of this host in the log, None if the line has none; words: where the time comes from, or why there is none.
    """

    seconds: float | None
    local: str | None
    host: str | None
    words: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def time_of_log(log: JobLog, now: float) -> JobTime:
    """Return the time of the first error in the log. now: seconds since 1970, because times in logs may have no year."""
    first = next((each for each in log.occurrences if each.name == log.cause), None)
    if first is None:
        return JobTime(None, None, None, "The log has no known failure, so that its time is not known. Set rdma_job_time.")
    where = f"line {first.line} ({first.name})"
    timed = first if _local(first, now) is not None else next((each for each in _errors(log) if _local(each, now) is not None), None)
    if timed is None:
        words = f"No line of a failure has a time. The first failure is {where}, found by its text. Set rdma_job_time to search around it."
        return JobTime(None, None, None, words)
    words = f"the time of {where} in the log"
    if timed is not first:
        words = f"the time of line {timed.line} ({timed.name}) in the log, because the first failure, {where}, has none"
    host = timed.first.host or (timed.hosts[0] if timed.hosts else None)
    return JobTime(None, _local(timed, now), host, words)


def _errors(log: JobLog) -> list[Occurrence]:
    return [each for each in log.occurrences if each.kind in (ERROR, SYMPTOM)]


def _local(occurrence: Occurrence, now: float) -> str | None:
    """Return the time of the first line of a kind: "2026-11-20 09:29:41", of the last year in which it is not in the future."""
    found = _LOG_TIME.fullmatch(occurrence.first.time or "")
    if found is None:
        return None
    year = time.gmtime(now + _DAY).tm_year
    later = found[1] > time.strftime("%m-%d", time.gmtime(now + _DAY))
    return f"{year - 1 if later else year}-{found[1]} {found[2]}"


def ago(record: HostRecord, seconds: float) -> str:
    """Return when something was, seen from the failure: "38.2 s before the first error"."""
    before = (record.middle or seconds) - seconds
    return f"{abs(before):.1f} s {'before' if before >= 0 else 'after'} the first error"


def _before(record: HostRecord) -> Iterator[Change]:
    """Yield the changes before the failure."""
    until = (record.middle or record.until) + LATE_SECONDS
    yield from (change for change in record.changes if (change.earliest or change.time) <= until and change.time <= until)


def _place(scene: Scene, record: HostRecord) -> str:
    """The name of a host, with a note if the log does not name it: it may have had no part in the job."""
    return record.host if record.host in scene.job else f"{record.host} (not in the log)"


def _answer(scene: Scene, found: Sequence[tuple[float, str]], nothing: str) -> Answer:
    """Return the events nearest to the failure; without any, whether the hosts were recorded the whole time."""
    if found:
        return confirmed("; ".join(words for _seconds, words in sorted(found, key=lambda each: -each[0])[:3]))
    known = {record.host for record in scene.records if record.recorded and not _has_gap(record)}
    missing = [host for host in dict.fromkeys([*scene.job, *(record.host for record in scene.records)]) if host not in known]
    if missing:
        return unknown(f"not recorded all the time before the failure: {listed(missing)}")
    return excluded(nothing)


def _has_gap(record: HostRecord) -> bool:
    return any(first < (record.middle or record.until) and last - first > 2 * LATE_SECONDS for first, last in record.gaps)


def port_was_down(scene: Scene) -> Answer:
    """Whether a port of a host of the job was down before the failure."""
    found = []
    for record in scene.records:
        for outage in outages(_before(record), record.rails):
            down = outage.start[1]
            up = f", and up again {outage.end - down:.1f} s later" if outage.end is not None else ", and did not come up before it"
            found.append((down, f"{outage.of} of {_place(scene, record)} was down {ago(record, down)}{up}"))
    return _answer(scene, found, "no port of the job's hosts was down in the 10 minutes before")


def _changes(scene: Scene, wanted: Callable[[Change], object]) -> list[tuple[float, str]]:
    """Return the wanted changes before the failure, each with its time and in words."""
    return [
        (change.time, f"{_place(scene, record)}, {ago(record, change.time)}: {change_words(change, record.rails)}")
        for record in scene.records
        for change in _before(record)
        if wanted(change)
    ]


def gids_changed(scene: Scene) -> Answer:
    """Whether the GID table of a host of the job changed before the failure."""
    return _answer(scene, _changes(scene, lambda change: change.kind == GID), "no GID table changed in the 10 minutes before")


def host_changed(scene: Scene) -> Answer:
    """Whether a host of the job booted, or its modules, drivers, firmware or kernel parameters changed before the failure."""
    found = _changes(scene, lambda change: change.kind in (BOOT, MODULE, DRIVER, FIRMWARE, KERNEL, SYSCTL))
    return _answer(scene, found, "no host booted, and no module, driver, firmware or kernel parameter changed in the 10 minutes before")


def counters_rose(scene: Scene) -> Answer:
    """Whether counters of damaged data, lost links or dropped packets rose before the failure."""
    return _answer(scene, _changes(scene, bad_counters), "no counter of damaged or dropped packets rose in the 10 minutes before")


def known_lines(record: HostRecord) -> list[tuple[Line, str]]:
    """Return the lines of the journal that report a known failure, with their meanings."""
    found = []
    for line in record.journal or ():
        match = find_signature(line.text, info=False)
        if match is not None and MEANINGS[match[0].name].kind in (ERROR, SYMPTOM):
            found.append((line, MEANINGS[match[0].name].says))
    return found


def journal_reports(scene: Scene) -> Answer:
    """Whether the kernel or a service of a host of the job reported a known failure before the failure of the job."""
    found, unread = [], []
    for record in scene.records:
        if record.journal is None or record.journal_unread:
            unread.append(f"{record.host}: {record.journal_unread or 'not read'}")
        until = (record.middle or record.until) + LATE_SECONDS
        found += [
            (line.time, f"{_place(scene, record)}, {ago(record, line.time)}: {line.source}: {line.text}")
            for line, _says in known_lines(record)
            if line.time <= until
        ]
    if not found and (unread or not {record.host for record in scene.records} >= scene.job.keys()):
        return unknown("; ".join(unread[:3]) or "the journal of some hosts was not read")
    return confirmed("; ".join(words for _time, words in sorted(found)[-3:])) if found else excluded("the journals report no known failure")


def failed_at(job_time: JobTime, records: Mapping[str, HostRecord], host: str | None) -> float | None:
    """Return the time of the failure by the control node's clock. host: the inventory's name of the host that wrote the line."""
    if job_time.seconds is not None:
        return job_time.seconds
    if job_time.local is None:
        return None
    known = {name: record.middle for name, record in records.items() if record.middle is not None}
    return known.get(host or "", sorted(known.values())[len(known) // 2] if known else None)


def time_sentence(job_time: JobTime, seconds: float | None) -> str:
    """Return the sentence on the time of the failure."""
    return job_time.words if seconds is None else f"failed at {time_words(seconds)}: {job_time.words}"
