# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.qos_load_plan; documented in plugins/modules/qos_load_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.action import PairAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import LOAD, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.qos_plan import (
    FEWEST_SOURCES,
    Funnel,
    funnels,
    load_plan,
    rails_with_queues,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import traffic_class
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import run_id

NO_RAIL = f"No RoCE rail has {FEWEST_SOURCES + 1} hosts that nothing is said against, and whose NICs have queues to hold anybody back with."

#: Unless the role says otherwise.
SOURCES = 8


class ActionModule(PairAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {"sources": {"type": "int", "default": SOURCES}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        sources = int(self.argument(options["sources"], "pairs_qos_load_sources", default=SOURCES))
        if sources < FEWEST_SOURCES:
            raise AnsibleError(f"sources is at least {FEWEST_SOURCES}: one alone is held back by nothing, got {sources}")
        self.prepare()
        sweep = self.sweep()
        why = self._why_not(sweep)
        planned = [] if sweep is None or why else self._funnels(sweep, sources)
        if not planned:
            return self.nobody(why or NO_RAIL)
        words = "; ".join(f"{each.rail}: {len(each.sources)} to {each.target}" for each in planned)
        plan = load_plan(f"{run_id()}-qos", planned, self.fleet.endpoints, self.intent, self.forks)
        return self.hand_out(LOAD, plan, (), words)

    def _why_not(self, sweep: Evidence | None) -> str:
        """Why there is no load, "" if there is."""
        if sweep is None:
            return "Nothing was measured."
        if traffic_class(self.intent) is None:
            return "No traffic is marked: rdma_roce is not given, or no rail is RoCE."
        return self.why_no_load(sweep)

    def _funnels(self, sweep: Evidence, sources: int) -> list[Funnel]:
        good = self.well(sweep)
        here = [host for host in sweep.plan["hosts"] if host in set().union(*good.values())]
        able = {host: rails_with_queues(self.fleet.intents[host], self.fleet.facts[host]) for host in here}
        fit = {rail: [host for host in hosts if rail in able[host]] for rail, hosts in good.items()}
        return funnels([rail["name"] for rail in sweep.plan["rails"]], here, fit, sources)
