# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Four whole systems that hwloc's gatherer has captured: links, PCI tree, processors; none has /sys/class/infiniband_verbs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.compat.test_sysfs_unpacking import (
    DEVICE,
    DOWN,
    ETHERNET,
    FUNCTION,
    HOP,
    NO_GPU,
    NO_STACK,
    PORT,
    QUIET,
    facts_of,
    iommu_mode,
    part_of,
    unpack_tar,
)

PCI_DOMAINS = "hwloc-2pa-pcidomain32bits.tar.bz2"
QIB = "hwloc-40intel64-qib-pcilocality.tar.bz2"
XEON_PHI = "hwloc-32em64t-mlx4-mic-nvme-dax.tar.bz2"
POWER9 = "hwloc-nvidiagpunumanodes.tar.bz2"
#: Their /proc/mounts was captured, and names nothing that rides RDMA.
NO_USES = {**NO_STACK, "uses": []}
#: No function of these three has a link iommu_group.
#: Whether there was one was not captured.
NO_IOMMU = {"present": None, "mode": None}
#: A client of three Lustre file systems over InfiniBand, beside NFS over UDP.
LUSTRE = [
    {"kind": "mount", "what": "/home1 from 192.168.65.1@o2ib:192.168.65.2@o2ib:/home-st by Lustre over RDMA"},
    {"kind": "mount", "what": "/work from 192.168.65.3@o2ib:192.168.65.4@o2ib:/work-st by Lustre over RDMA"},
    {"kind": "mount", "what": "/scratch from 192.168.65.5@o2ib:192.168.65.6@o2ib:/scratch by Lustre over RDMA"},
]


def test_qib_of_2013(tmp_path: Path) -> None:
    saturated = dict.fromkeys(["port_rcv_data", "port_rcv_packets", "port_xmit_data", "port_xmit_packets"], 4294967295)
    port = {
        "rate_gbps": 40.0,
        "speed": "QDR",
        "lid": 298,
        "sm_lid": 1,
        "pkeys": {"0": 0xFFFF},
        "netdev": "ib0",
        # Four more entries have the prefix and nothing else.
        "gids": [{"index": 0, "gid": "fe80:0000:0000:0000:0011:7500:0077:cfc8", "type": None, "netdev": None, "ipv4": None}],
        "counters": {**QUIET, **saturated},
    }
    bnx2 = {**ETHERNET, "driver": "bnx2"}
    ib0 = {
        "mac": "80:00:00:03:fe:80:00:00:00:00:00:00:00:11:75:00:00:77:cf:c8",
        "mtu_bytes": 2044,
        "type": 32,
        "driver": "ib_qib",
        "pci": "0000:43:00.0",
        "numa_node": 2,
        "ifindex": 6,
    }

    facts = facts_of(unpack_tar(QIB, tmp_path))

    assert facts["devices"] == {
        "qib0": {
            **DEVICE,
            "driver": "ib_qib",
            "software": False,
            "board_id": "InfiniPath_QLE7340",
            "hca_type": "InfiniPath_QLE7340",
            "node_guid": "0011:7500:0077:cfc8",
            "sys_image_guid": "0011:7500:0077:cfc8",
            "node_type": "CA",
            "numa_node": 2,
            "function": "pf",
            "pci": {
                **FUNCTION,
                "address": "0000:43:00.0",
                "vendor_id": "0x1077",
                "device_id": "0x7322",
                "numa_node": 2,
                # hwloc added these two files in 2018; qib itself says "PCIe,5000MHz,x8" in localbus_info.
                "speed_gtps": 8.0,
                "width": 4,
                "narrowest": {"address": "0000:43:00.0", "speed_gtps": 8.0, "width": 4},
                "hops": [{**HOP, "address": "0000:40:03.0"}],
            },
            "ports": {"1": {**PORT, **port}},
        },
    }
    assert facts["netdevs"] == {
        "eth0": {**bnx2, "mac": "78:2b:cb:38:ac:1b", "pci": "0000:02:00.0", "ifindex": 2},
        "eth1": {**bnx2, **DOWN, "mac": "78:2b:cb:38:ac:1d", "pci": "0000:02:00.1", "ifindex": 3},
        "eth2": {**bnx2, **DOWN, "mac": "78:2b:cb:38:ac:1f", "pci": "0000:03:00.0", "ifindex": 4},
        "eth3": {**bnx2, **DOWN, "mac": "78:2b:cb:38:ac:21", "pci": "0000:03:00.1", "ifindex": 5},
        "ib0": {**ETHERNET, **ib0},
    }
    assert part_of(facts, NO_GPU) == NO_GPU
    assert (facts["iommu"], facts["stack"]) == ({**NO_IOMMU, "virtual_machine": False}, NO_USES)


def test_connectx_3_of_2013_beside_a_device_that_was_not_captured(tmp_path: Path) -> None:
    counters = {
        "port_rcv_data": 5550796,
        "port_rcv_packets": 7620680,
        "port_xmit_data": 8039908,
        "port_xmit_packets": 74069,
        "port_xmit_wait": 21833,
    }
    port = {
        "rate_gbps": 56.0,
        "speed": "FDR",
        "lid": 932,
        "sm_lid": 1,
        "pkeys": {"0": 0xFFFF},
        "netdev": "ib0",
        # 127 more entries have the prefix and nothing else.
        "gids": [{"index": 0, "gid": "fe80:0000:0000:0000:0002:c903:00f9:bfa1", "type": None, "netdev": None, "ipv4": None}],
        "counters": {**QUIET, **counters},
    }
    igb = {**ETHERNET, "driver": "igb", "numa_node": 0}
    ib0 = {
        "mac": "80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:f9:bf:a1",
        "mtu_bytes": 2044,
        "type": 32,
        "driver": "mlx4_core",
        "pci": "0000:82:00.0",
        "numa_node": 1,
        "ifindex": 5,
    }

    facts = facts_of(unpack_tar(XEON_PHI, tmp_path))

    assert facts["devices"] == {
        "mlx4_0": {
            **DEVICE,
            "driver": "mlx4_core",
            "software": False,
            "firmware": "2.11.500",
            "board_id": "DEL0A30000019",
            "hca_type": "MT4099",
            "node_guid": "0002:c903:00f9:bfa0",
            "sys_image_guid": "0002:c903:00f9:bfa3",
            "node_type": "CA",
            "numa_node": 1,
            "function": "pf",
            "pci": {
                **FUNCTION,
                "address": "0000:82:00.0",
                "vendor_id": "0x15b3",
                "device_id": "0x1003",
                "numa_node": 1,
                "hops": [{**HOP, "address": "0000:80:02.2"}],
            },
            "ports": {"1": {**PORT, **port}},
        },
        # A link to the software device of Xeon Phi cards, /sys/devices/scif_dma_0, which is not there.
        "scif0": DEVICE,
    }
    assert facts["netdevs"] == {
        "eth0": {**igb, "mac": "84:8f:69:fe:cc:40", "pci": "0000:02:00.0", "ifindex": 2},
        "eth1": {**igb, **DOWN, "mac": "84:8f:69:fe:cc:41", "pci": "0000:02:00.3", "ifindex": 3},
        "ib0": {**ETHERNET, **ib0},
    }
    assert part_of(facts, NO_GPU) == NO_GPU
    assert (facts["iommu"], facts["stack"]) == ({**NO_IOMMU, "virtual_machine": False}, {**NO_STACK, "uses": LUSTRE})


def test_a_virtual_machine_without_rdma(tmp_path: Path) -> None:
    ens3 = {"mac": "06:7a:4c:00:00:22", "dev_port": 0, "driver": "virtio_net", "pci": "0000:00:03.0", "ifindex": 2}

    facts = facts_of(unpack_tar(PCI_DOMAINS, tmp_path))

    assert facts["devices"] == {}
    assert facts["netdevs"] == {"ens3": {**ETHERNET, **ens3}}
    assert part_of(facts, NO_GPU) == NO_GPU
    assert (facts["iommu"], facts["stack"]) == ({**NO_IOMMU, "virtual_machine": True}, NO_USES)


@pytest.fixture(scope="module")
def power9(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return facts_of(unpack_tar(POWER9, tmp_path_factory.mktemp("power9")))


def test_gpus_of_which_little_more_than_the_address_was_captured(power9: dict[str, Any]) -> None:
    addresses = ["0004:05:00.0", "0004:06:00.0", "0006:00:00.0", "0007:00:00.0", "0035:04:00.0", "0035:05:00.0"]

    assert (power9["devices"], power9["netdevs"], power9["stack"]) == ({}, {}, NO_USES)
    # Node 255 and so on in numa_status are what the memory on the GPUs is, and not what the GPUs are near to.
    assert power9["gpus"] == [
        {"address": address, "model": None, "uuid": None, "numa_node": None, "pci": {**FUNCTION, "address": address}}
        for address in addresses
    ]
    assert power9["gpu_driver"] == {"version": None, "open": None}
    assert power9["distances"] == {address: {} for address in addresses}
    assert power9["iommu"]["virtual_machine"] is None


def test_a_gpu_driver_that_is_there_without_its_version(power9: dict[str, Any]) -> None:
    # /proc/driver/nvidia/gpus/0004:05:00.0/numa_status and five like it are there, which a loaded driver alone makes.
    assert "driver is not loaded" not in json.dumps(power9["gpudirect"])


def test_an_iommu_that_was_not_captured(power9: dict[str, Any]) -> None:
    assert iommu_mode(power9) is None
