# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The texts that a run prints: a block for each finished stage; at the end the table, errors, warnings and the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import (
    NOT_APPLICABLE,
    OK,
    STATUSES,
    WARNING,
    Finding,
    stopping,
    worst,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.causes import causes, names, place, shared_remedy
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.cost import GpuHour, by_cost, cost_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import is_group, natural
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.withheld import WithheldGroup

NOT_REACHED = "-"
#: Above this number of hosts, hosts with equal results share a row.
ROWS = 32
#: Errors that the terminal shows at most; the evidence has all.
OFFENDERS = 40
#: Lines of warnings on the terminal at most, and characters that one of them quotes.
WARNINGS = 10
#: Above this number of warnings, their remedies are only in the evidence.
WITH_REMEDY = 3
QUOTED = 160
STAGE_WIDTH = 12
#: The width of the labels of an error: "    seen:     ".
LABEL_WIDTH = 14


def stage_block(stage: str, findings: Sequence[Finding], decision: str, seconds: float) -> str:
    """The block of a finished stage: one line if it passed, else its errors and the decision."""
    by_host: dict[str, list[Finding]] = {}
    for finding in findings:
        by_host.setdefault(finding.host, []).append(finding)
    states = [worst(found) for host, found in by_host.items() if not is_group(host)]
    planes = [f"{host} {_words(worst(found))}" for host, found in by_host.items() if is_group(host)]
    counts = ", ".join(f"{states.count(status)} {_words(status)}" for status in STATUSES if status in states)
    hosts = f"{len(states):>5} {'host ' if len(states) == 1 else 'hosts'}"
    lines = [f"{stage:<{STAGE_WIDTH}}{hosts}  {seconds:>5.0f} s  {', '.join([counts, *planes])}{_reason(findings)}"]
    bad = stopping(findings)
    if bad:
        lines += [*offender_lines(bad), decision]
    return "\n".join(lines)


def _words(status: str) -> str:
    return status.replace("_", " ")


def _reason(findings: Sequence[Finding]) -> str:
    """Why a stage is not applicable, if the reason is the same for all hosts."""
    reasons = {finding.observed for finding in findings}
    if all(finding.status == NOT_APPLICABLE for finding in findings) and len(reasons) == 1:
        return f": {_one_line(reasons.pop(), 2 * QUOTED)}"
    return ""


def offender_lines(bad: Sequence[Finding], gpu_hour: GpuHour | None = None) -> list[str]:
    """Each error once, with the hosts that share it, what was seen, what was expected, and what to do.

    The `also` line of an error names the findings that follow from it. If the cause belongs to another stage's block, one line names both.
    With the price of a GPU hour, a block also has what the error costs a day. The most expensive one is first, those without a rate last.
    """
    blocks, elsewhere = causes(bad)
    if gpu_hour is not None:
        blocks.sort(key=lambda block: by_cost(block.found))
    lines = []
    for block in blocks[:OFFENDERS]:
        costs = cost_words(block.found, gpu_hour)
        lines += [
            f"  {block.place}: {block.check} is {block.status} ({block.stage} stage)",
            f"    seen:     {indented(block.observed)}",
            f"    expected: {indented(block.expected)}",
            f"    do:       {indented(block.remedy)}",
            *([f"    costs:    {costs}"] if costs else []),
            *([f"    also:     {', '.join(block.follows)}, which follow from it"] if block.follows else []),
        ]
    if len(blocks) > OFFENDERS:
        lines.append(f"  and {len(blocks) - OFFENDERS} more, in findings.jsonl of the evidence")
    others: dict[tuple[str, str], list[str]] = {}
    for finding in elsewhere:
        others.setdefault((finding.check, finding.caused_by or ""), []).append(finding.host)
    lines += [f"  {names(hosts)}: {check} follows from {cause}, reported above" for (check, cause), hosts in others.items()]
    return lines


def indented(text: str) -> str:
    """A text after a label: its further lines are indented, so that none looks like a line of the summary."""
    return text.replace("\n", "\n" + " " * LABEL_WIDTH)


def warning_lines(findings: Iterable[Finding], gpu_hour: GpuHour | None = None) -> list[str]:
    """The warnings in at most WARNINGS lines: hosts with the same warning share a line; if needed, so do all of one check.

    Each of a few warnings has its remedy on a line of its own, and with the price of a GPU hour what it costs a day.
    """
    warnings = [finding for finding in findings if finding.status == WARNING and finding.silenced_by is None]
    if not warnings:
        return []
    by_cause: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in warnings:
        by_cause.setdefault((finding.check, finding.observed, finding.expected), []).append(finding)
    groups = list(by_cause.values())
    if len(groups) > WARNINGS:
        by_check: dict[str, list[Finding]] = {}
        for finding in warnings:
            by_check.setdefault(finding.check, []).append(finding)
        groups = list(by_check.values())
    groups.sort(key=lambda group: -len({finding.host for finding in group}))
    if gpu_hour is not None:
        groups.sort(key=by_cost)
    cut = groups if len(groups) <= WARNINGS else groups[: WARNINGS - 1]
    if len(groups) <= WITH_REMEDY:
        return [
            f"Warnings: {len(warnings)}.",
            *(line for group in cut for line in (_warning_line(group), *_below_warning(group, gpu_hour))),
        ]
    lines = [f"Warnings: {len(warnings)}. Each one's remedy is in findings.jsonl of the evidence.", *map(_warning_line, cut)]
    rest = [finding for group in groups[len(cut) :] for finding in group]
    if rest:
        lines.append(f"  and {len(rest)} more of {len(groups) - len(cut)} checks on {names([finding.host for finding in rest])}")
    return lines


def _warning_line(group: Sequence[Finding]) -> str:
    subjects = list(dict.fromkeys(finding.subject for finding in group))
    kinds = len({(finding.observed, finding.expected) for finding in group})
    where = subjects[0] if len(subjects) == 1 else f"{subjects[0]} and {len(subjects) - 1} more"
    text = _one_line(group[0].observed, QUOTED)
    expected = _one_line(group[0].expected, QUOTED // 2)
    what = f"{text} (expected: {expected})" if kinds == 1 else f"{kinds} different ones, for example {text} (expected: {expected})"
    return f"  {place(names([finding.host for finding in group]), where)}: {group[0].check}: {what}"


def _below_warning(group: Sequence[Finding], gpu_hour: GpuHour | None) -> list[str]:
    costs = cost_words(group, gpu_hour)
    remedy = [f"    do:       {indented(shared_remedy(group))}"] if group[0].remedy else []
    return [*remedy, *([f"    costs:    {costs}"] if costs else [])]


def withheld_lines(groups: Sequence[WithheldGroup]) -> list[str]:
    """Each withheld effect with its hosts, the reason, its changes and how to allow it."""
    if not groups:
        return []
    lines = ["Not applied, because it is not allowed:"]
    for group in groups:
        touches = f"{names(group.touches)}" if group.touches else ""
        lines += [
            f"  {group.effect} on {names(group.hosts)}: {_one_line(group.reason, 2 * QUOTED)}",
            *([f"    changes:  {touches}"] if touches else []),
            f"    allow:    {group.allow}",
        ]
    return lines


def render(
    run: str,
    stages: Sequence[str],
    findings: Sequence[Finding],
    pairs: Mapping[str, Any],
    evidence: str,
    *,
    withheld: Sequence[WithheldGroup] = (),
    gpu_hour: GpuHour | None = None,
) -> str:
    """The summary at the end of a run. stages: the columns of the table; pairs: pairs/summary.json, empty if no pairs were measured.

    gpu_hour: the price of a GPU hour, with which the errors and warnings show what they cost.
    """
    parts = [f"RDMA cluster, run {run}"]
    if findings:
        parts.append(_table(stages, findings))
    if pairs:
        parts.append(_pair_lines(pairs))
    bad = stopping(findings)
    if bad:
        parts.append("\n".join(["To fix:", *offender_lines(bad, gpu_hour)]))
    for lines in (warning_lines(findings, gpu_hour), withheld_lines(withheld)):
        if lines:
            parts.append("\n".join(lines))
    silenced = [finding for finding in findings if finding.silenced_by]
    if silenced:
        lines = [f"  {place(each.host, each.subject)}: {each.check}, by {each.silenced_by}" for each in silenced]
        parts.append("\n".join(["Silenced:", *lines]))
    parts.append(f"Evidence: {evidence}")
    return "\n\n".join(parts)


def drift_table(lines: Sequence[Mapping[str, str]]) -> str:
    """Every difference on its own line, aligned, by host."""
    if not lines:
        return "Drift: none."
    rows = [("host", "stage", "subject", "was", "should be")]
    ordered = sorted(lines, key=lambda line: natural(line["host"]))
    rows += [(line["host"], line["stage"], line["subject"], _one_line(line["was"]), _one_line(line["should_be"])) for line in ordered]
    return f"Drift: {len(lines)} differences\n" + "\n".join(_aligned(rows))


def _one_line(text: str, most: int = 60) -> str:
    flat = " | ".join(part.strip() for part in text.splitlines() if part.strip()) or "-"
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _table(stages: Sequence[str], findings: Sequence[Finding]) -> str:
    by_host: dict[str, dict[str, list[Finding]]] = {}
    for finding in findings:
        by_host.setdefault(finding.host, {}).setdefault(finding.stage, []).append(finding)
    cells = {host: tuple(_cell(of.get(stage, ())) for stage in stages) for host, of in by_host.items()}
    rows = list(cells.items()) if len(cells) <= ROWS else _alike(cells)
    return "\n".join(_aligned([("host", *stages), *((host, *row) for host, row in rows)]))


def _alike(cells: Mapping[str, tuple[str, ...]]) -> list[tuple[str, tuple[str, ...]]]:
    """One row for all hosts with equal results; the rarest first."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for host, row in cells.items():
        groups.setdefault(row, []).append(host)
    return [(names(hosts), row) for row, hosts in sorted(groups.items(), key=lambda item: len(item[1]))]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cell(findings: Iterable[Finding]) -> str:
    here = list(findings)
    if not here:
        return NOT_REACHED
    status = worst(here)
    return {OK: "ok", NOT_APPLICABLE: "n/a"}.get(status, status)


def _pair_lines(pairs: Mapping[str, Any]) -> str:
    """The measurements, one line a rail, and the verdicts on the causes of bad ones."""
    lines = [clean(_rail_line(rail)) for rail in pairs["rails"]]
    for title, key in (("To blame:", "verdicts"), ("Bad once, good when measured again:", "cleared")):
        if pairs[key]:
            lines += [title, *(f"  {clean(words)}" for words in pairs[key])]
    return "\n".join(lines)


def _rail_line(rail: Mapping[str, Any]) -> str:
    measured = f"{rail['measured']} of {rail['planned']} pairs measured" if rail["planned"] else "no pair measured"
    parts = [f"{rail['rail']}: {measured}", *([f"{rail['proven']} of {rail['ports']} ports proven before"] if rail["proven"] else [])]
    if rail["median_gbps"] is not None:
        figures = (rail[key] for key in ("median_gbps", "lowest_gbps", "highest_gbps"))
        parts.append("median {:.3g} Gb/s (lowest {:.3g}, highest {:.3g})".format(*figures))
    if rail["median_usec"] is not None:
        parts.append(f"latency {rail['median_usec']:.3g} µs")
    return ", ".join(parts)
