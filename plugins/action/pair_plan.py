# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_plan; documented in plugins/modules/pair_plan.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import FABRIC
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import FactsError, admitted
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.action import PairAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fabric import crossing_schedule
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.choice import Choice
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import (
    fingerprint,
    make_plan,
    pack,
    runtime_max_seconds,
    tests_of,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.sweep_state import begun
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import run_id


class ActionModule(PairAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "measure": {"type": "raw", "default": "auto"},
        "outside": {"type": "list", "elements": "str", "default": []},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self.prepare()
        self.beyond = {host: of for host, of in self.outside().items() if host in options["outside"]}
        blocked = self._blocked()
        self.folder.write_json("pairs/blocked.json", blocked)
        gone = [host for host in self.fleet.hosts if host not in self.variables["ansible_play_hosts"]]
        choice = self.choice(self.measure(options["measure"]), self.beyond, [*blocked, *gone])
        if choice is None:
            return self.nobody(f"There is nobody to be measured; at work: {', '.join(blocked) or 'none'}.")
        return self._sweep(choice)

    def _sweep(self, choice: Choice) -> dict[str, Any]:
        """The plan of a sweep: of one that was begun and not collected if it is the same, else of a new one."""
        plan = self._plan(choice, "", None)
        limit = runtime_max_seconds(plan)
        mark = fingerprint(plan)
        state = begun(mark, run_id(), time.time(), limit)
        plan = self._plan(choice, state.sweep, state.seed)
        self.folder.write_json("pairs/plan.json", plan)
        self.folder.write_json("pairs/sweep.json", {"sweep": state.sweep, "fingerprint": mark, "outside": choice.outside})
        return {
            "hosts": [host for host in choice.hosts if host not in choice.outside],
            "outside": list(choice.outside),
            "resumed": state.sweep != run_id(),
            "sweep": state.sweep,
            "plan": pack(plan),
            "token": state.token,
            "runtime_max_seconds": limit,
        }

    def _plan(self, choice: Choice, sweep: str, seed: int | None) -> dict[str, Any]:
        schedule = dict(choice.schedule)
        if schedule["kind"] == "sample" and schedule["seed"] is None:
            schedule["seed"] = seed
        endpoints = choice.measured({**self.beyond, **self.fleet.endpoints})
        tests = tests_of(self.intent)
        plan = make_plan(sweep, hosts=choice.hosts, rails=choice.rails, of=endpoints, tests=tests, schedule=schedule, forks=self.forks)
        fabric = self.folder.read_if_there(FABRIC)
        crossing = crossing_schedule(fabric, plan, self.fleet.facts) if fabric is not None else None
        return plan if crossing is None else {**plan, "schedule": crossing}

    def _blocked(self) -> dict[str, str]:
        """The hosts that are at work and may not be measured: host → what is at work there."""
        loads = {host: facts["load"] for host, facts in self.fleet.facts.items()}
        for host in self.beyond:
            loads[host] = self._load_of(host)
        return self.at_work(loads)

    def _load_of(self, host: str) -> Mapping[str, Any] | None:
        """What is at work on a host outside of the play, None if that was not read or makes no sense."""
        read = self._raw_facts(self.variables["hostvars"][host]).get("rdma")
        try:
            return None if read is None else admitted(read)["load"]
        except FactsError:
            return None
