# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What earlier runs have proven: the graphs of the fabric stage, the facts of hosts, and the hosts with valid proofs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import hint
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.expected import expected_hcas
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.gate import ethernet_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import Expected, View
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import place_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs as pairs_proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet, Standings
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, if_sound

COMPUTE = "compute"


class SchedulerError(ValueError):
    """The plan cannot be made. The message has the reason and what to do."""


@dataclass(frozen=True)
class StoredPlane:
    """The graph of a plane, and the run whose fabric stage stored it."""

    view: View
    run: str


def known_of_runs(folder: RunFolder, intents: Mapping[str, Intent]) -> dict[str, Known]:
    """Return the intent of each host, and its facts of the newest run that has read it."""
    runs = [folder, *folder.earlier_runs()]
    found = {}
    for host, intent in intents.items():
        name = folder.host_file("facts", host)
        tree = next((tree for run in runs if (tree := if_sound(run.path / name)) is not None), None)
        try:
            known = Known(intent, from_dict(comparable(tree)) if tree else None)
            # Damaged facts of one host must not stop the plan of the others.
            Fleet.of({host: known}).bases  # noqa: B018
        except Exception as error:  # noqa: BLE001 (whatever a host's data does)
            known = Known(intent, None, place_of(error))
        found[host] = known
    return found


def compute_planes(intents: Iterable[Intent]) -> list[str]:
    """Return the planes with a compute rail, in order."""
    return sorted({str(rail["plane"]) for intent in intents for rail in intent["rails"] if rail["role"] == COMPUTE})


def same_for_all(intents: Mapping[str, Intent], key: str) -> Any:
    """Return the value of a key of rdma_scheduler. Raises SchedulerError if hosts differ in it."""
    values = {host: dict(intent["scheduler"])[key] for host, intent in intents.items()}
    (first, one), *others = values.items()
    for host, other in others:
        if other != one:
            words = f"rdma_scheduler.{key} is {one} on {first} and {other} on {host}"
            raise SchedulerError(f"{words}. Set it once for all hosts, in group_vars/all.")
    return one


def deciding_plane(intents: Mapping[str, Intent]) -> str | None:
    """Return the compute plane whose leaves decide, None if none is set.

    Raises SchedulerError if hosts differ in it, or if no compute rail is on it.
    """
    plane: str | None = same_for_all(intents, "plane")
    planes = compute_planes(intents.values())
    if plane is not None and plane not in planes:
        words = hint(plane, planes, "compute planes")
        raise SchedulerError(f"rdma_scheduler.plane is {plane}, but no compute rail is on this plane: {words}")
    return plane


def stored_planes(folder: RunFolder, names: Iterable[str], known: Mapping[str, Known]) -> dict[str, StoredPlane]:
    """Return plane → its newest complete graph. Planes that no fabric stage has stored are missing."""
    expected: dict[str, Sequence[Expected]] = {name: ports.expected for name, ports in ethernet_planes(folder, known).items()}
    expected.update(expected_hcas(known))
    found = {}
    for name in names:
        file = f"fabric/{name}/graph.json"
        own = if_sound(folder.path / file, Graph.from_dict)
        stored = (folder.path.name, own) if own is not None else folder.earlier(file, Graph.from_dict)
        if stored is not None:
            found[name] = StoredPlane(View(stored[1], expected.get(name, ())), stored[0])
    return found


def no_graph(of: str) -> str:
    """Return why a plan cannot be made without a stored graph, and what to do. of: "of plane compute"."""
    return (
        f"No run has stored a complete graph {of}. 1. Run `ansible-playbook rdma.cluster.fabric`. 2. Fix its findings `fabric.graph`: an "
        "incomplete graph is not stored. 3. Run this plan again, with the same rdma_run_dir."
    )


def unproven(folder: RunFolder, known: Mapping[str, Known], now: float, max_age_hours: float) -> dict[str, str]:
    """Return host → why it has no valid proof: each compute rail needs one of the pairs stage. now: seconds since 1970."""
    fleet = Fleet.of(known)
    standings = fleet.standings(pairs_proofs.read(folder.read_if_there(pairs_proofs.FILE)), now, max_age_hours)
    reasons = {host: _reason(host, each, standings) for host, each in known.items()}
    return {host: reason for host, reason in reasons.items() if reason}


def _reason(host: str, known: Known, standings: Standings) -> str:
    if known.facts is None or known.intent is None:
        return f"its facts cannot be used: {known.problem}" if known.problem else "no run has read its facts"
    rails = [rail["name"] for rail in known.intent["rails"] if rail["role"] == COMPUTE]
    if not rails:
        return "it has no compute rail"
    own = standings.get(host, {})
    bad = {rail: own[rail].words if rail in own else "it cannot be measured" for rail in rails if rail not in own or not own[rail].valid}
    if not bad:
        return ""
    # The reason is usually the same for all rails.
    same = set(bad.values())
    return f"{', '.join(bad)}: {same.pop()}" if len(same) == 1 else "; ".join(f"{rail}: {why}" for rail, why in bad.items())
