# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PTP at the host gate, and the work of its role, by real answers of ptp4l."""

from __future__ import annotations

import copy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp import SYSTEM_CLOCK, parse_pmc
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp_files import PtpRequest, ptp_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.ptp import check_ptp
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.requests import ptp_netdev
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.ptp import ptp_differs, ptp_settings
from tests.unit.builders.hosts import described_file

FIXTURES = Path(__file__).parents[4] / "fixtures/ptp"
UNIT = "rdma-ptp@ens1.service"
OTHER = "56fc6c.fffe.b69e69"


def answer(name: str, **changes: Any) -> dict[str, Any]:
    return {**asdict(parse_pmc(FIXTURES.joinpath(f"3.1.1-{name}.txt").read_text(encoding="ascii"))), **changes}


def intent(**ptp: Any) -> Any:
    rail = {"name": "rail0", "nic": {"mac": "52:54:00:00:00:01"}, "address": "192.0.2.1/24"}
    wanted = {"rail": "rail0", "domain": 24, "timestamping": "software", **ptp}
    return normalize({"rdma_rails": [rail], "rdma_host": {"time": {"manage": True, "ptp": wanted}}})


@pytest.mark.parametrize(("known", "netdev"), [(None, "eno1"), ({"eno1": {}, "ens1": {}}, "eno1"), ({"ens1": {}}, None)])
def test_a_planned_interface_counts_unless_the_host_is_known_not_to_have_it(known: dict[str, Any] | None, netdev: str | None) -> None:
    assert ptp_netdev(intent(rail=None, interface="eno1"), from_dict({"interfaces": known})) == netdev


NO_PTP = normalize({"rdma_rails": [{"name": "rail0", "nic": {"mac": "52:54:00:00:00:01"}, "address": "192.0.2.1/24"}]})


def program(name: str, clock: str | None = SYSTEM_CLOCK, pid: int = 7, **more: Any) -> dict[str, Any]:
    return {"pid": pid, "name": name, "clock": clock, **more}


CHRONYD, PTP4L = program("chronyd"), program("ptp4l", "", 8, ours=True)


def facts(ptp: dict[str, Any] | None, mark: str | None = "*", hardware: bool = False, **time: Any) -> dict[str, Any]:
    stamps = {"hardware": hardware, "software": True, "clock": 0 if hardware else None}
    sources = {} if mark is None else {"PTP": mark}
    chrony = {"synchronized": True, "source": "PTP", "stratum": 1, "offset_seconds": 0.0, "sources": sources}
    running = {"active": True, "enabled": True}
    return {
        "netdevs": {"ens1": {"mac": "52:54:00:00:00:01", "pci": "0000:21:00.0", "ethtool": {"timestamping": stamps}}},
        "units": {UNIT: running} if ptp else {},
        "time": {"synchronized": True, "chrony": chrony, "programs": [CHRONYD, *([PTP4L] if ptp else [])], "ptp": ptp, **time},
    }


def found(seen: dict[str, Any], wanted: Any = None) -> Finding:
    (finding,) = check_ptp("node2", wanted or intent(), from_dict(seen))
    assert (finding.stage, finding.check, finding.host) == ("host", "host.ptp", "node2")
    assert bool(finding.remedy) == (finding.status not in ("ok", "not_applicable"))
    return finding


def test_a_host_that_follows() -> None:
    finding = found(facts(answer("slave")))
    assert (finding.status, finding.observed) == ("ok", f"follows {OTHER}, off by -83 ns; chrony follows it")
    assert finding.expected == "in domain 24, off by 100000 ns at most"


def test_the_planned_grandmaster() -> None:
    finding = found(facts(answer("gm"), mark=None), intent(grandmaster="node2"))
    assert (finding.status, finding.observed) == ("ok", f"grandmaster {OTHER} in domain 24")
    lost = found(facts(answer("gm", ports={"1": "FAULTY"}), mark=None), intent(grandmaster="node2"))
    assert (lost.status, lost.observed) == ("error", "the port is FAULTY, not MASTER")


@pytest.mark.parametrize(
    ("seen", "status", "observed"),
    [
        (facts(answer("lost")), "error", "no grandmaster in domain 24: the port is LISTENING"),
        (facts(answer("listening")), "error", "no grandmaster in domain 24: the port is LISTENING"),
        (facts(answer("gm")), "error", "no grandmaster in domain 24: the port is MASTER"),
        (facts(answer("slave", domain=7)), "error", "ptp4l is in domain 7"),
        (facts(answer("slave", measured=False)), "unknown", f"follows {OTHER}, but has not measured the offset yet"),
        (facts(answer("slave", offset_ns=-50_000_000)), "error", f"follows {OTHER}, off by -50000000 ns"),
        (facts(answer("slave"), mark="x"), "error", "chrony rejects it, because it disagrees with most time servers"),
        (facts(answer("slave"), mark="?"), "error", "chrony does not use it (mark '?')"),
        (facts(answer("slave"), mark=None), "error", "chrony has no such source"),
        (facts(answer("slave"), chrony=None), "error", "chrony does not run"),
        (facts(answer("slave"), chrony=None, chrony_unread="506"), "unknown", "506"),
        (facts(None), "error", "ptp4l does not run"),
        (facts(None, ptp_unread="ptp4l does not answer to pmc"), "unknown", "ptp4l does not answer to pmc"),
        (facts(None, programs=[PTP4L]), "unknown", "ptp4l was not asked"),
        (facts(answer("slave"), programs=[program("ptp4l", None, unread="/etc/x: missing")]), "unknown", "/etc/x: missing"),
        ({**facts(answer("slave")), "time": None}, "unknown", "the clock's state was not read"),
        ({**facts(answer("slave")), "netdevs": {}}, "unknown", "rail0 has no interface"),
        ({**facts(None), "units": {UNIT: {"active": True, "enabled": True}}}, "unknown", "ptp4l was not asked"),
    ],
)
def test_what_is_wrong_is_said(seen: dict[str, Any], status: str, observed: str) -> None:
    finding = found(seen)
    assert finding.status == status
    assert observed in finding.observed


def test_the_offset_has_a_limit() -> None:
    far = facts(answer("slave", offset_ns=-50_000_000))
    assert found(far, intent(max_offset_ns=50_000_000)).status == "ok"
    assert found(far, intent(max_offset_ns=49_999_999)).status == "error"


def test_hardware_time_stamps() -> None:
    wanted = intent(timestamping="hardware")
    follows = answer("slave", ports={"1": "SLAVE"}, tai=True)
    assert found(facts(follows, hardware=True), wanted).status == "ok"
    assert found(facts(follows), wanted).observed == "ens1 has no clock (PHC)"
    assert found({**facts(follows), "netdevs": {"ens1": {"mac": "52:54:00:00:00:01"}}}, wanted).status == "unknown"
    assert "does not use PTP's time scale" in found(facts({**follows, "tai": False}, hardware=True), wanted).observed
    uncalibrated = facts({**follows, "ports": {"1": "UNCALIBRATED"}}, hardware=True)
    assert found(uncalibrated, wanted).status == "error"
    far = facts({**follows, "offset_ns": 1001}, hardware=True)
    assert (found(far, wanted).status, found(far, wanted).expected) == ("error", "in domain 24, off by 1000 ns at most")


@pytest.mark.parametrize("wanted", [intent(), NO_PTP])
@pytest.mark.parametrize("other", ["phc2sys", "ptp4l"])
def test_two_programs_that_adjust_one_clock_are_both_named(wanted: Any, other: str) -> None:
    finding = found(facts(answer("slave"), programs=[CHRONYD, program(other, pid=9)]), wanted)
    assert finding.status == "error"
    assert finding.observed == f"chronyd (pid 7) and {other} (pid 9) adjust the system clock at once"
    assert finding.subject == "PTP"


def test_two_programs_that_adjust_the_clock_of_a_nic_are_reported_by_its_name() -> None:
    finding = found(facts(answer("slave"), programs=[program("ptp4l", "ptp0"), program("phc2sys", "ptp0", pid=9)]))
    assert (finding.subject, finding.observed) == ("clock ptp0", "ptp4l (pid 7) and phc2sys (pid 9) adjust ptp0 at once")


def test_without_planned_ptp_only_ptp_programs_count() -> None:
    assert found(facts(None, programs=[CHRONYD, program("ntpd", pid=9)]), NO_PTP).status == "not_applicable"
    assert found(facts(answer("slave")), NO_PTP).status == "not_applicable"
    assert found({**facts(None), "time": None}, NO_PTP).status == "not_applicable"


def converged(name: str = "node2", **ptp: Any) -> tuple[Any, dict[str, Any]]:
    wanted = intent(**ptp)
    seen = facts(answer("slave"), None if ptp.get("grandmaster") == name else "*")
    hardware = ptp.get("timestamping") == "hardware"
    request = PtpRequest("ens1", "0000:21:00.0", 24, "UDPv4", hardware, ptp.get("grandmaster") == name, "chrony.service")
    seen["files"] = {each.path: described_file(each) for each in ptp_files(request) if each.content is not None}
    return wanted, seen


@pytest.mark.parametrize("ptp", [{}, {"timestamping": "hardware"}, {"grandmaster": "node2"}])
def test_a_converged_host_has_no_work(ptp: dict[str, Any]) -> None:
    wanted, seen = converged(**ptp)
    assert ptp_differs("node2", wanted, from_dict(seen)) is False
    assert ptp_settings("node2", wanted, from_dict(seen))["restarts"] is False


def test_without_planned_ptp_it_stays_as_it_is() -> None:
    _wanted, seen = converged()
    assert ptp_differs("node2", NO_PTP, from_dict(seen)) is False
    assert ptp_settings("node2", NO_PTP, from_dict(seen))["files"] == []


def test_what_differs_is_work() -> None:
    wanted, good = converged()
    stopped, stale, unknown, changed = (copy.deepcopy(good) for _each in range(4))
    stopped["units"][UNIT]["active"] = False
    stale["units"]["rdma-ptp@ens9.service"] = {"active": False, "enabled": True}
    unknown["time"]["chrony"]["sources"] = {"ntp1": "*"}
    changed["files"]["/etc/rdma-cluster/ptp4l.conf"]["sha256"] = "0" * 64
    assert all(ptp_differs("node2", wanted, from_dict(each)) for each in (stopped, stale, unknown, changed))
    assert ptp_settings("node2", wanted, from_dict(stale))["stale"] == ["rdma-ptp@ens9.service"]
    assert [ptp_settings("node2", wanted, from_dict(each))["restarts"] for each in (stopped, unknown, changed)] == [False, True, False]
    # It was a follower until now: chrony must lose the reference clock.
    assert ptp_differs("node2", intent(grandmaster="node2"), from_dict(good)) is True


@pytest.mark.parametrize(
    ("ptp", "states"),
    [
        ({}, ["SLAVE", "UNCALIBRATED"]),
        ({"timestamping": "hardware"}, ["SLAVE"]),
        ({"grandmaster": "node2"}, ["MASTER"]),
        ({"grandmaster": "node1"}, ["SLAVE", "UNCALIBRATED"]),
    ],
)
def test_the_state_that_the_role_waits_for(ptp: dict[str, Any], states: list[str]) -> None:
    settings = ptp_settings("node2", intent(**ptp), from_dict(facts(None, hardware=True)))
    assert settings["working"] == states
    assert settings["asks"][:7] == ["pmc", "-u", "-b", "0", "-d", "24", "-t"]


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([program("phc2sys", pid=9)], "phc2sys (pid 9)"),
        ([program("phc2sys", None, pid=9)], "phc2sys (pid 9)"),
        ([program("ptp4l", "", pid=9)], "ptp4l (pid 9)"),
        ([program("phc2sys", "", pid=9)], ""),
    ],
)
def test_programs_of_others_are_in_the_way(others: list[dict[str, Any]], words: str) -> None:
    seen = facts(answer("slave"), programs=[CHRONYD, PTP4L, *others])
    assert ptp_settings("node2", intent(), from_dict(seen))["refused"] == words
