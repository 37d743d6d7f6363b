# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An H100 node of which /sys/class/infiniband alone was captured, without links: eight ConnectX-7 and the bond of a BlueField-3."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.compat.test_sysfs_unpacking import DEVICE, PORT, QUIET, facts_of, iommu_mode, unpack_tar

H100 = "gpud-sys-class-infiniband-h100.tar"
# The one who captured it gave all ports the same numbers, and to mlx5_1 three of its own.
COUNTERS = {
    **QUIET,
    "excessive_buffer_overrun_errors": 15,
    "multicast_rcv_packets": 0,
    "multicast_xmit_packets": 0,
    "port_rcv_data": 230539874932483,
    "port_rcv_errors": 14,
    "port_rcv_packets": 317548853677,
    "port_rcv_switch_relay_errors": 1,
    "port_xmit_data": 230442669431839,
    "port_xmit_packets": 315487941081,
    "port_xmit_wait": 2489603687,
    "unicast_rcv_packets": 317548853677,
    "unicast_xmit_packets": 315487941081,
}
OF_MLX5_1 = {"link_downed": 255, "port_rcv_data": 205128687774249, "port_rcv_switch_relay_errors": 2}
# The directory has "lifespan" besides, which is a setting.
HW_COUNTERS = {
    "duplicate_request": 0,
    "implied_nak_seq_err": 0,
    "local_ack_timeout_err": 0,
    "out_of_buffer": 0,
    "out_of_sequence": 0,
    "packet_seq_err": 0,
    "req_cqe_error": 0,
    "req_cqe_flush_error": 0,
    "req_remote_access_errors": 0,
    "req_remote_invalid_request": 0,
    "resp_cqe_error": 0,
    "resp_cqe_flush_error": 0,
    "resp_local_length_error": 0,
    "resp_remote_access_errors": 0,
    "rnr_nak_retry_err": 0,
    "roce_adp_retrans": 3,
    "roce_adp_retrans_to": 0,
    "roce_slow_restart": 0,
    "roce_slow_restart_cnps": 0,
    "roce_slow_restart_trans": 0,
    "rx_atomic_requests": 0,
    "rx_dct_connect": 422237,
    "rx_icrc_encapsulated": 0,
    "rx_read_requests": 9187392,
    "rx_write_requests": 3809045607,
}
CONNECTX_7 = {**DEVICE, "firmware": "28.41.1000", "board_id": "MT_0000000838", "hca_type": "MT4129"}
NDR = {**PORT, "rate_gbps": 400.0, "width": 4, "speed": "NDR", "counters": COUNTERS, "hw_counters": HW_COUNTERS}


@pytest.fixture(scope="module")
def h100(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("h100")
    unpacked = unpack_tar(H100, root)
    (root / "sys/class").mkdir(parents=True)
    unpacked.rename(root / "sys/class/infiniband")
    return facts_of(root)


def test_eight_connectx_7(h100: dict[str, Any]) -> None:
    names = [f"mlx5_{number}" for number in (0, 1, 4, 5, 6, 7, 8, 9)]
    expected = {name: {**CONNECTX_7, "ports": {"1": NDR}} for name in names}
    expected["mlx5_1"] = {**CONNECTX_7, "ports": {"1": {**NDR, "counters": {**COUNTERS, **OF_MLX5_1}}}}

    assert list(h100["devices"]) == [*names, "mlx5_bond_0"]
    assert {name: h100["devices"][name] for name in names} == expected


def test_a_bond_of_a_bluefield_3(h100: dict[str, Any]) -> None:
    port = {"link_layer": "Ethernet", "rate_gbps": 200.0, "width": 2}
    assert h100["devices"]["mlx5_bond_0"] == {
        **DEVICE,
        "firmware": "32.38.3056",
        "board_id": "MT_0000000884",
        "hca_type": "MT41692",
        "ports": {"1": {**NDR, **port}},
    }


def test_what_was_not_captured_is_not_reported(h100: dict[str, Any]) -> None:
    assert h100["netdevs"] == {}
    assert (h100["gpu_driver"], h100["gpus"], h100["distances"]) == (None, None, None)
    assert h100["iommu"] == {"present": None, "mode": None, "virtual_machine": None}


def test_a_gpu_that_was_not_captured(h100: dict[str, Any]) -> None:
    assert "no NVIDIA GPU" not in json.dumps(h100["gpudirect"])


def test_an_iommu_that_was_not_captured(h100: dict[str, Any]) -> None:
    assert iommu_mode(h100) is None
