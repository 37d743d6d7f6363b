# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The summary of a run, for a person: hosts × stages, what the pairs measured, offenders with remedy, where the evidence is."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding, stopping, worst

NOT_REACHED = "-"


def render(run: str, stages: Sequence[str], findings: Sequence[Finding], pairs: Sequence[Mapping[str, Any]], evidence: str) -> str:
    """The whole summary as lines of plain text. pairs: the elements of pairs/results.json."""
    parts = [f"RDMA cluster, run {run}", _table(stages, findings)]
    if pairs:
        parts.append(_pair_lines(pairs))
    bad = stopping(findings)
    if bad:
        parts.append(_offenders(bad))
    parts.append(f"Evidence: {evidence}")
    return "\n\n".join(parts)


def _table(stages: Sequence[str], findings: Sequence[Finding]) -> str:
    hosts = list(dict.fromkeys(finding.host for finding in findings))
    rows = [["host", *stages], *([host, *(_cell(findings, host, stage) for stage in stages)] for host in hosts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _cell(findings: Sequence[Finding], host: str, stage: str) -> str:
    here = [finding for finding in findings if finding.host == host and finding.stage == stage]
    return worst(here) if here else NOT_REACHED


def _pair_lines(pairs: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for rail in dict.fromkeys(pair["rail"] for pair in pairs):
        of_rail = [pair for pair in pairs if pair["rail"] == rail]
        rates = [pair["average_gbps"] for pair in of_rail if pair["average_gbps"] is not None]
        words = f"{rail}: {len(rates)} of {len(of_rail)} pairs measured"
        if rates:
            words += f", median {statistics.median(rates):.3g} Gb/s (lowest {min(rates):.3g}, highest {max(rates):.3g})"
        lines.append(words)
    return "\n".join(lines)


def _offenders(bad: Sequence[Finding]) -> str:
    lines = ["To be mended:"]
    for finding in bad:
        lines += [
            f"  {finding.host}, {finding.subject}: {finding.check} is {finding.status} ({finding.stage} stage)",
            f"    seen:     {finding.observed}",
            f"    expected: {finding.expected}",
            f"    do:       {finding.remedy}",
        ]
    return "\n".join(lines)
