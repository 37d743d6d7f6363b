# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A problem of NCCL's variables, and what they are judged with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import Job
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.values import read_number

INFO = "info"
#: From the worst on; unknown: a rule could not be judged, because the facts do not tell.
SEVERITIES = (ERROR, UNKNOWN, WARNING, INFO)
#: How much of a value a message shows, in characters.
SHOWN = 120
#: And of a whole sentence.
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
    """What the host shall be, as far as NCCL's variables depend on it; None: not known, and not judged.

    leave_out: devices that are not NCCL's → why ("storage"). traffic_class: the byte of IP that RoCE has; trust: "dscp" or "pcp".
    rails_apart: no network joins a NIC to one of another rail. gpudirect: "dmabuf", "peermem" or "none". asked_for: variables that
    somebody wants set for every job, though they are for tests. rail_interfaces: interface → rail.
    """

    leave_out: Mapping[str, str] = field(default_factory=dict)
    traffic_class: int | None = None
    trust: str | None = None
    rails_apart: bool | None = None
    gpudirect: str | None = None
    asked_for: Sequence[str] = ()
    rail_interfaces: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """Jobs whose variables are judged together. facts: the tree of rdma_facts or a part of it, "interfaces" being all of them."""

    job: Job
    facts: Mapping[str, Any]
    plan: Plan
    version: str | None

    def value(self, name: str) -> str | None:
        """What NCCL is told; None for nothing, or nothing but an empty text."""
        setting = self.job.settings.get(name)
        return (setting.value or None) if setting is not None else None

    def number(self, name: str) -> int | None:
        return read_number(self.value(name), self.version)

    def some(self, *names: str) -> list[str]:
        """Those of the names that have a value."""
        return [name for name in names if self.value(name) is not None]

    def words(self, *names: str) -> str:
        """The names with their values, as a person reads them."""
        return ", ".join(f"{name}={shown(self.value(name) or '')}" for name in self.some(*names)) or f"{names[0]} is not set"

    def places(self, *names: str) -> str:
        """Where the names are set; where nothing sets them, whose jobs it is about."""
        places = dict.fromkeys(self.job.settings[name].source.place_of(name) for name in self.some(*names))
        return " and ".join(places) or self.job.owner


@dataclass(frozen=True)
class Said:
    """What a rule says of a case; severity: of the rule's own unless given."""

    names: tuple[str, ...]
    observed: str
    expected: str
    remedy: str
    severity: str | None = None


def judged(rule: str, severity: str, case: Case, said: Iterator[Said]) -> Iterator[Problem]:
    for each in said:
        where = case.places(*each.names)
        yield Problem(rule, each.severity or severity, ", ".join(each.names), where, each.observed, each.expected, each.remedy)


def shown(value: str, most: int = SHOWN) -> str:
    """A value for a message: on one line, of signs that a terminal shows as they are, and not longer than a person reads."""
    start = value[:most]
    clean = start if start.isprintable() else start.encode("unicode_escape").decode("ascii")
    return clean if len(value) <= most else f"{clean}…"


def presentable(problem: Problem) -> Problem:
    """The problem, with whatever a file has put into its words made harmless."""
    return Problem(**{name: shown(words, SENTENCE) for name, words in problem.to_dict().items()})


def take_out(case: Case, names: Sequence[str]) -> str:
    """The remedy that is to set them no more."""
    return f"Remove {' and '.join(names)} from {case.places(*names)}."
