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
