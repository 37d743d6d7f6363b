# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the runners' records to results and findings: a real sweep of the lab, and faults in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_checks import PairResult, check_pairs, collect, judge_at
from tests.unit.hosts import FIXTURES, lab_intent

HOSTS = ["node1", "node2", "node3", "node4"]
SETTINGS = lab_intent()["pairs"]
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
    findings = check_pairs(collect(plan, records), SETTINGS, HOSTS)
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
    findings = check_pairs(collect(plan, records), SETTINGS, HOSTS)
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
    findings = check_pairs(collect(plan, records), {**SETTINGS, "floor_gbps": 1.0}, HOSTS)
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
    findings = check_pairs(collect(plan, lost), SETTINGS, HOSTS)
    (finding,) = [item for item in findings["node4"] if item.status != "ok"]
    assert (finding.status, finding.observed) == ("unknown", "not measured: dead: node4: timed out")


def test_a_pair_without_any_record_is_unknown(plan: dict[str, Any], records: Records) -> None:
    kept = [record for record in records if record not in of_pair(records, "rail0", "node3", "node4")]
    assert {item[2] for item in offenders(plan, kept)} == {"unknown"}
    assert len(offenders(plan, kept)) == 2


def test_a_host_without_a_result_has_no_finding(plan: dict[str, Any]) -> None:
    """The gate says why; see test__pair_gate.py."""
    for rail in plan["rails"]:
        rail["endpoints"] = {}
    assert check_pairs(collect(plan, []), SETTINGS, HOSTS) == {host: [] for host in HOSTS}


def result(average_gbps: float | None, client: str = "node2", run: str | None = None, rail: str = "rail0") -> PairResult:
    return PairResult(rail, "node1", client, average_gbps, 65536, 200, 1.0, 2.0, None if average_gbps else "dead: node1", run)


def test_a_result_of_an_earlier_run_is_judged_with_the_rest_and_says_so() -> None:
    results = [result(1.0, "node2"), result(1.0, "node3"), result(0.1, "node4", run="R0")]
    (finding,) = check_pairs(results, SETTINGS, HOSTS)["node4"]
    assert (finding.status, finding.observed) == ("error", "0.1 Gb/s (median of rail0: 1), proven by run R0")
    assert finding.expected == "at least 0.25 Gb/s"


def test_rails_are_judged_apart() -> None:
    results = [result(10.0, "node2"), result(10.0, "node3"), result(0.1, "node2", rail="rail1")]
    assert {item.status for items in check_pairs(results, SETTINGS, HOSTS).values() for item in items} == {"ok"}


@pytest.mark.parametrize(("average_gbps", "status"), [(1.0, "ok"), (0.2, "error"), (None, "unknown")])
def test_one_result_is_judged_as_its_client_sees_it(average_gbps: float | None, status: str) -> None:
    another_rail = [result(100.0, client, rail="rail1") for client in ("node2", "node3", "node4")]
    results = [result(1.0, "node3"), result(1.0, "node4"), result(average_gbps, "node2"), *another_rail]
    finding = judge_at(results[2], results, SETTINGS)
    assert finding == check_pairs(results, SETTINGS, HOSTS)["node2"][0]
    assert (finding.host, finding.status) == ("node2", status)


def test_where_nothing_was_measured_nothing_is_good() -> None:
    findings = check_pairs([result(None)], {**SETTINGS, "floor_gbps": 0.0}, HOSTS)
    assert [finding.status for finding in findings["node1"] + findings["node2"]] == ["unknown", "unknown"]
