# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_plan; documented in plugins/modules/pair_plan.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.module_utils._host.load import Load
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.readings import FABRIC
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import FactsError, admitted
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.cross import CROSS
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.action import PairAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import AGAIN, CROSS_RAILS, ISOLATION, LOAD, SPINES, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fabric import crossing_schedule
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.cross import FILE as CROSS_FILE
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.cross import cross_rails
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.cross import record as record_cross
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.cross_plan import cross_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.isolation import FILE as ATTEMPTS
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.isolation import record
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.isolation_plan import apart, attempts, isolation_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.qos_plan import (
    FEWEST_SOURCES,
    Funnel,
    funnels,
    load_plan,
    rails_with_queues,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines import WHY_NOT, graphs_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines_plan import (
    Crossing,
    crossing,
    not_crossed,
    plane_of,
    spine_load_plan,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.choice import Choice
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import (
    fingerprint,
    make_plan,
    pack,
    runtime_max_seconds,
    tests_of,
    traffic_class,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.suspects import Meeting, meetings, reach, rounds
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.sweep_state import begun, collected
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.low import suspects_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import run_id

KINDS = ("sweep", "suspects", "isolation", "cross", "spines", "qos")
NO_RAIL = f"No RoCE rail has {FEWEST_SOURCES + 1} healthy hosts whose NICs support priorities (DCB)."
#: The default number of sources of one target.
SOURCES = 8


class ActionModule(PairAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "kind": {"type": "str", "required": True, "choices": list(KINDS)},
        "measure": {"type": "raw", "default": "auto"},
        "outside": {"type": "list", "elements": "str", "default": []},
        "sources": {"type": "int", "default": SOURCES},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        kind = options["kind"]
        sources = self._sources(options["sources"]) if kind == "qos" else 0
        self.prepare()
        if kind == "sweep":
            return self._first(options)
        sweep = self.sweep()
        if sweep is None:
            return self.nobody("Nothing was measured.")
        if kind == "suspects":
            return self._suspects(sweep)
        if kind == "isolation":
            return self._isolation(sweep)
        if kind == "cross":
            return self._cross(sweep)
        return self._spines(sweep) if kind == "spines" else self._qos(sweep, sources)

    def _first(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Plan the sweep."""
        self.beyond = {host: of for host, of in self.outside().items() if host in options["outside"]}
        blocked = self._blocked()
        self.folder.write_json("pairs/blocked.json", blocked)
        gone = [host for host in self.fleet.hosts if host not in self.variables["ansible_play_hosts"]]
        choice = self.choice(self.measure(options["measure"]), self.beyond, [*blocked, *gone])
        if choice is None:
            return self.nobody(f"There are no hosts to measure; in use: {', '.join(blocked) or 'none'}.")
        return self._sweep(choice)

    def _sweep(self, choice: Choice) -> dict[str, Any]:
        """The plan of a sweep. If the same sweep was started but not collected, it continues that sweep."""
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
        """The hosts that are in use and must not be measured, each with its users."""
        loads = {host: facts.load for host, facts in self.fleet.facts.items()}
        for host in self.beyond:
            loads[host] = self._load_of(host)
        return self.at_work(loads)

    def _load_of(self, host: str) -> Load | None:
        """The load of a host outside the play, None if it was not read or is invalid."""
        read = self._raw_facts(self.variables["hostvars"][host]).get("rdma")
        try:
            return None if read is None else from_dict(admitted(read)).load
        except FactsError:
            return None

    def _suspects(self, sweep: Evidence) -> dict[str, Any]:
        """Plan to re-measure each suspect of the sweep with good partners."""
        if not self._is_over(sweep):
            return self.nobody("The sweep was stopped; the next run resumes it.")
        suspects = suspects_of(sweep, self.intent["pairs"], self.proofs)
        matrix = sweep.bandwidth
        self.beyond = {host: {} for host in self.folder.read_json("pairs/sweep.json")["outside"]}
        playing = [host for host in sweep.plan["hosts"] if host in self.variables["ansible_play_hosts"]]
        there = [host for host in (*playing, *self.beyond) if host not in sweep.in_use]
        planned = meetings(suspects, matrix, reach(matrix, suspects, there, sweep.partitions), controls=sweep.software)
        if not planned:
            return self.nobody(f"{len(suspects)} suspects; none can be re-measured.")
        return self._again(f"{run_id()}-again", planned)

    def _is_over(self, sweep: Evidence) -> bool:
        """Whether all results were collected. If so, the record of the running sweep is removed. A stopped sweep is not over."""
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
        # After a meeting that fails again, the partner's address is probed.
        plan["probe"] = True
        return self.hand_out(AGAIN, plan, self.beyond, f"{len(planned)} meetings of {len(hosts)} hosts.")

    def _isolation(self, sweep: Evidence) -> dict[str, Any]:
        """Plan the attempts between partitions, which must fail."""
        if len({each.get("pkey") for of in self.fleet.endpoints.values() for each in of.values()} - {None}) < 2:
            return self.nobody("All ports are in one partition.")
        why = self.why_no_load(sweep)
        if why:
            if sweep.is_over(self.variables["ansible_play_hosts"]):
                self.folder.write_json(ATTEMPTS, record({each["name"]: [] for each in sweep.plan["rails"]}, [], why))
            return self.nobody(why)
        rails = apart(self.fleet.endpoints, self._well_or_unproven(sweep))
        planned = [attempt for each in rails for attempt in attempts(each, self.fleet.endpoints, self.fleet.facts)]
        self.folder.write_json(ATTEMPTS, record({each.rail: each.unknown for each in rails}, planned))
        if not planned:
            return self.nobody("No rail has two partitions with a healthy host each.")
        plan = isolation_plan(f"{run_id()}-isolation", planned, self.fleet.endpoints, self.intent, self.forks)
        return self.hand_out(ISOLATION, plan, (), f"{len(planned)} attempts that must fail.")

    def _well_or_unproven(self, sweep: Evidence) -> dict[str, list[str]]:
        """The healthy hosts of each rail of the sweep, then the hosts of the play that this run did not need to measure.

        The latter have a valid proof, or are alone in their partition and cannot be proven. Their successful attempts count as well.
        """
        good = self.well(sweep)
        rails = [each["name"] for each in sweep.plan["rails"]]
        return {rail: [*good.get(rail, []), *self._not_measured(sweep, rail)] for rail in rails}

    def _not_measured(self, sweep: Evidence, rail: str) -> list[str]:
        playing = set(self.variables["ansible_play_hosts"])
        there = [host for host in self.fleet.having(rail) if host in playing and not sweep.has(host, rail)]
        return [host for host in there if self.standings[host][rail].valid or self.fleet.reached(host, rail) == [host]]

    def _cross(self, sweep: Evidence) -> dict[str, Any]:
        """Plan pairs of ports of different rails, among the ports without a verdict."""
        if self.intent["pairs"]["schedule"] != CROSS:
            return self.nobody(f"rdma_pairs.schedule is not {CROSS}.")
        if why := self.why_no_load(sweep):
            return self.nobody(why)
        found = cross_rails(sweep, self.well(sweep), graphs_of(self.folder), int(self.intent["pairs"]["partners"]))
        hosts = list(sweep.plan["hosts"])
        self.folder.write_json(CROSS_FILE, record_cross(found, hosts))
        planned = {plane: each.schedule for plane, each in found.items() if each.schedule is not None}
        count = sum(len(turn) for each in planned.values() for rounds in each.rounds for turn in rounds)
        if not count:
            return self.nobody("; ".join(f"plane {plane}: {each.why}" for plane, each in found.items() if each.why) or "No pairs.")
        plan = cross_plan(f"{run_id()}-cross", hosts, planned, of=self.fleet.endpoints, intent=self.intent, forks=self.forks)
        return self.hand_out(CROSS_RAILS, plan, (), f"{count} pairs across rails.")

    def _spines(self, sweep: Evidence) -> dict[str, Any]:
        """Plan all pairs of a rail across the spines at once, and one pair alone."""
        found = self._crossings(sweep)
        planned = [each for each in found.values() if isinstance(each, Crossing)]
        why_not = {rail: each for rail, each in found.items() if not isinstance(each, Crossing)}
        self.folder.write_json(WHY_NOT, why_not)
        words = [f"{each.rail}: {len(each.senders)} pairs" for each in planned] + [f"{rail}: {why}" for rail, why in why_not.items()]
        if not planned:
            return self.nobody("; ".join(words))
        plan = spine_load_plan(f"{run_id()}-spines", planned, self.fleet.endpoints, self.intent, self.forks)
        return self.hand_out(SPINES, plan, (), "; ".join(words))

    def _crossings(self, sweep: Evidence) -> dict[str, Crossing | str]:
        """The pairs across the spines of each rail of the sweep, or why there are none."""
        rails = [rail["name"] for rail in sweep.plan["rails"]]
        if why := self.why_no_load(sweep):
            return dict.fromkeys(rails, why)
        graphs = graphs_of(self.folder)
        # Finding the good hosts takes time. They are not needed if nothing crosses a spine.
        good = self.well(sweep) if any(not not_crossed(graph) for graph in graphs.values()) else {}
        return {rail: crossing(sweep, rail, graphs.get(plane_of(self.fleet.intents, rail)), good.get(rail, ())) for rail in rails}

    def _sources(self, given: Any) -> int:
        """The argument `sources`, checked."""
        sources = int(self.argument(given, "pairs_qos_load_sources", default=SOURCES))
        if sources < FEWEST_SOURCES:
            raise AnsibleError(f"sources must be at least {FEWEST_SOURCES}, because one sender alone causes no congestion; got {sources}")
        return sources

    def _qos(self, sweep: Evidence, sources: int) -> dict[str, Any]:
        """Plan many hosts that send to one on each RoCE rail. sources: the maximum number of senders to one host."""
        why = "" if traffic_class(self.intent) is not None else "No traffic is marked: rdma_roce is not set, or no rail is RoCE."
        why = why or self.why_no_load(sweep)
        planned = [] if why else self._funnels(sweep, sources)
        if not planned:
            return self.nobody(why or NO_RAIL)
        words = "; ".join(f"{each.rail}: {len(each.sources)} to {each.target}" for each in planned)
        plan = load_plan(f"{run_id()}-qos", planned, self.fleet.endpoints, self.intent, self.forks)
        return self.hand_out(LOAD, plan, (), words)

    def _funnels(self, sweep: Evidence, sources: int) -> list[Funnel]:
        good = self.well(sweep)
        here = [host for host in sweep.plan["hosts"] if host in set().union(*good.values())]
        able = {host: rails_with_queues(self.fleet.intents[host], self.fleet.facts[host]) for host in here}
        fit = {rail: [host for host in hosts if rail in able[host]] for rail, hosts in good.items()}
        return funnels([rail["name"] for rail in sweep.plan["rails"]], here, fit, sources)
