# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tree that the tests of Prometheus' node_exporter read: parts of several systems, two RDMA devices among them without links."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from tests.compat.test_sysfs_unpacking import (
    DEVICE,
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

NODE_EXPORTER = "node_exporter-sys.ttar"
X4 = {"speed_gtps": 8.0, "width": 4}
#: The archive has PCI links, though of no RDMA device. Its configuration spaces are text, and have lost bytes.
FUNCTIONS: dict[str, dict[str, Any]] = {
    # Slower than it could be, as it stands behind a slower port.
    "pci0000:00/0000:00:02.1/0000:01:00.0": {
        "vendor_id": "0xc0a9",
        "device_id": "0x540a",
        **X4,
        "max_speed_gtps": 16.0,
        "max_width": 4,
        "narrowest": {"address": "0000:01:00.0", **X4},
        "hops": [{**HOP, "address": "0000:00:02.1", **X4, "max_speed_gtps": 8.0, "max_width": 8}],
    },
    "pci0000:40/0000:40:01.3/0000:45:00.0": {
        "vendor_id": "0x8086",
        "device_id": "0x1521",
        "numa_node": 0,
        "speed_gtps": 5.0,
        "width": 4,
        "max_speed_gtps": 5.0,
        "max_width": 4,
        "narrowest": {"address": "0000:45:00.0", "speed_gtps": 5.0, "width": 4},
        "hops": [{**HOP, "address": "0000:40:01.3"}],
    },
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_ttar(capture(NODE_EXPORTER), tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
def facts(root: Path) -> dict[str, Any]:
    return facts_of(root)


def test_iwarp_has_no_performance_management(facts: dict[str, Any]) -> None:
    assert list(facts["devices"]) == ["i40iw0", "mlx4_0"]
    assert facts["devices"]["i40iw0"] == {
        **DEVICE,
        "firmware": "0.2",
        "board_id": "I40IW Board ID",
        "hca_type": "I40IW",
        # "10 Gb/sec (4X)": a speed that kernels before 5.6 leave out.
        "ports": {"1": {**PORT, "rate_gbps": 10.0, "counters": dict.fromkeys(QUIET)}},
    }


def test_counters_that_stand_at_their_end(facts: dict[str, Any]) -> None:
    counters = {
        "link_downed": 0,
        "link_error_recovery": 0,
        "multicast_rcv_packets": 93,
        "multicast_xmit_packets": 16,
        "port_rcv_constraint_errors": 0,
        "port_rcv_data": 4631917,
        "port_rcv_discards": 0,
        "port_rcv_errors": 0,
        "port_rcv_packets": 6825908347,
        "port_xmit_constraint_errors": 0,
        "port_xmit_data": 3733440,
        "port_xmit_discards": 5,
        "port_xmit_packets": 6235865,
        "port_xmit_wait": 4294967295,
        "unicast_rcv_packets": 61148,
        "unicast_xmit_packets": 61239,
    }
    quiet = dict.fromkeys(
        [
            "link_downed",
            "link_error_recovery",
            "multicast_rcv_packets",
            "multicast_xmit_packets",
            "port_rcv_data",
            "port_xmit_data",
            "unicast_rcv_packets",
            "unicast_xmit_packets",
        ],
        0,
    )
    port = {**PORT, "rate_gbps": 40.0, "speed": "QDR"}
    assert facts["devices"]["mlx4_0"] == {
        **DEVICE,
        "firmware": "2.31.5050",
        "board_id": "SM_1141000001000",
        "hca_type": "MT4099",
        "ports": {"1": {**port, "counters": counters}, "2": {**port, "counters": quiet}},
    }


def test_bonds_and_an_interface_without_its_device_are_left_out(facts: dict[str, Any]) -> None:
    assert facts["netdevs"] == {}
    assert facts["stack"] == NO_STACK


def test_a_dell_server_without_gpus(facts: dict[str, Any]) -> None:
    assert part_of(facts, NO_GPU) == NO_GPU
    # No processors were captured: the firmware's "Dell Inc.", "PowerEdge R6515" shows it.
    assert facts["iommu"]["virtual_machine"] is False


def test_an_iommu_of_which_there_are_only_links(facts: dict[str, Any]) -> None:
    # /sys/devices/pci0000:00/0000:00:02.1/iommu_group -> ../../../kernel/iommu_groups/2, which was not captured.
    assert iommu_mode(facts) is None


@pytest.mark.parametrize("path", FUNCTIONS)
def test_a_pci_function(path: str, root: Path) -> None:
    expected = {**FUNCTION, "address": path.rsplit("/", 1)[1], **FUNCTIONS[path]}
    assert asdict(PciReader(SysRoot(str(root))).function(f"/sys/devices/{path}")) == expected
