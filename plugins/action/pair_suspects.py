# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_suspects; documented in plugins/modules/pair_suspects.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.action import PairAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import AGAIN, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import make_plan, tests_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.suspects import Meeting, meetings, reach, rounds
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.sweep_state import collected
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.low import suspects_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import run_id


class ActionModule(PairAction):
    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self.prepare()
        sweep = self.sweep()
        if sweep is None:
            return self.nobody("Nothing was measured.")
        if not self._is_over(sweep):
            return self.nobody("The sweep was stopped; the next run goes on with it.")
        suspects = suspects_of(sweep, self.intent["pairs"], self.proofs)
        matrix = sweep.bandwidth
        self.beyond = list(self.folder.read_json("pairs/sweep.json")["outside"])
        playing = [host for host in sweep.plan["hosts"] if host in self.variables["ansible_play_hosts"]]
        there = [host for host in (*playing, *self.beyond) if host not in sweep.in_use]
        planned = meetings(suspects, matrix, reach(matrix, suspects, there, sweep.partitions), controls=sweep.software)
        if not planned:
            return self.nobody(f"{len(suspects)} suspects, of which none can be measured again.")
        return self._again(f"{run_id()}-again", planned)

    def _is_over(self, sweep: Evidence) -> bool:
        """Whether all results have come. A sweep that was stopped is not over; one that is, is no longer known."""
        playing = self.variables["ansible_play_hosts"]
        hosts = [host for host in sweep.plan["hosts"] if host in playing and host not in sweep.in_use]
        over = all(self.variables["hostvars"][host].get("__pairs_collected", {}).get("finished") for host in hosts)
        if over:
            collected(self.folder.read_json("pairs/sweep.json")["fingerprint"])
        return over

    def _again(self, name: str, planned: list[Meeting]) -> dict[str, Any]:
        met = {host for meeting in planned for host in meeting[1:]}
        hosts = [host for host in (*self.fleet.hosts, *self.beyond) if host in met]
        rails = [rail for rail in self.fleet.rails if any(meeting[0] == rail for meeting in planned)]
        endpoints = {**self.outside(), **self.fleet.endpoints}
        schedule = {"kind": "meetings", "rails": rounds(planned, hosts, rails)}
        plan = make_plan(name, hosts=hosts, rails=rails, of=endpoints, tests=tests_of(self.intent)[:1], schedule=schedule, forks=self.forks)
        # Each meeting that fails again is followed by a probe of the partner's address.
        plan["probe"] = True
        return self.hand_out(AGAIN, plan, self.beyond, f"{len(planned)} meetings of {len(hosts)} hosts.")
