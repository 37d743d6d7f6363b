# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is suspected by its own figure alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.evidence import SWEEP, Evidence
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.verdict.low import low_ports
from tests.unit.builders.hosts import hard
from tests.unit.plugins.plugin_utils._pairs.gate.test_gate import AGAINST, Measured, dead, fleet, of_cards, run_folder, slow, swept

ALL = {(host, rail) for host in ("node1", "node2", "node3", "node4") for rail in ("rail0", "rail1")}


def low(base: Path, measured: Measured, *, cards: bool = True, **more: Any) -> set[tuple[str, str]]:
    """(host, rail) of the suspects of a sweep."""
    folder, of = run_folder(base, "R1"), fleet(hard if cards else lambda each: None)
    swept(folder, of, measured, **more)
    sweep = Evidence.of(folder, SWEEP, of.intents, of.facts)
    assert sweep is not None
    settings = of.intents["node1"]["pairs"]
    suspects = [each.verdict for each in low_ports(sweep, sweep.verdicts(settings, {}), settings)]
    matrix = sweep.bandwidth
    for each in suspects:
        assert {each.host in (matrix.server[at], matrix.client[at]) and each.rail == matrix.rail[at] for at in each.evidence} == {True}
    return {(matrix.hosts[each.host], matrix.rails[each.rail]) for each in suspects if each.host is not None and each.rail is not None}


@pytest.mark.parametrize(("gbps", "expected"), [(97.5, set()), (79.0, set()), (77.0, ALL), (99.5, set())])
def test_a_fleet_that_is_slow_everywhere_is_suspected_port_by_port(tmp_path: Path, gbps: float, expected: set[tuple[str, str]]) -> None:
    """0.80 of 98 Gb/s is the bar; what is above the possible maximum is wrong, and not low."""
    assert low(tmp_path, lambda rail, server, client: gbps) == expected


def test_a_host_that_a_verdict_names_is_not_suspected_twice(tmp_path: Path) -> None:
    assert low(tmp_path, slow(("rail0", "node2"), by=0.5, otherwise=of_cards)) == set()


#: What four emulated machines reached whose first round came while they were still busy; of node2 nothing came through on rail0.
BUSY = {
    "rail0": {"node1 node3": 0.036244, "node1 node4": 0.018238, "node3 node4": 0.067903},
    "rail1": {"node1 node2": 0.068902, "node1 node3": 0.098014, "node1 node4": 0.016359, "node2 node3": 0.013633,
              "node2 node4": 0.096261, "node3 node4": 0.064114},
}  # fmt: skip


def test_a_port_that_was_busy_for_a_moment_is_suspected(tmp_path: Path) -> None:
    found = low(tmp_path, lambda rail, server, client: BUSY[rail].get(" ".join(sorted((server, client)))), cards=False)
    assert found == {("node1", "rail0")}


def test_a_partner_that_only_helps_is_never_suspected(tmp_path: Path) -> None:
    assert low(tmp_path, lambda rail, server, client: 75.0, schedule=AGAINST) <= {("node1", "rail0"), ("node1", "rail1")}


def test_what_failed_is_no_low_port(tmp_path: Path) -> None:
    assert low(tmp_path, dead("node2"), cards=False) == set()
