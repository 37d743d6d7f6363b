# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Verdicts on runs of nccl-tests: of two H200 as they were, and of many hosts with one thing wrong at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.judge import (
    check_busbw,
    check_exit,
    check_ranks,
    check_wrong,
    judge,
)
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.parse import parse_nccl_tests
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import Expected, Measured, NcclTestsResult, Outcome, Rank
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.log.log import parse_nccl_log
from tests.unit.builders.nccl_texts import Job, h200

SUBJECT = "all_reduce_perf on vm"
TWO_GPUS = Expected(2, {"vm": "vm"}, gbytes_per_s=360.0, p2p=True)


def outcome(name: str, exit_status: int | None = 0) -> Outcome:
    text = h200(f"{name}.txt")
    return Outcome("vm", SUBJECT, exit_status, parse_nccl_tests(text), parse_nccl_log(text.splitlines(keepends=True)))


def verdicts(findings: list[Finding]) -> dict[str, str]:
    return {finding.check.removeprefix("collective."): finding.status for finding in findings}


CLEAN = outcome("all_reduce_perf_debug_info")
TEST = CLEAN.test
assert TEST is not None


def test_over_nvlink_all_is_well() -> None:
    findings = judge(CLEAN, TWO_GPUS)
    assert verdicts(findings) == {
        "exit": "ok",
        "ranks": "ok",
        "wrong": "ok",
        "busbw": "warning",
        "transport": "ok",
        "hcas": "not_applicable",
    }
    assert {(finding.stage, finding.host, finding.subject) for finding in findings} == {("collectives", "vm", SUBJECT)}
    observed = [finding.observed for finding in findings]
    assert observed == [
        "exit status 0",
        "2 ranks on 1 host",
        "28 sizes checked, none wrong",
        "313.1 GB/s at 268435456 bytes and more, lowest 298.9, highest 327.7",
        "48 over P2P/direct pointer",
        "no HCA is planned for it",
    ]
    assert verdicts(judge(CLEAN, replace(TWO_GPUS, gbytes_per_s=330.0)))["busbw"] == "ok"


def test_sockets_fail_however_fast_they_are() -> None:
    run = outcome("all_reduce_perf_via_socket_debug_info")
    found = {finding.check: finding for finding in judge(run, replace(TWO_GPUS, gbytes_per_s=1.0, large_bytes=2**26))}
    assert (found["collective.busbw"].status, found["collective.transport"].status) == ("ok", "error")
    assert found["collective.transport"].observed == "8 over NET/Socket: Channel 00/0 : 1[1] -> 0[0] [receive] via NET/Socket/0"


def test_through_the_memory_of_the_host() -> None:
    run = outcome("all_reduce_perf_p2p_disabled_debug_info")
    assert verdicts(judge(run, TWO_GPUS)) | {"busbw": "error", "transport": "warning"} == verdicts(judge(run, TWO_GPUS))
    assert verdicts(judge(run, replace(TWO_GPUS, p2p=None)))["transport"] == "ok"


def test_a_run_that_failed() -> None:
    run = outcome("all_reduce_perf_no_ib_device_failed", exit_status=3)
    assert verdicts(judge(run, TWO_GPUS)) == {
        "exit": "error",
        "ranks": "ok",
        "wrong": "unknown",
        "busbw": "unknown",
        "transport": "unknown",
        "hcas": "not_applicable",
    }
    answer = check_exit(run).observed
    assert answer.startswith("exit status 3; vm: Test NCCL failure common.cu:222 'invalid usage")
    assert "Failed to initialize any NET plugin" in answer


@pytest.mark.parametrize(
    ("change", "status", "observed"),
    [
        ({"exit_status": None, "problem": "it ran longer than 600 s", "log": None}, "unknown", "it ran longer than 600 s"),
        ({"exit_status": None, "log": None, "launcher": "srun: killed"}, "unknown", "it did not run to its end; srun: killed"),
        ({"test": None, "problem": "not the output of nccl-tests: ''"}, "unknown", "exit status 0, not the output of nccl-tests: ''"),
        ({"test": replace(TEST, truncated=True), "log": None}, "unknown", "exit status 0, but the output is cut off"),
        ({"exit_status": 1, "log": None}, "error", "exit status 1"),
    ],
    ids=["too long", "not run", "no output", "cut off", "failed"],
)
def test_exits(change: dict[str, Any], status: str, observed: str) -> None:
    finding = check_exit(replace(CLEAN, **change))
    assert (finding.status, finding.observed) == (status, observed)
    assert finding.remedy


def ranks(*hosts: str) -> tuple[Rank, ...]:
    return tuple(Rank(number, 0, 1, host, 0, "0000:01:00", "H200") for number, host in enumerate(hosts))


TWO_HOSTS = Expected(2, {"node1": "gpu1.example.org", "node2": "gpu2"})


@pytest.mark.parametrize(
    ("test", "expected", "status", "observed"),
    [
        (replace(TEST, runs=16, nranks=1), TWO_GPUS, "error", "16 separate runs, of 1 ranks each: nccl-tests was built without MPI"),
        (TEST, replace(TWO_GPUS, ranks=16), "error", "2 ranks"),
        (replace(TEST, nranks=None), TWO_GPUS, "ok", "2 ranks on 1 host"),
        (replace(TEST, nranks=3), TWO_GPUS, "error", "2 and 3 ranks"),
        (replace(TEST, ranks=ranks("gpu1", "gpu2")), TWO_HOSTS, "ok", "2 ranks on 2 hosts"),
        (replace(TEST, ranks=ranks("gpu1", "gpu1")), TWO_HOSTS, "error", "2 ranks, none on gpu2"),
        (replace(TEST, ranks=ranks("gpu1", "gpu7")), TWO_HOSTS, "error", "2 ranks, ranks on gpu7, none on gpu2"),
        (None, TWO_GPUS, "ok", "2 ranks on 1 host"),
    ],
    ids=["no MPI", "too few", "by the log", "both differ", "placed", "one host", "another host", "log alone"],
)
def test_ranks(test: NcclTestsResult | None, expected: Expected, status: str, observed: str) -> None:
    finding = check_ranks(replace(CLEAN, test=test), expected)
    assert (finding.status, finding.observed, bool(finding.remedy)) == (status, observed, status != "ok")


def test_ranks_that_nobody_reports_are_not_known() -> None:
    assert check_ranks(replace(CLEAN, test=replace(TEST, nranks=None), log=None), TWO_GPUS).status == "unknown"


def with_halves(change: Callable[[Measured], Measured]) -> NcclTestsResult:
    rows = [
        replace(row, out_of_place=change(half), in_place=change(half)) for row in TEST.rows for half in [row.in_place] if half is not None
    ]
    return replace(TEST, rows=tuple(rows))


@pytest.mark.parametrize(
    ("test", "status", "observed"),
    [
        (with_halves(lambda half: replace(half, wrong=17)), "error", "wrong values: 17 at 8 bytes, 17 at 16 bytes, 17 at 32 bytes"),
        (replace(TEST, out_of_bounds=2, out_of_bounds_ok=False), "error", "wrong values: 2 sizes out of bounds"),
        (with_halves(lambda half: replace(half, wrong=None)), "unknown", "28 of 28 sizes not checked"),
        (with_halves(lambda half: replace(half, wrong=None, deviation=2e-7)), "ok", "28 sizes checked, none wrong"),
        (replace(TEST, rows=()), "unknown", "no result rows"),
        (replace(TEST, out_of_bounds=None, out_of_bounds_ok=None), "unknown", "the output ends before the count of wrong values"),
        (None, "unknown", "no result rows"),
    ],
    ids=["wrong", "out of bounds", "not checked", "old columns", "no rows", "cut off", "no output"],
)
def test_wrong_values(test: NcclTestsResult | None, status: str, observed: str) -> None:
    finding = check_wrong(replace(CLEAN, test=test))
    assert finding.status == status
    assert finding.observed.startswith(observed)


def test_the_half_that_cannot_be_checked_is_no_hindrance() -> None:
    """alltoall checks nothing in place."""
    assert check_wrong(outcome("alltoall_perf")).status == "ok"


@pytest.mark.parametrize(
    ("expected", "status"),
    [
        (replace(TWO_GPUS, gbytes_per_s=313.0 / 0.9), "ok"),
        (replace(TWO_GPUS, gbytes_per_s=314.0 / 0.9), "warning"),
        (replace(TWO_GPUS, gbytes_per_s=313.0 / 0.8), "warning"),
        (replace(TWO_GPUS, gbytes_per_s=314.0 / 0.8), "error"),
        (replace(TWO_GPUS, gbytes_per_s=20.0), "ok"),
        (replace(TWO_GPUS, gbytes_per_s=None), "unknown"),
        (replace(TWO_GPUS, gbytes_per_s=None, no_limit="software devices have no rate"), "not_applicable"),
        (replace(TWO_GPUS, large_bytes=2**40), "unknown"),
    ],
    ids=["reached", "just below", "above the floor", "below it", "no upper bound", "no rate", "none by plan", "no large size"],
)
def test_busbw(expected: Expected, status: str) -> None:
    assert check_busbw(CLEAN, expected).status == status


def test_busbw_of_separate_runs_is_not_known() -> None:
    assert check_busbw(replace(CLEAN, test=replace(TEST, runs=2)), TWO_GPUS).status == "unknown"


def test_nothing_to_expect_is_an_error() -> None:
    with pytest.raises(ValueError, match="a run of 2 ranks on 0 hosts"):
        judge(CLEAN, replace(TWO_GPUS, hosts={}))


def test_a_run_on_many_hosts_has_findings_on_each() -> None:
    job = Job(hosts=2, gpus=2, hcas=2, rings=2)
    run = replace(CLEAN, log=parse_nccl_log(job.lines()))
    hcas = frozenset({"mlx5_0", "mlx5_1"})
    expected = Expected(4, {"node1": "gpu001", "node2": "gpu002"}, gbytes_per_s=98.0, hcas={"node1": hcas, "node2": hcas}, gdr=True)
    found = [(finding.check, finding.host, finding.status) for finding in judge(run, expected)][4:]
    assert found == [(f"collective.{check}", host, "ok") for check in ("transport", "hcas") for host in ("node1", "node2")]
