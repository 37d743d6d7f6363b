# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.isolation_plan; documented in plugins/modules/isolation_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.action import PairAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import ISOLATION, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.isolation import FILE, record
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.isolation_plan import apart, attempts, isolation_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import run_id


class ActionModule(PairAction):
    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self.prepare()
        sweep = self.sweep()
        if sweep is None:
            return self.nobody("Nothing was measured.")
        if len({each.get("pkey") for of in self.fleet.endpoints.values() for each in of.values()} - {None}) < 2:
            return self.nobody("All ports are in one partition.")
        why = self.why_no_load(sweep)
        if why:
            if sweep.is_over(self.variables["ansible_play_hosts"]):
                self.folder.write_json(FILE, record({each["name"]: [] for each in sweep.plan["rails"]}, [], why))
            return self.nobody(why)
        rails = apart(self.fleet.endpoints, self._well(sweep))
        planned = [attempt for each in rails for attempt in attempts(each, self.fleet.endpoints, self.fleet.facts)]
        self.folder.write_json(FILE, record({each.rail: each.unknown for each in rails}, planned))
        if not planned:
            return self.nobody("In no two partitions of a rail there is a host that is known to be well.")
        plan = isolation_plan(f"{run_id()}-isolation", planned, self.fleet.endpoints, self.intent, self.forks)
        return self.hand_out(ISOLATION, plan, (), f"{len(planned)} attempts that must fail.")

    def _well(self, sweep: Evidence) -> dict[str, list[str]]:
        """Each rail of the sweep → the hosts of this play that it has found well, then those that need no proof of this run.

        The latter were proven before, or are alone in their partition and cannot be proven: what gets through from there counts as well.
        """
        good = self.well(sweep)
        rails = [each["name"] for each in sweep.plan["rails"]]
        return {rail: [*good.get(rail, []), *self._not_measured(sweep, rail)] for rail in rails}

    def _not_measured(self, sweep: Evidence, rail: str) -> list[str]:
        playing = set(self.variables["ansible_play_hosts"])
        there = [host for host in self.fleet.having(rail) if host in playing and not sweep.has(host, rail)]
        return [host for host in there if self.standings[host][rail].valid or self.fleet.reached(host, rail) == [host]]
