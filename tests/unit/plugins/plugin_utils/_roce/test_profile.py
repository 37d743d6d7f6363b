# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RoCE profile: one value, and everything that follows from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.filter.roce import FilterModule
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import NP_PARAMETERS, RP_PARAMETERS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.roce import DCQCN
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile, service_level
from tests.unit.builders.hosts import lab_intent
from tests.unit.builders.qos_hosts import ROCE, profile

NO_PFC = [False] * 8


def profile_of(**roce: Any) -> dict[str, Any]:
    profile = roce_profile(lab_intent(roce=roce))
    assert profile is not None
    return profile


def test_the_default_is_what_nvidia_s_nics_and_switches_use() -> None:
    assert profile_of() == {
        "schema": 1, "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48, "ecn": True, "trust": "dscp", "dcbx": "os",
        "pfc": [False, False, False, True, False, False, False, False],
        "dscp_to_priority": {"26": 3, "48": 6},
        "priority_to_tc": [0, 0, 0, 3, 0, 0, 6, 0],
        "tsa": ["ets", "ets", "ets", "ets", "ets", "ets", "strict", "ets"],
        "bandwidth_percent": [50, 0, 0, 50, 0, 0, 0, 0],
        "cable_length_m": None, "global_pause": False,
        "np": {"cnp_dscp": 48, "cnp_802p_prio": 6}, "rp": {},
        "traffic_class": 106, "rdma_cm": {"mode": "RoCE v2", "tos": 106},
    }  # fmt: skip


def test_what_tests_of_hosts_begin_with_is_the_default() -> None:
    assert {**lab_intent(roce={})["roce"], "dcqcn": {}} == ROCE
    assert profile() == profile_of()


def test_without_rdma_roce_there_is_no_profile() -> None:
    assert roce_profile(lab_intent()) is None


def test_it_is_plain_json() -> None:
    profile = profile_of(dcqcn={"rpg_ai_rate": 5})
    assert json.loads(json.dumps(profile)) == profile


def test_everything_follows_from_another_value() -> None:
    profile = profile_of(priority=4, dscp=34, cnp_priority=7, cnp_dscp=56, rdma_percent=80, dcbx="firmware", cable_length_m=30)
    assert profile["pfc"] == [False, False, False, False, True, False, False, False]
    assert profile["dscp_to_priority"] == {"34": 4, "56": 7}
    assert profile["priority_to_tc"] == [0, 0, 0, 0, 4, 0, 0, 7]
    assert profile["tsa"] == ["ets"] * 7 + ["strict"]
    assert profile["bandwidth_percent"] == [20, 0, 0, 0, 80, 0, 0, 0]
    assert (profile["traffic_class"], profile["rdma_cm"]["tos"]) == (138, 138)
    assert (profile["dcbx"], profile["cable_length_m"]) == ("firmware", 30)
    assert profile["np"] == {"cnp_dscp": 56, "cnp_802p_prio": 7}


@pytest.mark.parametrize("percent", [1, 50, 99])
def test_the_shares_are_the_whole_link(percent: int) -> None:
    assert sum(profile_of(rdma_percent=percent)["bandwidth_percent"]) == 100


def test_lossy_rdma_pauses_nobody() -> None:
    assert profile_of(pfc=False)["pfc"] == NO_PFC


def test_without_ecn_packets_are_not_marked_and_nothing_is_set_for_notifications() -> None:
    profile = profile_of(ecn=False)
    assert (profile["traffic_class"], profile["rdma_cm"]["tos"]) == (104, 104)
    assert (profile["np"], profile["rp"]) == ({}, {})


def test_notifications_of_lossy_rdma_may_share_its_class() -> None:
    profile = profile_of(pfc=False, cnp_priority=3, cnp_dscp=26)
    assert profile["priority_to_tc"] == [0, 0, 0, 3, 0, 0, 0, 0]
    assert profile["tsa"] == ["ets"] * 8
    assert profile["dscp_to_priority"] == {"26": 3}


def test_parameters_of_dcqcn_are_reported_by_who_has_them_and_absent_ones_are_not_zero() -> None:
    profile = profile_of(dcqcn={"min_time_between_cnps": 4, "rpg_byte_reset": 0, "initial_alpha_value": 1023, "dce_tcp_g": None})
    assert profile["np"] == {"cnp_dscp": 48, "cnp_802p_prio": 6, "min_time_between_cnps": 4}
    assert profile["rp"] == {"rpg_byte_reset": 0, "initial_alpha_value": 1023}


def test_no_parameter_is_both_sides_or_a_second_place_of_the_profile_s_own() -> None:
    of_the_profile = {"cnp_dscp", "cnp_802p_prio"}
    assert len(DCQCN) == 17
    assert not NP_PARAMETERS.keys() & RP_PARAMETERS.keys()
    assert DCQCN.keys() == NP_PARAMETERS.keys() - of_the_profile | RP_PARAMETERS.keys()


def test_the_filter_has_this_name() -> None:
    assert FilterModule().filters()["roce_profile"](lab_intent(roce={})) == profile_of()


def test_the_service_level_is_the_priority_in_the_tag_of_a_vlan() -> None:
    rails = lab_intent()["rails"]
    assert service_level(rails) is None
    rails[0]["vlan"] = {"id": 100, "pcp": None}
    assert service_level(rails) is None
    rails[1]["vlan"] = {"id": 100, "pcp": 0}
    assert service_level(rails) == 0
