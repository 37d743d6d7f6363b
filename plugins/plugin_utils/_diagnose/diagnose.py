# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the likely causes of the error lines of a job's log, and checks each against the hosts of these lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.causes.table import CAUSES
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.kinds.errors import contradiction
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.kinds.order import BESIDE, likely
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import JobLog, Occurrence
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.past import JobTime
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import (
    CONFIRMED,
    EXCLUDED,
    NOT_CHECKABLE,
    VERDICTS,
    Answer,
    Known,
    Scene,
    addresses,
    excluded,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import CONSEQUENCE, ERROR, REMARK, SYMPTOM, UNKNOWN
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import listed
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.hostnames import names_in_logs, short
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.record import HostRecord

SCHEMA = 1
#: The maximum number of hosts whose facts are checked for each kind of line.
MOST_CHECKED = 32
#: The prefix of causes that need the records of the hosts.
PAST = "past."
_ORDER = (ERROR, SYMPTOM, UNKNOWN, REMARK, CONSEQUENCE)


@dataclass(frozen=True)
class Checked:
    """One likely cause.

    name: of CAUSES; verdict: the strongest of all hosts; answers: by host, "" for the log; remedy: "" for an excluded cause.
    """

    name: str
    says: str
    verdict: str
    answers: Mapping[str, Answer]
    remedy: str

    def to_dict(self) -> dict[str, Any]:
        seen = {host: answer._asdict() for host, answer in self.answers.items()}
        return {"cause": self.name, "says": self.says, "verdict": self.verdict, "hosts": seen, "remedy": self.remedy}


@dataclass(frozen=True)
class Finding:
    """A kind of line with its causes: confirmed ones first, excluded ones last. first: whether it probably caused the others."""

    occurrence: Occurrence
    first: bool
    causes: Sequence[Checked]

    def to_dict(self) -> dict[str, Any]:
        each = self.occurrence
        first_line = {"text": each.first.text, "host": each.first.host, "rank": each.first.rank, "line": each.line, "time": each.first.time}
        return {
            "kind": each.name,
            "is": each.kind,
            "says": each.says,
            "first_cause": self.first,
            "source": each.source,
            "count": each.count,
            "first_line": first_line,
            "hosts": list(each.hosts),
            "ranks": list(each.ranks),
            "fields": {name: list(values) for name, values in each.fields.items()},
            "causes": [cause.to_dict() for cause in self.causes],
        }


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of a log. strangers: hosts of the log that are not in the play.

    refused: host → the problems of its intent; without_intent, unread: hosts without an intent, and without facts.
    job_time: when the job failed, None if that was not asked; seconds: the same since 1970, None if it is not known. records: of the hosts.
    """

    log: JobLog
    findings: Sequence[Finding]
    strangers: Sequence[str]
    refused: Mapping[str, Sequence[str]] = field(default_factory=dict)
    without_intent: Sequence[str] = ()
    unread: Sequence[str] = ()
    job_time: JobTime | None = None
    seconds: float | None = None
    records: Sequence[HostRecord] = ()

    def to_dict(self) -> dict[str, Any]:
        context = self.log.context
        return {
            "schema": SCHEMA,
            "lines": self.log.lines,
            "cut": self.log.cut,
            "ranks": context.nranks,
            "hosts": list(context.hosts),
            "nccl": {version: list(hosts) for version, hosts in sorted(context.versions.items())},
            "unknown_hosts": list(self.strangers),
            "refused_intents": {host: list(problems) for host, problems in self.refused.items()},
            "without_intent": list(self.without_intent),
            "unread_hosts": list(self.unread),
            "first_cause": self.log.cause,
            "job_time": self.job_time and {**self.job_time.to_dict(), "seconds": self.seconds},
            "records": {record.host: record.to_dict() for record in self.records},
            "findings": [finding.to_dict() for finding in self.findings],
        }


class Fleet:
    """The hosts of the play.

    briefs: the digest of each host's facts, None if there is none; load: loads all that is known of a host; names: name in a log → host.
    refused: host → the problems of its unusable intent; without_intent: hosts without an intent. records: what the hosts recorded around
    the failure, empty if that was not read.
    """

    def __init__(
        self,
        briefs: Mapping[str, RunFacts | None],
        load: Callable[[str], Known],
        names: Mapping[str, str],
        refused: Mapping[str, Sequence[str]] | None = None,
        without_intent: Sequence[str] = (),
        *,
        records: Sequence[HostRecord] = (),
    ) -> None:
        self._load, self._known = load, dict[str, Known]()
        self.hosts = tuple(briefs)
        self.records = tuple(records)
        self.refused, self.without_intent = refused or {}, tuple(without_intent)
        self.unread = tuple(host for host, facts in briefs.items() if facts is None)
        self._names = names_in_logs(briefs, names)
        self._owners = self._addresses(briefs)

    @staticmethod
    def _addresses(briefs: Mapping[str, RunFacts | None]) -> dict[str, list[str]]:
        """Address → hosts, of all interfaces except loopback; several hosts have the address of Docker's bridge."""
        owners: dict[str, dict[str, None]] = {}
        for host, facts in briefs.items():
            for ip in (ip for ips in addresses(facts).values() for ip in ips) if facts else ():
                owners.setdefault(ip.partition("/")[0], {})[host] = None
        return {address: list(hosts) for address, hosts in owners.items() if not address.startswith("127.")}

    def find(self, name: str) -> str | None:
        """The host of the play with this name in a log, or the only one with this address."""
        found = self.find_all(name)
        return found[0] if len(found) == 1 else None

    def find_all(self, name: str) -> list[str]:
        """The host of the play with this name in a log, or all hosts with this address."""
        named = self._names.get(name) or self._names.get(short(name))
        return [named] if named else self._owners.get(name.removeprefix("::ffff:"), [])

    def known(self, host: str) -> Known:
        if host not in self._known:
            self._known[host] = self._load(host)
        return self._known[host]


def diagnose(log: JobLog, fleet: Fleet, job_time: JobTime | None = None, seconds: float | None = None) -> Diagnosis:
    """The diagnosis of a log, with the findings in the order in which to check them.

    job_time: when the job failed, if the records were read; seconds: the same since 1970 by the control node's clock, None if not known.
    """
    job = _of_job(log, fleet)
    findings = [_finding(each, log, fleet, job) for each in log.occurrences]
    ordered = sorted(findings, key=lambda each: (not each.first, _ORDER.index(each.occurrence.kind), each.occurrence.line))
    named = dict.fromkeys([*log.context.hosts, *(host for each in log.occurrences for host in each.hosts)])
    strangers = [name for name in named if fleet.find(name) is None]
    return Diagnosis(log, ordered, strangers, fleet.refused, fleet.without_intent, fleet.unread, job_time, seconds, fleet.records)


def _of_job(log: JobLog, fleet: Fleet) -> dict[str, Known]:
    """The hosts of the job, by which hosts are compared with each other; those of the play if the log names none."""
    named = [*log.context.hosts, *(host for each in log.occurrences for host in each.hosts)]
    hosts = list(dict.fromkeys(host for host in map(fleet.find, named) if host is not None)) or list(fleet.hosts)
    return {host: fleet.known(host) for host in hosts[:MOST_CHECKED]}


def _finding(occurrence: Occurrence, log: JobLog, fleet: Fleet, job: Mapping[str, Known]) -> Finding:
    hosts = _concerned(occurrence, log, fleet)
    causes_of_kind = likely(occurrence.name, log.context.trace, _words(occurrence, log))
    names = [name for name in causes_of_kind if fleet.records or not name.startswith(PAST)]
    causes = [_checked(name, hosts, Scene(Known(""), occurrence, log, {}, job, fleet.records)) for name in names]
    return Finding(occurrence, occurrence.name == log.cause, sorted(causes, key=_rank))


def _words(occurrence: Occurrence, log: JobLog) -> str:
    """The words by which the causes of a line are ordered: its program, its first line, lines beside it, errors and hints."""
    texts = [each.first.text for each in log.occurrences if each.name in BESIDE.get(occurrence.name, ())]
    errors = [*occurrence.fields.get("error", ()), *(f"errno: {number}" for number in occurrence.fields.get("errno", ()))]
    hints = occurrence.fields.get("hint", ())
    return "; ".join([occurrence.source, occurrence.first.text, *texts, *errors, *hints])


def _rank(cause: Checked) -> tuple[int, bool]:
    """Confirmed causes first, excluded ones last. A host without a record must not push aside what can be tried."""
    return VERDICTS.index(cause.verdict), cause.name.startswith(PAST) and cause.verdict == NOT_CHECKABLE


def _concerned(occurrence: Occurrence, log: JobLog, fleet: Fleet) -> dict[str, Known]:
    """The hosts that wrote the line, else those of the job, else those of the play; plus the peers that the line names."""
    peers = [*occurrence.fields.get("peer", ()), *occurrence.fields.get("remote_gid", ())]
    named = [*(occurrence.hosts or log.context.hosts), *(host for peer in peers for host in fleet.find_all(peer))]
    hosts = list(dict.fromkeys(fleet.find(name) or name for name in named)) or list(fleet.hosts)
    return {host: fleet.known(host) if host in fleet.hosts else Known(host) for host in hosts[:MOST_CHECKED]}


def _checked(name: str, hosts: Mapping[str, Known], scene: Scene) -> Checked:
    """The answers to a cause: of the log as a whole, or of each host. scene: that of the log."""
    cause = CAUSES[name]
    error = contradiction(name, [*scene.occurrence.fields.get("error", ()), *scene.occurrence.fields.get("errno", ())])
    if error is not None:
        answer = excluded(f"the error of the call is {error if not error.isdecimal() else f'number {error}'}")
        return Checked(name, cause.says, EXCLUDED, {"": answer}, "")
    if cause.of_log or not hosts:
        answers = {"": cause.test(scene)}
    else:
        answers = {host: cause.test(replace(scene, host=known, others=_without(hosts, host))) for host, known in hosts.items()}
    verdict = min((answer.verdict for answer in answers.values()), key=VERDICTS.index)
    there = [host for host, answer in answers.items() if answer.verdict == verdict and host] or list(hosts)
    remedy = "" if verdict == VERDICTS[-1] else _remedy(cause.remedy, there, scene.occurrence)
    return Checked(name, cause.says, verdict, answers, remedy)


def _without(hosts: Mapping[str, Known], host: str) -> dict[str, Known]:
    return {name: known for name, known in hosts.items() if name != host}


class _Words(dict[str, str]):
    """The fields of a remedy, with placeholders for those that the line does not contain."""

    def __missing__(self, name: str) -> str:
        return {"host": "the hosts of the job", "device": "DEVICE", "file": "FILE", "peer": "PEER"}[name]


def _remedy(template: str, hosts: Iterable[str], occurrence: Occurrence) -> str:
    words = _Words({name: values[0] for name, values in occurrence.fields.items() if name in ("device", "file", "peer")})
    there = list(hosts)
    if there:
        words["host"] = listed(there)
    return template.format_map(words)


def confirmed(diagnosis: Diagnosis) -> list[Checked]:
    """The confirmed causes, in the order of the findings."""
    return [cause for finding in diagnosis.findings for cause in finding.causes if cause.verdict == CONFIRMED]
