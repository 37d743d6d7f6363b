# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each plane under the load of the pairs stage: what changed in it, and how its uplinks shared what they carried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.change import UNDER_LOAD, check_under_load
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.wanted import of_graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.expected import Known, expected_hcas
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import GRAPHS, LOADED, best_graph, folder_of, readings
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.told import Cause, Teller
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.balance import check_balance
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Doubt, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import PLANE, RunFolder

STAGE = "pairs"
AGAIN = "See the fabric stage for who could read the plane; then run again with -e rdma_measure=true."
NOT_BEFORE = "the fabric stage of this run has not read the plane: nothing is known of it before the load"


def judge_load(folder: RunFolder, known: Known) -> list[Doubt]:
    """Findings of the pairs stage on each plane that was read after load in this run; their host is "plane NAME".

    below: the planned ports on what a finding names, by the graph before the load; around: all that are planned in the plane.
    """
    found = []
    for name, expected in expected_hcas(known).items():
        after = best_graph(readings(folder, folder_of(LOADED, name)))
        if after is not None:
            before = best_graph(readings(folder, folder_of(GRAPHS, name)))
            around = frozenset((each.host, each.rail) for each in expected)
            earlier = None if before is None else View(before[0], expected)
            for cause in _load_causes(View(after[0], expected), before, after[1]):
                finding = replace(cause.finding, stage=STAGE, host=f"{PLANE}{name}")
                found.append(Doubt(finding, frozenset() if earlier is None else _below(earlier, cause), around))
    return found


def _load_causes(view: View, before: tuple[Graph, float] | None, read_at: float) -> Iterator[Cause]:
    if before is None:
        yield _not_compared(NOT_APPLICABLE, NOT_BEFORE)
    elif not (before[0].complete and view.graph.complete):
        when, partial = ("after", view.graph) if before[0].complete else ("before", before[0])
        why = f": {partial.problems[0]}" if partial.problems else ""
        yield _not_compared(UNKNOWN, f"what was read {when} the load is not the whole plane{why}", AGAIN)
    else:
        teller = Teller(view)
        yield from check_under_load(teller, before[0], of_graph(before[0], view))
        yield from check_balance(teller, before[0], read_at - before[1])


def _not_compared(status: str, observed: str, remedy: str = "") -> Cause:
    return Cause(Finding(STAGE, UNDER_LOAD.check, "", "discovery", status, observed, UNDER_LOAD.expected, remedy))


def _below(before: View, cause: Cause) -> frozenset[Port]:
    """The planned ports of the cables that a cause names, and of the switches that those between switches join."""
    hcas = set[str]()
    for cable in ((end[0], before.peers[end][0]) for end in cause.ends if end in before.peers):
        hcas.update([guid for guid in cable if before.is_host(guid)] or _hcas_on(before, cable))
    planned = (before.planned(guid) for guid in hcas)
    return frozenset((each.host, each.rail) for each in planned if each is not None)


def _hcas_on(view: View, switches: Iterable[str]) -> Iterator[str]:
    for guid in switches:
        peers = (view.peers[guid, number][0] for number in view.linked.get(guid, ()))
        yield from (peer for peer in peers if view.is_host(peer))
