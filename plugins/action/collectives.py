# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.collectives; documented in plugins/modules/collectives.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.ladder import Ladder, climb
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.plan import ALONE_FOLDER, BLOCKED, FILE, LADDER, CollectivePlan
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.record import Record, ladder_data, record, result_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.runs import WELL
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import place_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs as pairs_proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import REFUSED
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet, measurable_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

STAGE, MODULE = "collectives", "nccl_test"
PLAN_FILE = f"{ALONE_FOLDER}/plan.json"
display = Display()


class InUse(str):
    """The users of a host, because of which nothing was run."""

    __slots__ = ()


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "scope": {"type": "str", "required": True, "choices": ["plan", "alone", "choose", "ladder"]},
        "measure": {"type": "raw", "default": "auto"},
        "launcher": {"type": "str"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        asked: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "plan": self._plan_scope,
            "alone": self._alone_scope,
            "choose": self._choose_scope,
            "ladder": self._ladder_scope,
        }
        return asked[options["scope"]](options)

    def _plan(self, fleet: Fleet) -> CollectivePlan:
        proofs = pairs_proofs.read(self.folder.read_if_there(FILE))
        return CollectivePlan(fleet, proofs, time.time(), self.proof_max_age_hours)

    def _whole(self) -> CollectivePlan:
        return self._plan(Fleet.of(measurable_hosts(self.folder, self.folder.hosts_of(STAGE))))

    def _plan_scope(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The hosts to run. An invalid `measure` is an error, because a misunderstood value must not put load on a fabric."""
        measure = self.argument(options["measure"], "collectives_measure", "rdma_measure", default="auto")
        plan = self._whole()
        blocked = self.at_work({host: plan.fleet.facts[host].load for host in plan.able})
        self.folder.write_json(BLOCKED, blocked)
        gone = [host for host in plan.able if host not in self.variables["ansible_play_hosts"]]
        hosts = plan.chosen(None if measure == "auto" else boolean(measure), [*blocked, *gone])  # type: ignore[no-untyped-call]
        self.folder.write_json(PLAN_FILE, {"hosts": hosts})
        valid = sum(each.valid for each in plan.standings.values())
        words = f"{valid} of {len(plan.able)} hosts with GPUs have a valid proof; hosts to run: {len(hosts)}"
        return {"hosts": hosts, "msg": f"{words}; in use: {', '.join(blocked)}." if blocked else f"{words}."}

    def _alone_scope(self, _options: Mapping[str, Any]) -> dict[str, Any]:
        """Run this host alone. With one GPU there is nothing to run."""
        plan = self._plan(Fleet.of({self.host: Known(self.intent, from_dict(comparable(self.all_facts)))}))
        if self._task.check_mode or plan.expectations.gpus(self.host) < 2:
            return {"run": False}
        run = self._run(plan, [self.host], self.host, plan.operation(self.host))
        if isinstance(run, InUse):
            return {"run": False, "msg": f"{self.host} was not run: {run}"}
        if isinstance(run, str):
            return {"failed": True, "msg": run}
        self.folder.write_json(self.folder.host_file(ALONE_FOLDER, self.host), run)
        return {"run": True, "status": run["status"], "msg": _words(run)}

    def _choose_scope(self, _options: Mapping[str, Any]) -> dict[str, Any]:
        """The hosts for the joint runs: those that are still in the play and passed alone. The first of them launches the runs."""
        climb = [host for host in self.folder.read_json(PLAN_FILE)["hosts"] if self._climbs(host)]
        facts = self._whole().fleet.facts
        busy = self.at_work({host: facts[host].load for host in climb if host in facts})
        for host, words in busy.items():
            self._refuse(host, words)
        hosts = [host for host in climb if host not in busy]
        return {"hosts": hosts, "launcher": hosts[0] if hosts else ""}

    def _climbs(self, host: str) -> bool:
        if self.folder.read_if_there(self.folder.host_file(ALONE_FOLDER, host, REFUSED)) is not None:
            return False
        run = self.folder.read_if_there(self.folder.host_file(ALONE_FOLDER, host))
        return host in self.variables["ansible_play_hosts"] and (run is None or run["status"] == WELL)

    def _ladder_scope(self, options: Mapping[str, Any]) -> dict[str, Any]:
        plan, hosts = self._whole(), self._choose_scope(options)["hosts"]
        launcher = options["launcher"] or self.host
        if self._task.check_mode or len(hosts) < 2:
            return {"runs": 0}
        operation, settings = plan.operation(launcher), plan.fleet.intents[launcher]["collectives"]
        runs: list[Record] = []
        others: list[Record] = []
        problem = ""
        ladder = climb(hosts, [], settings["repeats"])
        while ladder.step is not None:
            run = self._run(plan, ladder.step, launcher, operation)
            if isinstance(run, str):
                problem = run
                break
            runs.append(run)
            ladder = climb(hosts, [result_of(each) for each in runs], settings["repeats"])
            self.folder.write_json(LADDER, ladder_data(ladder, runs, others, launcher))
        for other in settings["also"] if ladder.well and not problem else ():
            run = self._run(plan, ladder.well, launcher, other)
            others += [] if isinstance(run, str) else [run]
        self.folder.write_json(LADDER, ladder_data(ladder, runs, others, launcher, problem))
        return {"runs": len(runs) + len(others), "well": list(ladder.well), "msg": problem or _summary(ladder, len(runs))}

    def _refuse(self, host: str, words: str) -> None:
        """Record that a host was not run because it was in use."""
        self.folder.write_json(self.folder.host_file(ALONE_FOLDER, host, REFUSED), {"in_use": words})

    def _run(self, plan: CollectivePlan, hosts: Sequence[str], launcher: str, operation: str) -> Record | str:
        """One run, or why nothing was run."""
        allowed = self._load_allowed(launcher)
        try:
            arguments = plan.arguments(hosts, launcher, operation)
            answer = self.module(MODULE, load_allowed=allowed, **arguments)
        except AnsibleError as error:
            return f"{launcher}: {clean(str(error))}"
        if answer.get("failed") or answer.get("unreachable"):
            return f"{launcher}: {clean(str(answer.get('msg', 'the run could not be started')))}"
        if answer.get("in_use"):
            words = clean(str(answer["in_use"]))
            self._refuse(launcher, words)
            return InUse(f"{launcher} is in use: {words}")
        try:
            run = record(hosts, operation, answer, (arguments.get("expected") or {}).get("gbytes_per_s"))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return f"{launcher}: its answer is refused: {place_of(error)}"
        display.display(f"  … {_words(run)}")
        return run


def _words(run: Record) -> str:
    """A run as one line of progress."""
    figure = "no figure" if run["gbytes_per_s"] is None else f"{run['gbytes_per_s']:.4g} GB/s"
    hosts = f"{len(run['hosts'])} hosts" if len(run["hosts"]) > 1 else run["hosts"][0]
    return f"{run['operation']} on {hosts}: {figure}, {run['status']} ({run['seconds']:.0f} s)"


def _summary(ladder: Ladder, runs: int) -> str:
    named = "; ".join(blame.words for blame in ladder.blames)
    return f"{len(ladder.well)} hosts are well together after {runs} runs{f'; {named}' if named else ''}."
