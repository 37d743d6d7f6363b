# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A failed job and what its hosts recorded: the time of the failure, and causes that were true only then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.diagnose import Diagnosis, Fleet, diagnose
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.log import JobLog, read_job_log
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.past import JobTime, failed_at, time_of_log
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.scene import Known
from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.text import text
from ansible_collections.rdma.cluster.plugins.plugin_utils._recorder.record import Change, Clock, HostRecord, Line

T = 1795442700.0
RETRY = (
    "{}node1:100:200 [0] misc/socket.cc:1 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4791> with status=IBV_WC_RETRY_EXC_ERR(12) "
    "opcode=IBV_WC_SEND(0) vendor_err=129\n"
)
LOCKED = "{}node1:100:200 [0] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"
RAILS = {"ens1": "rail1"}


def log(*lines: str) -> JobLog:
    return read_job_log([line.format("[2026-11-23 14:05:00] ") for line in lines])


def record(host: str, *changes: Change, **more: object) -> HostRecord:
    known = HostRecord(host, True, T - 600, T + 300, Clock(0.1, 0.004), changes, middle=T, journal=(), rails=RAILS)
    return replace(known, **more)  # type: ignore[arg-type]


def carrier(seconds: float, now: str, of: str = "ens1") -> Change:
    return Change(T + seconds, T + seconds - 2, "carrier", of, "?", now)


def found(job: JobLog, *records: HostRecord, missing: tuple[str, ...] = ()) -> Diagnosis:
    fleet = Fleet(dict.fromkeys([*(each.host for each in records), *missing]), Known, {}, records=records)
    return diagnose(job, fleet, JobTime(T, None, None, "the time of rdma_job_time"), T)


def test_a_port_that_was_down_before_the_error_is_the_first_confirmed_cause() -> None:
    down = record("node3", carrier(-38.2, "no carrier"), carrier(-34.2, "up"))
    diagnosis = found(log(RETRY), record("node1"), down)
    confirmed = diagnosis.findings[0].causes[0]
    assert (confirmed.name, confirmed.verdict) == ("past.port", "confirmed")
    assert (
        confirmed.answers[""].seen == "rail1 (ens1) of node3 (not in the log) was down 38.2 s before the first error, "
        "and up again 4.0 s later"
    )
    shown = text(diagnosis, "job.log")
    assert "confirmed      a port was down before the error\n" in shown
    assert "AROUND THE FAILURE\n  failed at 2026-11-23 14:05:00 UTC: the time of rdma_job_time\n" in shown
    lines = [line.split() for line in shown.splitlines() if "node3  " in line and " s " in line]
    assert [line[0] for line in lines] == ["-38.2", "-34.2"]


def test_a_port_that_went_down_after_the_error_is_no_cause() -> None:
    diagnosis = found(log(RETRY), record("node1", carrier(30.0, "no carrier")))
    verdicts = {each.name: each.verdict for each in diagnosis.findings[0].causes}
    assert (verdicts["past.port"], verdicts["past.gid"], verdicts["past.host"]) == ("excluded",) * 3
    assert "+30.0 s" in text(diagnosis, "job.log")


@pytest.mark.parametrize("gaps", [[(T - 100, T - 50)], [(T - 600, T - 590)]])
def test_a_gap_in_a_record_excludes_nothing(gaps: list[tuple[float, float]]) -> None:
    diagnosis = found(log(RETRY), record("node1", gaps=gaps))
    verdicts = {each.name: each.verdict for each in diagnosis.findings[0].causes}
    assert verdicts["past.port"] == "not checkable"


def test_a_host_without_a_record_excludes_nothing() -> None:
    diagnosis = found(log(RETRY), record("node1"), record("node2", recorded=False))
    (past,) = [each for each in diagnosis.findings[0].causes if each.name == "past.port"]
    assert (past.verdict, past.answers[""].seen) == ("not checkable", "not recorded all the time before the failure: node2")


def test_hosts_without_a_record_leave_what_can_be_tried_in_front() -> None:
    diagnosis = found(log(RETRY), record("node1", recorded=False))
    names = [each.name for each in diagnosis.findings[0].causes if each.verdict == "not checkable"]
    assert "port.down" in names
    past = [name.startswith("past.") for name in names]
    assert past == sorted(past)
    assert any(past)


def test_without_any_record_the_past_is_no_cause_at_all() -> None:
    diagnosis = diagnose(log(RETRY), Fleet({"node1": None}, Known, {}))
    assert not [each.name for each in diagnosis.findings[0].causes if each.name.startswith("past.")]
    assert "AROUND THE FAILURE" not in text(diagnosis, "job.log")


def test_a_port_is_no_cause_of_memory_that_cannot_be_locked() -> None:
    unloaded = Change(T - 9, T - 11, "module", "nvidia_peermem", "loaded", None)
    diagnosis = found(log(LOCKED), record("node1", carrier(-5, "no carrier"), unloaded))
    confirmed = {each.name: each.answers[""].seen for each in diagnosis.findings[0].causes if each.verdict == "confirmed"}
    assert confirmed == {"past.host": "node1, 9.0 s before the first error: module nvidia_peermem was unloaded"}


def test_counters_gids_and_journals_are_causes() -> None:
    changes = [
        Change(T - 20, T - 80, "counters", "mlx5_0/1", {"symbol_error": 1}, {"symbol_error": 90}),
        Change(T - 10, T - 11, "gid", "mlx5_0/1", {"3": "fe80::1"}, {"3": None}),
    ]
    oops = "mlx5_core 0000:3d:00.0: poll_health:801:(pid 0): device's health compromised - reached miss count"
    lines = [Line(T - 15, "kernel", oops), Line(T - 14, "kernel", "rail1: port 11 entered disabled state"), Line(T + 60, "kernel", oops)]
    diagnosis = found(log(RETRY), record("node1", *changes, journal=lines))
    confirmed = {each.name: each.answers[""].seen for each in diagnosis.findings[0].causes if each.verdict == "confirmed"}
    assert list(confirmed) == ["past.gid", "past.counters", "past.journal"]
    assert confirmed["past.counters"] == "node1, 20.0 s before the first error: mlx5_0/1: symbol_error +89"
    assert confirmed["past.journal"].startswith("node1, 15.0 s before the first error: kernel: mlx5_core 0000:3d:00.0: poll_health")
    shown = text(diagnosis, "job.log")
    assert "+60.0 s" in shown
    assert "entered disabled state" not in shown


def test_an_unread_journal_excludes_nothing() -> None:
    diagnosis = found(log(RETRY), record("node1", journal=(), journal_unread="no permission"))
    (past,) = [each for each in diagnosis.findings[0].causes if each.name == "past.journal"]
    assert (past.verdict, past.answers[""].seen) == ("not checkable", "node1: no permission")
    assert "unknown: the journal of node1 could not be read: no permission" in text(diagnosis, "job.log")


def test_the_time_of_a_log_is_that_of_its_first_error() -> None:
    job_time = time_of_log(log("nothing\n", RETRY), T + 3600)
    assert (job_time.seconds, job_time.local, job_time.host) == (None, "2026-11-23 14:05:00", "node1")
    assert job_time.words == "the time of line 2 (ib.retry) in the log"
    # A log of last December, read in November.
    assert time_of_log(read_job_log([RETRY.format("[2025-12-24 10:00:00] ")]), T).local == "2025-12-24 10:00:00"


def test_a_log_without_a_time_names_the_signature_that_was_used() -> None:
    job_time = time_of_log(read_job_log([RETRY.format("")]), T)
    assert job_time.local is None
    assert job_time.words == (
        "No line of a failure has a time. The first failure is line 1 (ib.retry), found by its text. Set rdma_job_time to search around it."
    )
    later = time_of_log(read_job_log([LOCKED.format(""), RETRY.format("[2026-11-23 14:05:00] ")]), T + 60)
    assert later.words == "the time of line 2 (ib.retry) in the log, because the first failure, line 1 (memory.locked), has none"
    assert "no known failure" in time_of_log(read_job_log([]), T).words


def test_a_local_time_is_that_of_the_host_that_wrote_the_line() -> None:
    records = {name: record(name, middle=middle) for name, middle in (("node1", T), ("node2", T + 3600), ("node3", T + 3600))}
    job_time = JobTime(None, "2026-11-23 14:05:00", "node1", "")
    assert failed_at(job_time, records, "node1") == T
    assert failed_at(job_time, records, None) == T + 3600
    assert failed_at(job_time, {}, None) is None
    assert failed_at(JobTime(T, None, None, ""), records, None) == T
