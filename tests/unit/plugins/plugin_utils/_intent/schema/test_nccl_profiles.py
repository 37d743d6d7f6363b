# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each profile of rdma_nccl makes of NCCL's variables."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.nccl.nccl import check_nccl
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.fleet_checks import FLEET_CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl import PROFILES as NAMES
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl_profiles import PASSED, PROFILES
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import (
    nccl_differs,
    nccl_files,
    nccl_passed,
    nccl_variables,
    passed_files,
)
from tests.unit.builders.hosts import lab_facts, lab_intent, on_host
from tests.unit.builders.known import known_of

BASE = {"NCCL_IB_HCA": "=rxe_rail0:1,rxe_rail1:1"}
MESH = {"NCCL_IB_SUBNET_AWARE_ROUTING": "1", "NCCL_IB_SUBNET_PREFIX_LEN": "24"}
DEBUG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV,NET"}
TOPOLOGY = "/etc/nccl-topology.xml"


def test_every_profile_of_the_schema_says_what_it_sets_and_why() -> None:
    assert tuple(PROFILES) == NAMES
    assert [setting.name for settings in PROFILES.values() for setting in settings if not setting.reason] == []


@pytest.mark.parametrize(
    ("nccl", "more"),
    [
        ({}, {}),
        ({"profile": "debug_first_run"}, DEBUG),
        ({"profile": "rail_only"}, {"NCCL_CROSS_NIC": "0"}),
        ({"profile": "mesh"}, MESH),
        ({"profile": "mesh", "version": "2.30.7"}, MESH),
        ({"profile": "cloud"}, {}),
        ({"profile": "cloud", "topology_file": TOPOLOGY}, {"NCCL_TOPO_FILE": TOPOLOGY}),
        ({"profile": "rail_only", "variables": {"NCCL_CROSS_NIC": 2}}, {"NCCL_CROSS_NIC": "2"}),
    ],
    ids=str,
)
def test_what_a_profile_sets(nccl: dict[str, Any], more: dict[str, str]) -> None:
    assert nccl_variables(lab_intent(nccl=nccl), from_dict(lab_facts())) == {**BASE, **more}


def test_an_nccl_that_does_not_know_a_variable_is_not_passed_it() -> None:
    """The intent refuses a mesh with this one; here only that nothing is written which NCCL would not say a word about."""
    intent = lab_intent(nccl={"profile": "mesh"})
    intent["nccl"]["version"] = "2.29.7"
    assert nccl_variables(intent, from_dict(lab_facts())) == BASE


def test_the_subnets_of_a_mesh_are_those_of_its_addresses() -> None:
    intent = lab_intent(nccl={"profile": "mesh"})
    for rail in intent["rails"]:
        rail["address"] = rail["address"].replace("/24", "/30")
    assert nccl_variables(intent, from_dict(lab_facts()))["NCCL_IB_SUBNET_PREFIX_LEN"] == "30"


@pytest.mark.parametrize(("virtual", "set_"), [(True, True), (False, False), (None, False)])
def test_a_topology_is_pinned_on_virtual_machines_only(virtual: bool | None, set_: bool) -> None:
    facts = {**lab_facts(), "iommu": {} if virtual is None else {"virtual_machine": virtual}}
    found = nccl_variables(lab_intent(nccl={"topology_file": TOPOLOGY}), from_dict(facts))
    assert found == {**BASE, **({"NCCL_TOPO_FILE": TOPOLOGY} if set_ else {})}


FIRST_RUN = {"profile": "debug_first_run", "launchers": ["slurm"]}


def after(intent: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """The facts once the role has run."""
    kept = {path: file for path, file in facts["files"].items() if path == PASSED}
    return {**facts, "files": {**kept, **on_host(nccl_files(intent, from_dict(facts)))}}


def test_the_first_run_ends_by_itself_once_collectives_have_passed() -> None:
    intent = lab_intent(nccl=FIRST_RUN)
    facts = after(intent, {**lab_facts(), "files": {}})
    assert not nccl_differs(intent, from_dict(facts))
    assert stopping(check_nccl("node1", nccl_files(intent, from_dict(facts)), from_dict(facts))) == []

    written = {file.path: file.text for file in passed_files(intent, from_dict(facts))}
    assert written == {
        PASSED: "# Managed by rdma.cluster\n",
        "/etc/nccl.conf": f"NCCL_DEBUG=WARN\nNCCL_IB_HCA={BASE['NCCL_IB_HCA']}\n",
        "/etc/rdma-cluster/nccl.env": f"# Managed by rdma.cluster\nNCCL_DEBUG=WARN\nNCCL_IB_HCA={BASE['NCCL_IB_HCA']}\n",
        "/etc/rdma-cluster/nccl-task-prolog.sh": (
            "#!/bin/sh\n# Managed by rdma.cluster\n"
            "[ -n \"${NCCL_DEBUG+set}\" ] || printf '%s\\n' 'export NCCL_DEBUG=WARN'\n"
            "[ -n \"${NCCL_IB_HCA+set}\" ] || printf '%s\\n' 'export NCCL_IB_HCA==rxe_rail0:1,rxe_rail1:1'\nexit 0\n"
        ),
    }
    assert [file["mode"] for file in nccl_passed(intent, from_dict(facts))] == ["0644", "0644", "0644", "0755"]

    later = {**facts, "files": {**facts["files"], **on_host(passed_files(intent, from_dict(facts)))}}
    assert nccl_variables(intent, from_dict(later)) == {**BASE, "NCCL_DEBUG": "WARN"}
    assert not nccl_differs(intent, from_dict(later))
    assert nccl_passed(intent, from_dict(later)) == []


def test_another_profile_ends_it_too_and_the_next_time_is_a_first_one() -> None:
    facts = {**lab_facts(), "files": on_host(passed_files(lab_intent(nccl=FIRST_RUN), from_dict({**lab_facts(), "files": {}})))}
    gone = [file.path for file in nccl_files(lab_intent(), from_dict(facts)) if file.content is None]
    assert gone == ["/etc/rdma-cluster/nccl-task-prolog.sh", PASSED]
    assert nccl_passed(lab_intent(), from_dict(facts)) == []
    assert nccl_variables(lab_intent(nccl=FIRST_RUN), from_dict(after(lab_intent(), facts) | {"files": {}}))["NCCL_DEBUG"] == "INFO"


def test_a_host_that_is_new_is_not_odd_for_its_first_run() -> None:
    intents = {f"node{node}": lab_intent(node, nccl=FIRST_RUN) for node in (1, 2, 3)}
    hosts = {
        host: {"intent": intent, "facts": {**lab_facts(node), "files": on_host([]) if node == 3 else {PASSED: {}}}}
        for node, (host, intent) in enumerate(intents.items(), start=1)
    }
    assert {nccl_variables(each["intent"], from_dict(each["facts"]))["NCCL_DEBUG"] for each in hosts.values()} == {"INFO", "WARN"}
    judged = FLEET_CHECKS["nccl"](known_of(hosts))
    assert [finding for found in judged.values() for finding in found if finding.status in ("error", "warning")] == []
