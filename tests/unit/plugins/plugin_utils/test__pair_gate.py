# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pairs gate: proofs of earlier runs, measurements of this one, and what it says of pairs that have neither.

The measurements are a real sweep of the lab (tests/unit/fixtures/pairs), made to be this run's or an earlier one's.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils import _pair_gate
from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_gate import Fleet, judge, measured_results, read_records, unproven_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder
from tests.unit.hosts import FIXTURES, lab_facts, lab_intent

HOSTS = ["node1", "node2", "node3", "node4"]
PAIRS = {"iterations": 200, "qp_timeout": 20, "floor_gbps": 0.005, "software_fail_below": 0.2}
SETTINGS = lab_intent(pairs=PAIRS)["pairs"]
#: The sweep began at 1795179125 seconds since 1970.
SWEPT = 1_795_179_000.0
HOUR = 3600.0
Known = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Hours after the sweep."""
    clock = SimpleNamespace(hours=1.0)
    monkeypatch.setattr(_pair_gate, "time", SimpleNamespace(time=lambda: SWEPT + clock.hours * HOUR))
    return clock


@pytest.fixture
def first(tmp_path: Path) -> RunFolder:
    return run_folder(tmp_path, "R1")


@pytest.fixture
def second(first: RunFolder) -> RunFolder:
    """A run after the first, which has measured and recorded every pair."""
    swept(first)
    assert statuses(judged(first)) == {"ok"}
    return run_folder(first.path.parent, "R2")


def run_folder(base: Path, name: str) -> RunFolder:
    (base / name).mkdir()
    return RunFolder(base / name)


def known(hosts: Iterable[str] = (*HOSTS,)) -> Known:
    return {host: {"intent": lab_intent(int(host[-1]), pairs=PAIRS), "facts": lab_facts(int(host[-1]))} for host in hosts}


def fleet(change: Callable[[Known], None] = lambda each: None, hosts: Iterable[str] = (*HOSTS,)) -> Fleet:
    each = known(hosts)
    change(each)
    return Fleet.of(each, "S1")


def swept(folder: RunFolder, hosts: Iterable[str] = (*HOSTS,), change: Callable[[dict[str, Any]], None] = lambda record: None) -> None:
    """Let a run have measured these hosts; change: what else the records shall say."""
    plan = json.loads((FIXTURES / "pairs/plan.json").read_text())
    plan["hosts"] = list(hosts)
    folder.write_json("pairs/plan.json", plan)
    for host in plan["hosts"]:
        records = [json.loads(line) for line in (FIXTURES / f"pairs/{host}.jsonl").read_text().splitlines()]
        mine = [record for record in records if {record["server"], record["client"]} <= set(hosts)]
        for record in mine:
            change(record)
        folder.write(f"pairs/{host}.jsonl", "".join(json.dumps(record) + "\n" for record in mine))


def failed(rail: str, *pair: str) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        if record["rail"] == rail and {record["server"], record["client"]} == set(pair):
            record.update(exit_code=None, stdout="", error={"class": "dead", "detail": f"{pair[1]}: timed out"})

    return change


def slow(rail: str, *pair: str) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        if record["rail"] == rail and {record["server"], record["client"]} == set(pair):
            *lines, row, end = record["stdout"].rstrip("\n").rsplit("\n", 2)
            columns = row.split()
            columns[3] = "0.001"
            record["stdout"] = "\n".join([*lines, " ".join(columns), end]) + "\n"

    return change


def judged(folder: RunFolder, of: Fleet | None = None, *, max_age_hours: float = 168, check_mode: bool = False) -> dict[str, list[Finding]]:
    return judge(folder, of or fleet(), SETTINGS, max_age_hours, check_mode=check_mode)


def statuses(findings: dict[str, list[Finding]]) -> set[str]:
    return {each.status for found in findings.values() for each in found}


def offences(findings: dict[str, list[Finding]]) -> set[tuple[str, str, str, str]]:
    return {(each.host, each.subject, each.status, each.observed) for found in findings.values() for each in found if each.status != "ok"}


def standings(of: Fleet, folder: RunFolder) -> dict[Any, Any]:
    return of.standings(read_records(folder), 168)


# This run measures


def test_a_good_sweep_is_recorded_as_proven(first: RunFolder) -> None:
    swept(first)
    findings = judged(first)
    assert {host: len(found) for host, found in findings.items()} == dict.fromkeys(HOSTS, 6)
    assert statuses(findings) == {"ok"}
    data = json.loads((first.path.parent / "proofs/pairs.json").read_text())
    assert (data["schema"], len(data["pairs"])) == (1, 12)
    proof = data["pairs"]["rail0 node1 node4"]
    assert (proof["result"]["average_gbps"], proof["result"]["run"], sorted(proof["bases"])) == (0.03981, "R1", ["node1", "node4"])
    results = first.read_json("pairs/results.json")
    assert len(results) == 12
    assert {each["run"] for each in results} == {None}


def test_a_slow_pair_is_an_error_and_its_earlier_proof_is_gone(second: RunFolder) -> None:
    swept(second, change=slow("rail0", "node1", "node2"))
    found = judged(second)
    assert {(host, subject, status) for host, subject, status, _seen in offences(found)} == {
        (host, "rail0 node2 to node1", "error") for host in ("node1", "node2")
    }
    assert "rail0 node1 node2" not in read_records(second)
    assert len(read_records(second)) == 11
    third = run_folder(second.path.parent, "R3")
    assert {offence[1:3] for offence in offences(judged(third))} == {("rail0 node1 to node2", "unknown")}


def test_a_measurement_that_failed_does_not_fall_back_on_its_proof(second: RunFolder) -> None:
    swept(second, change=failed("rail0", "node1", "node2"))
    (one, other) = sorted(offences(judged(second)))
    assert one[2:] == other[2:] == ("unknown", "not measured: dead: node2: timed out")
    assert "rail0 node1 node2" not in read_records(second)
    assert {each["run"] for each in second.read_json("pairs/results.json")} == {None}


def test_what_this_run_measured_wins_over_proofs(second: RunFolder) -> None:
    swept(second, hosts=["node1", "node2"])
    findings = judged(second)
    assert statuses(findings) == {"ok"}
    runs = {(each["rail"], *sorted((each["server"], each["client"]))): each["run"] for each in second.read_json("pairs/results.json")}
    assert len(runs) == len(second.read_json("pairs/results.json")) == 12
    assert {pair for pair, run in runs.items() if run is None} == {("rail0", "node1", "node2"), ("rail1", "node1", "node2")}
    assert {name: proof["result"]["run"] for name, proof in read_records(second).items() if proof["result"]["run"] != "R1"} == {
        "rail0 node1 node2": "R2",
        "rail1 node1 node2": "R2",
    }


def test_a_host_that_left_no_record_is_not_proven_by_its_partners(first: RunFolder) -> None:
    swept(first)
    shutil.rmtree(first.path / "pairs")
    swept(first, change=failed("rail1", "node3", "node4"))
    (first.path / "pairs/node3.jsonl").unlink()
    (first.path / "pairs/node4.jsonl").unlink()
    results, attempted = measured_results(first)
    assert len(attempted) == 12
    assert [result.failure for result in results if {result.server, result.client} == {"node3", "node4"}] == [
        "neither host has a record of it"
    ] * 2
    assert "rail0 node3 node4" not in (judged(first) and read_records(first))


def test_a_run_that_planned_nothing_attempted_nothing(first: RunFolder) -> None:
    assert measured_results(first) == ([], set())


# Nothing is measured


def test_proofs_let_every_host_pass(second: RunFolder) -> None:
    findings = judged(second)
    assert statuses(findings) == {"ok"}
    assert {each.observed.rpartition(", ")[2] for found in findings.values() for each in found} == {"proven by run R1"}
    assert {each["run"] for each in second.read_json("pairs/results.json")} == {"R1"}


def test_looking_at_proofs_changes_none(second: RunFolder) -> None:
    before = (second.path.parent / "proofs/pairs.json").read_bytes()
    judged(second, fleet(lambda each: each["node1"]["facts"]["stack"].update(kernel="6.1.0-57-amd64")))
    assert (second.path.parent / "proofs/pairs.json").read_bytes() == before


def test_what_was_never_measured_is_unknown_at_both_hosts(first: RunFolder) -> None:
    findings = judged(first)
    assert {host: len(found) for host, found in findings.items()} == dict.fromkeys(HOSTS, 6)
    assert findings["node1"][0] == Finding(
        "pairs", "pair.bandwidth", "node1", "rail0 node1 to node2", "unknown", "never measured; not measured in this run",
        "a measurement that still holds", "Measure with -e rdma_measure=true.",
    )  # fmt: skip
    assert statuses(findings) == {"unknown"}


def test_an_old_proof_does_not_hold(second: RunFolder, clock: SimpleNamespace) -> None:
    clock.hours = 167
    assert statuses(judged(second)) == {"ok"}
    clock.hours = 169
    findings = judged(second)
    assert statuses(findings) == {"unknown"}
    assert findings["node1"][0].observed == "its proof is older than rdma_proof_max_age_hours; not measured in this run"
    assert statuses(judged(second, max_age_hours=200)) == {"ok"}


def module(known: Known) -> None:
    known["node2"]["facts"]["stack"]["modules"]["rdma_rxe"]["version"] = "2"


def firmware(known: Known) -> None:
    known["node2"]["facts"]["devices"]["rxe_rail0"]["firmware"] = "28.43.2566"


def port(known: Known) -> None:
    known["node2"]["facts"]["devices"]["rxe_rail0"]["ports"]["1"]["rate_gbps"] = 100.0


def wish(known: Known) -> None:
    known["node2"]["intent"]["rails"][0]["mtu_bytes"] = 4200


@pytest.mark.parametrize(("change", "part"), [(module, "driver"), (firmware, "firmware"), (port, "ports"), (wish, "intent")])
def test_a_change_on_one_host_ends_the_proofs_of_its_pairs_alone(second: RunFolder, change: Callable[[Known], None], part: str) -> None:
    findings = judged(second, fleet(change))
    assert {each.status for each in findings["node2"]} == {"unknown"}
    assert {each.observed for each in findings["node2"]} == {f"changed since it was measured: {part} of node2; not measured in this run"}
    # Each of the others has a pair with it on two rails.
    assert [sum(each.status == "unknown" for each in findings[host]) for host in ("node1", "node3", "node4")] == [2, 2, 2]


def test_records_of_another_schema_do_not_count(second: RunFolder) -> None:
    file = second.path.parent / "proofs/pairs.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema": 0}))
    assert read_records(second) == {}
    assert statuses(judged(second)) == {"unknown"}


# Hosts at work

BUSY = "GPU process 4711 (python3)"


def blocked(folder: RunFolder, *hosts: str) -> RunFolder:
    folder.write_json("pairs/blocked.json", dict.fromkeys(hosts, BUSY))
    return folder


def test_a_busy_host_whose_proof_is_only_too_old_is_a_warning(second: RunFolder, clock: SimpleNamespace) -> None:
    clock.hours = 169
    found = next(each for each in judged(blocked(second, "node1"))["node2"] if "node1" in each.subject)
    assert found == Finding(
        "pairs", "pair.bandwidth", "node2", "rail0 node1 to node2", "warning",
        f"its proof is older than rdma_proof_max_age_hours; not measured, at work are node1: {BUSY}", "a measurement that still holds",
        "Run again when the hosts are idle, or allow load with -e rdma_load_allowed=true.",
    )  # fmt: skip


def test_a_busy_host_that_has_changed_is_unknown(second: RunFolder) -> None:
    findings = judged(blocked(second, "node1", "node2"), fleet(module))
    found = next(each for each in findings["node2"] if "node1" in each.subject)
    assert found.status == "unknown"
    assert found.observed.endswith(f"driver of node2; not measured, at work are node1: {BUSY}, node2: {BUSY}")


def test_a_busy_host_that_was_never_measured_is_unknown(first: RunFolder) -> None:
    findings = judged(blocked(first, "node1"))
    assert {each.status for each in findings["node1"]} == {"unknown"}
    assert findings["node1"][0].observed == f"never measured; not measured, at work are node1: {BUSY}"


def test_a_busy_host_with_valid_proofs_passes(second: RunFolder) -> None:
    assert statuses(judged(blocked(second, *HOSTS))) == {"ok"}


# Check mode


def test_in_check_mode_nothing_is_measured_and_that_is_no_offence(first: RunFolder) -> None:
    findings = judged(blocked(first, "node1"), check_mode=True)
    assert statuses(findings) == {"not_applicable"}
    assert findings["node1"][0].observed == "never measured; nothing is measured in check mode"
    assert read_records(first) == {}


def test_in_check_mode_proofs_still_hold(second: RunFolder) -> None:
    assert statuses(judged(second, check_mode=True)) == {"ok"}


def test_in_check_mode_nothing_is_recorded(first: RunFolder) -> None:
    swept(first)
    judged(first, check_mode=True)
    assert read_records(first) == {}


# Hosts without pairs


def test_one_host_alone_has_no_pair(first: RunFolder) -> None:
    assert judged(first, fleet(hosts=["node1"])) == {
        "node1": [
            Finding("pairs", "pair.bandwidth", "node1", "all rails", "not_applicable", "one host alone has no pair", "one pair at least")
        ]
    }


def no_gids(known: Known) -> None:
    for device in known["node3"]["facts"]["devices"].values():
        device["ports"]["1"]["rocev2"] = {}


def test_a_host_without_endpoint_is_unknown_and_the_others_are_judged(second: RunFolder) -> None:
    findings = judged(second, fleet(no_gids))
    seen = [(found.status, found.subject, found.observed) for found in findings["node3"]]
    assert seen == [("unknown", rail, "no RDMA device, or no GID of its address") for rail in ("rail0", "rail1")]
    assert findings["node3"][0].remedy == "Look at node3's findings of the driver and network stages."
    assert {host: len(each) for host, each in findings.items()} == {"node1": 4, "node2": 4, "node3": 2, "node4": 4}


def test_two_hosts_without_endpoints_are_not_excused_as_one_alone(first: RunFolder) -> None:
    def change(known: Known) -> None:
        for each in known.values():
            each["facts"]["devices"].clear()

    assert {each[2] for each in offences(judged(first, fleet(change, HOSTS[:2])))} == {"unknown"}


def test_a_rail_that_one_host_lacks_is_no_pass(second: RunFolder) -> None:
    """Every pair on every rail: where a planned rail has no endpoint, its pairs are not proven."""

    def change(known: Known) -> None:
        known["node3"]["facts"]["devices"]["rxe_rail1"]["ports"]["1"]["rocev2"] = {}

    assert "unknown" in {each.status for each in judged(second, fleet(change))["node3"]}


@pytest.mark.parametrize("part", ["intent", "facts"])
def test_a_host_of_which_nothing_is_known_has_no_endpoint_and_no_finding(second: RunFolder, part: str) -> None:
    of = fleet(lambda each: each["node4"].update({part: None}))
    assert (list(of.intents), of.plan["hosts"]) == (HOSTS[:3], HOSTS[:3])
    assert list(judged(second, of)) == HOSTS[:3]


def test_a_fleet_of_nobody() -> None:
    assert (Fleet.of({}, "S1").pairs, Fleet.of({}, "S1").plan["hosts"]) == ([], [])


def test_the_pairs_of_a_fleet_are_all_of_two_endpoints() -> None:
    pairs = fleet(no_gids).pairs
    assert len(fleet().pairs) == 12
    assert pairs[:3] == [("rail0", "node1", "node2"), ("rail0", "node1", "node4"), ("rail0", "node2", "node4")]
    assert len(pairs) == 6


# Who is to be measured


def test_hosts_with_valid_proofs_are_not_measured_unless_anew(second: RunFolder) -> None:
    found = standings(fleet(), second)
    assert unproven_hosts(found, anew=False) == []
    assert unproven_hosts(found, anew=True) == HOSTS


def test_the_hosts_of_an_unproven_pair_are_measured(second: RunFolder) -> None:
    file = second.path.parent / "proofs/pairs.json"
    data = json.loads(file.read_text())
    del data["pairs"]["rail1 node2 node4"]
    file.write_text(json.dumps(data))
    assert unproven_hosts(standings(fleet(), second), anew=False) == ["node2", "node4"]


def test_a_changed_host_is_measured_with_all_its_partners(second: RunFolder) -> None:
    assert sorted(unproven_hosts(standings(fleet(module), second), anew=False)) == HOSTS


def test_without_records_everybody_is_measured(first: RunFolder) -> None:
    assert unproven_hosts(standings(fleet(), first), anew=False) == HOSTS


def test_a_host_without_endpoint_is_not_measured(first: RunFolder) -> None:
    assert unproven_hosts(standings(fleet(no_gids), first), anew=True) == ["node1", "node2", "node4"]
