# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pairs of a run: which are proven, which are to be measured, and what the gate says of all of them."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._findings import NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_checks import CHECK, STAGE, PairResult, check_pairs, collect, judge_at
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_plan import make_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._proofs import FILE, SCHEMA, Standing, basis, key, renewed, standing
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder

Pair = tuple[str, str, str]


@dataclass(frozen=True)
class Fleet:
    """The hosts of a pairs stage: intents and digests by host, and the plan of all that could be measured between them."""

    intents: dict[str, Any]
    facts: dict[str, Any]
    plan: dict[str, Any]

    @classmethod
    def of(cls, known: Mapping[str, Mapping[str, Any]], sweep: str) -> Fleet:
        """known: host → {"intent", "facts"}; hosts without facts have no endpoint."""
        with_facts = {host: each for host, each in known.items() if each["intent"] and each["facts"]}
        intents = {host: each["intent"] for host, each in with_facts.items()}
        facts = {host: each["facts"] for host, each in with_facts.items()}
        plan = make_plan(sweep, intents, facts) if intents else {"hosts": [], "rails": []}
        return cls(intents, facts, plan)

    @property
    def pairs(self) -> list[Pair]:
        """Every (rail, host, host) that has two endpoints."""
        return [
            (rail["name"], *pair)
            for rail in self.plan["rails"]
            for pair in itertools.combinations([host for host in self.plan["hosts"] if host in rail["endpoints"]], 2)
        ]

    def missing(self, host: str) -> list[str]:
        """The host's own rails on which it has no endpoint; none for a host that is alone and has no pair anyway."""
        own = [rail["name"] for rail in self.intents[host]["rails"]] if len(self.plan["hosts"]) > 1 else []
        return [rail["name"] for rail in self.plan["rails"] if rail["name"] in own and host not in rail["endpoints"]]

    def standings(self, records: Mapping[str, Any], max_age_hours: float) -> dict[Pair, Standing]:
        """What the records say of each pair now."""
        bases = {host: basis(self.intents[host], self.facts[host]) for host in self.intents}
        now = time.time()
        return {pair: standing(records.get(key(pair[0], pair[1:])), bases, now, max_age_hours) for pair in self.pairs}


def read_records(folder: RunFolder) -> dict[str, Any]:
    """The recorded proofs of earlier runs in the same rdma_run_dir; those of another schema do not count."""
    data = folder.read_if_there(FILE) or {}
    return dict(data["pairs"]) if data.get("schema") == SCHEMA else {}


def unproven_hosts(standings: Mapping[Pair, Standing], *, anew: bool) -> list[str]:
    """The hosts with a pair that has no valid proof; all of them if everything is to be measured anew."""
    return list(dict.fromkeys(host for pair, each in standings.items() if anew or not each.valid for host in pair[1:]))


def measured_results(folder: RunFolder) -> tuple[list[PairResult], set[Pair]]:
    """What this run has measured, and the pairs that it set out to measure."""
    plan = folder.read_if_there("pairs/plan.json")
    if plan is None:
        return [], set()
    records = []
    for host in plan["hosts"]:
        file = folder.path / folder.host_file("pairs", host, ".jsonl")
        if file.exists():
            records += [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    results = collect(plan, records)
    return results, {_name((result.rail, result.server, result.client)) for result in results}


def judge(
    folder: RunFolder, fleet: Fleet, settings: Mapping[str, Any], max_age_hours: float, *, check_mode: bool
) -> dict[str, list[Finding]]:
    """The fleet's part of the pairs gate: this run's results and valid proofs in one pass, findings for every host.

    settings: the intent's rdma_pairs. The results go to pairs/results.json; what was measured well is recorded as proven.
    """
    records = read_records(folder)
    measured, attempted = measured_results(folder)
    standings = fleet.standings(records, max_age_hours)
    proven = [each.result for pair, each in standings.items() if each.valid and each.result and _name(pair) not in attempted]
    results = [*measured, *proven]
    folder.write_json("pairs/results.json", [result.to_dict() for result in results])
    findings = check_pairs(results, settings, fleet.plan["hosts"])
    blocked = folder.read_if_there("pairs/blocked.json") or {}
    for pair, each in standings.items():
        if not each.valid and _name(pair) not in attempted:
            for host in pair[1:]:
                findings[host].append(_unmeasured(host, pair, each, blocked, check_mode))
    for host in fleet.plan["hosts"]:
        findings[host] += [_no_endpoint(host, rail) for rail in fleet.missing(host)]
    if measured and not check_mode:
        good = [result for result in measured if judge_at(result, results, settings).status == OK]
        bases = {host: basis(fleet.intents[host], fleet.facts[host]) for host in fleet.intents}
        folder.write_json(FILE, {"schema": SCHEMA, "pairs": renewed(records, measured, good, bases, folder.path.name)})
    return {host: found or [_no_pair(host, fleet)] for host, found in findings.items()}


def _name(pair: Pair) -> Pair:
    """A pair whichever of the two was the client."""
    rail, one, other = pair
    return rail, min(one, other), max(one, other)


def _unmeasured(host: str, pair: Pair, standing_: Standing, blocked: Mapping[str, str], check_mode: bool) -> Finding:
    """A pair that has neither a valid proof nor a measurement of this run."""
    rail, one, other = pair
    subject, expected = f"{rail} {one} to {other}", "a measurement that still holds"
    why = standing_.changed or "its proof is older than rdma_proof_max_age_hours"
    if check_mode:
        return Finding(STAGE, CHECK, host, subject, NOT_APPLICABLE, f"{why}; nothing is measured in check mode", expected)
    load = [f"{name}: {blocked[name]}" for name in (one, other) if name in blocked]
    if load:
        status = WARNING if standing_.too_old else UNKNOWN
        remedy = "Run again when the hosts are idle, or allow load with -e rdma_load_allowed=true."
        return Finding(STAGE, CHECK, host, subject, status, f"{why}; not measured, at work are {', '.join(load)}", expected, remedy)
    remedy = "Measure with -e rdma_measure=true."
    return Finding(STAGE, CHECK, host, subject, UNKNOWN, f"{why}; not measured in this run", expected, remedy)


def _no_endpoint(host: str, rail: str) -> Finding:
    """A rail that other hosts have, and this one has planned but cannot be measured on."""
    remedy = f"Look at {host}'s findings of the driver and network stages."
    return Finding(STAGE, CHECK, host, rail, UNKNOWN, "no RDMA device, or no GID of its address", "an endpoint to measure", remedy)


def _no_pair(host: str, fleet: Fleet) -> Finding:
    """A host of which no pair could be planned."""
    others: Sequence[str] = [name for name in fleet.plan["hosts"] if name != host]
    if not others:
        why = "one host alone has no pair"
        return Finding(STAGE, CHECK, host, "all rails", NOT_APPLICABLE, why, "one pair at least")
    remedy = f"Look at {host}'s findings of the driver and network stages: a rail without GID has no pairs."
    return Finding(STAGE, CHECK, host, "all rails", UNKNOWN, "no pair of this host was planned", "one pair at least", remedy)
