# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate says of the chain of quality of service."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.qos.qos import KEYS_OF_CHECK, check_qos
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts, lab_rails
from tests.unit.builders.qos_hosts import dcb_qos, mlx5_qos, profile

UNITS = {f"rdma-qos@{name}.service": {"active": True, "enabled": True} for name in ("ens1", "ens2")}


def judged(state: dict[str, Any] | None, units: Any = UNITS, **roce: Any) -> dict[str, Finding]:
    """The findings of the first rail, whose interface has this state; the second has the profile."""
    facts = lab_facts()
    facts["qos"] = {"ens2": mlx5_qos("rxe_rail1"), **({"ens1": state} if state is not None else {})}
    facts["units"] = {**facts["units"], **(units or {})} if units is not None else None
    found = check_qos("node1", {"rails": lab_rails()}, from_dict(facts), profile(**roce))
    assert {finding.stage for finding in found} == {"qos"}
    return {finding.check: finding for finding in found if "rail0" in finding.subject}


def bad(found: dict[str, Finding]) -> dict[str, str]:
    return {check: finding.status for check, finding in found.items() if finding.status not in (OK, NOT_APPLICABLE)}


@pytest.mark.parametrize("state", [mlx5_qos(), dcb_qos()], ids=["mlnx_qos", "dcb"])
def test_a_rail_with_the_whole_profile(state: dict[str, Any]) -> None:
    found = judged(state)
    assert bad(found) == {}
    assert set(found) == {*KEYS_OF_CHECK, "qos.backend", "qos.overwritten", "qos.boot"}
    assert found["qos.pfc"].status == OK


def test_what_the_kernel_s_own_driver_has_not_is_not_asked_for() -> None:
    found = judged(dcb_qos())
    assert (found["qos.ecn"].status, found["qos.traffic_class"].status) == (NOT_APPLICABLE, NOT_APPLICABLE)
    assert "NCCL_IB_TC" in found["qos.traffic_class"].observed


WRONG: list[Any] = [
    pytest.param({"pfc": [False] * 8}, "qos.pfc", "with `-e roce_qos_link_toggle_allowed=true`", id="PFC"),
    pytest.param({"pause": (True, False)}, "qos.pause", "with `-e roce_qos_link_toggle_allowed=true`", id="global pause"),
    pytest.param({"trust": "pcp", "dscp_to_priority": {}}, "qos.trust", "journalctl --unit rdma-qos@ens1.service", id="trust"),
    pytest.param({"dscp_to_priority": {26: 0}}, "qos.dscp", "Run the QoS stage for node1", id="DSCP"),
    pytest.param({"ecn_rp": [False] * 8}, "qos.ecn", "Run the QoS stage", id="ECN"),
    pytest.param({"np": {"cnp_dscp": 46}}, "qos.cnp", "Run the QoS stage", id="CNP"),
    pytest.param({"rp": {"rpg_threshold": 1}}, "qos.dcqcn", "Run the QoS stage", id="DCQCN"),
    pytest.param({"traffic_class": None}, "qos.traffic_class", "Run the QoS stage", id="traffic class"),
    pytest.param({"rdma_cm": None}, "qos.rdma_cm", "Run the QoS stage", id="RDMA-CM"),
    pytest.param({"dcbx": "firmware"}, "qos.dcbx", "Run the QoS stage", id="DCBX"),
    pytest.param({"priority_to_tc": list(range(8))}, "qos.ets", "Run the QoS stage", id="ETS"),
]


@pytest.mark.parametrize(("changes", "check", "remedy"), WRONG)
def test_each_setting_has_its_check(changes: dict[str, Any], check: str, remedy: str) -> None:
    found = judged(mlx5_qos(**changes), dcqcn={"rpg_threshold": 32767})
    assert bad(found) == {check: ERROR}
    assert remedy in found[check].remedy
    assert found[check].observed != found[check].expected


def test_what_waits_for_pfc_names_the_permission_that_pfc_needs() -> None:
    found = judged(mlx5_qos(pfc=[False] * 8, dscp_to_priority={26: 0}))
    assert "with `-e roce_qos_link_toggle_allowed=true`" in found["qos.dscp"].remedy


def test_what_must_be_known_and_is_not_is_unknown() -> None:
    found = judged(mlx5_qos(pfc=None))
    assert bad(found) == {"qos.pfc": UNKNOWN}
    assert "`mlnx_qos -i ens1` on node1" in found["qos.pfc"].remedy


@pytest.mark.parametrize("left", [{}, {"min_time_between_cnps": 4}], ids=["no value", "another value"])
def test_values_that_a_driver_with_congestion_control_does_not_give_are_unknown(left: dict[str, int]) -> None:
    found = judged(mlx5_qos(np=left, dcqcn_source="debugfs"))
    assert bad(found) == {"qos.cnp": UNKNOWN}
    assert "cnp_dscp is not among the values of debugfs" in found["qos.cnp"].observed


def test_an_interface_without_dcb() -> None:
    without = dict.fromkeys(("np", "rp", "ecn_np", "ecn_rp", "dcqcn_source", "traffic_class", "traffic_class_settable"))
    found = judged({**mlx5_qos(), **without, "backend": None, "why": "its driver has no DCB"})
    # The lab's rails are Soft-RoCE.
    assert found["qos.backend"].status == NOT_APPLICABLE
    assert set(found) == {"qos.backend", "qos.rdma_cm", "qos.boot"}


@pytest.mark.parametrize(
    ("changed", "check"),
    [
        ({"rp": {"rpg_threshold": 1}}, "qos.dcqcn"),
        ({"np": {"cnp_dscp": 46, "cnp_802p_prio": 6}}, "qos.cnp"),
        ({"ecn_np": [False] * 8}, "qos.ecn"),
        ({"traffic_class": None}, "qos.traffic_class"),
    ],
)
def test_what_files_show_is_judged_without_mlnx_qos_and_dcb(changed: dict[str, Any], check: str) -> None:
    """A missing tool must not hide that a reload of the driver has reset the congestion control."""
    found = judged(
        {**mlx5_qos(**changed), "backend": None, "why": "mlnx_qos is not installed; dcb is not installed"}, dcqcn={"rpg_threshold": 32767}
    )
    assert bad(found) == {check: ERROR}
    assert "qos.pfc" not in found


@pytest.mark.parametrize(("function", "status"), [("pf", ERROR), ("vf", NOT_APPLICABLE)])
def test_a_virtual_function_has_the_settings_of_its_card(function: str, status: str) -> None:
    facts = lab_facts()
    nothing = {**mlx5_qos(), "backend": None, "why": "the driver of ens1 has no DCB (Operation not supported)"}
    facts.update(qos={"ens1": nothing, "ens2": nothing}, units={**facts["units"], **UNITS})
    for netdev in facts["netdevs"].values():
        netdev["function"] = function
    rails = [{**rail, "soft": False} for rail in lab_rails()]
    found = check_qos("node1", {"rails": rails}, from_dict(facts), profile())
    assert {finding.status for finding in found if finding.check == "qos.backend"} == {status}
    assert {finding.status for finding in found if finding.check != "qos.backend"} == {OK}


def test_a_state_that_was_not_read() -> None:
    assert {check: finding.status for check, finding in judged(None).items()} == {"qos.backend": UNKNOWN}


def test_a_daemon_that_would_overwrite_it() -> None:
    found = judged({**mlx5_qos(), "agents": {"lldpad": {"active": True, "enabled": True}}})
    assert bad(found) == {"qos.overwritten": WARNING}
    assert "systemctl disable --now lldpad.socket lldpad.service" in found["qos.overwritten"].remedy


@pytest.mark.parametrize(
    ("units", "status", "observed"),
    [
        ({"rdma-qos@ens1.service": {"active": True, "enabled": False}}, ERROR, "not enabled"),
        ({"rdma-qos@ens1.service": {"active": False, "enabled": False}}, ERROR, "not active and not enabled"),
        (None, UNKNOWN, "not read"),
    ],
    ids=["not enabled", "neither", "not read"],
)
def test_the_boot_has_a_unit(units: Any, status: str, observed: str) -> None:
    found = judged(mlx5_qos(), units)
    assert bad(found) == {"qos.boot": status}
    assert found["qos.boot"].observed == observed


def test_where_there_is_nothing_to_do() -> None:
    (finding,) = check_qos("node1", {"rails": lab_rails()}, from_dict(lab_facts()), None)
    assert finding.status == NOT_APPLICABLE
    assert "rdma_roce is not set" in finding.observed
