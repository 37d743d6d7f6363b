# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the QoS stage has something to do, by the facts of a lab machine."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._qos.service import service_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.differs import qos_differs, qos_nics
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile
from tests.unit.builders.hosts import lab_facts, lab_intent, on_host
from tests.unit.builders.qos_hosts import dcb_qos

INTENT = lab_intent(roce={})


def facts(**changes: Any) -> dict[str, Any]:
    """A host that has the profile, but for what is given of its first rail's interface."""
    profile = roce_profile(INTENT)
    assert profile is not None
    tree = lab_facts()
    tree["qos"] = {"ens1": dcb_qos("rxe_rail0", **changes), "ens2": dcb_qos("rxe_rail1")}
    tree["files"].update(on_host(service_files(profile, qos_nics(INTENT))))
    tree["units"].update({f"rdma-qos@{name}.service": {"active": True, "enabled": True} for name in ("ens1", "ens2")})
    return tree


def test_a_host_that_has_it_all_is_left_alone() -> None:
    assert qos_differs(INTENT, from_dict(facts())) is False
    assert qos_differs(lab_intent(), from_dict(lab_facts())) is False, "without rdma_roce nothing is requested"


@pytest.mark.parametrize("changes", [{"trust": "pcp", "dscp_to_priority": {}}, {"rdma_cm": None}, {"np": {"cnp_dscp": 46}}])
def test_a_setting_that_differs(changes: dict[str, Any]) -> None:
    assert qos_differs(INTENT, from_dict(facts(**changes))) is True


def test_what_takes_a_link_down_counts_where_it_is_allowed() -> None:
    fresh = facts(pfc=[False] * 8)
    assert qos_differs(INTENT, from_dict(fresh)) is False
    assert qos_differs(INTENT, from_dict(fresh), toggle_allowed=True) is True


def test_what_is_not_proven_differs() -> None:
    for spoil in (
        lambda tree: tree.update(qos=None),
        lambda tree: tree["units"].update({"rdma-qos@ens2.service": {"active": True, "enabled": False}}),
        lambda tree: tree["units"].pop("rdma-qos@ens2.service"),
        lambda tree: tree["files"].pop("/etc/rdma-cluster/roce.json"),
        lambda tree: tree["files"].update({"/usr/local/lib/rdma-cluster/roce_qos.pyz": OTHER}),
    ):
        tree = facts()
        spoil(tree)
        assert qos_differs(INTENT, from_dict(tree)) is True
    assert qos_differs(INTENT, from_dict({})) is True


OTHER = {"sha256": "0" * 64, "mode": 0o644, "owner": "0:0"}
UNITS = {"rdma-qos@ens1.service": {"active": True, "enabled": True}}
NOTHING_PLANNED = [
    ({}, False),
    ({"files": None, "units": None}, False),
    ({"files": {"/etc/rdma-cluster/roce.json": OTHER}}, True),
    ({"files": {"/usr/local/lib/rdma-cluster/roce_qos.pyz": OTHER}}, True),
    ({"files": {"/etc/rdma-cluster/pcie.json": OTHER}}, False),
    ({"units": UNITS}, True),
    ({"units": {name: {**state, "enabled": False} for name, state in UNITS.items()}}, False),
]


@pytest.mark.parametrize(("reported", "differs"), NOTHING_PLANNED, ids=range(len(NOTHING_PLANNED)))
def test_where_nothing_is_planned_what_is_left_of_us_differs(reported: dict[str, Any], differs: bool) -> None:
    known = {**lab_facts(), **reported}
    assert qos_differs(lab_intent(), from_dict(known)) is differs
    infiniband = {**INTENT, "rails": [{**rail, "link_layer": "infiniband"} for rail in INTENT["rails"]]}
    assert qos_differs(infiniband, from_dict(known)) is differs, "nor is anything without a RoCE rail"


def test_without_facts_and_plan_nobody_is_asked() -> None:
    assert qos_differs(lab_intent(), from_dict({})) is False


def test_a_unit_of_an_interface_that_is_not_planned_any_more() -> None:
    stale = facts()
    stale["units"]["rdma-qos@ens9.service"] = {"active": False, "enabled": True}
    assert qos_differs(INTENT, from_dict(stale)) is True
    stale["units"]["rdma-qos@ens9.service"]["enabled"] = False
    assert qos_differs(INTENT, from_dict(stale)) is False


def test_each_nic_once() -> None:
    assert qos_nics(INTENT) == [{"pci": "0000:21:00.0"}, {"pci": "0000:41:00.0"}]
    assert qos_nics(lab_intent()) == []
