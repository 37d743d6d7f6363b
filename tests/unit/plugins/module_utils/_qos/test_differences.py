# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a profile an interface lacks."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._qos.differences import SETTINGS, Difference, differences, format_value
from tests.unit.builders.qos_hosts import dcb_qos, mlx5_qos, profile

ONLY_3 = [False, False, False, True, False, False, False, False]


def of(state: dict[str, Any], **roce: Any) -> list[tuple[str, str, Any, Any]]:
    return [(each.setting, each.subject, each.was, each.requested) for each in differences(profile(**roce), state)]


@pytest.mark.parametrize("state", [mlx5_qos(), dcb_qos()], ids=["mlnx_qos", "dcb"])
def test_nothing_differs_on_an_interface_that_is_as_planned(state: dict[str, Any]) -> None:
    assert of(state) == []


CASES: list[Any] = [
    pytest.param(mlx5_qos(dcbx="firmware"), [("dcbx", "", "firmware", "os")], id="DCBX"),
    pytest.param(mlx5_qos(trust="pcp", dscp_to_priority={}), [("trust", "", "pcp", "dscp")], id="trust alone, by mlnx_qos"),
    pytest.param(
        dcb_qos(trust="pcp", dscp_to_priority={}),
        [("trust", "", "pcp", "dscp"), ("dscp", "26", None, 3), ("dscp", "48", None, 6)],
        id="entries bring trust, by dcb",
    ),
    pytest.param(dcb_qos(dscp_to_priority={46: 5, 48: 6}), [("dscp", "26", None, 3)], id="an entry is gone"),
    pytest.param(mlx5_qos(dscp_to_priority={26: 0, 48: 6}), [("dscp", "26", 0, 3)], id="DSCP in another priority"),
    pytest.param(mlx5_qos(pfc=[False] * 8), [("pfc", "", [False] * 8, ONLY_3)], id="PFC"),
    pytest.param(mlx5_qos(ecn_rp=[True] * 3 + [False] * 5), [("ecn_rp", "3", False, True)], id="ECN of the sender"),
    pytest.param(mlx5_qos(ecn_np=[True] * 4 + [False] * 4), [], id="ECN of other priorities"),
    pytest.param(mlx5_qos(np={"cnp_dscp": 46, "cnp_802p_prio": 6}), [("np", "cnp_dscp", 46, 48)], id="CNP"),
    pytest.param(mlx5_qos(traffic_class=None), [("traffic_class", "", None, 106)], id="traffic class unset"),
    pytest.param(
        mlx5_qos(rdma_cm=None),
        [("rdma_cm", "", {"mode": "RoCE v2", "tos": 0}, {"mode": "RoCE v2", "tos": 106})],
        id="RDMA-CM was never asked",
    ),
    pytest.param(
        {**mlx5_qos(backend=None, traffic_class_settable=False), "np": None, "rp": None, "ecn_np": None, "ecn_rp": None, "pfc": None},
        [],
        id="an interface that has none of it",
    ),
]


@pytest.mark.parametrize(("state", "expected"), CASES)
def test_what_differs(state: dict[str, Any], expected: list[Any]) -> None:
    assert of(state) == expected


def test_classes_without_a_priority_are_not_asked_for() -> None:
    tsa = ["ets", None, None, "ets", None, None, "strict", None]
    sparse = mlx5_qos(tsa=tsa, bandwidth_percent=[50, None, None, 50, None, None, 0, None])
    assert of(sparse) == []
    shifted = mlx5_qos(bandwidth_percent=[60, 0, 0, 40, 0, 0, 0, 0])
    assert [(setting, was["bandwidth_percent"][3], requested["bandwidth_percent"][3]) for setting, _of, was, requested in of(shifted)] == [
        ("ets", 40, 50)
    ]
    assert [each[0] for each in of(mlx5_qos(priority_to_tc=[0, 1, 2, 3, 4, 5, 6, 7]))] == ["ets"]


def test_global_pause_goes_before_pfc_comes() -> None:
    found = differences(profile(), mlx5_qos(pfc=[False] * 8, pause=(True, False)))
    assert [each.setting for each in found] == ["global_pause", "pfc"]
    assert [each.toggles for each in found] == [True, True]
    assert differences(profile(), {**mlx5_qos(), "pause": None}) == []


def test_only_what_is_requested_and_there_is_compared() -> None:
    assert of(mlx5_qos(cable_length_m=7)) == []
    assert of(mlx5_qos(cable_length_m=7), cable_length_m=30) == [("cable_length", "", 7, 30)]
    assert of(dcb_qos(cable_length_m=None), cable_length_m=30) == []
    assert of(mlx5_qos(rp={"rpg_threshold": 1}), dcqcn={"rpg_threshold": 5, "rpg_gd": 11}) == [("rp", "rpg_threshold", 1, 5)]


def test_without_ecn_it_is_switched_off() -> None:
    found = [(setting, requested) for setting, _of, _was, requested in of(mlx5_qos(), ecn=False)]
    assert ("ecn_np", False) in found
    assert ("traffic_class", 104) in found


def test_names_for_a_person() -> None:
    assert [Difference(setting, "26" if setting == "dscp" else "", 0, 1).name for setting in SETTINGS[:4]] == [
        "dcbx", "global_pause", "trust", "dscp 26",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([False, True], "0,1"),
        ([50, 0], "50,0"),
        ({"rx": True, "tx": False}, "rx on, tx off"),
        ({"mode": "RoCE v2", "tos": 106}, "mode RoCE v2, tos 106"),
        ({"tsa": ["ets", "strict"]}, "tsa ets,strict"),
        (None, "none"),
        (48, "48"),
    ],
)
def test_a_value_in_words(value: object, words: str) -> None:
    assert format_value(value) == words
