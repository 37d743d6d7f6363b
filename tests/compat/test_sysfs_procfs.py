# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tree that the tests of Prometheus' procfs read: parts of several systems, three RDMA devices among them without links."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from tests.compat.test_sysfs_unpacking import (
    DEVICE,
    ETHERNET,
    FUNCTION,
    HOP,
    NO_GPU,
    NO_STACK,
    PORT,
    QUIET,
    capture,
    facts_of,
    iommu_mode,
    part_of,
    unpack_ttar,
)

PROCFS = "procfs-fixtures.ttar"
X4 = {"speed_gtps": 8.0, "width": 4}
X8 = {"speed_gtps": 8.0, "width": 8}
#: The archive has PCI links, though of no RDMA device. Its configuration spaces are text, and have lost bytes.
FUNCTIONS: dict[str, dict[str, Any]] = {
    "pci0000:00/0000:00:02.1/0000:01:00.0": {
        "vendor_id": "0xc0a9",
        "device_id": "0x540a",
        **X4,
        "max_speed_gtps": 8.0,
        "max_width": 4,
        "narrowest": {"address": "0000:01:00.0", **X4},
        "hops": [{**HOP, "address": "0000:00:02.1", **X4, "max_speed_gtps": 8.0, "max_width": 8}],
    },
    "pci0000:00/0000:00:03.0/0000:03:00.0": {
        "vendor_id": "0x1000",
        "device_id": "0x00ab",
        **X8,
        "max_speed_gtps": 8.0,
        "max_width": 8,
        "narrowest": {"address": "0000:03:00.0", **X8},
        "hops": [{**HOP, "address": "0000:00:03.0", **X8, "max_speed_gtps": 8.0, "max_width": 16}],
    },
    "pci0000:a2/0000:a2:00.0": {
        "vendor_id": "0x8086",
        "device_id": "0x159b",
        "numa_node": 1,
        "speed_gtps": 16.0,
        "width": 8,
        "max_speed_gtps": 16.0,
        "max_width": 8,
        "narrowest": {"address": "0000:a2:00.0", "speed_gtps": 16.0, "width": 8},
    },
    # On the root complex, so without a link.
    "pci0000:00/0000:00:1f.6": {"vendor_id": "0x8086", "device_id": "0x15d7"},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_ttar(capture(PROCFS), tmp_path_factory.mktemp("root")) / "fixtures"


@pytest.fixture(scope="module")
def facts(root: Path) -> dict[str, Any]:
    return facts_of(root)


def test_a_tree_of_three_drivers(facts: dict[str, Any]) -> None:
    assert list(facts["devices"]) == ["hfi1_0", "mlx4_0", "mlx5_0"]
    assert facts["boot"] == {"boot_id": None, "machine_id": None, "hostname": None, "uptime_seconds": None}
    assert facts["stack"] == NO_STACK


def test_omni_path(facts: dict[str, Any]) -> None:
    counters = {
        "port_rcv_data": 345091702026,
        "port_rcv_packets": 638036947,
        "port_xmit_data": 273558326543,
        "port_xmit_packets": 568318856,
    }
    assert facts["devices"]["hfi1_0"] == {
        **DEVICE,
        "firmware": "1.27.0",
        "board_id": "HPE 100Gb 1-port OP101 QSFP28 x16 PCIe Gen3 with Intel Omni-Path Adapter",
        "ports": {"1": {**PORT, "rate_gbps": 100.0, "speed": "EDR", "counters": {**QUIET, **counters}}},
    }


def test_connectx_3_with_two_ports(facts: dict[str, Any]) -> None:
    first = {
        "port_rcv_data": 2221223609,
        "port_rcv_packets": 87169372,
        "port_xmit_data": 26509113295,
        "port_xmit_packets": 85734114,
        "port_xmit_wait": 3599,
    }
    second = {
        "port_rcv_data": 2460436784,
        "port_rcv_packets": 89332064,
        "port_xmit_data": 26540356890,
        "port_xmit_packets": 88622850,
        "port_xmit_wait": 3846,
    }
    port = {**PORT, "rate_gbps": 40.0, "speed": "QDR"}
    assert facts["devices"]["mlx4_0"] == {
        **DEVICE,
        "firmware": "2.31.5050",
        "board_id": "SM_1141000001000",
        "hca_type": "MT4099",
        "ports": {"1": {**port, "counters": {**QUIET, **first}}, "2": {**port, "counters": {**QUIET, **second}}},
    }


def test_connectx_5_with_hardware_counters(facts: dict[str, Any]) -> None:
    counters = {
        "multicast_rcv_packets": 0,
        "multicast_xmit_packets": 0,
        "port_rcv_data": 18126345378,
        "port_rcv_packets": 541889824,
        "port_xmit_data": 2880761508848,
        "port_xmit_packets": 10907922116,
        "unicast_rcv_packets": 541889824,
        "unicast_xmit_packets": 10907922116,
    }
    hw_counters = {
        "duplicate_request": 41,
        "implied_nak_seq_err": 0,
        "local_ack_timeout_err": 131,
        "out_of_buffer": 0,
        "out_of_sequence": 1,
        "packet_seq_err": 1,
        "req_cqe_error": 3481,
        "req_cqe_flush_error": 80,
        "req_remote_access_errors": 0,
        "req_remote_invalid_request": 0,
        "resp_cqe_error": 8109,
        "resp_cqe_flush_error": 4708,
        "resp_local_length_error": 0,
        "resp_remote_access_errors": 0,
        "rnr_nak_retry_err": 0,
        "roce_adp_retrans": 99,
        "roce_adp_retrans_to": 4,
        "roce_slow_restart": 0,
        "roce_slow_restart_cnps": 131,
        "roce_slow_restart_trans": 0,
        "rx_atomic_requests": 0,
        "rx_dct_connect": 0,
        "rx_read_requests": 175528982,
        "rx_write_requests": 742114,
    }
    port = {
        # The file says "4: ACTIVE", which is no physical state; it is reported as it stands.
        "physical_state": "ACTIVE",
        "rate_gbps": 25.0,
        "width": 1,
        "speed": "EDR",
        "counters": {**QUIET, **counters},
        "hw_counters": hw_counters,
    }
    assert facts["devices"]["mlx5_0"] == {
        **DEVICE,
        "firmware": "14.28.2006",
        "board_id": "SM_2001000001034",
        "hca_type": "MT4118",
        "node_guid": "0a7f:bc12:45ef:d23b",
        "ports": {"1": {**PORT, **port}},
    }


def test_an_interface_whose_driver_was_not_captured(facts: dict[str, Any]) -> None:
    eth0 = {"mac": "01:01:01:01:01:01", "pci": "0000:00:1f.6", "ifindex": 2, "carrier_downs": 1}
    assert facts["netdevs"] == {"eth0": {**ETHERNET, **eth0}}


def test_graphics_of_others_are_no_gpus(facts: dict[str, Any]) -> None:
    assert part_of(facts, NO_GPU) == NO_GPU
    assert facts["iommu"]["virtual_machine"] is False


def test_an_iommu_of_which_there_are_only_links(facts: dict[str, Any]) -> None:
    # /sys/devices/pci0000:00/0000:00:02.1/iommu_group -> ../../../kernel/iommu_groups/2, which was not captured.
    assert iommu_mode(facts) is None


@pytest.mark.parametrize("path", FUNCTIONS)
def test_a_pci_function(path: str, root: Path) -> None:
    expected = {**FUNCTION, "address": path.rsplit("/", 1)[1], **FUNCTIONS[path]}
    assert asdict(PciReader(SysRoot(str(root))).function(f"/sys/devices/{path}")) == expected
