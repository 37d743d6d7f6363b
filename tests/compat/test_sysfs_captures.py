# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of real systems whose /sys others have captured. The values were written down by reading the captures."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._facts import gather, to_dict
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

CAPTURES = Path(__file__).resolve().parents[2] / "../shared/fixtures/sysfs"

# The standard counters of every port with performance management, in words of four bytes or packets or events.
QUIET = dict.fromkeys(
    [
        "VL15_dropped",
        "excessive_buffer_overrun_errors",
        "link_downed",
        "link_error_recovery",
        "local_link_integrity_errors",
        "port_rcv_constraint_errors",
        "port_rcv_data",
        "port_rcv_errors",
        "port_rcv_packets",
        "port_rcv_remote_physical_errors",
        "port_rcv_switch_relay_errors",
        "port_xmit_constraint_errors",
        "port_xmit_data",
        "port_xmit_discards",
        "port_xmit_packets",
        "port_xmit_wait",
        "symbol_error",
    ],
    0,
)
# What the ports of these captures have in common: no capture has LIDs, GIDs and interfaces unless it says so.
PORT: dict[str, Any] = {
    "state": "ACTIVE",
    "physical_state": "LinkUp",
    "link_layer": "InfiniBand",
    "rate_gbps": None,
    "width": 4,
    "lid": None,
    "sm_lid": None,
    "netdev": None,
    "gids": [],
    "counters": QUIET,
    "hw_counters": {},
}
DEVICE: dict[str, Any] = {
    "driver": None,
    "software": None,
    "firmware": None,
    "board_id": None,
    "hca_type": None,
    "node_guid": None,
    "sys_image_guid": None,
    "node_type": None,
    "numa_node": None,
    "pci": None,
    "ports": {},
}
# What the kernels of these captures do not tell: dev_port is younger than most of them.
ETHERNET: dict[str, Any] = {
    "mac": None,
    "mtu_bytes": 1500,
    "operstate": "up",
    "carrier": True,
    "admin_up": True,
    "type": 1,
    "dev_port": None,
    "driver": None,
    "pci": None,
    "numa_node": None,
}
DOWN = {"operstate": "down", "carrier": None, "admin_up": False}


def facts_of(root: Path) -> dict[str, Any]:
    return to_dict(gather(SysRoot(str(root))))


def capture(name: str) -> Path:
    path = CAPTURES / name
    if not path.exists():
        pytest.skip(f"the capture {name} is missing from {CAPTURES}")
    return path


def unpack_tar(name: str, folder: Path) -> Path:
    with tarfile.open(capture(name)) as archive:
        top = archive.getnames()[0]
        archive.extractall(folder, filter="data")
    return folder / top


def unpack_ttar(name: str, folder: Path) -> Path:
    """Unpack Prometheus' text archive: "Path: ", then "SymlinkTo: " or "Lines: N" and so many lines of content.

    EOF at the end of the content stands for a missing line break, NULLBYTE for a NUL; a backslash takes that meaning away.
    """
    lines = iter(capture(name).read_text(encoding="utf-8").split("\n"))
    for line in lines:
        key, _colon, value = line.partition(": ")
        path = folder / value
        if key == "Directory":
            path.mkdir(parents=True, exist_ok=True)
        elif key == "Path":
            path.parent.mkdir(parents=True, exist_ok=True)
            key, _colon, value = next(lines).partition(": ")
            if key == "SymlinkTo":
                path.symlink_to(value)
            else:
                content = "".join(next(lines) + "\n" for _number in range(int(value)))
                content = re.sub(r"(?<!\\)EOF\n\Z", "", content)
                content = re.sub(r"(?<!\\)NULLBYTE", "\0", content)
                path.write_text(re.sub(r"\\(EOF|NULLBYTE)", r"\1", content), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def procfs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return facts_of(unpack_ttar("procfs-fixtures.ttar", tmp_path_factory.mktemp("procfs")) / "fixtures")


@pytest.fixture(scope="module")
def node_exporter(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return facts_of(unpack_ttar("node_exporter-sys.ttar", tmp_path_factory.mktemp("node_exporter")))


@pytest.fixture(scope="module")
def h100(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("h100")
    unpacked = unpack_tar("gpud-sys-class-infiniband-h100.tar", root)
    (root / "sys/class").mkdir(parents=True)
    unpacked.rename(root / "sys/class/infiniband")
    return facts_of(root)


def test_a_tree_of_three_drivers(procfs: dict[str, Any]) -> None:
    assert list(procfs["devices"]) == ["hfi1_0", "mlx4_0", "mlx5_0"]
    assert procfs["boot"] == {"boot_id": None, "machine_id": None}
    assert procfs["stack"] == {"kind": None, "kernel": None, "modules": {}}


def test_omni_path(procfs: dict[str, Any]) -> None:
    counters = {
        "port_rcv_data": 345091702026,
        "port_rcv_packets": 638036947,
        "port_xmit_data": 273558326543,
        "port_xmit_packets": 568318856,
    }
    assert procfs["devices"]["hfi1_0"] == {
        **DEVICE,
        "firmware": "1.27.0",
        "board_id": "HPE 100Gb 1-port OP101 QSFP28 x16 PCIe Gen3 with Intel Omni-Path Adapter",
        "ports": {"1": {**PORT, "rate_gbps": 100.0, "counters": {**QUIET, **counters}}},
    }


def test_connectx_3_with_two_ports(procfs: dict[str, Any]) -> None:
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
    assert procfs["devices"]["mlx4_0"] == {
        **DEVICE,
        "firmware": "2.31.5050",
        "board_id": "SM_1141000001000",
        "hca_type": "MT4099",
        "ports": {
            "1": {**PORT, "rate_gbps": 40.0, "counters": {**QUIET, **first}},
            "2": {**PORT, "rate_gbps": 40.0, "counters": {**QUIET, **second}},
        },
    }


def test_connectx_5_with_hardware_counters(procfs: dict[str, Any]) -> None:
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
        # The file says "4: ACTIVE", which is no physical state; it is told as it stands.
        "physical_state": "ACTIVE",
        "rate_gbps": 25.0,
        "width": 1,
        "counters": {**QUIET, **counters},
        "hw_counters": hw_counters,
    }
    assert procfs["devices"]["mlx5_0"] == {
        **DEVICE,
        "firmware": "14.28.2006",
        "board_id": "SM_2001000001034",
        "hca_type": "MT4118",
        "node_guid": "0a7f:bc12:45ef:d23b",
        "ports": {"1": {**PORT, **port}},
    }


def test_an_interface_whose_driver_was_not_captured(procfs: dict[str, Any]) -> None:
    assert procfs["netdevs"] == {"eth0": {**ETHERNET, "mac": "01:01:01:01:01:01", "pci": "0000:00:1f.6"}}


def test_iwarp_has_no_performance_management(node_exporter: dict[str, Any]) -> None:
    assert node_exporter["devices"]["i40iw0"] == {
        **DEVICE,
        "firmware": "0.2",
        "board_id": "I40IW Board ID",
        "hca_type": "I40IW",
        "ports": {"1": {**PORT, "rate_gbps": 10.0, "counters": dict.fromkeys(QUIET)}},
    }


def test_counters_that_stand_at_their_end(node_exporter: dict[str, Any]) -> None:
    ports = node_exporter["devices"]["mlx4_0"]["ports"]

    assert ports["1"]["counters"] == {
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
    assert node_exporter["netdevs"] == {}


def test_an_h100_node(h100: dict[str, Any]) -> None:
    names = [f"mlx5_{number}" for number in (0, 1, 4, 5, 6, 7, 8, 9)]

    assert list(h100["devices"]) == [*names, "mlx5_bond_0"]
    for name in names:
        device = h100["devices"][name]
        port = device["ports"]["1"]
        assert (device["firmware"], device["board_id"], device["hca_type"]) == ("28.41.1000", "MT_0000000838", "MT4129")
        assert (port["state"], port["physical_state"], port["link_layer"]) == ("ACTIVE", "LinkUp", "InfiniBand")
        assert (port["rate_gbps"], port["width"]) == (400.0, 4)


def test_a_bond_of_a_bluefield_3(h100: dict[str, Any]) -> None:
    counters = {
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
    hw_counters = {
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
    port = {"link_layer": "Ethernet", "rate_gbps": 200.0, "width": 2}
    assert h100["devices"]["mlx5_bond_0"] == {
        **DEVICE,
        "firmware": "32.38.3056",
        "board_id": "MT_0000000884",
        "hca_type": "MT41692",
        "ports": {"1": {**PORT, **port, "counters": {**QUIET, **counters}, "hw_counters": hw_counters}},
    }


def test_qib_of_2013(tmp_path: Path) -> None:
    saturated = dict.fromkeys(["port_rcv_data", "port_rcv_packets", "port_xmit_data", "port_xmit_packets"], 4294967295)
    port = {
        "rate_gbps": 40.0,
        "lid": 298,
        "sm_lid": 1,
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
    }

    facts = facts_of(unpack_tar("hwloc-40intel64-qib-pcilocality.tar.bz2", tmp_path))

    assert facts["devices"] == {
        "qib0": {
            "driver": "ib_qib",
            "software": False,
            "firmware": None,
            "board_id": "InfiniPath_QLE7340",
            "hca_type": "InfiniPath_QLE7340",
            "node_guid": "0011:7500:0077:cfc8",
            "sys_image_guid": "0011:7500:0077:cfc8",
            "node_type": "CA",
            "numa_node": 2,
            "pci": {
                "address": "0000:43:00.0",
                "vendor_id": "0x1077",
                "device_id": "0x7322",
                "numa_node": 2,
                "speed_gtps": 8.0,
                "width": 4,
                "max_speed_gtps": None,
                "max_width": None,
                "narrowest": {"address": "0000:43:00.0", "speed_gtps": 8.0, "width": 4},
            },
            "ports": {"1": {**PORT, **port}},
        },
    }
    assert facts["netdevs"] == {
        "eth0": {**bnx2, "mac": "78:2b:cb:38:ac:1b", "pci": "0000:02:00.0"},
        "eth1": {**bnx2, **DOWN, "mac": "78:2b:cb:38:ac:1d", "pci": "0000:02:00.1"},
        "eth2": {**bnx2, **DOWN, "mac": "78:2b:cb:38:ac:1f", "pci": "0000:03:00.0"},
        "eth3": {**bnx2, **DOWN, "mac": "78:2b:cb:38:ac:21", "pci": "0000:03:00.1"},
        "ib0": {**ETHERNET, **ib0},
    }


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
        "lid": 932,
        "sm_lid": 1,
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
    }

    facts = facts_of(unpack_tar("hwloc-32em64t-mlx4-mic-nvme-dax.tar.bz2", tmp_path))

    assert facts["devices"] == {
        "mlx4_0": {
            "driver": "mlx4_core",
            "software": False,
            "firmware": "2.11.500",
            "board_id": "DEL0A30000019",
            "hca_type": "MT4099",
            "node_guid": "0002:c903:00f9:bfa0",
            "sys_image_guid": "0002:c903:00f9:bfa3",
            "node_type": "CA",
            "numa_node": 1,
            "pci": {
                "address": "0000:82:00.0",
                "vendor_id": "0x15b3",
                "device_id": "0x1003",
                "numa_node": 1,
                "speed_gtps": None,
                "width": None,
                "max_speed_gtps": None,
                "max_width": None,
                "narrowest": None,
            },
            "ports": {"1": {**PORT, **port}},
        },
        "scif0": DEVICE,
    }
    assert facts["netdevs"] == {
        "eth0": {**igb, "mac": "84:8f:69:fe:cc:40", "pci": "0000:02:00.0"},
        "eth1": {**igb, **DOWN, "mac": "84:8f:69:fe:cc:41", "pci": "0000:02:00.3"},
        "ib0": {**ETHERNET, **ib0},
    }


def test_a_virtual_machine_without_rdma(tmp_path: Path) -> None:
    ens3 = {"mac": "06:7a:4c:00:00:22", "dev_port": 0, "driver": "virtio_net", "pci": "0000:00:03.0"}

    facts = facts_of(unpack_tar("hwloc-2pa-pcidomain32bits.tar.bz2", tmp_path))

    assert facts["devices"] == {}
    assert facts["netdevs"] == {"ens3": {**ETHERNET, **ens3}}


def test_a_tree_without_devices_at_all(tmp_path: Path) -> None:
    facts = facts_of(unpack_tar("hwloc-nvidiagpunumanodes.tar.bz2", tmp_path))

    assert (facts["devices"], facts["netdevs"]) == ({}, {})
