# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate matrix of hosts and stages, and the causes that the page shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import WARNING, Finding, worst
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.causes import Cause, causes, names
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import is_group, natural

NOT_REACHED = "not reached"
#: Causes with a block of their own; further ones share a table, up to ROWS.
BLOCKS, ROWS = 40, 400
#: Up to this number of hosts, each has a row; above it, hosts with equal results share one.
SINGLE = 12


@dataclass(frozen=True)
class MatrixRow:
    """The results of one host, or of hosts with equal results. cells: one status a stage."""

    title: str
    count: int
    cells: tuple[str, ...]


def matrix(run: Run) -> tuple[list[MatrixRow], list[MatrixRow]]:
    """Return the rows to show, worst first and with equal hosts folded, and all rows. A plane is a row of its own."""
    by_cell: dict[tuple[str, str], list[Finding]] = {}
    for each in run.findings:
        by_cell.setdefault((each.host, each.stage), []).append(each)
    every = sorted({each.host for each in run.findings}, key=lambda host: (is_group(host), natural(host)))
    rows = [
        MatrixRow(host, 1, tuple(worst(by_cell[host, stage]) if (host, stage) in by_cell else NOT_REACHED for stage in run.stages))
        for host in every
    ]
    if len(rows) <= SINGLE:
        return rows, []
    equal: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        equal.setdefault(row.cells, []).append(row.title)
    folded = [MatrixRow(names(hosts), len(hosts), cells) for cells, hosts in equal.items()]
    return sorted(folded, key=lambda row: (not _is_bad(row), row.count)), rows


def _is_bad(row: MatrixRow) -> bool:
    return any(cell in ("error", "unknown", NOT_REACHED) for cell in row.cells)


def stopping_causes(run: Run) -> list[Cause]:
    """Return the errors and unknowns by cause, then those that follow from a finding which is not an error."""
    found, others = causes(run.bad)
    return [*found, *_each_alone(others)]


def warnings(run: Run) -> list[Cause]:
    """Return the warnings that are not silenced, by cause."""
    return _each_alone(each for each in run.findings if each.status == WARNING and each.silenced_by is None)


def silenced(run: Run) -> list[Cause]:
    """Return the silenced findings, by cause."""
    return _each_alone(each for each in run.findings if each.silenced_by is not None)


def _each_alone(findings: Iterable[Finding]) -> list[Cause]:
    """Return the causes of findings, none of which is only named by another one."""
    return causes(replace(each, caused_by=None) for each in findings)[0]
