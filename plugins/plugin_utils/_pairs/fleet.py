# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts of a pairs stage: their measurable endpoints and proofs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import session_address
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import rail_ip, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known, known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import RunFacts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import Endpoint, endpoints
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Basis, Proofs, Standing, bases, standing
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import limited_only

NOWHERE = "it has no address on this rail, and other hosts cannot reach the address of Ansible's session (loopback, or a local connection)"
REACH = "Give the host an address on the rail (IP over InfiniBand), or an ansible_host that the other hosts can reach."

#: The schedule of rdma_pairs in which every host is paired with every other one.
FULL = "full"


def measured_pairs(schedule: str) -> str:
    """Return the part of rdma_pairs.schedule that plans the sweep: "full+cross" measures all pairs of each rail, and others after them."""
    return schedule.partition("+")[0]


Standings = Mapping[str, Mapping[str, Standing]]


@dataclass(frozen=True)
class Fleet:
    """intents and facts (of comparable()) by host, in the play's order. endpoints: host → rail → how it is reached and measured."""

    intents: Mapping[str, Intent]
    facts: Mapping[str, RunFacts]
    endpoints: Mapping[str, Mapping[str, Endpoint]]

    @classmethod
    def of(cls, known: Mapping[str, Known]) -> Fleet:
        """Return the fleet, without hosts that lack intent or facts."""
        there = {host: (each.intent, each.facts) for host, each in known.items() if each.intent and each.facts}
        intents = {host: intent for host, (intent, _facts) in there.items()}
        facts = {host: its for host, (_intent, its) in there.items()}
        return cls(intents, facts, {host: endpoints(*each) for host, each in there.items()})

    @property
    def hosts(self) -> list[str]:
        return list(self.intents)

    @cached_property
    def rails(self) -> list[str]:
        """The names of all rails, in the order of the plans."""
        return list(self._planning)

    @cached_property
    def _planning(self) -> Counter[str]:
        """Rail → the number of hosts that plan it."""
        return Counter(rail["name"] for intent in self.intents.values() for rail in intent["rails"])

    @cached_property
    def bases(self) -> dict[str, dict[str, Basis]]:
        """Host → rail → the current basis of its measurements."""
        return {host: bases(self.intents[host], self.facts[host]) for host in self.intents}

    def without(self, hosts: Iterable[str]) -> Fleet:
        """Return the rest of the fleet."""
        left_out = set(hosts)
        kept = [host for host in self.intents if host not in left_out]
        intents, facts = {host: self.intents[host] for host in kept}, {host: self.facts[host] for host in kept}
        return Fleet(intents, facts, {host: self.endpoints[host] for host in kept})

    def having(self, rail: str) -> list[str]:
        """Return the hosts with an endpoint on a rail."""
        return [host for host in self.intents if rail in self.endpoints[host]]

    def reached(self, host: str, rail: str) -> list[str]:
        """Return the hosts that an endpoint can reach on its rail, including itself: those with ports in its partition."""
        pkey = self.endpoints[host][rail].get("pkey")
        return [each for each in self.having(rail) if self.endpoints[each][rail].get("pkey") == pkey]

    def why_missing(self, host: str, rail: str) -> tuple[str, str] | None:
        """Return why an existing port cannot be measured, and the remedy: its partitions, or an unreachable address.

        None for other reasons.
        """
        found = next((each for each in resolve(self.intents[host]["rails"], self.facts[host]) if each.name == rail), None)
        if found is None or found.device is None or found.port is None:
            return None
        partitions = limited_only(self.facts[host].devices[found.device].ports[found.port], self.intents[host])
        if partitions:
            return partitions, f"Make {host} a full member of a partition in rdma_partitions, then run the link stage."
        if rail_ip(found.rail) is None and session_address(self.facts[host].session) is None:
            return NOWHERE, REACH
        return None

    def missing(self, host: str) -> list[str]:
        """Return the host's rails that other hosts also have, but on which it cannot be measured; none for a single host."""
        own = (rail["name"] for rail in self.intents[host]["rails"])
        return [rail for rail in own if self._planning[rail] > 1 and rail not in self.endpoints[host]]

    def standings(self, proofs: Proofs, now: float, max_age_hours: float) -> dict[str, dict[str, Standing]]:
        """Return the standing of each endpoint by the records. now: seconds since 1970."""

        def of_rail(host: str, rail: str) -> Standing:
            proof = proofs.get(host, {}).get(rail)
            is_partial = proof is not None and proof.met is not None and measured_pairs(self.intents[host]["pairs"]["schedule"]) == FULL
            required = [each for each in self.reached(host, rail) if each != host] if is_partial else []
            return standing(proof, self.bases[host][rail], now, max_age_hours, required)

        return {host: {rail: of_rail(host, rail) for rail in of} for host, of in self.endpoints.items()}


def measurable_hosts(folder: RunFolder, hosts: Iterable[str]) -> dict[str, Known]:
    """Return the known facts of hosts, after a trial with the code that plans and judges measurements."""
    return known_hosts(folder, hosts, lambda known: Fleet.of(known).bases)
