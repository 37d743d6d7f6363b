# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate matrix of hosts and stages, and the findings grouped by cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import WARNING, Finding, worst
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.summary import names, shared_remedy
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import is_plane, natural
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import cause_key

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


@dataclass
class Cause:
    """Findings with one cause. hosts: all that share it; follows: the checks of findings that follow from it."""

    check: str
    status: str
    stage: str
    subject: str
    observed: str
    expected: str
    found: list[Finding] = field(default_factory=list)
    follows: list[str] = field(default_factory=list)

    @property
    def hosts(self) -> list[str]:
        return list(dict.fromkeys(each.host for each in self.found))

    @property
    def place(self) -> str:
        listed = names(self.hosts)
        return listed if self.subject == listed else f"{listed}, {self.subject}"

    @property
    def remedy(self) -> str:
        return shared_remedy(self.found)

    @property
    def reason(self) -> str:
        """By what it is silenced; "" if it is not."""
        return self.found[0].silenced_by or ""


def matrix(run: Run) -> tuple[list[MatrixRow], list[MatrixRow]]:
    """Return the rows to show, worst first and with equal hosts folded, and all rows. A plane is a row of its own."""
    by_cell: dict[tuple[str, str], list[Finding]] = {}
    for each in run.findings:
        by_cell.setdefault((each.host, each.stage), []).append(each)
    every = sorted({each.host for each in run.findings}, key=lambda host: (is_plane(host), natural(host)))
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


def causes(run: Run) -> list[Cause]:
    """Return the errors and unknowns by cause, errors first within a stage. Findings that follow from another one are only named by it."""
    own = [each for each in run.bad if each.caused_by is None]
    known = {(each.host, cause_key(each)) for each in own}
    follows: dict[tuple[str, str], list[str]] = {}
    for each in run.bad:
        if each.caused_by is not None:
            if (each.host, each.caused_by) in known:
                follows.setdefault((each.host, each.caused_by), []).append(each.check)
            else:
                own.append(each)
    return _grouped(own, follows)


def warnings(run: Run) -> list[Cause]:
    """Return the warnings that are not silenced, by cause."""
    return _grouped([each for each in run.findings if each.status == WARNING and each.silenced_by is None], {})


def silenced(run: Run) -> list[Cause]:
    """Return the silenced findings, by cause."""
    return _grouped([each for each in run.findings if each.silenced_by is not None], {})


def _grouped(findings: Sequence[Finding], follows: dict[tuple[str, str], list[str]]) -> list[Cause]:
    groups: dict[tuple[str, ...], Cause] = {}
    for each in findings:
        key = (each.stage, each.check, each.status, each.subject, each.observed, each.expected, each.silenced_by or "")
        group = groups.setdefault(key, Cause(each.check, each.status, each.stage, each.subject, each.observed, each.expected))
        group.found.append(each)
        group.follows.extend(follows.get((each.host, cause_key(each)), ()))
    for group in groups.values():
        group.follows = list(dict.fromkeys(group.follows))
    return list(groups.values())
