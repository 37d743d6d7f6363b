# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The clock at the host gate."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._checks_time import check_time


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({"time": {"synchronised": True}}, "ok"),
        ({"time": {"synchronised": False}}, "warning"),
        ({"time": {"synchronised": None}}, "not_applicable"),
        ({"time": None}, "not_applicable"),
        ({}, "not_applicable"),
    ],
)
def test_the_clock(facts: dict[str, Any], status: str) -> None:
    (finding,) = check_time("node1", facts)
    assert (finding.stage, finding.check, finding.host, finding.status) == ("host", "host.time", "node1", status)
    assert ("timedatectl set-ntp true` on node1" in finding.remedy) is (status == "warning")


def in_step(offset_seconds: float) -> dict[str, Any]:
    chrony = {"synchronised": True, "source": "ntp1", "stratum": 2, "offset_seconds": offset_seconds, "sources": {"ntp1": "*"}}
    return {"time": {"synchronised": True, "chrony": chrony}}


@pytest.mark.parametrize(
    ("offset_seconds", "limit_seconds", "status"),
    [(0.000001579, None, "ok"), (0.1, None, "ok"), (-0.11, None, "warning"), (0.11, 1.0, "ok"), (0.02, 0.01, "warning")],
)
def test_how_far_chrony_says_it_is_off(offset_seconds: float, limit_seconds: float | None, status: str) -> None:
    (finding,) = check_time("node1", in_step(offset_seconds), limit_seconds)
    assert finding.status == status
    assert finding.observed == f"synchronised with ntp1, {abs(offset_seconds):.6f} s {'ahead' if offset_seconds > 0 else 'behind'}"


def test_a_clock_out_of_step_names_the_servers_that_chrony_has() -> None:
    chrony = {"synchronised": False, "source": None, "stratum": None, "offset_seconds": None, "sources": {"ntp1": "?", "ntp2": "?"}}
    (finding,) = check_time("node1", {"time": {"synchronised": False, "chrony": chrony}})
    assert (finding.status, finding.observed) == ("warning", "not synchronised; chrony has ntp1, ntp2 and follows none of them")
