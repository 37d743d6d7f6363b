# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The partition part of the pairs gate: whether ports of different partitions can reach each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import ISOLATION, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.isolation_plan import Attempt
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.spines import graphs_of, place_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.matrix.matrix import Failure, Matrix
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Doubt
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import partition_words

declare(
    {
        "pair.isolation": Check(
            "pairs",
            "each rail whose InfiniBand ports are in several partitions: hosts of different partitions must not reach each other, neither "
            "with their own keys nor in a partition of which both are limited members",
            "perftest after the sweep, among hosts that it has found good (`--pkey_index`); ok only if no packet is answered",
            "check the ports' P_Key tables, the partition enforcement of the switches, and the files of the subnet manager",
            sources=(reads.result("attempts between partitions"),),
        ),
    }
)

STAGE, CHECK = "pairs", "pair.isolation"
FILE = f"{ISOLATION}.json"
EXPECTED = "ports of different partitions do not reach each other"
#: No port answers the packets, because the other port does not have this key. Other failures show nothing about partitions.
UNANSWERED = "retry_exceeded"
Outcome = float | Failure | None
"""The outcome of an attempt: Gb/s if it succeeded, the reason if it failed, None without a record."""


def check_isolation(folder: RunFolder, fleet: Fleet) -> Iterator[Doubt]:
    """Yield a finding `pair.isolation` for each rail with several partitions, if this run has measured it.

    below: the ports of attempts that were not rejected, and of untested partitions. around: all ports of the rail.
    """
    stored = folder.read_if_there(FILE)
    if stored is None:
        return
    if stored.get("why"):
        for rail in stored["rails"]:
            place = place_of(fleet, rail, graphs_of(folder))
            yield Doubt(Finding(STAGE, CHECK, place, rail, NOT_APPLICABLE, f"not measured: {stored['why']}", EXPECTED))
        return
    load = Evidence.of(folder, ISOLATION, fleet.intents, fleet.facts)
    graphs = graphs_of(folder)
    outcomes = {} if load is None else _outcomes(load.measured)
    tried = [Attempt(**each) for each in stored["attempts"]]
    for rail, unknown in stored["rails"].items():
        of_rail = [(each, outcomes.get((each.column, each.server, each.client))) for each in tried if each.rail == rail]
        finding = Finding(STAGE, CHECK, place_of(fleet, rail, graphs), rail, *_judged(of_rail, unknown))
        hosts = {host for each, outcome in of_rail if not _is_refused(outcome) for host in (each.server, each.client)}
        around = frozenset((host, rail) for host in fleet.having(rail))
        untried = {(host, rail) for host, rail in around if fleet.endpoints[host][rail].get("pkey") in unknown}
        yield Doubt(finding, frozenset((host, rail) for host in hosts) | untried, around)


def _is_refused(outcome: Outcome) -> bool:
    return isinstance(outcome, Failure) and outcome.kind == UNANSWERED


def _outcomes(matrix: Matrix) -> dict[tuple[str, str, str], Outcome]:
    """Return (column, server, client) → its outcome."""
    found: dict[tuple[str, str, str], Outcome] = {}
    for at, value in enumerate(matrix.value):
        server, client = (matrix.client[at], matrix.server[at]) if matrix.is_read else (matrix.server[at], matrix.client[at])
        where = matrix.rails[matrix.rail[at]], matrix.hosts[server], matrix.hosts[client]
        found[where] = matrix.failures.get(at) if math.isnan(value) else value
    return found


def _judged(tried: Sequence[tuple[Attempt, Outcome]], unknown: Sequence[int]) -> tuple[str, str, str, str]:
    """Return (status, observed, expected, remedy)."""
    through = [(each, outcome) for each, outcome in tried if isinstance(outcome, float)]
    if through:
        words = [f"{each.server} and {each.client} at {gbps:.3g} Gb/s ({_keys(each)})" for each, gbps in through]
        first = through[0][0]
        remedy = (
            f"1. Compare the P_Key tables of both ports: `smpquery pkeys`, or /sys/class/infiniband/*/ports/*/pkeys on {first.server} and "
            f"{first.client}. 2. Check `partition_enforcement` in the intent. 3. Run the link stage to compare the subnet manager's files."
        )
        return ERROR, f"{len(through)} of {len(tried)} attempts got through: {some(words)}", EXPECTED, remedy
    unclear = [(each, outcome) for each, outcome in tried if not _is_refused(outcome)]
    if unclear or unknown or not tried:
        remedy = "Run the pairs stage again with `-e rdma_measure=true`."
        return UNKNOWN, "; ".join(_unclear(unclear, unknown, len(tried))), EXPECTED, remedy
    hosts = {host for each, _outcome in tried for host in (each.server, each.client)}
    return OK, f"{len(tried)} attempts between {len(hosts)} hosts, none answered", EXPECTED, ""


def _keys(attempt: Attempt) -> str:
    return "each with its own key" if attempt.key is None else f"in {partition_words(attempt.key)}, as limited members"


def _unclear(tried: Sequence[tuple[Attempt, Outcome]], unknown: Sequence[int], count: int) -> Iterator[str]:
    if tried:
        attempt, outcome = tried[0]
        why = "left no record" if outcome is None else _why(outcome)
        yield f"{len(tried)} of {count} attempts are inconclusive, for example {attempt.server} and {attempt.client}: {why}"
    if unknown:
        yield f"no host is known to be healthy in {some([partition_words(key) for key in unknown])}"


def _why(outcome: Outcome) -> str:
    return f"{outcome.kind} {outcome.line}".strip() if isinstance(outcome, Failure) else ""


def record(rails: Mapping[str, Sequence[int]], tried: Sequence[Attempt], why: str = "") -> dict[str, Any]:
    """Return the content of FILE. rails: rail → its partitions without a host known to be good. why: why nothing is attempted."""
    return {"rails": {rail: list(keys) for rail, keys in rails.items()}, "attempts": [vars(each) for each in tried], "why": why}
