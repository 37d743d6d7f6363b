# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A problem of NCCL's variables, and the data of the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import Job
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.values import read_number

INFO = "info"
#: From the worst on; unknown: a rule could not be judged, because facts are missing.
SEVERITIES = (ERROR, UNKNOWN, WARNING, INFO)
#: The maximum length of a value in a message, in characters.
SHOWN = 120
#: The maximum length of a whole sentence.
SENTENCE = 600


@dataclass(frozen=True)
class Problem:
    """rule: its stable name; severity: one of SEVERITIES; variable: the name or names; where: the file or environment."""

    rule: str
    severity: str
    variable: str
    where: str
    observed: str
    expected: str
    remedy: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """The host's plan, as far as NCCL's variables depend on it; None: unknown, and not judged.

    leave_out: devices that are not NCCL's → why ("storage"). traffic_class: the IP byte of RoCE; trust: "dscp" or "pcp". service_level: the
    PCP of the rails' VLANs. rails_apart: no network connects a NIC to one of another rail. gpudirect: "dmabuf", "peermem" or "none".
    asked_for: variables for tests that are requested for every job. rail_interfaces: interface → rail.
    """

    leave_out: Mapping[str, str] = field(default_factory=dict)
    traffic_class: int | None = None
    trust: str | None = None
    service_level: int | None = None
    rails_apart: bool | None = None
    gpudirect: str | None = None
    asked_for: Sequence[str] = ()
    rail_interfaces: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """Jobs whose variables are judged together. facts: the tree of rdma_facts or a part of it, with all interfaces in "interfaces"."""

    job: Job
    facts: Mapping[str, Any]
    plan: Plan
    version: str | None

    def value(self, name: str) -> str | None:
        """Return NCCL's value; None without one, and for an empty text."""
        setting = self.job.settings.get(name)
        return (setting.value or None) if setting is not None else None

    def number(self, name: str) -> int | None:
        return read_number(self.value(name), self.version)

    def some(self, *names: str) -> list[str]:
        """Return those of the names that have a value."""
        return [name for name in names if self.value(name) is not None]

    def words(self, *names: str) -> str:
        """Return the names with their values, for a message."""
        return ", ".join(f"{name}={shown(self.value(name) or '')}" for name in self.some(*names)) or f"{names[0]} is not set"

    def places(self, *names: str) -> str:
        """Return where the names are set; without a setting, the owner of the jobs."""
        places = dict.fromkeys(self.job.settings[name].source.place_of(name) for name in self.some(*names))
        return " and ".join(places) or self.job.owner


@dataclass(frozen=True)
class Violation:
    """The statement of a rule on a case; severity: the rule's own unless given."""

    names: tuple[str, ...]
    observed: str
    expected: str
    remedy: str
    severity: str | None = None


def judged(rule: str, severity: str, case: Case, violations: Iterator[Violation]) -> Iterator[Problem]:
    for each in violations:
        where = case.places(*each.names)
        yield Problem(rule, each.severity or severity, ", ".join(each.names), where, each.observed, each.expected, each.remedy)


def shown(value: str, most: int = SHOWN) -> str:
    """Return a value for a message: on one line, of printable characters, and not too long."""
    start = value[:most]
    clean = start if start.isprintable() else start.encode("unicode_escape").decode("ascii")
    return clean if len(value) <= most else f"{clean}…"


def presentable(problem: Problem) -> Problem:
    """Return the problem with all text from files made printable."""
    return Problem(**{name: shown(words, SENTENCE) for name, words in problem.to_dict().items()})


def take_out(case: Case, names: Sequence[str]) -> str:
    """Return the remedy to remove them."""
    return f"Remove {' and '.join(names)} from {case.places(*names)}."
