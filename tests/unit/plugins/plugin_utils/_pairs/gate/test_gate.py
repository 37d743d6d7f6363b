# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pairs gate: what this run measured, what was measured again, proofs of earlier runs, and what has neither.

The results are written by these tests, in the form in which hosts' results come; hosts are lab machines, or such with cards of 100 Gb/s.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs as pairs_proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import NOWHERE, REACH, Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gate.gate import PairGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.loads.qos_plan import Funnel, load_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan import plan as plan_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.choice import Choice, choose
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Doubt, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import planned_meetings
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.hosts import hard, lab_facts, lab_intent
from tests.unit.builders.known import known_of

HOSTS = ["node1", "node2", "node3", "node4"]
PAIRS = {"iterations": 200, "floor_gbps": 0.005, "software_fail_below": 0.4, "latency_command": "none"}
NOW = 1_795_179_000.0
HOUR = 3600.0
FULL = {"kind": "full"}
AGAINST = {"kind": "against", "new": 1}
Known = dict[str, dict[str, Any]]
#: (rail, server, client) → what was measured, None if it failed.
Measured = Callable[[str, str, str], float | None]


@pytest.fixture
def first(tmp_path: Path) -> RunFolder:
    return run_folder(tmp_path, "R1")


@pytest.fixture
def second(first: RunFolder) -> RunFolder:
    """A run after the first, which has measured and recorded every port."""
    swept(first, fleet(), steady)
    assert statuses(judged(first)) == {"ok", "not_applicable"}
    return run_folder(first.path.parent, "R2")


def run_folder(base: Path, name: str) -> RunFolder:
    (base / name).mkdir()
    return RunFolder(base / name)


def known(hosts: Iterable[str] = (*HOSTS,), **pairs: Any) -> Known:
    settings = {**PAIRS, **pairs}
    return {host: {"intent": lab_intent(int(host[-1]), pairs=settings), "facts": comparable(lab_facts(int(host[-1])))} for host in hosts}


def fleet(change: Callable[[Known], None] = lambda each: None, hosts: Iterable[str] = (*HOSTS,), **pairs: Any) -> Fleet:
    each = known(hosts, **pairs)
    change(each)
    return Fleet.of(known_of(each))


def steady(rail: str, server: str, client: str) -> float:
    return 0.1


def of_cards(rail: str, server: str, client: str) -> float:
    return 97.5


def slow(*places: tuple[str, str], by: float = 0.1, otherwise: Measured = steady) -> Measured:
    """Every pair of these (rail, host) reaches a fraction."""

    def measured(rail: str, server: str, client: str) -> float | None:
        value = otherwise(rail, server, client)
        return value if value is None or not {(rail, server), (rail, client)} & set(places) else value * by

    return measured


def dead(host: str) -> Measured:
    return lambda rail, server, client: None if host in (server, client) else 0.1


def swept(
    folder: RunFolder, of: Fleet, measured: Measured, *, schedule: Any = None, name: str = "pairs", usec: float | None = None
) -> None:
    """Let a run have measured; usec: its latency, where the intent asks for it."""
    hosts, rails = of.hosts, of.rails
    tests = plan_plan.tests_of(of.intents[hosts[0]])
    plan = plan_plan.make_plan("S1", hosts=hosts, rails=rails, of=of.endpoints, tests=tests, schedule=schedule or FULL)
    folder.write_json(f"{name}/plan.json", plan)
    lines: dict[str, list[list[Any]]] = {host: [] for host in hosts}
    for rail, number, server, client in planned_meetings(plan):
        value = measured(rails[rail], hosts[server], hosts[client])
        why = [] if value is not None else ["dead", f"{hosts[server]}: timed out"]
        lines[hosts[client]].append([rail, number, server, client, 0, 0, value, 1.2, 0.1, *why])
        if len(tests) > 1:
            lines[hosts[client]].append([rail, number, server, client, 1, 0, None if why else usec, 1.2, 0.1, *why])
    for host, of_host in lines.items():
        folder.write(folder.host_file(name, host, ".jsonl"), "".join(json.dumps(line) + "\n" for line in of_host))
        quiet = {rail: {"seconds": 40.0, "risen": {}, "netdev": rail, "priorities": {}, "cnps": {}} for rail in of.endpoints[host]}
        folder.write_json(folder.host_file(name, host, ".counters.json"), quiet)


def judged(
    folder: RunFolder,
    of: Fleet | None = None,
    *,
    hours: float = 0.0,
    check_mode: bool = False,
    planned: int | None = None,
    doubts: Sequence[Doubt] = (),
) -> dict[str, list[Finding]]:
    """hours: after the first run; planned: hosts of the play."""
    of = of or fleet()
    proofs = pairs_proofs.read(folder.read_if_there(pairs_proofs.FILE))
    settings = next(iter(of.intents.values()))["pairs"] if of.intents else {}
    return PairGate(folder, of, proofs, settings, 168, check_mode, NOW + hours * HOUR, planned or len(of.hosts), doubts).judge()


def statuses(findings: dict[str, list[Finding]]) -> set[str]:
    return {each.status for found in findings.values() for each in found}


def offences(findings: dict[str, list[Finding]]) -> set[tuple[str, str, str, str]]:
    """(host, subject, check, status) of what is not as it should be."""
    calm = ("ok", "not_applicable")
    return {(each.host, each.subject, each.check, each.status) for of in findings.values() for each in of if each.status not in calm}


def of(findings: dict[str, list[Finding]], host: str, subject: str, check: str = "pair.bandwidth") -> Finding:
    return next(each for each in findings[host] if (each.subject, each.check) == (subject, check))


def proven(folder: RunFolder) -> set[tuple[str, str]]:
    return {(host, rail) for host, rails in pairs_proofs.read(folder.read_if_there(pairs_proofs.FILE)).items() for rail in rails}


EVERYWHERE = {(host, rail) for host in HOSTS for rail in ("rail0", "rail1")}


# This run measures


def test_a_good_sweep_proves_every_port(first: RunFolder) -> None:
    swept(first, fleet(), steady)
    findings = judged(first)
    assert offences(findings) == set()
    assert of(findings, "node3", "rail1").observed == "0.1 Gb/s with 3 partners"
    assert proven(first) == EVERYWHERE
    summary = first.read_json("pairs/summary.json")
    assert summary["verdicts"] == []
    assert summary["rails"][0] == {
        "rail": "rail0", "ports": 4, "proven": 0, "planned": 6, "measured": 6, "median_gbps": 0.1, "lowest_gbps": 0.1, "highest_gbps": 0.1,
        "median_usec": None,
    }  # fmt: skip


def test_a_slow_nic_is_named_and_nobody_else_and_the_others_are_proven(first: RunFolder) -> None:
    swept(first, fleet(), slow(("rail0", "node2")))
    findings = judged(first)
    assert offences(findings) == {("node2", "rail0", "pair.bandwidth", "error")}
    found = of(findings, "node2", "rail0")
    assert found.observed.startswith("node2, rail0: 3 of 3 partners at 0.01 of 0.1 Gb/s")
    assert found.remedy
    assert of(findings, "node1", "rail0").observed == "0.1 Gb/s with 2 partners"
    assert proven(first) == EVERYWHERE - {("node2", "rail0")}
    (verdict,) = first.read_json("pairs/summary.json")["verdicts"]
    assert verdict.startswith("node2, rail0: ")
    assert "confidence 0.80" in verdict


def test_a_host_that_died_is_named_alone_and_is_not_well(first: RunFolder) -> None:
    swept(first, fleet(), dead("node3"))
    findings = judged(first)
    assert offences(findings) == {("node3", rail, "pair.bandwidth", "unknown") for rail in ("rail0", "rail1")}
    assert "dead" in of(findings, "node3", "rail0").observed
    assert proven(first) == {place for place in EVERYWHERE if place[0] != "node3"}


def test_of_two_hosts_both_are_in_question(first: RunFolder) -> None:
    pair = fleet(hosts=HOSTS[:2])
    swept(first, pair, slow(("rail0", "node2")))
    found = judged(first, pair)
    assert {each[:2] for each in offences(found)} == {("node1", "rail0"), ("node2", "rail0")}


def test_an_earlier_proof_is_gone_when_the_port_is_found_slow(second: RunFolder) -> None:
    swept(second, fleet(), slow(("rail0", "node2")))
    judged(second)
    third = run_folder(second.path.parent, "R3")
    assert offences(judged(third)) == {("node2", "rail0", "pair.bandwidth", "unknown")}


def test_hosts_that_left_no_record_do_not_pass_by_their_proofs(second: RunFolder) -> None:
    swept(second, fleet(), steady)
    for host in HOSTS:
        (second.path / f"pairs/{host}.jsonl").unlink()
    findings = judged(second)
    assert offences(findings) == {(host, rail, "pair.bandwidth", "unknown") for host, rail in EVERYWHERE}
    assert of(findings, "node1", "rail0").observed.startswith("nothing measured: 0 measurements failed, ")


def test_results_that_were_lost_count_against_the_client_that_owes_them(first: RunFolder) -> None:
    swept(first, fleet(), steady)
    (first.path / "pairs/node4.jsonl").write_text("")
    found = judged(first)
    assert {each[0] for each in offences(found)} == {"node4"}
    assert "planned measurements left no record" in of(found, "node4", "rail0").observed
    assert proven(first) == {place for place in EVERYWHERE if place[0] != "node4"}


def test_a_host_that_died_in_mid_sweep_takes_its_records_along_and_nobody_else_is_to_blame(first: RunFolder) -> None:
    swept(first, fleet(), lambda rail, server, client: None if "node3" in (server, client) and "node4" in (server, client) else 0.1)
    (first.path / "pairs/node3.jsonl").write_text("")
    assert {each[0] for each in offences(judged(first))} <= {"node3", "node4"}


def test_what_a_stopped_sweep_did_not_come_to_keeps_its_proof(second: RunFolder) -> None:
    swept(second, fleet(), steady)
    for host in HOSTS:
        (second.path / f"pairs/{host}.jsonl").write_text("")
    assert {each[3] for each in offences(judged(second))} == {"unknown"}
    assert proven(second) == EVERYWHERE


# What stops the gate on a plane

RAIL0 = frozenset((host, "rail0") for host in HOSTS)
STOPS = Finding("pairs", "fabric.under_load", "plane default", "leaf1", "error", "no link", "the fabric before the load", "Look.")


def doubt(*below: Port, around: Iterable[Port] = RAIL0) -> Doubt:
    return Doubt(STOPS, frozenset(below), frozenset(around))


@pytest.mark.parametrize(
    ("doubts", "lost"),
    [
        ([], set()),
        ([doubt()], RAIL0),
        ([doubt(("node2", "rail0"))], {("node2", "rail0")}),
        ([doubt(("node9", "rail0"))], RAIL0),
        ([doubt(("node1", "rail0")), doubt(("node2", "rail1"))], {("node1", "rail0"), ("node2", "rail1")}),
        ([doubt(around=[("node9", "rail0")])], set()),
    ],
    ids=["none", "a rail", "a port", "nobody of the run below", "two", "another fleet"],
)
def test_what_a_plane_puts_in_doubt_is_not_proven_and_no_fault_of_its_hosts(
    first: RunFolder, doubts: Sequence[Doubt], lost: set[Port]
) -> None:
    swept(first, fleet(), steady)
    assert offences(judged(first, doubts=doubts)) == set()
    assert proven(first) == EVERYWHERE - lost
    following = run_folder(first.path.parent, "R2")
    assert offences(judged(following)) == {(*port, "pair.bandwidth", "unknown") for port in lost}
    swept(following, fleet(), steady)
    judged(following)
    assert proven(following) == EVERYWHERE


def test_a_proof_of_an_earlier_run_is_gone_with_the_doubt(second: RunFolder) -> None:
    swept(second, fleet(), steady)
    judged(second, doubts=[doubt(("node3", "rail0"))])
    assert proven(second) == EVERYWHERE - {("node3", "rail0")}


def test_partners_that_only_help_keep_their_proofs(second: RunFolder) -> None:
    swept(second, fleet(), steady, schedule=AGAINST)
    judged(second, doubts=[doubt(("node2", "rail0"))])
    assert proven(second) == EVERYWHERE - {("node1", "rail0")}


def test_in_check_mode_nobody_loses_a_proof(second: RunFolder) -> None:
    swept(second, fleet(), steady)
    judged(second, check_mode=True, doubts=[doubt()])
    assert proven(second) == EVERYWHERE


# New hosts against proven ones


@pytest.mark.parametrize("cards", [False, True], ids=["software", "cards"])
@pytest.mark.parametrize("by", [0.1, 0.6, None], ids=["a tenth", "at 0.6", "dead"])
def test_one_bad_new_host_is_named_and_its_proven_partners_stay_so(tmp_path: Path, cards: bool, by: float | None) -> None:
    machines = fleet(hard) if cards else fleet(software_fail_below=0.7)
    otherwise = of_cards if cards else steady
    first = run_folder(tmp_path, "R1")
    swept(first, machines, otherwise)
    judged(first, machines)
    again = run_folder(tmp_path, "R2")
    places = (("rail0", "node1"), ("rail1", "node1"))
    swept(again, machines, dead("node1") if by is None else slow(*places, by=by, otherwise=otherwise), schedule=AGAINST)
    findings = judged(again, machines)
    assert {each[0] for each in offences(findings)} == {"node1"}, offences(findings)
    assert proven(again) == {place for place in EVERYWHERE if place[0] != "node1"}
    assert again.read_json("pairs/summary.json")["verdicts"]


def test_a_good_new_host_is_proven(second: RunFolder) -> None:
    changed = fleet(lambda each: each["node1"]["facts"]["stack"]["modules"]["rdma_rxe"].update(version="2"))
    swept(second, changed, steady, schedule=AGAINST)
    findings = judged(second, changed)
    assert offences(findings) == set()
    assert of(findings, "node1", "rail0").observed == "0.1 Gb/s with 3 partners"
    assert of(findings, "node2", "rail0").observed.endswith("proven by run R1")
    assert proven(second) == EVERYWHERE


# Suspects that were measured again

AGAIN = {"kind": "meetings", "rails": [[[[1, 0]], [[0, 1]], [[1, 2]], [[2, 1]]], [[[1, 0]]]]}


def test_a_suspect_that_is_slow_again_is_confirmed(first: RunFolder) -> None:
    swept(first, fleet(), slow(("rail0", "node2")))
    swept(first, fleet(), slow(("rail0", "node2")), schedule=AGAIN, name="pairs/again")
    found = of(judged(first), "node2", "rail0")
    assert found.status == "error"
    assert "; again: 0.01 Gb/s, 0.01 Gb/s, 0.01 Gb/s, 0.01 Gb/s" in found.observed
    assert first.read_json("pairs/summary.json")["verdicts"][0].endswith("confirmed)")


def test_a_suspect_that_is_well_again_is_cleared_without_a_warning_and_not_proven(first: RunFolder) -> None:
    swept(first, fleet(), slow(("rail0", "node2")))
    swept(first, fleet(), steady, schedule=AGAIN, name="pairs/again")
    findings = judged(first)
    assert offences(findings) == set()
    assert of(findings, "node2", "rail0").remedy == ""
    assert ("node2", "rail0") not in proven(first)
    summary = first.read_json("pairs/summary.json")
    assert summary["verdicts"] == []
    (cleared,) = summary["cleared"]
    assert cleared.startswith("node2, rail0: 3 of 3 partners at 0.01 of 0.1 Gb/s")
    assert cleared.endswith("cleared)")


@pytest.mark.parametrize("again", [0.3, 0.5, 0.78], ids=["as bad", "better", "below the bar"])
def test_a_suspect_is_cleared_only_above_the_bar(first: RunFolder, again: float) -> None:
    cards = fleet(hard)
    swept(first, cards, slow(("rail0", "node2"), by=0.3, otherwise=of_cards))
    swept(first, cards, slow(("rail0", "node2"), by=again, otherwise=of_cards), schedule=AGAIN, name="pairs/again")
    assert of(judged(first, cards), "node2", "rail0").status == "error"


def test_one_bad_direction_is_not_cleared_by_the_other_one(first: RunFolder) -> None:
    cards = fleet(hard)
    swept(first, cards, slow(("rail0", "node2"), by=0.3, otherwise=of_cards))
    swept(first, cards, lambda rail, server, client: 30.0 if client == "node2" else 97.5, schedule=AGAIN, name="pairs/again")
    assert of(judged(first, cards), "node2", "rail0").status == "error"


def test_a_suspect_that_fails_again_is_confirmed(first: RunFolder) -> None:
    swept(first, fleet(), dead("node2"))
    swept(first, fleet(), dead("node2"), schedule=AGAIN, name="pairs/again")
    found = of(judged(first), "node2", "rail0")
    assert (found.status, "again: failed" in found.observed) == ("unknown", True)


EACH_BOTH_WAYS = {"kind": "meetings", "rails": 2 * [[[[1, 0], [3, 2]], [[0, 1], [2, 3]], [[1, 2], [3, 0]], [[2, 1], [0, 3]]]]}


def test_a_host_that_stood_still_and_answers_again_is_cleared_however_slow_the_fleet_is_then(first: RunFolder) -> None:
    """Fewer pairs at once are faster, more load beside them makes them slower: good pairs of the same round are what counts."""
    swept(first, fleet(), dead("node2"))
    swept(first, fleet(), lambda rail, server, client: 0.03, schedule=EACH_BOTH_WAYS, name="pairs/again")
    findings = judged(first)
    assert offences(findings) == set()
    assert "failed (dead)" in of(findings, "node2", "rail0").observed
    assert of(findings, "node2", "rail0").remedy == ""
    assert proven(first) == {place for place in EVERYWHERE if place[0] != "node2"}
    summary = first.read_json("pairs/summary.json")
    assert (summary["verdicts"], len(summary["cleared"])) == ([], 1)


@pytest.mark.parametrize("lucky", [0.15, 0.24])
def test_a_host_that_answers_again_is_cleared_beside_a_lucky_control_pair(first: RunFolder, lucky: float) -> None:
    """node4 was late: when it is measured again, it is as fast as the whole sweep was, and one pair beside it is faster."""
    swept(first, fleet(), lambda rail, server, client: None if "node4" in (server, client) else 0.05)
    of_rail = [[[3, 0]], [[0, 3]], [[3, 1]], [[1, 3]], [[1, 2]], [[2, 1]]]
    again = {"kind": "meetings", "rails": [of_rail, of_rail]}
    swept(first, fleet(), lambda rail, *ends: lucky if set(ends) == {"node2", "node3"} else 0.05, schedule=again, name="pairs/again")
    assert offences(judged(first)) == set()


TRIO_BOTH_WAYS = {"kind": "meetings", "rails": 2 * [[[[1, 0]], [[0, 1]], [[1, 2]], [[2, 1]], [[0, 2]], [[2, 0]]]]}


def test_a_pair_becomes_its_guilty_end_when_the_other_end_is_well_with_all_others(first: RunFolder) -> None:
    few = fleet(hosts=HOSTS[:3])

    def receives_slowly(rail: str, server: str, client: str) -> float:
        return 0.01 if server == "node2" else 0.1

    swept(first, few, receives_slowly)
    assert {each[0] for each in offences(judged(first, few))} == {"node1", "node2"}
    swept(first, few, receives_slowly, schedule=TRIO_BOTH_WAYS, name="pairs/again")
    findings = judged(first, few)
    assert offences(findings) == {("node2", rail, "pair.bandwidth", "error") for rail in ("rail0", "rail1")}
    found = of(findings, "node2", "rail0")
    assert found.observed.startswith("node2, all rails, receives: ")
    assert "node1" not in found.remedy.split(" 3. ", maxsplit=1)[0]


def test_a_rail_becomes_the_one_host_that_fails_when_the_others_are_well(first: RunFolder) -> None:
    few = fleet(hosts=HOSTS[:3])
    swept(first, few, lambda rail, *ends: 0.1 if rail == "rail1" else None if "node1" in ends else 0.005)
    assert {each[0] for each in offences(judged(first, few))} == {*HOSTS[:3]}

    def again(rail: str, *ends: str) -> float | None:
        return None if rail == "rail0" and "node1" in ends else 0.1

    swept(first, few, again, schedule=TRIO_BOTH_WAYS, name="pairs/again")
    assert offences(judged(first, few)) == {("node1", "rail0", "pair.bandwidth", "unknown")}


def test_a_slow_rail_becomes_the_one_host_that_is_slow_when_the_others_are_well(first: RunFolder) -> None:
    few = fleet(hosts=HOSTS[:3])
    swept(first, few, lambda rail, *ends: 0.1 if rail == "rail1" else 0.005)
    assert {each[0] for each in offences(judged(first, few))} == {*HOSTS[:3]}

    def again(rail: str, *ends: str) -> float:
        return 0.005 if rail == "rail0" and "node2" in ends else 0.1

    swept(first, few, again, schedule=TRIO_BOTH_WAYS, name="pairs/again")
    assert offences(judged(first, few)) == {("node2", "rail0", "pair.bandwidth", "error")}


def test_a_pair_whose_ends_are_well_with_others_stays_a_pair(first: RunFolder) -> None:
    def apart(rail: str, *ends: str) -> float | None:
        return None if rail == "rail0" and set(ends) == {"node1", "node3"} else 0.1

    swept(first, fleet(), apart)
    rail = [[[0, 2]], [[2, 0]], [[0, 1], [2, 3]], [[1, 0], [3, 2]], [[0, 3], [2, 1]], [[3, 0], [1, 2]]]
    swept(first, fleet(), apart, schedule={"kind": "meetings", "rails": [rail, rail]}, name="pairs/again")
    assert {each[:2] for each in offences(judged(first))} == {("node1", "rail0"), ("node3", "rail0")}


def test_a_verdict_shrinks_to_the_rail_that_stays_bad(first: RunFolder) -> None:
    swept(first, fleet(), dead("node2"))

    def again(rail: str, server: str, client: str) -> float | None:
        return None if rail == "rail0" and "node2" in (server, client) else 0.1

    swept(first, fleet(), again, schedule=EACH_BOTH_WAYS, name="pairs/again")
    findings = judged(first)
    assert offences(findings) == {("node2", "rail0", "pair.bandwidth", "unknown")}
    (verdict,) = first.read_json("pairs/summary.json")["verdicts"]
    assert verdict.startswith("rail0 of node2: ")
    assert verdict.endswith("confirmed)")


def test_one_lucky_pair_makes_no_error_of_the_others(first: RunFolder) -> None:
    """As seen: one pair at 0.24 Gb/s beside 0.04 to 0.07."""
    few = fleet(hosts=HOSTS[:3])
    figures = iter((0.24, 0.04, 0.055, 0.24, 0.05, 0.07))
    swept(first, few, lambda rail, server, client: next(figures))
    assert {each[3] for each in offences(judged(first, few))} <= {"warning"}
    found = next(each for of_host in judged(first, few).values() for each in of_host if each.status == "warning")
    assert not {word for word in ("PCIe", "governor", "lspci") if word in found.remedy}
    both_ways = [[[1, 0]], [[0, 1]], [[1, 2]], [[2, 1]], [[0, 2]], [[2, 0]]]
    again = {"kind": "meetings", "rails": [both_ways, both_ways]}
    swept(first, few, lambda rail, server, client: 0.05, schedule=again, name="pairs/again")
    assert offences(judged(first, few)) == set()


def test_a_slow_device_among_few_is_an_error_once_good_pairs_beside_it_confirm_it(first: RunFolder) -> None:
    few = fleet(hosts=HOSTS[:3])
    bad = slow(("rail0", "node2"), by=0.2)
    swept(first, few, bad)
    both_ways = [[[1, 0]], [[0, 1]], [[1, 2]], [[2, 1]], [[0, 2]], [[2, 0]]]
    swept(first, few, bad, schedule={"kind": "meetings", "rails": [both_ways, both_ways]}, name="pairs/again")
    findings = judged(first, few)
    assert ("node2", "rail0", "pair.bandwidth", "error") in offences(findings)
    assert "good pairs beside it 0.1 Gb/s" in of(findings, "node2", "rail0").observed


# Clocks that perftest could not calibrate


def without_clock(folder: RunFolder, *clients: str, source: str = "hpet") -> None:
    """All that these hosts' clients measured is lost."""
    for host in clients:
        lines = [json.loads(line) for line in (folder.path / f"pairs/{host}.jsonl").read_text().splitlines()]
        lost = [[*line[:6], None, *line[7:9], "clock", "Correlation coefficient r^2: 0.1 < 0.9"] for line in lines]
        folder.write(folder.host_file("pairs", host, ".jsonl"), "".join(json.dumps(line) + "\n" for line in lost))
        failure = {"kind": "clock", "role": "client", "server": "x", "client": host, "rail": "rail0", "clock_source": source}
        folder.write(folder.host_file("pairs", host, ".failures.jsonl"), json.dumps(failure) + "\n")


def test_a_clock_that_is_lost_is_one_warning_of_its_host_and_the_rest_counts(first: RunFolder) -> None:
    swept(first, fleet(), steady)
    without_clock(first, "node1")
    findings = judged(first)
    assert offences(findings) == {("node1", "clock", "pair.clock", "warning")}
    found = of(findings, "node1", "clock", "pair.clock")
    assert found.observed.startswith("perftest could not calibrate its clock on node1 (clock source hpet), which cost ")
    assert "1. On node1: `cat /sys/devices/system/clocksource/clocksource0/current_clocksource`." in found.remedy


def test_rails_without_any_measurement_for_want_of_a_clock_do_not_stop_the_build(first: RunFolder) -> None:
    swept(first, fleet(), steady)
    without_clock(first, *HOSTS)
    findings = judged(first)
    assert offences(findings) == {(host, "clock", "pair.clock", "warning") for host in HOSTS}
    assert "nothing measured on rail0, rail1" in of(findings, "node2", "clock", "pair.clock").observed
    assert proven(first) == set()


# What partners saw of an address that failed again


def probed(folder: RunFolder, observer: str, target: str, rail: str, arp: dict[str, str | None], *, echo: bool = False) -> None:
    failure = {"kind": "dead", "role": "client", "server": target, "client": observer, "rail": rail, "probe": {"echo": echo, "arp": arp}}
    folder.append_lines(folder.host_file("pairs/again", observer, ".failures.jsonl"), [json.dumps(failure)])


def mac(host: int, rail: int) -> str:
    return f"52:54:00:1a:{rail:02x}:{host:02x}"


def test_exchanged_cables_are_named_by_what_answers_on_the_other_rail(first: RunFolder) -> None:
    swept(first, fleet(), dead("node3"))
    swept(first, fleet(), dead("node3"), schedule=EACH_BOTH_WAYS, name="pairs/again")
    probed(first, "node1", "node3", "rail0", {"rail0": None, "rail1": mac(3, 0)})
    probed(first, "node1", "node3", "rail1", {"rail0": mac(3, 1), "rail1": None})
    findings = judged(first)
    assert {each[0] for each in offences(findings)} == {"node3"}
    found = of(findings, "node3", "rail0")
    assert "the cables of rail0 and rail1 of node3 are swapped" in found.observed
    assert found.remedy == "1. At node3: swap the cables of rail0 and rail1, then run the pairs stage again."


@pytest.mark.parametrize(("answer", "exchanged"), [(None, False), ("02:00:00:00:00:07", True)], ids=["nothing", "another MAC"])
def test_cables_may_be_exchanged_only_if_the_address_answers_on_another_rail(first: RunFolder, answer: str | None, exchanged: bool) -> None:
    swept(first, fleet(), dead("node3"))
    swept(first, fleet(), dead("node3"), schedule=EACH_BOTH_WAYS, name="pairs/again")
    probed(first, "node1", "node3", "rail0", {"rail0": None, "rail1": answer})
    found = of(judged(first), "node3", "rail0")
    assert "exchanged" not in found.observed
    assert ("may be swapped: compare them with the plan" in found.remedy) is exchanged
    assert ("journalctl" in found.remedy) is not exchanged


def test_an_address_that_answers_ping_points_to_a_firewall(first: RunFolder) -> None:
    swept(first, fleet(), dead("node3"))
    swept(first, fleet(), dead("node3"), schedule=EACH_BOTH_WAYS, name="pairs/again")
    for rail, number in (("rail0", 0), ("rail1", 1)):
        probed(first, "node1", "node3", rail, {rail: mac(3, number)}, echo=True)
    found = of(judged(first), "node3", "rail0")
    assert found.observed.endswith("; node3 answers ping")
    assert found.remedy.startswith(
        "1. The address answers ping, so a firewall is likely. On node3: `nft list ruleset`. Allow inbound TCP ports"
    )


# Ports that no verdict names, though they are below their bar


def slow_everywhere(rail: str, server: str, client: str) -> float:
    return 75.0


@pytest.mark.parametrize(("again", "status"), [(97.5, "ok"), (79.0, "warning")], ids=["well", "just above the bar"])
def test_a_port_that_its_figure_alone_refused_and_that_is_well_again_is_cleared_and_not_proven(
    first: RunFolder, again: float, status: str
) -> None:
    cards = fleet(hard)
    swept(first, cards, slow_everywhere)
    swept(first, cards, lambda rail, server, client: again, schedule=AGAIN, name="pairs/again")
    findings = judged(first, cards)
    found = of(findings, "node2", "rail0")
    assert (found.status, found.observed) == (status, "75 Gb/s with 3 partners; again: " + ", ".join(4 * [f"{again:g} Gb/s"]))
    assert of(findings, "node4", "rail1").status == "error", "it was not measured again"
    assert proven(first) == set()
    assert first.read_json("pairs/summary.json")["verdicts"] == []


def test_a_card_that_failed_and_reaches_too_little_again_is_a_warning_about_that(first: RunFolder) -> None:
    cards = fleet(hard)
    swept(first, cards, lambda rail, *ends: None if rail == "rail0" and "node2" in ends else 97.5)
    swept(first, cards, lambda rail, *ends: 89.0 if rail == "rail0" and "node2" in ends else 97.5, schedule=AGAIN, name="pairs/again")
    findings = judged(first, cards)
    assert offences(findings) == {("node2", "rail0", "pair.bandwidth", "warning")}
    found = of(findings, "node2", "rail0")
    assert found.observed.startswith("node2, rail0: 89 Gb/s, 0.91 of the limit, when measured again; ")
    assert found.expected == "at least 0.95 of the limit"
    assert "lspci" in found.remedy
    assert not {word for word in ("journalctl", "nft", "-c 3 -I") if word in found.remedy}


@pytest.mark.parametrize("gbps", [48.0, 70.0])
@pytest.mark.parametrize("measured_again", [False, True])
def test_one_slow_card_among_three_hosts_is_named_alone(first: RunFolder, gbps: float, measured_again: bool) -> None:
    cards = fleet(hard, hosts=HOSTS[:3])

    def measured(rail: str, *ends: str) -> float:
        return gbps if rail == "rail0" and "node2" in ends else 97.5

    swept(first, cards, measured)
    if measured_again:
        swept(first, cards, measured, schedule=TRIO_BOTH_WAYS, name="pairs/again")
    findings = judged(first, cards)
    assert offences(findings) == {("node2", "rail0", "pair.bandwidth", "error")}
    assert "All partners are equally slow" in of(findings, "node2", "rail0").remedy
    assert of(findings, "node1", "rail0").observed == "97.5 Gb/s with 1 partner"
    assert proven(first) == {(host, rail) for host in HOSTS[:3] for rail in ("rail0", "rail1")} - {("node2", "rail0")}


@pytest.mark.parametrize("again", [75.0, 78.0, None], ids=["as slow", "below the bar", "failed"])
def test_a_port_that_its_figure_alone_refused_and_that_is_not_well_again_stays_refused(first: RunFolder, again: float | None) -> None:
    cards = fleet(hard)
    swept(first, cards, slow_everywhere)
    swept(first, cards, lambda rail, server, client: again, schedule=AGAIN, name="pairs/again")
    found = of(judged(first, cards), "node2", "rail0")
    assert (found.status, "; again: " in found.observed) == ("error", True)


def test_nothing_measured_again_clears_what_is_below_the_floor(first: RunFolder) -> None:
    cards = fleet(hard, floor_gbps=98.0)
    swept(first, cards, slow_everywhere)
    swept(first, cards, of_cards, schedule=AGAIN, name="pairs/again")
    assert of(judged(first, cards), "node2", "rail0").status == "error"


# Cards, which have a line rate


@pytest.mark.parametrize(
    ("gbps", "status"), [(97.5, "ok"), (92.0, "warning"), (78.0, "error"), (99.5, "error")], ids=["well", "warn", "fail", "impossible"]
)
def test_a_whole_fleet_is_held_against_its_links(first: RunFolder, gbps: float, status: str) -> None:
    cards = fleet(hard)
    swept(first, cards, lambda rail, server, client: gbps)
    findings = judged(first, cards)
    assert {each.status for each in findings["node1"] if each.check == "pair.bandwidth"} == {status}
    assert "98.0" in of(findings, "node1", "rail0").expected or "link 100" in of(findings, "node1", "rail0").expected
    assert (("node1", "rail0") in proven(first)) is (status in ("ok", "warning"))


def test_a_port_that_is_a_little_slow_is_a_warning_with_a_verdict(first: RunFolder) -> None:
    cards = fleet(hard)
    swept(first, cards, slow(("rail1", "node4"), by=0.88, otherwise=of_cards))
    assert offences(judged(first, cards)) == {("node4", "rail1", "pair.bandwidth", "warning")}


def test_a_port_below_the_bar_is_an_error(first: RunFolder) -> None:
    cards = fleet(hard)
    swept(first, cards, slow(("rail1", "node4"), by=0.5, otherwise=of_cards))
    assert offences(judged(first, cards)) == {("node4", "rail1", "pair.bandwidth", "error")}


def test_a_port_without_a_rate_is_unknown(first: RunFolder) -> None:
    def change(each: Known) -> None:
        hard(each)
        each["node1"]["facts"]["devices"]["rxe_rail0"]["ports"]["1"]["rate_gbps"] = None
        each["node1"]["facts"]["netdevs"]["ens1"]["ethtool"] = {}

    cards = fleet(change)
    swept(first, cards, of_cards)
    assert ("node1", "rail0", "pair.bandwidth", "unknown") in offences(judged(first, cards))


@pytest.mark.parametrize(("usec", "status"), [(1.2, "ok"), (3.5, "warning"), (7.0, "error")])
def test_latency_of_cards(first: RunFolder, usec: float, status: str) -> None:
    cards = fleet(hard, latency_command="ib_write_lat")
    swept(first, cards, of_cards, usec=usec)
    found = of(judged(first, cards), "node1", "rail0", "pair.latency")
    assert (found.status, found.observed) == (status, f"{usec:.3g} µs (median of rail0)")
    assert first.read_json("pairs/summary.json")["rails"][0]["median_usec"] == usec


def test_latency_of_software_is_reported_and_not_judged(first: RunFolder) -> None:
    soft = fleet(latency_command="ib_write_lat")
    swept(first, soft, steady, usec=210.0)
    found = of(judged(first, soft), "node1", "rail0", "pair.latency")
    assert (found.status, found.observed[:6]) == ("not_applicable", "210 µs")


def counted(folder: RunFolder, host: str, *quiet: str, **risen: int) -> None:
    """What rose on rail0 of a host. quiet: its other rails whose counters were compared."""
    rails = {rail: {"seconds": 40.0, "risen": {} if rail in quiet else risen} for rail in ("rail0", *quiet)}
    folder.write_json(folder.host_file("pairs", host, ".counters.json"), rails)


@pytest.mark.parametrize(
    ("risen", "status"),
    [
        ({}, "ok"),
        ({"symbol_error": 9}, "ok"),
        ({"symbol_error": 10}, "error"),
        ({"link_downed": 12}, "error"),
        ({"rx_discards_phy": 50}, "warning"),
    ],
    ids=["none", "few", "cable", "flaps", "congestion"],
)
def test_errors_under_load_count_against_the_port(first: RunFolder, risen: dict[str, int], status: str) -> None:
    cards = fleet(hard)
    swept(first, cards, of_cards)
    counted(first, "node1", **risen)
    findings = judged(first, cards)
    assert of(findings, "node1", "rail0", "pair.errors").status == status
    assert of(findings, "node1", "rail1", "pair.errors").status == "unknown"
    assert ("node1", "rail1") not in proven(first)


def test_errors_under_load_and_bad_latency_are_no_proof(first: RunFolder) -> None:
    cards = fleet(hard, latency_command="ib_write_lat")
    swept(first, cards, of_cards, usec=1.0)
    counted(first, "node1", "rail1", symbol_error=500_000)
    judged(first, cards)
    assert proven(first) == EVERYWHERE - {("node1", "rail0")}
    slow_to_answer = run_folder(first.path.parent, "R2")
    swept(slow_to_answer, cards, of_cards, usec=50.0)
    judged(slow_to_answer, cards)
    assert proven(slow_to_answer) == set()


# Quality of service: marked traffic, and many that send to one


def marked(each: Known) -> None:
    """Cards whose traffic is marked."""
    hard(each)
    for of_host in each.values():
        of_host["intent"]["roce"] = lab_intent(roce={})["roce"]


def traffic(folder: RunFolder, host: str, priority: str, rails: Iterable[str] = ("rail0", "rail1")) -> None:
    """A host counted all of a sweep of 200 times 64 KiB in one priority, three meetings on each rail, sent or received."""
    none = {"rx_bytes": 0, "tx_bytes": 0, "rx_pause": None, "tx_pause": None}
    reported = {"0": dict(none), "3": {**none, "rx_pause": 0, "tx_pause": 0}}
    reported[priority].update(rx_bytes=10**10, tx_bytes=10**10)
    port = {"seconds": 40.0, "risen": {}, "priorities": reported, "cnps": {}}
    folder.write_json(folder.host_file("pairs", host, ".counters.json"), {rail: {**port, "netdev": f"net-{rail}"} for rail in rails})


def test_marked_traffic_is_asked_for_where_rdma_roce_is_given(first: RunFolder) -> None:
    cards = fleet(marked)
    swept(first, cards, of_cards)
    for host in HOSTS[:3]:
        traffic(first, host, "3")
    traffic(first, "node4", "3", ["rail0"])
    findings = judged(first, cards)
    assert {of(findings, host, "rail0", "qos.traffic").status for host in HOSTS} == {"ok"}
    assert of(findings, "node4", "rail1", "qos.traffic").status == "unknown"
    assert proven(first) == EVERYWHERE - {("node4", "rail1")}
    unmarked = judged(first, fleet(hard))
    assert "qos.traffic" not in {each.check for found in unmarked.values() for each in found}


def test_traffic_in_another_priority_is_no_proof(first: RunFolder) -> None:
    cards = fleet(marked)
    swept(first, cards, of_cards)
    for host in HOSTS:
        traffic(first, host, "0" if host == "node2" else "3")
    findings = judged(first, cards)
    assert offences(findings) == {("node2", rail, "qos.traffic", "error") for rail in ("rail0", "rail1")}
    assert "100.0% in priority 0: unmarked, or DSCP" in of(findings, "node2", "rail0", "qos.traffic").observed
    assert proven(first) == {place for place in EVERYWHERE if place[0] != "node2"}


def test_a_rail_of_infiniband_has_no_marks(first: RunFolder) -> None:
    def change(each: Known) -> None:
        marked(each)
        for of_host in each.values():
            of_host["intent"]["rails"][1]["link_layer"] = "infiniband"

    cards = fleet(change)
    swept(first, cards, of_cards)
    subjects = {each.subject for each in judged(first, cards)["node1"] if each.check == "qos.traffic"}
    assert subjects == {"rail0"}


def loaded(folder: RunFolder, cards: Fleet, **of_target: int) -> None:
    """node1 was the target of the others on rail0; of_target: counters of its priority."""
    plan = load_plan("S1-qos", [Funnel("rail0", "node1", ("node2", "node3", "node4"))], cards.endpoints, cards.intents["node1"], forks=5)
    folder.write_json("pairs/qos/plan.json", plan)
    for number, host in enumerate(HOSTS[1:]):
        lines = [[number, again, 0, number + 1, 0, 0, 32.0, 1.2, 0.1] for again in (0, 1)]
        folder.write(folder.host_file("pairs/qos", host, ".jsonl"), "".join(json.dumps(line) + "\n" for line in lines))
    port = {"seconds": 9.0, "risen": {}, "netdev": "ens1", "cnps": {}, "priorities": {"3": {"rx_bytes": 1, "rx_pause": 0, **of_target}}}
    folder.write_json(folder.host_file("pairs/qos", "node1", ".counters.json"), {"rail0<node2": port})


@pytest.mark.parametrize(
    ("of_target", "status", "is_proven"),
    [({"tx_pause": 9}, "ok", True), ({}, "warning", True), ({"rx_discards": 1}, "error", False)],
    ids=["pauses", "nothing", "loss"],
)
def test_the_load_counts_against_its_target_alone(first: RunFolder, of_target: dict[str, int], status: str, is_proven: bool) -> None:
    cards = fleet(marked)
    swept(first, cards, of_cards)
    loaded(first, cards, **of_target)
    findings = judged(first, cards)
    assert [(each.host, each.subject, each.status) for found in findings.values() for each in found if each.check == "qos.load"] == [
        ("node1", "rail0", status)
    ]
    assert "3 of 3 sources sent 96 of 98.0" in of(findings, "node1", "rail0", "qos.load").observed
    assert (("node1", "rail0") in proven(first)) is is_proven


@pytest.mark.parametrize(
    ("rule", "of_target"),
    [
        ({"severity": "error"}, {}),
        ({"severity": "warning"}, {"rx_discards": 1}),
        ({"silenced_by": "ops", "reason": "known", "until": "2099-01-01"}, {"rx_discards": 1}),
    ],
    ids=["stricter", "milder", "silenced"],
)
def test_a_rule_can_take_a_proof_and_gives_none(first: RunFolder, rule: dict[str, str], of_target: dict[str, int]) -> None:
    def change(each: Known) -> None:
        marked(each)
        for of_host in each.values():
            of_host["intent"]["checks"] = {"qos.load": rule}

    cards = fleet(change)
    swept(first, cards, of_cards)
    loaded(first, cards, **of_target)
    judged(first, cards)
    assert proven(first) == EVERYWHERE - {("node1", "rail0")}


def test_a_load_without_a_sweep_of_this_run_is_nothing(second: RunFolder) -> None:
    cards = fleet(marked)
    loaded(second, cards, rx_discards=9)
    assert "qos.load" not in {each.check for found in judged(second, cards).values() for each in found}


# Nothing is measured


def test_proofs_let_every_host_pass(second: RunFolder) -> None:
    findings = judged(second)
    assert statuses(findings) == {"ok"}
    assert {each.observed for found in findings.values() for each in found} == {"0.1 Gb/s with 3 partners, proven by run R1"}
    assert second.read_json("pairs/summary.json")["rails"][0]["proven"] == 4


def test_looking_at_proofs_changes_none(second: RunFolder) -> None:
    file = second.path.parent / "proofs/pairs.json"
    before = file.read_bytes()
    judged(second, fleet(module))
    assert file.read_bytes() == before


RING, FIVE = {"kind": "ring"}, [*HOSTS, "node5"]


def chosen(folder: RunFolder, of: Fleet) -> Choice | None:
    """What the next run measures by itself."""
    standings = of.standings(pairs_proofs.read(folder.read_if_there(pairs_proofs.FILE)), NOW, 168)
    return choose(of, standings, of.intents["node1"]["pairs"], remeasure=False, outside={})


@pytest.mark.parametrize("kind", ["ring", "sample"])
def test_a_schedule_that_leaves_pairs_out_does_not_prove_a_full_one(first: RunFolder, kind: str) -> None:
    partly, full = fleet(hosts=FIVE, schedule=kind, partners=2, seed=1), fleet(hosts=FIVE)
    swept(first, partly, steady, schedule={"kind": kind, "partners": 2, "seed": 1})
    assert statuses(judged(first, partly)) == {"ok", "not_applicable"}
    second = run_folder(first.path.parent, "R2")
    assert chosen(second, partly) is None
    assert statuses(judged(second, partly)) == {"ok"}
    found = judged(second, full)
    assert {(each.check, each.status) for of in found.values() for each in of} == {("pair.bandwidth", "unknown")}
    met = first.read_json(pairs_proofs.FILE)["endpoints"]["node1"]["rail0"]["met"]
    unmet = ", ".join(host for host in FIVE[1:] if host not in met)
    words = f"never measured with {unmet}, as `rdma_pairs.schedule: full` requires; not measured in this run"
    assert [each.observed for each in found["node1"]] == [words, words]
    assert unmet

    choice = chosen(second, full)
    assert choice is not None
    assert (list(choice.hosts), choice.schedule) == (FIVE, FULL)
    swept(second, full, steady, schedule=choice.schedule)
    assert statuses(judged(second, full)) == {"ok", "not_applicable"}
    third = run_folder(first.path.parent, "R3")
    for of in (full, partly):
        assert chosen(third, of) is None
        assert statuses(judged(third, of)) == {"ok"}


def test_a_ring_of_three_leaves_no_pair_out(first: RunFolder) -> None:
    swept(first, fleet(hosts=HOSTS[:3], schedule="ring"), steady, schedule=RING)
    judged(first, fleet(hosts=HOSTS[:3], schedule="ring"))
    second = run_folder(first.path.parent, "R2")
    assert statuses(judged(second, fleet(hosts=HOSTS[:3]))) == {"ok"}
    assert chosen(second, fleet(hosts=HOSTS[:3])) is None


def test_beside_proven_hosts_a_few_partners_are_enough_for_a_full_schedule(second: RunFolder) -> None:
    """node5 is new: it meets two proven hosts, once under ring and once under full."""
    for run, schedule, valid in (("R3", "ring", False), ("R4", "full", True)):
        of = fleet(hosts=["node5", "node1", "node3"], schedule=schedule)
        swept(folder := run_folder(second.path.parent, run), of, steady, schedule=AGAINST)
        judged(folder, of)
        standings = fleet(hosts=FIVE).standings(pairs_proofs.read(folder.read_if_there(pairs_proofs.FILE)), NOW, 168)
        assert {host: of["rail0"].valid for host, of in standings.items()} == {**dict.fromkeys(HOSTS, True), "node5": valid}


def test_a_proof_is_held_against_the_bars_of_now(second: RunFolder) -> None:
    assert offences(judged(second, fleet(floor_gbps=0.2))) == {(*place, "pair.bandwidth", "error") for place in EVERYWHERE}


def test_what_was_never_measured_is_unknown(first: RunFolder) -> None:
    assert of(judged(first), "node1", "rail0") == Finding(
        "pairs", "pair.bandwidth", "node1", "rail0", "unknown", "never measured, or not proven good; not measured in this run",
        "a measurement that still holds", "Measure with `-e rdma_measure=true`.",
    )  # fmt: skip


def test_an_old_proof_does_not_hold(second: RunFolder) -> None:
    assert statuses(judged(second, hours=167)) == {"ok"}
    findings = judged(second, hours=169)
    assert statuses(findings) == {"unknown"}
    assert findings["node1"][0].observed == "its proof is older than rdma_proof_max_age_hours; not measured in this run"


def module(of: Known) -> None:
    of["node2"]["facts"]["stack"]["modules"]["rdma_rxe"]["version"] = "2"


def port(of: Known) -> None:
    of["node2"]["facts"]["devices"]["rxe_rail0"]["ports"]["1"]["rate_gbps"] = 100.0


@pytest.mark.parametrize(("change", "part", "rails"), [(module, "driver", ("rail0", "rail1")), (port, "port", ("rail0",))])
def test_a_change_ends_the_proofs_of_its_own_ports_alone(second: RunFolder, change: Any, part: str, rails: tuple[str, ...]) -> None:
    findings = judged(second, fleet(change))
    assert offences(findings) == {("node2", rail, "pair.bandwidth", "unknown") for rail in rails}
    assert of(findings, "node2", rails[0]).observed == f"changed since it was measured: {part}; not measured in this run"


# Hosts at work

BUSY = "GPU process 4711 (python3)"


def blocked(folder: RunFolder, *hosts: str) -> RunFolder:
    folder.write_json("pairs/blocked.json", dict.fromkeys(hosts, BUSY))
    return folder


def test_a_busy_host_whose_proof_is_only_too_old_is_a_warning(second: RunFolder) -> None:
    found = of(judged(blocked(second, "node1"), hours=169), "node1", "rail0")
    assert (found.status, found.observed) == (
        "warning",
        f"its proof is older than rdma_proof_max_age_hours; not measured, because the host is busy: {BUSY}",
    )
    assert "rdma_load_allowed" in found.remedy


def test_a_busy_host_that_has_changed_is_unknown(second: RunFolder) -> None:
    found = of(judged(blocked(second, "node2"), fleet(module)), "node2", "rail1")
    observed = f"changed since it was measured: driver; not measured, because the host is busy: {BUSY}"
    assert (found.status, found.observed) == ("unknown", observed)


def test_a_busy_host_with_valid_proofs_passes(second: RunFolder) -> None:
    assert statuses(judged(blocked(second, *HOSTS))) == {"ok"}


# Check mode


def test_in_check_mode_nothing_is_measured_and_that_is_no_offence(first: RunFolder) -> None:
    findings = judged(blocked(first, "node1"), check_mode=True)
    assert statuses(findings) == {"not_applicable"}
    assert findings["node1"][0].observed == "never measured, or not proven good; nothing is measured in check mode"


def test_in_check_mode_proofs_hold_and_nothing_is_recorded(second: RunFolder) -> None:
    assert statuses(judged(second, check_mode=True)) == {"ok"}
    (second.path.parent / "proofs/pairs.json").unlink()
    swept(second, fleet(), steady)
    judged(second, check_mode=True)
    assert proven(second) == set()


# Hosts without pairs


def test_one_host_alone_has_no_pair(first: RunFolder) -> None:
    assert judged(first, fleet(hosts=["node1"])) == {
        "node1": [
            Finding("pairs", "pair.bandwidth", "node1", "all rails", "not_applicable", "a single host has no pair", "at least one pair")
        ]
    }


def test_one_host_that_is_left_of_several_is_not_excused(first: RunFolder) -> None:
    assert statuses(judged(first, fleet(hosts=["node1"]), planned=4)) == {"unknown"}


def no_gids(of: Known) -> None:
    for device in of["node3"]["facts"]["devices"].values():
        device["ports"]["1"]["rocev2"] = {}


def test_a_host_without_endpoint_is_unknown_and_the_others_are_judged(second: RunFolder) -> None:
    findings = judged(second, fleet(no_gids))
    seen = [(found.status, found.subject, found.observed) for found in findings["node3"]]
    assert seen == [("unknown", rail, "no RDMA device, or no GID for its address") for rail in ("rail0", "rail1")]
    assert {each[0] for each in offences(findings)} == {"node3"}


def infiniband_by_a_forwarded_port(of: Known) -> None:
    for rail in of["node3"]["intent"]["rails"]:
        rail.update(link_layer="infiniband", address=None)
    of["node3"]["facts"]["session"] = {"address": "127.0.0.1", "netdev": "lo"}


def test_a_host_that_nobody_can_meet_is_reported_so(second: RunFolder) -> None:
    findings = judged(second, fleet(infiniband_by_a_forwarded_port))
    seen = {(found.status, found.subject, found.observed, found.remedy) for found in findings["node3"]}
    assert seen == {("unknown", rail, NOWHERE, REACH) for rail in ("rail0", "rail1")}


def test_a_fleet_of_nobody(first: RunFolder) -> None:
    assert judged(first, Fleet.of({})) == {}


FORGED = [1, 0, 0, 1, 0, 0, 0.1, 1.2, 0.1]


@pytest.mark.parametrize(
    "forged", [FORGED, [*FORGED[:6], None, 1.2, 0.1, "retry_exceeded", "Completion with error"], [0.0], "x" * 5000], ids=str
)
@pytest.mark.parametrize("name", ["pairs", "pairs/again"])
def test_what_a_host_says_of_others_changes_nothing_and_stops_this_host_only(first: RunFolder, forged: Any, name: str) -> None:
    """H3: node3 writes of the pair of node1 and node2. It alone is unknown, and it alone is not proven."""
    swept(first, fleet(), steady)
    if name != "pairs":
        swept(first, fleet(), steady, name=name)
    first.append_lines(first.host_file(name, "node3", ".jsonl"), [json.dumps(forged)])
    findings = judged(first)
    assert offences(findings) == {("node3", "results", "pair.results", "unknown")}
    found = of(findings, "node3", "results", "pair.results")
    assert found.observed.startswith("ignored 1 line of its results: ")
    assert len(found.observed) < 400
    assert sorted(pairs_proofs.read(first.read_if_there(pairs_proofs.FILE))) == ["node1", "node2", "node4"]


def test_a_forged_good_result_does_not_hide_a_bad_pair(first: RunFolder) -> None:
    """H3: node1 and node2 fail with each other, whatever node3 says of them; nor may it fill in for what is missing."""
    swept(first, fleet(), lambda _rail, server, client: None if {server, client} == {"node1", "node2"} else 0.1)
    honest = offences(judged(first))
    assert any(host == "node1" for host, *_what in honest)
    plan = first.read_json("pairs/plan.json")
    lines = [[*place, 0, 0, 0.1, 1.2, 0.1] for place in planned_meetings(plan) if {place[2], place[3]} == {0, 1}]
    assert lines
    first.append_lines(first.host_file("pairs", "node3", ".jsonl"), map(json.dumps, lines))
    assert offences(judged(first)) == {*honest, ("node3", "results", "pair.results", "unknown")}
    assert not {"node1", "node2", "node3"} & set(pairs_proofs.read(first.read_if_there(pairs_proofs.FILE)))


def test_a_line_of_a_meeting_that_is_not_planned_does_not_stand_in_for_a_missing_one(second: RunFolder) -> None:
    swept(second, fleet(), steady)
    file = second.path / "pairs/node4.jsonl"
    kept = file.read_text().splitlines()
    gone = json.loads(kept.pop())
    swapped = [gone[0], gone[1], gone[3], gone[2], *gone[4:]]
    file.write_text("".join(f"{line}\n" for line in [*kept, json.dumps(swapped)]))
    found = offences(judged(second))
    assert ("node4", "results", "pair.results", "unknown") in found
    assert {host for host, _subject, check, status in found if (check, status) == ("pair.bandwidth", "unknown")} >= {"node4"}
