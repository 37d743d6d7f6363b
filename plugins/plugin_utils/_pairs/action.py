# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Common code of the pairs stage's actions: the fleet, its proofs, and the choice of hosts to measure."""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ansible import context
from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import first_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import SWEEP, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet, measurable_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.choice import Choice, Outside, choose
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import Endpoint, gid_address, pack, runtime_max_seconds
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.suspects import reach
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

#: The number of busy hosts that are named.
_NAMED = 3


def listed(busy: Mapping[str, str]) -> str:
    """Return busy hosts in words: "node1: GPU process 4711 (python3); node2: … and 5 more"."""
    return first_of([f"{host}: {words}" for host, words in busy.items()], _NAMED, "; ")


class PairAction(RunAction):
    """An action of the pairs stage that runs once."""

    _requires_connection = False

    @property
    def forks(self) -> int:
        """Return the number of hosts that Ansible works on at once."""
        return int(context.CLIARGS.get("forks") or 1)

    def prepare(self) -> None:
        """Read the known facts and the proofs of the hosts."""
        self.fleet = Fleet.of(measurable_hosts(self.folder, self.folder.hosts_of("pairs")))
        self.proofs = proofs.read(self.folder.read_if_there(proofs.FILE))
        self.standings = self.fleet.standings(self.proofs, time.time(), self.proof_max_age_hours)

    def outside(self) -> Outside:
        """Return the inventory hosts with proofs that are not in the play (--limit): host → rail → endpoint."""
        now, playing = time.time(), set(self.variables["ansible_play_hosts_all"])
        there = [host for host in self.variables["groups"]["all"] if host not in playing and host in self.proofs]
        young = {
            host: {
                rail: dict(proof.endpoint)
                for rail, proof in self.proofs[host].items()
                if proofs.is_young(proof, now, self.proof_max_age_hours)
            }
            for host in there
        }
        near = {host: {rail: each for rail, each in of.items() if self._is_near(rail, each)} for host, of in young.items()}
        return {host: of for host, of in near.items() if of}

    def _is_near(self, rail: str, endpoint: Endpoint) -> bool:
        """Return whether an endpoint is in a subnet of this rail in the play. Another fabric may have a rail of the same name."""
        planned = [each["address"] for intent in self.fleet.intents.values() for each in intent["rails"] if each["name"] == rail]
        address = ipaddress.ip_address(gid_address(endpoint))
        return any(each is None or address in ipaddress.ip_interface(each).network for each in planned)

    def measure(self, given: Any) -> Any:
        """Return the argument `measure`, which the role builds from these variables."""
        return self.argument(given, "pairs_measure", "rdma_measure", default="auto")

    def choice(self, measure: Any, outside: Outside, left_out: Iterable[str] = ()) -> Choice | None:
        """Return the choice of hosts to measure. measure: "auto", or whether to measure. outside: see outside.

        left_out: hosts that must not be measured.

        A value that is not a truth value is an error: an unknown word must not put load on a fabric.
        """
        remeasure = None if measure == "auto" else boolean(measure)  # type: ignore[no-untyped-call]
        if remeasure is False or not self.fleet.intents:
            return None
        rest = self.fleet.without(left_out)
        standings = {host: self.standings[host] for host in rest.hosts}
        return choose(
            rest,
            standings,
            self.intent["pairs"],
            remeasure=bool(remeasure),
            outside={host: of for host, of in outside.items() if host not in set(left_out)},
        )

    def sweep(self) -> Evidence | None:
        """Return the sweep of this run; None if nothing was measured."""
        return Evidence.of(self.folder, SWEEP, self.fleet.intents, self.fleet.facts)

    def why_no_load(self, sweep: Evidence) -> str:
        """Return why this play puts no further load on the fabric after its sweep, "" if it may.

        Such a load uses all links of a plane at once, so a single busy host prevents it.
        """
        if not sweep.is_over(self.variables["ansible_play_hosts"]):
            return "The sweep was stopped; the next run resumes it."
        rails = {rail["name"] for rail in sweep.plan["rails"]}
        planes = {of[rail] for of in self._planes.values() for rail in rails & set(of)}
        near = [host for host, of in self._planes.items() if planes & set(of.values())]
        busy = self.at_work({host: self.fleet.facts[host].load for host in near})
        if not busy:
            return ""
        return f"Hosts of the same plane are busy ({listed(busy)}). Rerun when they are idle, or allow load (rdma_load_allowed)."

    @property
    def _planes(self) -> dict[str, dict[str, str]]:
        """Return host → rail → its plane."""
        return {host: {rail["name"]: str(rail["plane"]) for rail in intent["rails"]} for host, intent in self.fleet.intents.items()}

    def well(self, sweep: Evidence) -> dict[str, list[str]]:
        """Return rail → the hosts still in this play without a verdict of the sweep."""
        playing = self.variables["ansible_play_hosts"]
        here = [host for host in sweep.plan["hosts"] if host in self.fleet.endpoints and host in playing]
        recorded = sweep.recorded_verdicts(self.intent["pairs"], self.proofs)
        good = reach(recorded, recorded.stopping, here, sweep.partitions).good
        return {rail: [host for host in here if host in hosts] for rail, hosts in good.items()}

    @staticmethod
    def nobody(words: str) -> dict[str, Any]:
        """Return the answer for the measuring tasks if nothing is to be measured, with the reason."""
        return {"hosts": [], "outside": [], "msg": words}

    def hand_out(self, folder: str, plan: Mapping[str, Any], outside: Collection[str], words: str) -> dict[str, Any]:
        """Return the input of the measuring tasks for a plan that no later run resumes. The plan is recorded; the secret is new."""
        self.folder.write_json(f"{folder}/plan.json", plan)
        return {
            "hosts": [host for host in plan["hosts"] if host not in outside],
            "outside": [host for host in plan["hosts"] if host in outside],
            "sweep": plan["sweep"],
            "plan": pack(plan),
            "token": secrets.token_hex(32),
            "runtime_max_seconds": runtime_max_seconds(plan),
            "msg": words,
        }
