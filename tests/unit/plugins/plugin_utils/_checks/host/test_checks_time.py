# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The clock at the host gate."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.tuning import check_clocksource, check_time
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({"time": {"synchronized": True}}, "ok"),
        ({"time": {"synchronized": False}}, "warning"),
        ({"time": {"synchronized": None}}, "unknown"),
        ({"time": None}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_the_clock(facts: dict[str, Any], status: str) -> None:
    (finding,) = check_time("node1", from_dict(facts))
    assert (finding.stage, finding.check, finding.host, finding.status) == ("host", "host.time", "node1", status)
    assert ("timedatectl set-ntp true` on node1" in finding.remedy) is (status == "warning")


def in_step(offset_seconds: float) -> dict[str, Any]:
    chrony = {"synchronized": True, "source": "ntp1", "stratum": 2, "offset_seconds": offset_seconds, "sources": {"ntp1": "*"}}
    return {"time": {"synchronized": True, "chrony": chrony}}


@pytest.mark.parametrize(
    ("offset_seconds", "limit_seconds", "status"),
    [(0.000001579, None, "ok"), (0.1, None, "ok"), (-0.11, None, "warning"), (0.11, 1.0, "ok"), (0.02, 0.01, "warning")],
)
def test_how_far_chrony_says_it_is_off(offset_seconds: float, limit_seconds: float | None, status: str) -> None:
    (finding,) = check_time("node1", from_dict(in_step(offset_seconds)), limit_seconds)
    assert finding.status == status
    assert finding.observed == f"synchronized with ntp1, {abs(offset_seconds):.6f} s {'ahead' if offset_seconds > 0 else 'behind'}"


def test_a_clock_out_of_step_names_the_servers_that_chrony_has() -> None:
    chrony = {"synchronized": False, "source": None, "stratum": None, "offset_seconds": None, "sources": {"ntp1": "?", "ntp2": "?"}}
    (finding,) = check_time("node1", from_dict({"time": {"synchronized": False, "chrony": chrony}}))
    assert (finding.status, finding.observed) == ("warning", "not synchronized; chrony has ntp1, ntp2 but uses none")


SOURCES = [
    ("x86_64", "tsc", ["tsc", "hpet"], "ok"),
    ("x86_64", "kvm-clock", ["kvm-clock", "tsc", "acpi_pm"], "ok"),
    ("x86_64", "hyperv_clocksource_tsc_page", ["hyperv_clocksource_tsc_page"], "ok"),
    ("aarch64", "arch_sys_counter", ["arch_sys_counter"], "ok"),
    ("x86_64", "hpet", ["hpet", "acpi_pm"], "warning"),
    ("x86_64", "acpi_pm", ["tsc", "acpi_pm"], "warning"),
    ("aarch64", "jiffies", ["jiffies"], "warning"),
    ("ppc64le", "timebase", ["timebase"], "not_applicable"),
    (None, "tsc", ["tsc"], "unknown"),
]


@pytest.mark.parametrize(("arch", "current", "available", "status"), SOURCES)
def test_the_clock_source(arch: str | None, current: str, available: list[str], status: str) -> None:
    facts = {"time": {"clocksource": {"current": current, "available": available}}, "stack": {"arch": arch}}
    (finding,) = check_clocksource("node1", from_dict(facts))
    assert (finding.stage, finding.check, finding.status) == ("host", "host.clocksource", status)
    assert finding.observed.startswith(current)
    assert bool(finding.remedy) == (status in ("warning", "unknown"))


def test_a_clock_source_that_could_not_be_read_is_unknown() -> None:
    for time in (None, {}, {"clocksource": None}):
        (finding,) = check_clocksource("node1", from_dict({"time": time, "stack": {"arch": "x86_64"}}))
        assert (finding.status, finding.observed[:4]) == ("unknown", "/sys")


def test_the_way_back_to_the_tsc_is_reported_in_steps() -> None:
    clocksource = {"current": "hpet", "available": ["tsc", "hpet"]}
    facts = {"time": {"clocksource": clocksource}, "stack": {"arch": "x86_64"}}
    (finding,) = check_clocksource("node1", from_dict(facts))
    assert finding.remedy.startswith("1. On node1, `dmesg | grep -iE 'clocksource|tsc'`")
    now = "2. Until the next boot, run `echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource` there"
    assert now in finding.remedy
    assert "3. If it happens again, add `tsc=nowatchdog` to the kernel command line of node1" in finding.remedy
    clocksource["available"] = ["hpet"]
    (finding,) = check_clocksource("node1", from_dict(facts))
    assert "2. The kernel offers only hpet" in finding.remedy
