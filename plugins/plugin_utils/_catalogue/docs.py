# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/checks.md, made of the catalogue of checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, all_checks
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.sources import COMMAND, Source

Checks = Mapping[str, Check]
TITLES = {"every": "At every gate", "preflight, link": "At the gate of the preflight stage or, without a planned rate, of the link stage"}
INTRODUCTION = """\
# The checks

<!-- Made by tests/tools/docs.py of the checks' declarations in plugins/plugin_utils. -->

Each check makes a finding: `ok`, `warning`, `error`, `unknown` (it could not be told, which stops a gate as an error does) or
`not_applicable` with the reason; with what was seen, what was expected and what to do.

"""
SYMPTOMS = """
## Findings that follow from another one

One missing RDMA device makes several checks fail. The terminal prints the cause once and lists the other checks in its `also` line.
`findings.jsonl` has all of them: `caused_by` names the check and subject of the cause. A finding is folded only if the cause is an
`error` on the same rail of the same host, and not silenced. It still counts in the table of hosts and stages.

| check | with status | follows from an `error` of |
|---|---|---|
"""
ABSENT = """
## What may be missing

A check whose source could not be read, took too long or made no sense is `unknown` or `not_applicable` with the reason, never `ok`. A file
of `/sys` or `/proc` that cannot be read or has another form ends the reading of that host, and the error names the file. A source that is
missing is the same, but for these:

| missing | what that means | check |
|---|---|---|
"""
RULES = """
## What a site makes of them

`rdma_checks` in the inventory, by a check's id:

```yaml
rdma_checks:
  intent.hosts: {severity: error}          # a warning counts as an error, or the other way round
  link.state:                              # its errors and unknowns stop nobody until the day is over
    silenced_by: ada
    reason: cable of node7 ordered, ticket 4711
    until: 2026-12-31
```

A silenced finding stays in the evidence and in the summary, under its own heading. When the day has passed, it counts again and says
whose silence it was. An `unknown` has no severity to change: what could not be checked is not known to be well.

A finding on a pair stands at both of its hosts, because one pair does not tell which end is to blame. A measurement that could not be
made, or that gave an average of zero, is `unknown`.
"""


def render() -> str:
    """The whole of docs/checks.md."""
    checks = all_checks()
    stages = dict.fromkeys(check.stage for check in checks.values())
    sections = "\n".join(_section(stage, checks) for stage in stages)
    return INTRODUCTION + sections + _symptoms(checks) + _absent(checks) + _thresholds(checks) + RULES


def _section(stage: str, checks: Checks) -> str:
    lines = [
        f"## {TITLES.get(stage, f'At the gate of the {stage} stage')}",
        "",
        "| check | looks at | read from | what to do |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{name}` | {each.subject} | {each.read_from} | {each.remedy} |" for name, each in checks.items() if each.stage == stage]
    return "\n".join(lines) + "\n"


def _symptoms(checks: Checks) -> str:
    lines = [f"| `{name}` | `unknown` | {_ids(check.follows)} |" for name, check in checks.items() if check.follows]
    lines += [f"| `{name}` | `error` | {_ids(check.repeats)} |" for name, check in checks.items() if check.repeats]
    return SYMPTOMS + "\n".join(lines) + "\n"


def _ids(checks: Iterable[str]) -> str:
    return ", ".join(f"`{check}`" for check in checks)


def _absent(checks: Checks) -> str:
    """What a check takes for an answer where it is missing, by what is missing."""
    told: dict[tuple[str, str], list[str]] = {}
    for name, check in checks.items():
        for source in check.sources:
            if source.absent_means:
                told.setdefault((_words(source), source.absent_means), []).append(f"`{name}`")
    lines = [f"| {what} | {why} | {', '.join(names)} |" for (what, why), names in told.items()]
    return ABSENT + "\n".join(lines) + "\n"


def _words(source: Source) -> str:
    paths = [" ".join(source.names)] if source.kind == COMMAND else list(source.names)
    return ", ".join(f"`{path}`" for path in paths)


def _thresholds(checks: Checks) -> str:
    lines = [f"* `{name}`: {check.threshold}." for name, check in checks.items() if check.threshold]
    return "\n".join(["", "## Limits that `rdma_checks.ID.threshold` replaces", "", *lines]) + "\n"
