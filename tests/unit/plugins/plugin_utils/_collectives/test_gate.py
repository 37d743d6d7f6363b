# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collectives gate: a ladder of this run, proofs of earlier ones, and what has neither. The runs are written by these tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.gate import CollectiveGate
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.ladder import climb
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.plan import ALONE_FOLDER, BLOCKED, FILE, LADDER, CollectivePlan
from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.record import Record, ladder_data, record, result_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs as pairs_proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.collective_hosts import HOSTS, NOW, known
from tests.unit.builders.known import known_of

#: What goes wrong in a run on these hosts: check → (host, status, observed).
Fault = Callable[[Sequence[str]], dict[str, tuple[str, str, str]]]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "R1").mkdir()
    return RunFolder(tmp_path / "R1")


def well(_hosts: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    return {}


def run(hosts: Sequence[str], fault: Fault = well, gbytes_per_s: float = 24.0) -> Record:
    """As rdma.cluster.nccl_test says it, on the first host."""
    wrong = fault(hosts)
    findings = []
    for check in ("exit", "ranks", "wrong", "busbw", "transport", "hcas"):
        for host in hosts if check in ("transport", "hcas") else hosts[:1]:
            named, status, seen = wrong.get(check, (host, "ok", "well"))
            brief = (status, seen) if named == host or check not in ("transport", "hcas") else ("ok", "well")
            findings.append(
                Finding("collectives", f"collective.{check}", host, f"all_reduce_perf on {len(hosts)} hosts", *brief, "").to_dict()
            )
    busbw = 9.0 if "busbw" in wrong else gbytes_per_s
    answer = {"findings": findings, "busbw_gbytes_per_s": busbw, "seconds": 3.0, "argv": [], "log": None}
    return record(hosts, "all_reduce", answer)


def slow(*names: str) -> Fault:
    return lambda hosts: {"busbw": (hosts[0], "error", "9 GB/s")} if set(names) & set(hosts) else {}


def climbed(folder: RunFolder, fault: Fault = well, hosts: Sequence[str] = HOSTS, repeats: int = 2) -> None:
    """Climb the ladder, each host alone before."""
    for host in hosts:
        folder.write_json(folder.host_file(ALONE_FOLDER, host), run([host]))
    runs: list[Record] = []
    while (ladder := climb(hosts, [result_of(each) for each in runs], repeats)).step is not None:
        runs.append(run(ladder.step, fault, gbytes_per_s=24.0 + len(runs) / 10))
    folder.write_json(LADDER, ladder_data(ladder, runs, [], hosts[0]))


def judged(
    folder: RunFolder, *, check_mode: bool = False, planned: int = 4, hosts: dict[str, dict[str, Any]] | None = None
) -> dict[str, list[Finding]]:
    proofs = pairs_proofs.read(folder.read_if_there(FILE))
    plan = CollectivePlan(Fleet.of(known_of(known() if hosts is None else hosts)), proofs, NOW, 168.0)
    return CollectiveGate(folder, plan, check_mode, planned).judge()


def brief(found: dict[str, list[Finding]]) -> list[tuple[str, str, str]]:
    return [(host, each.check, each.status) for host, of in found.items() for each in of if each.status not in ("ok", "not_applicable")]


def one(found: Sequence[Finding], check: str) -> Finding:
    (finding,) = [each for each in found if each.check == check]
    return finding


def test_a_clean_ladder_proves_every_host(folder: RunFolder) -> None:
    climbed(folder)
    found = judged(folder)
    assert brief(found) == []
    assert one(found["node3"], "collective.ladder").observed == "2 hosts 24, 4 hosts 24.1 GB/s"
    assert one(found["node1"], "collective.jitter").observed == "2 runs: lowest 24.1, highest 24.2 GB/s, 0.4 % apart"
    assert [each.check for each in found["node2"]].count("collective.jitter") == 0
    proofs = json.loads((folder.path / FILE).read_text())["endpoints"]
    assert {host: (of["all_reduce"]["partners"], of["all_reduce"]["medians"]) for host, of in proofs.items()} == dict.fromkeys(
        HOSTS, (3, {"busbw": 24.1})
    )


def test_what_is_proven_needs_no_run(folder: RunFolder) -> None:
    climbed(folder)
    judged(folder)
    later = RunFolder(folder.path.parent / "R2")
    later.path.mkdir()
    found = judged(later)
    assert {each.observed for of in found.values() for each in of} == {"24.1 GB/s with 3 others, proven by run R1"}
    assert brief(found) == []


def test_a_slow_host_is_named_and_loses_its_proof_and_the_others_keep_theirs(folder: RunFolder) -> None:
    climbed(folder)
    judged(folder)
    climbed(folder, slow("node3"))
    found = judged(folder)
    assert brief(found) == [("node3", "collective.busbw", "error"), ("node3", "collective.ladder", "error")]
    assert one(found["node3"], "collective.ladder").observed == "node3: fails or is slow with each of two good hosts"
    assert one(found["node3"], "collective.ladder").remedy.startswith("1. Run the pairs stage for node3")
    assert sorted(json.loads((folder.path / FILE).read_text())["endpoints"]) == ["node1", "node2", "node4"]


def test_a_bad_connection_is_an_error_of_who_was_left_out_and_a_warning_of_the_other_side(folder: RunFolder) -> None:
    climbed(folder, lambda hosts: slow("node2")(hosts) if {"node2", "node4"} <= set(hosts) else {})
    assert brief(judged(folder)) == [
        ("node2", "collective.ladder", "warning"),
        ("node4", "collective.busbw", "error"),
        ("node4", "collective.ladder", "error"),
    ]


def test_a_host_over_sockets_is_named_by_its_own_output(folder: RunFolder) -> None:
    climbed(folder, lambda hosts: {"transport": ("node4", "error", "2 over NET/Socket")} if "node4" in hosts else {})
    assert brief(judged(folder)) == [("node4", "collective.transport", "error"), ("node4", "collective.ladder", "error")]


def test_a_host_on_which_nothing_starts_is_no_matter_of_the_network(folder: RunFolder) -> None:
    answer = "srun did not end within 70 seconds; srun: Required node not available"
    climbed(folder, lambda hosts: {"exit": (hosts[0], "unknown", answer)} if "node4" in hosts else {})
    found = judged(folder)
    assert brief(found) == [("node4", "collective.exit", "unknown"), ("node4", "collective.ladder", "error")]
    assert one(found["node4"], "collective.ladder").remedy.startswith("See collective.exit of node4. Check that the launcher")


def test_a_build_without_mpi_stops_all_and_accuses_nobody(folder: RunFolder) -> None:
    climbed(folder, lambda hosts: {"ranks": (hosts[0], "error", "2 separate runs")})
    found = judged(folder)
    assert brief(found) == [
        ("node1", "collective.ranks", "error"),
        ("node1", "collective.ladder", "error"),
        ("node2", "collective.ranks", "error"),
        ("node2", "collective.ladder", "error"),
        ("node3", "collective.ladder", "unknown"),
        ("node4", "collective.ladder", "unknown"),
    ]
    assert "the build of nccl-tests" in one(found["node3"], "collective.ladder").remedy
    assert json.loads((folder.path / FILE).read_text())["endpoints"] == {}


def test_a_host_that_is_not_well_alone_does_not_climb(folder: RunFolder) -> None:
    climbed(folder, hosts=HOSTS[:3])
    folder.write_json(folder.host_file(ALONE_FOLDER, "node4"), run(["node4"], lambda hosts: {"exit": (hosts[0], "error", "exit status 1")}))
    assert brief(judged(folder)) == [("node4", "collective.exit", "error")]


def test_a_ladder_that_was_broken_off_leaves_what_it_did_not_reach_unknown(folder: RunFolder) -> None:
    runs = [run(HOSTS[:2])]
    ladder = climb(HOSTS, [result_of(each) for each in runs])
    folder.write_json(LADDER, ladder_data(ladder, runs, [], "node1", "node1: no route to host"))
    found = judged(folder)
    assert brief(found) == [("node3", "collective.busbw", "unknown"), ("node4", "collective.busbw", "unknown")]
    assert one(found["node3"], "collective.busbw").observed.endswith("not run with another host: node1: no route to host")


def test_another_operation_that_is_not_well_on_the_last_set_proves_nobody(folder: RunFolder) -> None:
    climbed(folder)
    data = folder.read_json(LADDER)
    data["also"] = [run(HOSTS, lambda hosts: {"wrong": (hosts[0], "error", "3 at 8589934592 bytes")})]
    folder.write_json(LADDER, data)
    assert brief(judged(folder)) == [(host, "collective.wrong", "error") for host in HOSTS]
    assert json.loads((folder.path / FILE).read_text())["endpoints"] == {}


def test_a_host_that_was_well_alone_and_met_nobody_is_not_proven(folder: RunFolder) -> None:
    folder.write_json(folder.host_file(ALONE_FOLDER, "node1"), run(["node1"]))
    assert ("node1", "collective.busbw", "unknown") in brief(judged(folder))
    assert json.loads((folder.path / FILE).read_text())["endpoints"] == {}


def test_a_busy_host_is_not_run_and_an_old_proof_of_it_is_a_warning(folder: RunFolder) -> None:
    folder.write_json(BLOCKED, {"node2": "GPU process 4711 (python3)"})
    found = judged(folder)
    assert one(found["node2"], "collective.busbw").status == "unknown"
    assert "the host is busy: GPU process 4711" in one(found["node2"], "collective.busbw").observed


def test_check_mode_judges_and_records_nothing(folder: RunFolder) -> None:
    found = judged(folder, check_mode=True)
    assert {each.status for of in found.values() for each in of} == {"not_applicable"}
    assert not (folder.path / FILE).exists()


def test_hosts_without_gpus_are_not_judged(folder: RunFolder) -> None:
    hosts = known(gpus=None)
    found = judged(folder, hosts=hosts)
    assert {(each.check, each.status, each.observed) for of in found.values() for each in of} == {
        ("collective.busbw", "not_applicable", "no GPU for a collective")
    }


def test_one_host_alone_is_proven_by_itself(folder: RunFolder) -> None:
    folder.write_json(folder.host_file(ALONE_FOLDER, "node1"), run(["node1"]))
    found = judged(folder, planned=1, hosts=known(HOSTS[:1]))
    assert brief(found) == []
    assert json.loads((folder.path / FILE).read_text())["endpoints"]["node1"]["all_reduce"]["partners"] == 0
    assert brief(judged(folder, planned=2, hosts=known(HOSTS[:1]))) == [("node1", "collective.busbw", "unknown")]


@pytest.mark.parametrize(("pair_gbps", "status"), [(97.0, "ok"), (145.0, "warning"), (None, "not_applicable")])
def test_two_hosts_are_held_against_what_perftest_reached(folder: RunFolder, pair_gbps: float | None, status: str) -> None:
    climbed(folder)
    if pair_gbps is not None:
        each = pairs_proofs.Proof({}, NOW, "R0", 3, {"bandwidth": pair_gbps}, 1.0)
        folder.write_json(pairs_proofs.FILE, pairs_proofs.write({host: {"rail0": each, "rail1": each} for host in HOSTS}))
    assert one(judged(folder)["node1"], "collective.pairs").status == status


def test_a_repeat_that_is_not_well_is_a_warning(folder: RunFolder) -> None:
    climbed(folder)
    data = folder.read_json(LADDER)
    data["runs"].append(run(HOSTS, slow("node1")))
    folder.write_json(LADDER, data)
    assert brief(judged(folder)) == [("node1", "collective.jitter", "warning")]


def test_a_device_that_is_missing_comes_first_where_a_run_failed(folder: RunFolder) -> None:
    hosts = known()
    hosts["node3"]["intent"]["collectives"]["environment"] = {"NCCL_IB_HCA": "=rxe_rail0,mlx5_99"}
    climbed(folder, slow("node3"))
    found = judged(folder, hosts=hosts)
    first = found["node3"][0]
    assert (first.check, first.subject, first.status) == ("collective.hcas", "NCCL_IB_HCA", "error")
    assert first.observed.startswith("NCCL_IB_HCA==rxe_rail0,mlx5_99 names mlx5_99; the host has rxe_rail0")
    assert "rdma_collectives.environment.NCCL_IB_HCA of node3" in first.remedy
    assert not any(each.subject == "NCCL_IB_HCA" for host in ("node1", "node2") for each in found[host])


def test_a_missing_device_of_the_intent_is_corrected_there(folder: RunFolder) -> None:
    """nccl.conf has it in the managed block, which nobody is to edit."""
    hosts = known()
    hosts["node3"]["intent"]["nccl"]["variables"] = {"NCCL_IB_HCA": "=mlx5_99"}
    climbed(folder, slow("node3"))
    first = judged(folder, hosts=hosts)["node3"][0]
    assert first.observed.startswith("NCCL_IB_HCA==mlx5_99 names mlx5_99")
    assert "rdma_nccl.variables.NCCL_IB_HCA" in first.remedy


def test_a_missing_device_is_not_reported_where_all_runs_are_well(folder: RunFolder) -> None:
    hosts = known()
    hosts["node3"]["intent"]["collectives"]["environment"] = {"NCCL_IB_HCA": "mlx5_99"}
    climbed(folder)
    assert not any(each.subject == "NCCL_IB_HCA" for found in judged(folder, hosts=hosts).values() for each in found)
