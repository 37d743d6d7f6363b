# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of the host stage over limits beside memlock, rings, CPUs, over facts and faults in them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.host import check_limits
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.tuning import check_cpu, check_rings
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict

FILE = "/etc/security/limits.d/90-rdma-cluster.conf"
LOGIN = {"unlimited": False, "value": "131072", "file": FILE}
FREE, BOUND = ({"pid": 7, "memlock": {"unlimited": size is None, "bytes": size}} for size in (None, 8388608))


def host(**changes: Any) -> dict[str, Any]:
    cpu = {"governor": None, "max_cstate_latency_us": None, "irqbalance": None}
    return {"host": {"memlock_unlimited": True, "open_files": 131072, "keep_ipc": True, "cpu": cpu, **changes}}


def limits(**changes: Any) -> dict[str, Any]:
    good = {
        "service_open_files": 131072,
        "login_open_files": {"*": LOGIN, "root": LOGIN},
        "remove_ipc": False,
        "running": {"slurmd.service": FREE},
    }
    return {"limits": {**good, **changes}}


def brief(found: list[Finding]) -> list[tuple[str, str, str]]:
    assert {finding.stage for finding in found} == {"host"}
    assert all(bool(finding.remedy) is (finding.status not in ("ok", "not_applicable")) for finding in found)
    return [(finding.check, finding.status, finding.observed) for finding in found]


def test_a_good_host_passes() -> None:
    assert brief(check_limits("node1", host(), from_dict(limits()))) == [
        ("host.files", "ok", "131072"),
        ("host.files", "ok", f"131072 by {FILE}"),
        ("host.files", "ok", f"131072 by {FILE}"),
        ("host.ipc", "ok", "kept"),
        ("host.services", "ok", "unlimited"),
    ]


LATER = {"unlimited": False, "value": "4096", "file": "/etc/security/limits.d/99-hpc.conf", "line": 3}
FAULTS = [
    pytest.param(
        limits(service_open_files=1024),
        ("host.files", "error", "1024"),
        "1. Run the host stage for node1. 2. On node1, restart",
        id="service",
    ),
    pytest.param(
        limits(service_open_files=None),
        ("host.files", "unknown", "the limit of a service could not be read"),
        "On node1, run `systemd-run",
        id="unasked",
    ),
    pytest.param(
        limits(login_open_files={"*": LATER, "root": LOGIN}),
        ("host.files", "error", f"4096 by line 3 of {LATER['file']}"),
        f"1. On node1, remove line 3 of {LATER['file']}",
        id="a later file",
    ),
    pytest.param(
        limits(login_open_files={"*": LOGIN, "root": None}),
        ("host.files", "error", "no file sets it: the kernel's default"),
        "Run the host stage for node1.",
        id="no file",
    ),
    pytest.param(limits(remove_ipc=True), ("host.ipc", "error", "removed by logind"), "1. Run the host stage for node1", id="ipc"),
    pytest.param(
        limits(running={"containerd.service": BOUND, "slurmd.service": FREE}),
        ("host.services", "warning", "8388608 bytes (process 7)"),
        "Drain node1, then run `systemctl restart containerd.service` there",
        id="a running service",
    ),
]


@pytest.mark.parametrize(("facts", "expected", "remedy"), FAULTS)
def test_each_fault_is_one_finding(facts: dict[str, Any], expected: tuple[str, str, str], remedy: str) -> None:
    found = check_limits("node1", host(), from_dict(facts))
    (bad,) = [finding for finding in found if finding.status != "ok"]
    assert (bad.check, bad.status, bad.observed) == expected
    assert bad.remedy.startswith(remedy)


def test_what_nobody_asks_for_or_has_is_not_applicable() -> None:
    silent = host(memlock_unlimited=False, open_files=0, keep_ipc=False)
    assert {finding.status for finding in check_limits("node1", silent, from_dict(limits()))} == {"not_applicable"}
    silent_logind = check_limits("node1", host(), from_dict(limits(remove_ipc=None, logind=True, running={})))
    assert [(each.status, each.observed) for each in silent_logind if each.check == "host.ipc"] == [
        ("unknown", "logind runs but did not answer")
    ]
    bare = check_limits("node1", host(), from_dict(limits(remove_ipc=None, logind=False, running={})))
    assert brief(bare)[3:] == [
        ("host.ipc", "not_applicable", "logind, which could remove it, does not run here"),
        ("host.services", "not_applicable", "no service that starts jobs runs here"),
    ]


RAIL = {"name": "rail0", "nic": {"pci": "0000:21:00.0"}, "netdev": "ens1", "rx": 256, "tx": None}


def rings(rx: int | None) -> dict[str, Any]:
    return {"netdevs": {"ens1": {"ethtool": {"rings": {"rx": rx, "tx": 64, "rx_max": 256, "tx_max": 256}}}}}


def test_rings() -> None:
    assert brief(check_rings("node1", [RAIL], from_dict(rings(256)), requested=True)) == [("host.rings", "ok", "rx 256")]
    (short,) = check_rings("node1", [RAIL], from_dict(rings(128)), requested=True)
    assert (short.status, short.observed, short.expected, short.subject) == ("warning", "rx 128", "rx 256", "rings of rail0 (ens1)")
    assert "nic_rings_reset_allowed=true" in short.remedy
    none = from_dict({})
    assert brief(check_rings("node1", [], none, requested=False)) == [("host.rings", "not_applicable", "rdma_host.rings requests nothing")]
    assert brief(check_rings("node1", [], none, requested=True)) == [("host.rings", "not_applicable", "no rail's driver reports its rings")]


def cpu(**changes: Any) -> dict[str, Any]:
    good = {
        "driver": "intel_pstate", "governors": {"performance": 2}, "available": ["performance", "powersave"],
        "idle_states": {"C1": {"latency_us": 1, "cpus": 2, "disabled": 0}, "C6": {"latency_us": 133, "cpus": 2, "disabled": 2}},
        "latency_us": None, "tuned": None,
    }  # fmt: skip
    return {"cpu": {**good, **changes}, "units": {"irqbalance.service": {"active": True, "enabled": True}}}


def plan(governor: str | None = None, most_us: int | None = None, irqbalance: str | None = None) -> dict[str, Any]:
    return host(cpu={"governor": governor, "max_cstate_latency_us": most_us, "irqbalance": irqbalance})


ENTERED = {"C6": {"latency_us": 133, "cpus": 2, "disabled": 1}}
CPUS = [
    pytest.param(plan("performance"), cpu(), ("host.cpu", "ok", "performance"), id="governor"),
    pytest.param(plan("powersave"), cpu(), ("host.cpu", "error", "performance"), id="another governor"),
    pytest.param(plan("ondemand"), cpu(), ("host.cpu", "error", "performance"), id="no such governor"),
    pytest.param(plan("performance"), {}, ("host.cpu", "unknown", "not read"), id="not read"),
    pytest.param(plan(most_us=10), cpu(), ("host.cpu", "ok", "C1 (1 µs)"), id="shallow"),
    pytest.param(plan(most_us=10), cpu(idle_states=ENTERED), ("host.cpu", "error", "C6 (133 µs)"), id="deep"),
    pytest.param(plan(most_us=10), cpu(idle_states=ENTERED, latency_us=10), ("host.cpu", "ok", "10 µs, requested by a process"), id="held"),
    pytest.param(plan(most_us=10), cpu(idle_states=ENTERED, latency_us=20), ("host.cpu", "error", "C6 (133 µs)"), id="held too loosely"),
    pytest.param(plan(irqbalance="enabled"), cpu(), ("host.cpu", "ok", "active, enabled"), id="irqbalance"),
    pytest.param(plan(irqbalance="disabled"), cpu(), ("host.cpu", "error", "active, enabled"), id="irqbalance runs"),
    pytest.param(plan(irqbalance="disabled"), {"units": None}, ("host.cpu", "unknown", "not read"), id="irqbalance not read"),
]


@pytest.mark.parametrize(("intent", "facts", "expected"), CPUS)
def test_cpus(intent: dict[str, Any], facts: dict[str, Any], expected: tuple[str, str, str]) -> None:
    assert brief(check_cpu("node1", intent, from_dict(facts))) == [expected]


def test_a_governor_that_is_not_there_is_to_be_corrected() -> None:
    (finding,) = check_cpu("node1", plan("ondemand"), from_dict(cpu()))
    assert finding.remedy == "Correct rdma_host.cpu.governor: intel_pstate on node1 has performance, powersave."


def test_a_virtual_machine_has_neither_frequencies_nor_idle_states() -> None:
    found = check_cpu("node1", plan("performance", 10), from_dict(cpu(driver=None, governors={}, available=[], idle_states={})))
    assert [finding.status for finding in found] == ["not_applicable", "not_applicable"]
    assert [finding.observed for finding in check_cpu("node1", plan(), from_dict({}))] == ["rdma_host.cpu requests nothing"]
