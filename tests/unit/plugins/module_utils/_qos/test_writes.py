# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How differences are written, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._qos.differences import Difference, differences
from ansible_collections.rdma.cluster.plugins.module_utils._qos.sysfs import Places
from ansible_collections.rdma.cluster.plugins.module_utils._qos.writes import Command, FileText, Target, writes
from tests.unit.builders.qos_hosts import mlx5_qos, profile

ECN = "/sys/class/net/ens1/ecn"
PLACES = Places(
    source="sysfs",
    np={"cnp_dscp": f"{ECN}/roce_np/cnp_dscp"},
    rp={"rpg_threshold": f"{ECN}/roce_rp/rpg_threshold"},
    enable_np=[f"{ECN}/roce_np/enable/{priority}" for priority in range(8)],
    enable_rp=[f"{ECN}/roce_rp/enable/{priority}" for priority in range(8)],
)
#: As far from the profile as an interface can be.
FRESH: dict[str, Any] = {
    "dcbx": "firmware", "trust": "dscp", "dscp_to_priority": {26: 0, 48: 0}, "pfc": [False] * 8, "priority_to_tc": [1, 0, 2, 3, 4, 5, 6, 7],
    "cable_length_m": 7,
}  # fmt: skip


def words(backend: str, **roce: Any) -> dict[str, list[Any]]:
    target = Target("ens1", "mlx5_0", "1", backend, PLACES)
    found = differences(profile(cable_length_m=30, **roce), mlx5_qos(backend=backend, pause=(True, True), **FRESH))
    return {each.name: writes(each, target) for each in found}


def test_the_words_of_mlnx_qos() -> None:
    assert {name: " ".join(each.argv) for name, (each,) in words("mlnx_qos").items()} == {
        "dcbx": "mlnx_qos -i ens1 --dcbx os",
        "global_pause": "ethtool -A ens1 rx off tx off",
        "dscp 26": "mlnx_qos -i ens1 --dscp2prio set,26,3",
        "dscp 48": "mlnx_qos -i ens1 --dscp2prio set,48,6",
        "pfc": "mlnx_qos -i ens1 --pfc 0,0,0,1,0,0,0,0",
        "ets": "mlnx_qos -i ens1 --prio_tc=0,0,0,3,0,0,6,0 --tsa=ets,ets,ets,ets,ets,ets,strict,ets --tcbw=50,0,0,50,0,0,0,0",
        "cable_length": "mlnx_qos -i ens1 --cable_len 30",
    }


def test_the_words_of_dcb() -> None:
    assert {name: " ".join(each.argv) for name, (each,) in words("dcb").items()} == {
        "dcbx": "dcb dcbx set dev ens1 host ieee",
        "global_pause": "ethtool -A ens1 rx off tx off",
        "dscp 26": "dcb app replace dev ens1 dscp-prio 26:3",
        "dscp 48": "dcb app replace dev ens1 dscp-prio 48:6",
        "pfc": "dcb pfc set dev ens1 prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off",
        "ets": "dcb ets set dev ens1 prio-tc 0:0 1:0 2:0 3:3 4:0 5:0 6:6 7:0"
        " tc-tsa 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets tc-bw 0:50 1:0 2:0 3:50 4:0 5:0 6:0 7:0",
        "cable_length": "dcb pfc set dev ens1 delay 30",
    }


def test_trust_has_words_of_its_own_in_mlnx_qos_alone() -> None:
    trust = Difference("trust", "", "pcp", "dscp")
    assert writes(trust, Target("ens1", "mlx5_0", "1", "mlnx_qos", PLACES)) == [Command(("mlnx_qos", "-i", "ens1", "--trust", "dscp"))]
    assert writes(trust, Target("ens1", "mlx5_0", "1", "dcb", PLACES)) == []


@pytest.mark.parametrize(
    ("difference", "path", "text"),
    [
        (Difference("ecn_np", "3", False, True), f"{ECN}/roce_np/enable/3", "1"),
        (Difference("ecn_rp", "3", True, False), f"{ECN}/roce_rp/enable/3", "0"),
        (Difference("np", "cnp_dscp", 46, 48), f"{ECN}/roce_np/cnp_dscp", "48"),
        (Difference("rp", "rpg_threshold", 1, 5), f"{ECN}/roce_rp/rpg_threshold", "5"),
        (Difference("traffic_class", "", None, 106), "/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "106"),
    ],
    ids=lambda value: value.name if isinstance(value, Difference) else "",
)
def test_files(difference: Difference, path: str, text: str) -> None:
    assert writes(difference, Target("ens1", "mlx5_0", "1", None, PLACES)) == [FileText(path, text)]


def test_dcb_cannot_give_the_settings_to_firmware() -> None:
    with pytest.raises(ApplyError, match="mlnx_qos -d fw"):
        writes(Difference("dcbx", "", "os", "firmware"), Target("ens1", "mlx5_0", "1", "dcb", PLACES))
