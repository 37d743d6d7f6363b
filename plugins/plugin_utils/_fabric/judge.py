# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All findings of the fabric stage on one plane: one finding per cause, without repetition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.tools import NO_MANAGER
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.change import History, check_change
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.findings import CHECK as CABLING
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.findings import PLANNED, check_cabling
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import Plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.rails import check_rails
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.wanted import Wanted, of_graph, of_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.causes import Cause, Reporter, explained
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.identity import DISCOVERY, check_graph, unmatched_switches
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.counters import Baseline, baseline, check_counters
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.links import CHECK as LINKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.links.links import check_links, waits_for_manager
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.present import check_present
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.bisection import check_bisection
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.repaired import shape
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.shape.shape import check_ratio, check_symmetry, named_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import Expected, View


@dataclass(frozen=True)
class Asked:
    """The inputs for judging a plane. plan: its cables, if there is a file. expected: the hosts' rails.

    ratio: the intended oversubscription. mesh: whether the intent has cables between hosts, without switches. elsewhere: HCA → its place on
    another plane, in words. before, before_run: the graph and the id of an earlier run. baseline, history: stored by the earlier run.
    seconds, run: the time of this reading since 1970, and the id of this run.
    """

    plan: Plan | None = None
    expected: Sequence[Expected] = ()
    ratio: float | None = None
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    before: Graph | None = None
    before_run: str = ""
    baseline: Baseline | None = None
    history: History | None = None
    seconds: float = 0.0
    run: str = ""
    mesh: bool = False


@dataclass(frozen=True)
class Judged:
    """The findings of a plane, and the data to store for the next run."""

    findings: list[Finding]
    baseline: dict[str, Any]
    history: dict[str, Any]


def judge(graph: Graph, asked: Asked) -> Judged:
    """Return the findings fabric.* on one plane's graph. fabric.balance is not among them: it needs graphs from before and after a load."""
    view = View(graph, asked.expected, mesh=asked.mesh)
    plan = of_plan(asked.plan, view) if asked.plan is not None else None
    view.planned_tiers.update(plan.tiers if plan is not None else {})
    before = of_graph(asked.before, view) if asked.before is not None else None
    reporter = Reporter(view)
    twins = set(graph.doubles)
    links = _apart(check_links(reporter), twins)
    causes = _once(reporter, check_graph(reporter, plan), links)
    if unmatched_switches(view, plan):
        plan = None
        causes.append(reporter.skip(CABLING, "the plan's switches cannot be matched with unnamed switches", PLANNED.expected))
    causes += [*_apart(_cabling(reporter, asked, plan, before), twins), *links]
    history = dict(asked.history or {})
    if asked.before is not None and before is not None:
        found, history = check_change(
            reporter, asked.before, before, asked.before_run, history=asked.history, named=explained(causes), planned=plan is not None
        )
        causes += _apart(found, twins)
    causes += _shape(reporter, asked, plan, before, causes)
    causes += check_counters(reporter, asked.baseline, asked.seconds, explained(causes)[1])
    return Judged([cause.finding for cause in causes], baseline(view, asked.seconds, asked.run), history)


def _apart(causes: list[Cause], twins: set[str]) -> list[Cause]:
    """Drop causes on nodes that share a GUID: the graph has mixed up their cables."""
    return [cause for cause in causes if not (cause.is_trouble and twins & {*cause.nodes, *(guid for guid, _port in cause.ends)})]


def _once(reporter: Reporter, causes: list[Cause], links: Sequence[Cause]) -> list[Cause]:
    """Drop a repeated cause: without a subnet manager, some tools do not query. If the links show that, the graph does not repeat it."""
    if any(waits_for_manager(cause) for cause in links) and all(NO_MANAGER in problem for problem in reporter.view.graph.problems):
        return [cause for cause in causes if cause.finding.subject != DISCOVERY]
    return causes


def _cabling(reporter: Reporter, asked: Asked, plan: Wanted | None, before: Wanted | None) -> list[Cause]:
    """Return cabling causes by the plan; where the plan has nothing, by the rails."""
    causes = check_cabling(plan, reporter) if plan is not None else []
    planned = set(plan.hosts) if plan is not None else set()
    causes += check_rails(reporter, planned)
    names = {} if plan is None else {(plan.hosts[key], plan.names[key].removeprefix(plan.hosts[key]).strip()): key for key in planned}
    unplanned = [each for each in asked.expected if (each.host, each.device or "") not in names and (each.host, each.rail) not in names]
    if unplanned and not (plan is not None and not reporter.view.switches):
        causes += check_present(reporter, unplanned, asked.elsewhere, before, explained(causes)[0])
    return causes


def _shape(reporter: Reporter, asked: Asked, plan: Wanted | None, before: Wanted | None, causes: Sequence[Cause]) -> list[Cause]:
    """Return causes on the shape, as if all faults found so far were fixed."""
    view = reporter.view
    slow, odd = (explained(cause for cause in causes if (cause.finding.check == LINKS) == links)[1] for links in (True, False))
    repaired = shape(view, plan or before, slow, odd)
    names = {guid: view.name(guid) for guid in view.switches}
    symmetry = check_symmetry(repaired, reporter, _planned_switches(view, plan))
    named = named_of(symmetry, names)
    compute = not asked.expected or any(each.role == "compute" for each in asked.expected)
    ratio = check_ratio(repaired, asked.ratio, named, reporter, compute=compute)
    named |= named_of(ratio, names)
    return [*symmetry, *ratio, *check_bisection(repaired, shape(view), asked.ratio, named, reporter, compute=compute)]


def _planned_switches(view: View, plan: Wanted | None) -> set[str]:
    """Return the names of the switches that have planned cables to other switches."""
    if plan is None:
        return set()
    guids = {end[0] for end, other in plan.peers.items() if {end[0], other[0]} <= plan.switches}
    return {view.name(guid) if guid in view.nodes else plan.names[guid] for guid in guids}
