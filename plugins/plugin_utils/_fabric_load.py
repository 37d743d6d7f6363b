# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each plane under the load of the pairs stage: what changed in it, and how its uplinks shared what they carried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.module_utils._fabric_graph import Graph
from ansible_collections.rdma.cluster.plugins.module_utils._findings import NOT_APPLICABLE, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric_balance import check_balance
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric_change import UNDER_LOAD, check_under_load
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric_expected import Known, expected_hcas
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric_readings import GRAPHS, LOADED, best_graph, folder_of, readings
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric_told import Teller
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric_view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric_wanted import of_graph
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import PLANE, RunFolder

STAGE = "pairs"
AGAIN = "See the fabric stage for who could read the plane; then run again with -e rdma_measure=true."
NOT_BEFORE = "the fabric stage of this run has not read the plane: nothing is known of it before the load"


def judge_load(folder: RunFolder, known: Known) -> dict[str, list[Finding]]:
    """Plane → findings of the pairs stage, for each plane that was read after load in this run; their host is "plane NAME"."""
    found = {}
    for name, expected in expected_hcas(known).items():
        after = best_graph(readings(folder, folder_of(LOADED, name)))
        if after is not None:
            before = best_graph(readings(folder, folder_of(GRAPHS, name)))
            view = View(after[0], expected)
            found[name] = [replace(each, stage=STAGE, host=f"{PLANE}{name}") for each in _findings(view, before, after[1])]
    return found


def _findings(view: View, before: tuple[Graph, float] | None, read_at: float) -> Iterator[Finding]:
    if before is None:
        yield _not_compared(NOT_APPLICABLE, NOT_BEFORE)
    elif not (before[0].complete and view.graph.complete):
        when = "after" if before[0].complete else "before"
        yield _not_compared(UNKNOWN, f"what was read {when} the load is not the whole plane", AGAIN)
    else:
        teller = Teller(view)
        causes = [*check_under_load(teller, before[0], of_graph(before[0], view)), *check_balance(teller, before[0], read_at - before[1])]
        yield from (cause.finding for cause in causes)


def _not_compared(status: str, observed: str, remedy: str = "") -> Finding:
    return Finding(STAGE, UNDER_LOAD.check, "", "discovery", status, observed, UNDER_LOAD.expected, remedy)
