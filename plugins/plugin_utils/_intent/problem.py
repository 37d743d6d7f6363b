# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Problems of an intent, as an error and as findings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare

declare(
    {
        "intent.key": Check(
            "every",
            "unknown variables and keys",
            "the inventory",
            "use the nearest valid name, which the finding gives with file and line",
            fixed=True,
            sources=(reads.INTENT,),
        ),
        "intent.type": Check(
            "every",
            "values of the wrong type",
            "the inventory",
            "see docs/intent.md",
            fixed=True,
            sources=(reads.INTENT,),
        ),
        "intent.value": Check(
            "every",
            "values that are not allowed",
            "the inventory",
            "see docs/intent.md",
            fixed=True,
            sources=(reads.INTENT,),
        ),
    }
)

KEY, TYPE, VALUE, RAILS, ADDRESS = "intent.key", "intent.type", "intent.value", "intent.rails", "intent.address"


@dataclass(frozen=True)
class IntentProblem:
    """One problem. where: the variable's path ("rdma_rails[0].name"), which message continues. check: its id.

    expected and observed: the texts of the finding. origin: "hosts.yml:12", or "" if unknown.
    """

    where: str
    message: str
    check: str
    expected: str = ""
    observed: str = ""
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.where} {self.message}" + (f" ({self.origin})" if self.origin else "")


class IntentError(ValueError):
    """The inventory is invalid. `problems` has all reasons."""

    def __init__(self, problems: Sequence[IntentProblem], head: str = "The intent cannot be built") -> None:
        super().__init__(f"{head}:\n" + "\n".join(f"  - {problem}" for problem in problems))
        self.problems = list(problems)


def where_of(value: Any) -> str:
    """Return the place of a value or key in the inventory: "hosts.yml:12", or "" if unknown (before Ansible 2.19, or not from a file)."""
    try:
        from ansible._internal._datatag._tags import Origin

        origin = Origin.get_tag(value)
    except (ImportError, AttributeError, TypeError):
        return ""
    if origin is None or not origin.path:
        return ""
    path = os.path.relpath(origin.path)
    path = origin.path if path.startswith("..") else path
    return f"{path}:{origin.line_num}" if origin.line_num else path


def findings(host: str, problems: Iterable[IntentProblem], stage: str = "preflight") -> list[Finding]:
    """Return one error for each problem of a host."""
    return [
        Finding(
            stage, problem.check, host, problem.where, ERROR, problem.observed or problem.message, problem.expected,
            f"Correct {problem.where} of {host} in {problem.origin or 'the inventory'}.",
        )
        for problem in problems
    ]  # fmt: skip
