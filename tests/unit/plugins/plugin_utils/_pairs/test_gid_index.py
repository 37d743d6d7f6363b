# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GID indexes against those of the last pair proof, of a lab machine whose two rails have GID index 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import compared, merged
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import host_findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.gid_index import check_moved_gids
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proof
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.builders.known import known_of


def record(index: int | None, **more: Any) -> proofs.Proofs:
    """The proof of rail0 alone."""
    endpoint = {"address": "192.168.100.1", "device": "rxe_rail0", "port": 1, "gid_index": index, **more}
    return {"node1": {"rail0": Proof({}, 1.7e9, "R0", 3, {"bandwidth": 0.2}, 1.0, endpoint)}}


def moved(known: proofs.Proofs, facts: dict[str, Any] | None = None, **rail: Any) -> list[Finding]:
    intent = lab_intent()
    intent["rails"][0] |= rail
    return check_moved_gids(known_of({"node1": {"intent": intent, "facts": comparable(facts or lab_facts())}}), known)["node1"]


def test_an_index_that_moved_is_a_warning_with_both_indexes() -> None:
    [finding] = moved(record(3))
    assert (finding.stage, finding.check, finding.subject) == ("network", "network.gid", "rail 0 (rail0, 0000:21:00.0, ens1)")
    assert finding.status == WARNING
    assert finding.observed == "GID index 3 → 1 since the last pair proof (run R0); jobs with NCCL_IB_GID_INDEX=3 hang"
    assert "NCCL 2.21" in finding.remedy


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(record(1), id="the same"),
        pytest.param({}, id="never proven"),
        pytest.param({"node2": record(3)["node1"]}, id="another host"),
        pytest.param(record(None), id="proven as InfiniBand"),
        pytest.param({"node1": {"rail0": Proof({}, 1.7e9, "R0", 3, {}, 1.0)}}, id="a record without an endpoint"),
    ],
)
def test_without_another_index_in_the_record_nothing_is_reported(known: proofs.Proofs) -> None:
    assert moved(known) == []


def test_a_rail_without_a_gid_is_an_error_of_its_own_and_infiniband_has_no_index() -> None:
    facts = lab_facts()
    facts["devices"]["rxe_rail0"]["ports"]["1"]["rocev2"] = {}
    assert moved(record(3), facts) == []
    assert moved(record(3), link_layer="infiniband") == []
    assert check_moved_gids(known_of({"node1": {"intent": lab_intent(), "facts": None}}), record(3)) == {"node1": []}


def test_the_gate_reads_the_record_and_reports_one_finding_for_each_rail(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write_json(proofs.FILE, proofs.write(record(3)))
    known = known_of({"node1": {"intent": lab_intent(), "facts": comparable(lab_facts())}})
    found = merged(compared("network", known, folder)["node1"], host_findings("network", "node1", lab_intent(), lab_facts()))
    assert [(each.subject[:6], each.status) for each in found if each.check == "network.gid"] == [("rail 0", WARNING), ("rail 1", OK)]


def test_only_what_is_ok_gives_way() -> None:
    warning, good, bad = (Finding("network", "network.gid", "node1", "rail 0", status, "", "") for status in (WARNING, OK, ERROR))
    assert merged([warning], [good]) == [warning]
    assert merged([warning], [bad]) == [warning, bad]
    assert merged([], [good]) == [good]
