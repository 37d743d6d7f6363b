# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint NCCL's variables: every source, in NCCL's order, against NCCL's table, the host, and each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, WARNING
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import EVERYBODY, SITE_FILE, Job, Source, as_read, jobs
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.problem import (
    SEVERITIES,
    Case,
    Plan,
    Problem,
    judged,
    presentable,
    shown,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.rules import RULES
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.rules_devices import DEVICE_RULES
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.rules_plan import PLAN_RULES
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.source import source_problems, unique

#: The rule of values with quotes, comments or blanks.
_FORM = "value_form"
#: Every rule over the variables of one job, by name.
ALL_RULES = {rule.name: rule for rule in (*RULES, *DEVICE_RULES, *PLAN_RULES)}


def lint(sources: Sequence[Source], facts: Mapping[str, Any], version: str | None, plan: Plan | None = None) -> list[Problem]:
    """Return the problems, the worst first.

    facts: the tree of rdma_facts or a part of it; missing parts are not judged, or the result is unknown if a rule depends on them.
    "interfaces": all of them, and not only NICs; "modules" in addition to the tree: the names of all loaded modules. version: of NCCL
    ("2.21.5"); None: a recent one.
    """
    plan = plan or Plan()
    sources = [as_read(source, version) for source in sources]
    found = [problem for source in unique(sources) for problem in source_problems(source, version, plan.asked_for)]
    all_jobs = jobs(sources, version)
    for job in all_jobs:
        found += _hidden(job)
        found += _not_read(job, sources)
        case = Case(job, facts, plan, version)
        found += [problem for rule in ALL_RULES.values() for problem in judged(rule.name, rule.severity, case, rule.judge(case))]
    literal = {(each.variable, each.where) for each in found if each.rule == _FORM and each.severity == ERROR}
    # Further effects of quotes and comments in a value are not reported again.
    found = [each for each in found if each.rule == _FORM or (each.variable, each.where) not in literal]
    return sorted(_once(found, {job.owner for job in all_jobs}), key=_worst_first)


def _worst_first(problem: Problem) -> tuple[int, str, str, str, str]:
    return SEVERITIES.index(problem.severity), problem.where, problem.rule, problem.variable, problem.observed


def _once(problems: Iterable[Problem], owners: set[str]) -> Iterator[Problem]:
    """Yield each problem once; a problem with unset variables is reported for all owners together, and not again for each."""
    every = dict.fromkeys(map(presentable, problems))
    of_all = {_content(problem) for problem in every if problem.where == EVERYBODY}
    for problem in every:
        if problem.where == EVERYBODY or problem.where not in owners or _content(problem) not in of_all:
            yield problem


def _content(problem: Problem) -> tuple[str, ...]:
    return problem.rule, problem.severity, problem.variable, problem.observed


def _hidden(job: Job) -> Iterator[Problem]:
    for setting in job.settings.values():
        for source, value in setting.hidden:
            if value != setting.value:
                winner = setting.source.place
                observed = f"{setting.name}={shown(value)} has no effect for {job.owner}: {winner} has {shown(setting.value)}"
                remedy = f"Remove {setting.name} from {winner}, or set the same value in both."
                yield Problem("shadowed", WARNING, setting.name, source.place, observed, "one value", remedy)


def _not_read(job: Job, sources: Sequence[Source]) -> Iterator[Problem]:
    """Yield existing files of an owner that NCCL does not read for that owner's jobs."""
    read = {source.place for source in job.sources}
    contained = any(source.in_container for source in job.sources)
    for source in sources:
        own = source.owner == job.owner or (contained and source.kind == SITE_FILE and not source.owner)
        lost = sorted(name for name, value in source.variables.items() if _other(job, name, value))
        if own and source.place not in read and lost:
            observed = f"{job.owner} does not read it: {', '.join(shown(name) for name in lost)} has no effect"
            expected = "the same in the container" if contained else "one file"
            remedy = (
                f"Mount {source.path} into the container of {job.owner}."
                if contained
                else f"Merge {source.path} into the file that is read."
            )
            yield Problem("not_read", WARNING, ", ".join(shown(name) for name in lost), source.place, observed, expected, remedy)


def _other(job: Job, name: str, value: str) -> bool:
    setting = job.settings.get(name)
    return setting is None or setting.value != value


def winners(sources: Sequence[Source], version: str | None) -> list[dict[str, Any]]:
    """Return for each owner's jobs: the sources in NCCL's order, and of each variable its value, its source, and the hidden values."""
    return [
        {
            "owner": job.owner,
            "sources": [source.place for source in job.sources],
            "variables": {
                name: {
                    "value": setting.value,
                    "from": setting.source.place,
                    "hides": [{"value": value, "in": source.place} for source, value in setting.hidden],
                }
                for name, setting in job.settings.items()
            },
        }
        for job in jobs([as_read(source, version) for source in sources], version)
    ]
