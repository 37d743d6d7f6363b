# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan for schedulers: the trees of the compute planes, the files, the hosts left out, and the difference from the last plan."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, SchedulerIntent
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import HOST, is_form
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import natural
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.files import Planes, files_of, leaf_alone
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.hostlist import folded
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.proven import (
    SchedulerError,
    StoredPlane,
    compute_planes,
    deciding_plane,
    no_graph,
    same_for_all,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.tree import Tree, tree_of

INCLUDE, ALONE = "include", "alone"
#: The settings of rdma_scheduler that are the same for all hosts, besides the plane.
COMMON = ("unproven", "kubernetes_labels")
#: The number of lines of a difference in the printed text.
SHOWN_LINES = 60


@dataclass(frozen=True)
class SchedulerPlan:
    """files: name → text. trees: of all compute planes, by name; chosen: the one of the files for a single topology.

    left_out: host → why it is not in the trees. alone: those of them that are a leaf of their own in the files for Slurm's trees.
    """

    files: Mapping[str, str]
    trees: Mapping[str, Tree]
    chosen: Tree
    left_out: Mapping[str, str]
    alone: tuple[str, ...]
    runs: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON by which the next plan keeps the names."""
        return {"schema": 1, "planes": {name: tree.to_dict() for name, tree in self.trees.items()}}


def scheduler_plan(
    intents: Mapping[str, Intent], planes: Mapping[str, StoredPlane], unproven: Mapping[str, str], before: Mapping[str, Any]
) -> SchedulerPlan:
    """Return the plan. unproven: host → why it has no valid proof. before: SchedulerPlan.to_dict of the last plan, {} if none.

    Raises SchedulerError.
    """
    common = _common(intents)
    wanted, plane = compute_planes(intents.values()), deciding_plane(intents)
    missing = [name for name in wanted if name not in planes]
    if missing:
        raise SchedulerError(no_graph(f"of plane {', '.join(missing)}"))
    slurm, kubernetes = (_names(intents, key) for key in ("slurm_name", "kubernetes_name"))
    left_out = {} if common["unproven"] == INCLUDE else dict(unproven)
    chosen_hosts = [host for host in intents if host not in left_out]
    known = before.get("planes", {})
    trees = {name: tree_of(planes[name].view, chosen_hosts, known.get(name)) for name in wanted}
    empty = [name for name, tree in trees.items() if not tree.hosts]
    if empty:
        raise SchedulerError(_no_host(empty[0], planes[empty[0]], unproven, left_out))
    chosen = _chosen(trees, plane)
    left_out.update(dict.fromkeys(chosen.without_port, f"it has no compute port in the graph of plane {chosen.plane}"))
    alone = tuple(host for host in intents if host in left_out) if common["unproven"] == ALONE else ()
    _refuse_names(trees.values(), [slurm[host] for host in alone])
    files = files_of(Planes(list(trees.values()), chosen, alone), slurm, kubernetes, common["kubernetes_labels"])
    return SchedulerPlan(files, trees, chosen, left_out, alone, {name: planes[name].run for name in wanted})


def _refuse_names(trees: Iterable[Tree], alone: Sequence[str]) -> None:
    """Raise SchedulerError if a switch has the name of the leaf of a host alone."""
    names = {element.name for tree in trees for element in tree.elements}
    for host in alone:
        if leaf_alone(host) in names:
            raise SchedulerError(f"A switch is named {leaf_alone(host)}, as the leaf of {host} would be. Rename the switch.")


def _common(intents: Mapping[str, Intent]) -> SchedulerIntent:
    """Return the settings of the fleet. Raises SchedulerError if hosts differ in one that must be the same for all."""
    for key in COMMON:
        same_for_all(intents, key)
    return next(iter(intents.values()))["scheduler"]


def _names(intents: Mapping[str, Intent], key: str) -> dict[str, str]:
    """Return host → its name in a scheduler."""
    names: dict[str, str] = {host: str(dict(intent["scheduler"])[key] or host) for host, intent in intents.items()}
    owners: dict[str, str] = {}
    for host, name in names.items():
        if not is_form(HOST, name):
            raise SchedulerError(
                f"{host} cannot have the name {ascii(name)[:80]}: expected {HOST.words}. Set rdma_scheduler.{key} of {host}."
            )
        if owners.setdefault(name, host) != host:
            raise SchedulerError(f"rdma_scheduler.{key} of {owners[name]} and of {host} is {name}: each host needs its own name.")
    return names


def _no_host(name: str, plane: StoredPlane, unproven: Mapping[str, str], left_out: Mapping[str, str]) -> str:
    if not plane.view.switches:
        return f"Plane {name} has no switch: a mesh of cables between hosts has no topology for a scheduler."
    if left_out:
        host, why = next(iter(unproven.items()))
        return (
            f"No host with a valid proof is on plane {name}. {host}: {why}. 1. Run `ansible-playbook rdma.cluster.pairs`. "
            "2. Or set `rdma_scheduler.unproven: include`."
        )
    return f"No compute rail of the hosts is in the graph of plane {name}, which run {plane.run} has stored. Run the fabric stage again."


def _chosen(trees: Mapping[str, Tree], plane: str | None) -> Tree:
    """Return the tree of the files for a single topology. Raises SchedulerError if planes group hosts differently and none is set."""
    if plane is not None:
        return trees[plane]
    first, *others = trees.values()
    groups = {frozenset(group.hosts) for group in first.groups}
    for other in others:
        differ = {frozenset(group.hosts) for group in other.groups} - groups
        if differ:
            odd = min(differ, key=lambda hosts: natural(min(hosts, key=natural)))
            raise SchedulerError(
                f"Planes {first.plane} and {other.plane} group hosts differently: {folded(odd)} share a leaf of {other.plane}, but not of "
                f"{first.plane}. Set rdma_scheduler.plane to the plane that decides, one of {', '.join(trees)}."
            )
    return first


def difference(files: Mapping[str, str], before: Mapping[str, str]) -> str:
    """Return the unified difference of the files from those of the last plan, "" if there is none. before: {} without a last plan."""
    parts: list[str] = []
    for name, text in files.items():
        parts += difflib.unified_diff(before.get(name, "").splitlines(), text.splitlines(), f"last/{name}", f"new/{name}", "", "", 1, "")
    return "".join(f"{line}\n" for line in parts)


def plan_text(plan: SchedulerPlan, hosts: int, last: str | None, changed: str) -> str:
    """Return the text for a person. hosts: all hosts of the play. last: the run with the last plan. changed: of difference()."""
    lines = [f"Topology for schedulers: {len(plan.chosen.hosts)} of {hosts} hosts"]
    for name, tree in plan.trees.items():
        sizes = ", ".join(_counted(len(level), level[0].tier, last=level is tree.levels[-1]) for level in tree.levels)
        mark = " (used for topology.conf, the labels and the hostfile)" if len(plan.trees) > 1 and tree is plan.chosen else ""
        lines.append(f"  plane {name}: {sizes}; graph of run {plan.runs[name]}{mark}")
        if len(tree.roots) > 1:
            lines.append(f"    no cable connects {', '.join(each.name for each in tree.roots)}: no job can span them")
        lines += [f"    {host}: {why}; it counts for the leaf with most of its ports" for host, why in tree.strays.items()]
    lines += _left_out(plan.left_out, plan.alone)
    if last is None:
        lines.append("There is no earlier plan to compare with.")
    elif not changed:
        lines.append(f"No difference from the plan of run {last}.")
    else:
        shown = changed.splitlines()
        more = [f"… {len(shown) - SHOWN_LINES} more lines in scheduler.diff"] if len(shown) > SHOWN_LINES else []
        lines += [f"Difference from the plan of run {last}:", *shown[:SHOWN_LINES], *more]
    return "\n".join(lines)


def _counted(count: int, tier: str, *, last: bool) -> str:
    plural = {"leaf": "leaves", "spine": "groups of spines", "core": "groups of cores"}[tier]
    single = {"leaf": "leaf", "spine": "group of spines", "core": "group of cores"}[tier]
    return f"{count} {single if count == 1 else plural}" + (" at the top" if last and tier != "leaf" else "")


def _left_out(left_out: Mapping[str, str], alone: Sequence[str]) -> list[str]:
    """Return what Slurm does with the hosts that are not in the trees, and a line for each reason, with its hosts."""
    if not left_out:
        return []
    by_reason: dict[str, list[str]] = {}
    for host, why in left_out.items():
        by_reason.setdefault(why, []).append(host)
    count = "1 host is" if len(left_out) == 1 else f"{len(left_out)} hosts are"
    if alone:
        head = f"{count} not in the tree. Slurm runs jobs of one host there, and no job across them:"
    else:
        head = (
            f"WARNING: {count} in no file. With these files Slurm starts no job there, not even one of one host. "
            "`rdma_scheduler.unproven: alone` keeps them usable for jobs of one host:"
        )
    return [head, *(f"  {folded(hosts)}: {why}" for why, hosts in by_reason.items())]
