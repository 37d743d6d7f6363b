# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The walk through a decision tree: it answers one question after the other, and ends at the first that explains the symptom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import section, text_lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.summary import offender_lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._troubleshoot.trees import MEASURED, Step, Tree

SCHEMA = 1
#: Stage → its findings on all hosts and planes. Called only for stages that the walk reaches.
Findings = Callable[[str], Sequence[Finding]]
#: The answers to a question, from healthy to unhealthy, as they are printed.
NOT_MEASURED, ABSENT, YES, WARNED, NOT_KNOWN, NO = "not measured", "does not apply", "yes", "yes, with warnings", "not known", "no"
_STATUS_WORDS = {ERROR: "error", WARNING: "warning", UNKNOWN: "unknown", OK: "ok"}


@dataclass(frozen=True)
class Answer:
    """The answer to a question. findings: those of its checks, errors first. explains: the walk ends here."""

    step: Step
    answer: str
    findings: tuple[Finding, ...]
    explains: bool

    def having(self, *statuses: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.status in statuses]

    def to_dict(self) -> dict[str, Any]:
        bad = [finding.to_dict() for finding in self.having(ERROR, UNKNOWN, WARNING)]
        return {"question": self.step.question, "checks": list(self.step.checks), "answer": self.answer, "findings": bad}


@dataclass(frozen=True)
class Walk:
    """The path through a tree: the answered questions in order; the last one explains the symptom, or none does."""

    tree: Tree
    path: tuple[Answer, ...]

    @property
    def explained_by(self) -> int | None:
        """The number of the question that explains the symptom, from 1; None if none does."""
        return len(self.path) if self.path and self.path[-1].explains else None

    def to_dict(self) -> dict[str, Any]:
        path = [answer.to_dict() for answer in self.path]
        return {"schema": SCHEMA, "symptom": self.tree.symptom, "explained_by": self.explained_by, "path": path}


def walk(tree: Tree, checks: Mapping[str, Check], findings: Findings) -> Walk:
    """Answer the questions of a tree in order until one explains the symptom. checks: the catalogue."""
    path: list[Answer] = []
    for step in tree.steps:
        path.append(_answer(step, checks, findings))
        if path[-1].explains:
            break
    return Walk(tree, tuple(path))


def _answer(step: Step, checks: Mapping[str, Check], findings: Findings) -> Answer:
    stages = list(dict.fromkeys(stage for check in step.checks for stage in checks[check].stage.split(", ")))
    found = [finding for stage in stages for finding in findings(stage) if finding.check in step.checks]
    found.sort(key=lambda finding: (ERROR, UNKNOWN, WARNING, OK, NOT_APPLICABLE).index(finding.status))
    statuses = {finding.status for finding in found}
    if not found:
        # An unmeasured check has no finding. A check of a host without a subject, such as a GPU, has none either.
        return Answer(step, NOT_MEASURED if set(stages) <= set(MEASURED) else ABSENT, (), explains=False)
    answer = next(
        words
        for status, words in ((ERROR, NO), (UNKNOWN, NOT_KNOWN), (WARNING, WARNED), (OK, YES), (NOT_APPLICABLE, ABSENT))
        if status in statuses
    )
    explains = step.explains and (ERROR in statuses or (step.unknown_explains and UNKNOWN in statuses))
    return Answer(step, answer, tuple(found), explains)


def text(walked: Walk, hosts: int, measured: str) -> str:
    """Return the walk as plain text without a final line break. measured: where measured results are from, "" if there are none."""
    tree = walked.tree
    parts = [
        "\n".join(_head(tree, hosts, measured)),
        section("PATH", *(_lines(number, each) for number, each in enumerate(walked.path, 1))),
    ]
    number = walked.explained_by
    if number is not None:
        last = walked.path[-1]
        blamed = last.having(ERROR, UNKNOWN) if last.step.unknown_explains else last.having(ERROR)
        # Without an intent or an answer nothing else can be checked on that host.
        title = "FIX THIS FIRST" if last.step.unknown_explains else f"QUESTION {number} EXPLAINS IT"
        parts.append(section(title, text_lines(last.step.why), offender_lines(blamed)))
    else:
        parts.append(section("NO QUESTION EXPLAINS IT", *_steps(tree.otherwise)))
    parts += _possible(walked.path, number)
    return "\n\n".join(parts)


def _head(tree: Tree, hosts: int, measured: str) -> Iterator[str]:
    yield from text_lines(f"{tree.symptom}: {tree.meaning} ({hosts} {'host' if hosts == 1 else 'hosts'})", 0)
    yield from text_lines(f"Findings on measurements are from {measured}." if measured else "No earlier run has measured anything.", 0)


def _lines(number: int, answer: Answer) -> list[str]:
    """A question, its answer, and the number of results by status."""
    counts = Counter(finding.status for finding in answer.findings)
    words = ", ".join(f"{counts[status]} {word}" for status, word in _STATUS_WORDS.items() if counts[status])
    marked = answer.answer in (NO, NOT_KNOWN, WARNED)
    lines = text_lines(f"{number}. {answer.step.question} {answer.answer.capitalize()}{f' ({words})' if words else ''}.", marked=marked)
    if answer.answer == NOT_MEASURED and answer.step.measure:
        lines += text_lines(f"To measure it while no job runs: `{answer.step.measure}`", 5)
    return lines


def _steps(steps: Iterable[str]) -> list[list[str]]:
    return [text_lines(f"{number}. {step}") for number, step in enumerate(steps, 1)]


def _possible(path: Sequence[Answer], explained_by: int | None) -> list[str]:
    """The sections about what was not known, and about warnings, in the order of the path."""
    rest = path if explained_by is None else path[:-1]
    sections = (
        ("MEASURED BADLY, FOR WHICH A CAUSE IS TO BE FOUND", ERROR),
        ("NOT KNOWN, SO NOT EXCLUDED", UNKNOWN),
        ("WARNINGS ON THE PATH, WHICH MAY CONTRIBUTE", WARNING),
    )
    found = [(title, [finding for answer in rest for finding in answer.having(status)]) for title, status in sections]
    return [section(title, offender_lines(findings)) for title, findings in found if findings]
