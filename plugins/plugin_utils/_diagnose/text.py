# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders a diagnosis as plain text: the likely cause first, its consequences last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.diagnose import Diagnosis, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import UNKNOWN_LINE, UNKNOWN_WARNING, JobLog
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.past import known_lines, time_sentence
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import CONFIRMED, EXCLUDED, NOT_CHECKABLE, VERDICTS, Answer
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import CONSEQUENCE, ERROR, REMARK, SYMPTOM, UNKNOWN
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import Item, items, listed, section, text_lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.record import HostRecord
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.text import clock_lines, event_lines, unknown_lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.words import change_words

#: The maximum number of fully printed causes for each kind of line; the others are in diagnosis.json.
MOST_CAUSES = 4
#: The maximum number of printed kinds of unknown warnings.
MOST_UNKNOWN = 8
#: The maximum number of printed problems of refused intents.
MOST_PROBLEMS = 5
#: The maximum number of printed events around the failure.
MOST_EVENTS = 30
_STEP = re.compile(r" (?=[1-9]\. )")
_TITLES = {
    ERROR: "FURTHER ERRORS, WHICH MAY FOLLOW FROM IT",
    SYMPTOM: "FAILURES WHOSE CAUSE IS ELSEWHERE",
    UNKNOWN: "UNKNOWN WARNINGS AND ERRORS, WHICH MAY BE THE CAUSE",
    REMARK: "REMARKS: NOT FAILURES BY THEMSELVES",
    CONSEQUENCE: "CONSEQUENCES",
}


def text(diagnosis: Diagnosis, name: str) -> str:
    """The text in lines of at most 120 columns, without a final line break. name: the log's name."""
    parts = ["\n".join(_head(diagnosis, name))]
    parts += ["\n".join(["LIKELY CAUSE", *_lines(finding)]) for finding in diagnosis.findings if finding.first]
    if diagnosis.job_time is not None:
        parts.append(section("AROUND THE FAILURE", list(_past(diagnosis))))
    for kind, title in _TITLES.items():
        rest = [finding for finding in diagnosis.findings if finding.occurrence.kind == kind and not finding.first]
        if rest and kind == UNKNOWN:
            parts.append(section(title, list(_unknown(rest))))
        elif rest:
            parts.append(section(title, *(list(_lines(finding)) for finding in rest)))
    return "\n\n".join(parts)


def _head(diagnosis: Diagnosis, name: str) -> Iterator[str]:
    log = diagnosis.log
    yield from text_lines(f"{name}: why the job failed" if name else "What happened around the failure of a job", 0)
    if not name:
        yield from _missing(diagnosis)
        return
    parts = [f"{log.lines} lines", *([f"{log.context.nranks} ranks"] if log.context.nranks else [])]
    parts += [f"hosts {listed(log.context.hosts)}"] if log.context.hosts else []
    parts += [f"NCCL {listed(sorted(log.context.versions))}"] if log.context.versions else []
    yield from text_lines("; ".join(parts), 0)
    yield from _missing(diagnosis)
    if log.cut:
        yield from text_lines("The last line is incomplete: the log is cut off, or the job still runs.", marked=True)
    if not log.lines:
        yield from text_lines("The log is empty.", marked=True)
    elif log.cause is None:
        yield from _without_cause(log)
    if diagnosis.strangers:
        yield from text_lines(
            f"This play does not contain {listed(diagnosis.strangers)}: nothing could be checked there. "
            "Run it on an inventory with these hosts, or map their names in rdma_job_hosts.",
            marked=True,
        )


def _past(diagnosis: Diagnosis) -> Iterator[str]:
    """What the hosts recorded around the failure, the nearest events before it and a few after it."""
    if diagnosis.job_time is None:
        return
    yield from text_lines(time_sentence(diagnosis.job_time, diagnosis.seconds), marked=diagnosis.seconds is None)
    if diagnosis.seconds is None:
        return
    yield from clock_lines(diagnosis.records)
    yield from unknown_lines(diagnosis.records)
    for record in diagnosis.records:
        if record.journal_unread:
            yield from text_lines(f"unknown: the journal of {record.host} could not be read: {record.journal_unread}", marked=True)
        elif record.journal_cut:
            yield from text_lines(f"The journal of {record.host} was too long: only the lines nearest to the failure were read.")
    events = sorted(_events(diagnosis.records))
    near = sorted(events, key=lambda event: abs(event[0] - diagnosis.seconds if diagnosis.seconds else 0.0))[:MOST_EVENTS]
    if not events:
        yield from text_lines("Nothing was recorded, and the journals report no known failure.")
    for seconds, host, words in sorted(near):
        yield from event_lines(f"{seconds - diagnosis.seconds:+.1f} s", host, words)
    if len(events) > len(near):
        yield from text_lines(f"and {len(events) - len(near)} more, all in diagnosis.json")


def _events(records: Sequence[HostRecord]) -> Iterator[tuple[float, str, str]]:
    """The changes of all hosts, and the lines of their journals that report a known failure: time, host, words."""
    for record in records:
        yield from ((change.time, record.host, change_words(change, record.rails)) for change in record.changes)
        yield from ((line.time, record.host, f"{line.source}: {line.text}") for line, _says in known_lines(record))


def _without_cause(log: JobLog) -> list[str]:
    """The sentence about a log without a known failure that could be the cause."""
    warned = sum(each.count for each in log.occurrences if each.name == UNKNOWN_WARNING)
    if warned:
        return text_lines(f"No line is a known failure, but NCCL warned {warned} times: see the unknown warnings.", marked=True)
    others = sum(each.count for each in log.occurrences if each.name == UNKNOWN_LINE)
    if others:
        return text_lines(f"No line is a known failure, but {others} lines have errors: see the unknown errors.", marked=True)
    if any(each.kind == CONSEQUENCE for each in log.occurrences):
        words = "This log has only consequences of a failure. The first failure is in the log of another rank or host: diagnose that log."
        return text_lines(words, marked=True)
    return text_lines("No line reports a failure.", 0)


def _missing(diagnosis: Diagnosis) -> Iterator[str]:
    """The missing inputs of the diagnosis: refused intents, absent intents, and facts."""
    if diagnosis.refused:
        hosts = listed(list(diagnosis.refused))
        words = f"ERROR: the intent of {hosts} is refused. Causes there are checked only against facts, not against the plan."
        yield from text_lines(words, marked=True)
        alike: dict[str, list[str]] = {}
        for host, problems in diagnosis.refused.items():
            for problem in problems:
                alike.setdefault(problem, []).append(host)
        for problem, where in list(alike.items())[:MOST_PROBLEMS]:
            yield from text_lines(f"{problem} ({listed(where)})", 4)
        if len(alike) > MOST_PROBLEMS:
            yield from text_lines(f"and {len(alike) - MOST_PROBLEMS} more problems, all in diagnosis.json", 4)
        yield from text_lines("do: correct these in the inventory, then run diagnose again", 4)
    if diagnosis.without_intent:
        yield from text_lines(f"No intent for {listed(diagnosis.without_intent)}: causes there are checked only against facts.", 0)
    if diagnosis.unread:
        words = f"No facts of {listed(diagnosis.unread)}: nothing could be checked there. See why: `ansible -m rdma.cluster.rdma_facts`."
        yield from text_lines(words, marked=True)


def _lines(finding: Finding) -> Iterator[str]:
    each = finding.occurrence
    yield from text_lines(each.says, marked=finding.first or each.kind == ERROR)
    yield from text_lines(f"{_times(each.count, each.line)}{_places(finding)} ({each.source})", 4)
    yield from text_lines(f"> {each.first.text}", 4)
    yield from items([Item(f"{line.label:<13}", line.text) for line in _causes(finding)], 4)


def _unknown(findings: Sequence[Finding]) -> Iterator[str]:
    """The first kinds of unknown lines in the log, those of NCCL before others, followed by one common remedy."""
    ordered = sorted(findings, key=lambda finding: (finding.occurrence.name != UNKNOWN_WARNING, finding.occurrence.line))
    for finding in ordered[:MOST_UNKNOWN]:
        each = finding.occurrence
        yield from text_lines(each.first.text, marked=True)
        yield from text_lines(f"{_times(each.count, each.line)}{_places(finding)} ({each.source})", 4)
    if len(ordered) > MOST_UNKNOWN:
        yield from text_lines(f"and {len(ordered) - MOST_UNKNOWN} more kinds, all in diagnosis.json")
    yield from (line for step in _STEP.split(ordered[0].causes[0].remedy) for line in text_lines(step, 4))


def _times(count: int, line: int) -> str:
    return f"line {line}" if count == 1 else f"{count} times, first in line {line}"


def _places(finding: Finding) -> str:
    each = finding.occurrence
    hosts = f", on {listed(each.hosts)}" if each.hosts else ""
    ranks = f", rank {listed([str(rank) for rank in each.ranks], 8)}" if each.ranks else ""
    return hosts + ranks


def _causes(finding: Finding) -> Iterator[Item]:
    """The confirmed causes with their remedies; if there are none, the unchecked causes with remedies to try; and the others in short."""
    by_verdict = {verdict: [cause for cause in finding.causes if cause.verdict == verdict] for verdict in VERDICTS}
    shown = by_verdict[CONFIRMED] or by_verdict[NOT_CHECKABLE]
    rest = [cause for cause in by_verdict[NOT_CHECKABLE] if cause not in shown[:MOST_CAUSES]]
    for cause in shown[:MOST_CAUSES]:
        yield Item(cause.verdict, cause.says)
        yield Item("", "; ".join(_seen(cause.answers, cause.verdict)))
        yield Item("do" if cause.verdict == CONFIRMED else "try", cause.remedy)
    if rest and finding.first:
        yield Item(NOT_CHECKABLE, "; ".join(cause.says for cause in rest))
    for cause in by_verdict[EXCLUDED] if finding.first else ():
        yield Item(EXCLUDED, f"{cause.says}: {'; '.join(_seen(cause.answers, cause.verdict))}")


def _seen(answers: Mapping[str, Answer], verdict: str) -> Iterator[str]:
    """The observations on the hosts of a verdict; equal ones are merged."""
    alike: dict[str, list[str]] = {}
    for host, answer in answers.items():
        if answer.verdict == verdict:
            alike.setdefault(answer.seen, []).append(host)
    for seen, hosts in list(alike.items())[:3]:
        # If nothing is known of any host, their names are omitted.
        named = [host for host in hosts if host] if verdict != NOT_CHECKABLE or len(alike) > 1 else []
        yield f"{listed(named)}: {seen}" if named else seen
    if len(alike) > 3:
        yield f"and {len(alike) - 3} more like these"
