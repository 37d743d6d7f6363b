# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The small form of quality of service, in which facts keep it for roles."""

from __future__ import annotations

import json

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._qos.differences import differences
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import pack_states, unpack_states
from tests.unit.builders.qos_hosts import dcb_qos, mlx5_qos, profile

CHANGED = [
    {},
    {"trust": "pcp", "dscp_to_priority": {}},
    {"dscp_to_priority": {26: 0, 48: 6}},
    {"pfc": [False] * 8},
    {"pfc": None, "np": None, "rp": None},
    {"ecn_np": [False] * 8},
    {"np": {"cnp_dscp": 46}},
    {"traffic_class": None},
    {"rdma_cm": None},
    {"tsa": ["strict"] * 8},
    {"cable_length_m": 5},
    {"backend": None},
    {"pause": (True, None)},
]


@pytest.mark.parametrize("changes", CHANGED, ids=[",".join(change) or "none" for change in CHANGED])
@pytest.mark.parametrize("state", [mlx5_qos, dcb_qos])
def test_what_differs_is_the_same_in_the_small_form(state: object, changes: dict[str, object]) -> None:
    whole = state(**changes)  # type: ignore[operator]
    small = unpack_states(json.loads(json.dumps(pack_states({"eth1": whole}))))
    assert small is not None
    wished = profile(dcqcn={"rpg_threshold": 5, "min_time_between_cnps": 4}, cable_length_m=7)
    assert differences(wished, small["eth1"]) == differences(wished, whole)


def test_interfaces_that_are_set_alike_share_a_state() -> None:
    packed = pack_states({"eth1": mlx5_qos("mlx5_0"), "eth2": mlx5_qos("mlx5_1", trust="pcp"), "eth3": mlx5_qos("mlx5_2")})
    assert packed is not None
    assert packed["netdevs"] == {"eth1": 0, "eth2": 1, "eth3": 0}
    assert len(packed["states"]) == 2


def test_what_was_not_read_is_none() -> None:
    assert pack_states(None) is None
    assert unpack_states(None) is None
