# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between a run and another one: findings, versions, intent, cabling, results. By default the other is the last good run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.compare import Comparison, compare, findings_changed, read_values
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.history import Past
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.hosts import HostFacts, changed_traits, read_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.parts import cables, graphs_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import ReportError, Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, if_sound

#: Earlier runs that are looked at for the last good one.
LOOKED_AT = 100


@dataclass(frozen=True)
class Changes:
    """The differences to another run. medians: (rail, before, after, percent) in Gb/s; comparison: of all pairs, None if not compared."""

    other: str
    outcome: str
    findings: dict[str, list[Finding]]
    traits: Sequence[tuple[str, str, str, str]]
    intents: Sequence[str]
    cables_gone: Sequence[str]
    cables_new: Sequence[str]
    medians: Sequence[tuple[str, float, float, float]]
    hosts_gone: Sequence[str]
    hosts_new: Sequence[str]
    comparison: Comparison | None = None
    notes: Sequence[str] = field(default_factory=tuple)


def last_good(run: Run, past: Sequence[Past]) -> Run | None:
    """Return the newest earlier run that ended clean and was no check run; None if there is none, or its folder is gone."""
    for each in reversed([each for each in past if each.run < run.name][-LOOKED_AT:]):
        path = run.folder.path.parent / each.run
        if each.outcome == "clean" and not each.is_check and each.hosts and path.is_dir():
            return Run(RunFolder(path))
    return None


def changes(run: Run, facts: HostFacts, other: Run, *, pairs: bool) -> Changes:
    """Return the differences to an earlier run. pairs: also compare each pair, which reads all results of both runs.

    Raises ReportError if the other run is of another schema.
    """
    old = read_hosts(other, None)
    outcome = other.outcome
    strange = sorted(str(each) for each in old.schemas - facts.schemas) if facts.schemas else []
    if strange:
        raise ReportError(
            f"Run {other.name} has facts of schema {', '.join(strange)}, and run {run.name} has facts of schema "
            f"{', '.join(sorted(map(str, facts.schemas)))}. Compare runs of one schema."
        )
    graphs, old_graphs = graphs_of(run), graphs_of(other)
    planes = {graph.plane for graph in graphs if graph.complete} & {graph.plane for graph in old_graphs if graph.complete}
    now, before = ({ends for ends, plane in cables(each).items() if plane in planes} for each in (graphs, old_graphs))
    notes = [] if planes else ["Cabling is not compared: no plane was read completely in both runs."]
    comparison = None
    if pairs:
        values = [read_values(each) for each in (other, run)]
        if values[0] is None or values[1] is None:
            notes.append(f"Pairs are not compared: run {other.name if values[0] is None else run.name} measured none.")
        else:
            comparison = compare(values[0], values[1])
    return Changes(
        other=other.name,
        outcome=outcome,
        findings=findings_changed(other.findings, run.findings),
        traits=changed_traits(old.traits.items(), facts.traits),
        intents=_changed_intents(run, other),
        cables_gone=[" - ".join(ends) for ends in sorted(before - now)],
        cables_new=[" - ".join(ends) for ends in sorted(now - before)],
        medians=_medians(run, other),
        hosts_gone=[host for host in other.hosts if host not in set(run.hosts)],
        hosts_new=[host for host in run.hosts if host not in set(other.hosts)],
        comparison=comparison,
        notes=notes,
    )


def _changed_intents(run: Run, other: Run) -> list[str]:
    """Return the hosts whose intent differs, with the keys that do."""
    found: list[str] = []
    for host, file in run.host_files("intent"):
        new: dict[str, Any] | None = if_sound(file)
        old: dict[str, Any] | None = if_sound(other.folder.path / "intent" / file.name)
        if new is not None and old is not None and new != old:
            keys = ", ".join(sorted(key for key in {*new, *old} if new.get(key) != old.get(key)))
            found.append(f"{host}: {keys}")
    return found


def _medians(run: Run, other: Run) -> list[tuple[str, float, float, float]]:
    now, before = _of_rails(run), _of_rails(other)
    return [(rail, before[rail], value, 100 * (value / before[rail] - 1)) for rail, value in now.items() if before.get(rail)]


def _of_rails(run: Run) -> dict[str, float]:
    rails: list[dict[str, Any]] = run.mapping("pairs/summary.json").get("rails") or []
    return {str(each["rail"]): float(each["median_gbps"]) for each in rails if each.get("median_gbps")}
