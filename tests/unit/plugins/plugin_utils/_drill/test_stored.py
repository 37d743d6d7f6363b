# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The measured outages beside the runs: the longest valid one of a host's planes, and the check that compares it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.outage import check_outage
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.stored import FILE, basis_of, longest, store
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.clos import settings
from tests.unit.builders.hosts import lab_intent

NOW = 1_780_000_000.0


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    run = tmp_path / "20261126T120000Z-1"
    run.mkdir()
    return RunFolder(run)


def intent_of(*, bfd: bool = True) -> Intent:
    intent = lab_intent()
    planes = {rail["plane"] for rail in intent["rails"]}
    plane = {"subnet_manager": None, "ratio": None, "plan": "cabling.yml", "routing": {**settings(), "bfd": bfd}}
    intent["fabric"]["planes"] = dict.fromkeys(planes, plane)  # type: ignore[misc]
    return intent


def keep(folder: RunFolder, intent: Intent, fault: str, seconds: float, at: float = NOW) -> None:
    plane = intent["rails"][0]["plane"]
    store(folder, plane, basis_of(intent, plane), (fault, seconds), at)


def found(folder: RunFolder, intent: Intent, hours: float = 168) -> tuple[float, str] | None:
    outage = longest(folder, intent, max_age_hours=hours, clock=lambda: NOW + 3600)
    return None if outage is None else (outage["seconds"], outage["fault"])


def test_the_longest_fault_counts_and_a_newer_one_replaces_its_own(folder: RunFolder) -> None:
    intent = intent_of()
    assert found(folder, intent) is None
    keep(folder, intent, "silence leaf1 swp1", 0.9)
    keep(folder, intent, "cut leaf1 swp1", 12.6)
    assert found(folder, intent) == (12.6, "cut leaf1 swp1")
    keep(folder, intent, "cut leaf1 swp1", 0.2)
    assert found(folder, intent) == (0.9, "silence leaf1 swp1")


def test_an_outage_of_other_settings_does_not_count(folder: RunFolder) -> None:
    keep(folder, intent_of(bfd=False), "silence leaf1 swp1", 12.6)
    assert found(folder, intent_of(bfd=False)) == (12.6, "silence leaf1 swp1")
    assert found(folder, intent_of()) is None
    keep(folder, intent_of(), "cut leaf1 swp1", 0.2)
    assert found(folder, intent_of(bfd=False)) is None


def test_an_outage_that_is_too_old_does_not_count(folder: RunFolder) -> None:
    keep(folder, intent_of(), "silence leaf1 swp1", 0.9, NOW - 10 * 3600)
    assert found(folder, intent_of(), hours=12) == (0.9, "silence leaf1 swp1")
    assert found(folder, intent_of(), hours=10.5) is None


def test_an_outage_of_storage_rails_does_not_concern_nccl(folder: RunFolder) -> None:
    intent = intent_of()
    keep(folder, intent, "silence leaf1 swp1", 0.9)
    for rail in intent["rails"]:
        rail["role"] = "storage"
    assert found(folder, intent) is None


def test_a_changed_record_is_named(folder: RunFolder) -> None:
    intent = intent_of()
    keep(folder, intent, "silence leaf1 swp1", 0.9)
    plane = intent["rails"][0]["plane"]
    folder.write_json(FILE, {"schema": 1, "planes": {plane: {"basis": basis_of(intent, plane), "faults": {"x": {"seconds": "long"}}}}})
    with pytest.raises(ParseError, match=r"drill/outages.json beside the runs is not a record of drills .* Remove it"):
        found(folder, intent)


@pytest.mark.parametrize(
    ("planned_ms", "status", "source"),
    [
        (None, ERROR, "measured on 2026-11-26: silence leaf1 swp1"),
        (900, ERROR, "measured on 2026-11-26: silence leaf1 swp1"),
        (14000, ERROR, "rdma_fabric.max_outage_ms"),
    ],
)
def test_the_check_compares_the_longer_of_the_planned_and_the_measured_outage(planned_ms: int | None, status: str, source: str) -> None:
    intent = intent_of()
    intent["fabric"]["max_outage_ms"] = planned_ms
    intent["outage"] = {"seconds": 12.6, "fault": "silence leaf1 swp1", "day": "2026-11-26"}
    [finding] = check_outage("node1", intent, {"NCCL_IB_TIMEOUT": "18"})
    assert finding.status == status
    assert finding.expected == f"NCCL retries for more than {(planned_ms or 0) / 1000 if planned_ms == 14000 else 12.6:.1f} s ({source})"
    assert finding.remedy.endswith("Then repeat the drill." if "measured" in source else "Then lower rdma_fabric.max_outage_ms.")
    [enough] = check_outage("node1", intent, {"NCCL_IB_TIMEOUT": "20"})
    assert (enough.status, "NCCL gives up after 30.1 s" in enough.observed) == (OK, True)
