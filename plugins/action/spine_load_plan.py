# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.spine_load_plan; documented in plugins/modules/spine_load_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.action import PairAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import SPINES, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines import WHY_NOT, graphs_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines_plan import (
    Crossing,
    crossing,
    not_crossed,
    plane_of,
    spine_load_plan,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import run_id


class ActionModule(PairAction):
    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self.prepare()
        sweep = self.sweep()
        if sweep is None:
            return self.nobody("Nothing was measured.")
        found = self._rails(sweep)
        planned = [each for each in found.values() if isinstance(each, Crossing)]
        why_not = {rail: each for rail, each in found.items() if not isinstance(each, Crossing)}
        self.folder.write_json(WHY_NOT, why_not)
        words = [f"{each.rail}: {len(each.senders)} pairs" for each in planned] + [f"{rail}: {why}" for rail, why in why_not.items()]
        if not planned:
            return self.nobody("; ".join(words))
        plan = spine_load_plan(f"{run_id()}-spines", planned, self.fleet.endpoints, self.intent, self.forks)
        return self.hand_out(SPINES, plan, (), "; ".join(words))

    def _rails(self, sweep: Evidence) -> dict[str, Crossing | str]:
        """Each rail of the sweep: who meets whom, or why nobody does."""
        rails = [rail["name"] for rail in sweep.plan["rails"]]
        if why := self.why_no_load(sweep):
            return dict.fromkeys(rails, why)
        graphs = graphs_of(self.folder)
        # To find out who is well takes a while; where nothing crosses a spine nobody is asked.
        good = self.well(sweep) if any(not not_crossed(graph) for graph in graphs.values()) else {}
        return {rail: crossing(sweep, rail, graphs.get(plane_of(self.fleet.intents, rail)), good.get(rail, ())) for rail in rails}
