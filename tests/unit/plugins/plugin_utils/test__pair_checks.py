# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the runners' records to results and findings: a real sweep of the lab, and faults in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent import PAIRS
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_checks import check_pairs, collect
from tests.unit.hosts import FIXTURES

HOSTS = ["node1", "node2", "node3", "node4"]
SETTINGS = {name: key.default for name, key in PAIRS.items()}
NODE1_NODE4_GBPS = 0.039810
Records = list[dict[str, Any]]


@pytest.fixture
def plan() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FIXTURES / "pairs/plan.json").read_text())
    return loaded


@pytest.fixture
def records() -> Records:
    return [json.loads(line) for host in HOSTS for line in (FIXTURES / f"pairs/{host}.jsonl").read_text().splitlines()]


def of_pair(records: Records, rail: str, *hosts: str) -> Records:
    return [record for record in records if record["rail"] == rail and {record["server"], record["client"]} == set(hosts)]


def offenders(plan: dict[str, Any], records: Records) -> set[tuple[str, str, str]]:
    findings = check_pairs(plan, collect(plan, records), SETTINGS, HOSTS)
    return {(host, item.subject, item.status) for host, items in findings.items() for item in items if item.status != "ok"}


def test_every_pair_of_the_real_sweep_is_measured(plan: dict[str, Any], records: Records) -> None:
    results = collect(plan, records)
    assert len(results) == 12
    assert {(result.size_bytes, result.iterations) for result in results} == {(65536, 200)}
    (result,) = [item for item in results if (item.rail, item.server, item.client) == ("rail0", "node1", "node4")]
    # The row in node4.jsonl, as perftest printed it.
    assert (result.average_gbps, result.failure) == (NODE1_NODE4_GBPS, None)
    assert offenders(plan, records) == set()


def test_each_host_has_a_finding_for_each_of_its_pairs(plan: dict[str, Any], records: Records) -> None:
    findings = check_pairs(plan, collect(plan, records), SETTINGS, HOSTS)
    assert {host: len(items) for host, items in findings.items()} == dict.fromkeys(HOSTS, 6)


def test_a_slow_pair_stands_at_both_of_its_hosts(plan: dict[str, Any], records: Records) -> None:
    for record in of_pair(records, "rail1", "node2", "node3"):
        *_lines, row, end = record["stdout"].rstrip("\n").rsplit("\n", 2)
        columns = row.split()
        columns[3] = "0.001"
        record["stdout"] = "\n".join([*_lines, " ".join(columns), end]) + "\n"
    subject = "rail1 node3 to node2"
    assert offenders(plan, records) == {("node2", subject, "error"), ("node3", subject, "error")}


def test_below_the_floor_is_an_error_though_all_are_alike(plan: dict[str, Any], records: Records) -> None:
    findings = check_pairs(plan, collect(plan, records), {**SETTINGS, "floor_gbps": 1.0}, HOSTS)
    assert {item.status for items in findings.values() for item in items} == {"error"}


def test_an_average_of_zero_is_unknown_not_slow(plan: dict[str, Any], records: Records) -> None:
    for record in of_pair(records, "rail0", "node1", "node2"):
        *_lines, _row, end = record["stdout"].rstrip("\n").rsplit("\n", 2)
        record["stdout"] = "\n".join([*_lines, "65536 0 0.000000 0.000000 0.000000", end]) + "\n"
    subject = "rail0 node2 to node1"
    assert offenders(plan, records) == {("node1", subject, "unknown"), ("node2", subject, "unknown")}


def test_a_dead_partner_is_unknown_with_its_reason(plan: dict[str, Any], records: Records) -> None:
    lost = [record for record in records if record not in of_pair(records, "rail0", "node1", "node4")]
    record = of_pair(records, "rail0", "node1", "node4")[0]
    lost.append({**record, "exit_code": None, "stdout": "", "error": {"class": "dead", "detail": "node4: timed out"}})
    findings = check_pairs(plan, collect(plan, lost), SETTINGS, HOSTS)
    (finding,) = [item for item in findings["node4"] if item.status != "ok"]
    assert (finding.status, finding.observed) == ("unknown", "not measured: dead: node4: timed out")


def test_a_pair_without_any_record_is_unknown(plan: dict[str, Any], records: Records) -> None:
    kept = [record for record in records if record not in of_pair(records, "rail0", "node3", "node4")]
    assert {item[2] for item in offenders(plan, kept)} == {"unknown"}
    assert len(offenders(plan, kept)) == 2


def test_zero_pairs_are_an_unknown_for_every_host(plan: dict[str, Any]) -> None:
    for rail in plan["rails"]:
        rail["endpoints"] = {}
    assert offenders(plan, []) == {(host, "all rails", "unknown") for host in HOSTS}
