# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Asked, gather, to_dict
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import port_guid
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import rocev2_gid_index
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import digest
from tests.unit.builders.fakes import FakeRunner, SilentPort
from tests.unit.builders.trees import ZERO_GID, mlx5_machine, soft_roce_machine, write_tree

NOT_READ: dict[str, Any] = {
    "driver": None,
    "software": None,
    "firmware": None,
    "board_id": None,
    "hca_type": None,
    "node_guid": None,
    "sys_image_guid": None,
    "node_type": None,
    "numa_node": None,
    "function": None,
    "parent_pci": None,
    "uverbs": None,
    "pci": None,
}
RXE0_GIDS = [
    {"index": 0, "gid": "fe80:0000:0000:0000:5054:00ff:fe00:0101", "type": "RoCE v2", "netdev": "eth1", "ipv4": None},
    {"index": 1, "gid": "0000:0000:0000:0000:0000:ffff:0a0a:0101", "type": "RoCE v2", "netdev": "eth1", "ipv4": "10.10.1.1"},
]
MLX5_0_GIDS = [
    {"index": 0, "gid": "fe80:0000:0000:0000:a288:c2ff:fe00:0000", "type": "IB/RoCE v1", "netdev": "ens1f0np0", "ipv4": None},
    {"index": 1, "gid": "fe80:0000:0000:0000:a288:c2ff:fe00:0000", "type": "RoCE v2", "netdev": "ens1f0np0", "ipv4": None},
    {"index": 10, "gid": "0000:0000:0000:0000:0000:ffff:0a0a:0102", "type": "IB/RoCE v1", "netdev": "ens1f0np0", "ipv4": "10.10.1.2"},
    {"index": 11, "gid": "0000:0000:0000:0000:0000:ffff:0a0a:0102", "type": "RoCE v2", "netdev": "ens1f0np0", "ipv4": "10.10.1.2"},
]


def read(root: Path) -> dict[str, Any]:
    return to_dict(gather(SysRoot(str(root))))


def read_port(root: Path, device: str = "mlx5_0") -> dict[str, Any]:
    return read(root)["devices"][device]["ports"]["1"]


def test_soft_roce_devices(tmp_path: Path) -> None:
    rxe0 = {
        **NOT_READ,
        "driver": "rdma_rxe",
        "software": True,
        "node_guid": "5054:00ff:fe00:0101",
        "sys_image_guid": "5054:00ff:fe00:0101",
        "node_type": "CA",
        "ports": {
            "1": {
                "state": "ACTIVE",
                "physical_state": "LinkUp",
                "link_layer": "Ethernet",
                "rate_gbps": 2.5,
                "width": 1,
                "speed": "SDR",
                "active_mtu_bytes": None,
                "active_mtu_error": None,
                "optic": None,
                "optic_unread": None,
                "pkeys": None,
                "rocev2": {"10.10.1.1": 1},
                "lid": None,
                "sm_lid": None,
                "netdev": "eth1",
                "gids": RXE0_GIDS,
                "counters": {},
                "hw_counters": {"sent_pkts": 12},
            },
        },
    }
    down = {"state": "DOWN", "physical_state": "Disabled", "netdev": "eth2", "gids": [], "rocev2": {}}
    rxe1 = {
        **rxe0,
        "node_guid": "5054:00ff:fe00:0201",
        "sys_image_guid": "5054:00ff:fe00:0201",
        "ports": {"1": {**rxe0["ports"]["1"], **down}},
    }

    assert read(soft_roce_machine(tmp_path))["devices"] == {"rxe0": rxe0, "rxe1": rxe1}


def _hop(address: str, width: int) -> dict[str, Any]:
    link = {"speed_gtps": 32.0, "width": width, "max_speed_gtps": 32.0, "max_width": width}
    return {"address": address, **link, "mps_bytes": None, "mps_max_bytes": None, "acs": None}


def test_a_nic_with_two_ports(tmp_path: Path) -> None:
    pci = {
        "address": "0000:3d:00.0",
        "vendor_id": "0x15b3",
        "device_id": "0x1021",
        "numa_node": 0,
        "speed_gtps": 32.0,
        "width": 16,
        "max_speed_gtps": 32.0,
        "max_width": 16,
        "narrowest": {"address": "0000:3b:00.0", "speed_gtps": 32.0, "width": 8},
        "mps_bytes": None,
        "mps_max_bytes": None,
        "mrrs_bytes": None,
        "hops": [_hop("0000:3c:00.0", 16), _hop("0000:3b:00.0", 8), _hop("0000:3a:01.0", 16)],
    }
    mlx5_0 = {
        "driver": "mlx5_core",
        "software": False,
        "firmware": "28.41.1000",
        "board_id": "MT_0000000838",
        "hca_type": "MT4129",
        "node_guid": "a088:c203:0000:0000",
        "sys_image_guid": "a088:c203:0000:0000",
        "node_type": "CA",
        "numa_node": 0,
        "function": "pf",
        "parent_pci": None,
        "uverbs": None,
        "pci": pci,
        "ports": {
            "1": {
                "state": "ACTIVE",
                "physical_state": "LinkUp",
                "link_layer": "Ethernet",
                "rate_gbps": 200.0,
                "width": 2,
                "speed": "NDR",
                "active_mtu_bytes": None,
                "active_mtu_error": None,
                "optic": None,
                "optic_unread": None,
                "pkeys": None,
                "rocev2": {"10.10.1.2": 11},
                "lid": None,
                "sm_lid": None,
                "netdev": "ens1f0np0",
                "gids": MLX5_0_GIDS,
                "counters": {"port_xmit_data": 2**64 - 1, "symbol_error": None},
                "hw_counters": {"out_of_sequence": 7},
            },
        },
    }
    down = {"state": "DOWN", "physical_state": "Disabled", "rate_gbps": 40.0, "width": 4, "speed": "QDR", "netdev": "ens1f1np1"}
    mlx5_1 = {
        **mlx5_0,
        "node_guid": "a088:c203:0000:0001",
        "pci": {**pci, "address": "0000:3d:00.1"},
        "ports": {"1": {**mlx5_0["ports"]["1"], **down, "gids": [], "rocev2": {}, "hw_counters": {}}},
    }

    assert read(mlx5_machine(tmp_path))["devices"] == {"mlx5_0": mlx5_0, "mlx5_1": mlx5_1}


@pytest.mark.parametrize(
    ("files", "driver", "software"),
    [
        ("/sys/devices/virtual/infiniband/x0/node_type: 4: RNIC", "siw", True),
        ("/sys/devices/virtual/infiniband/x0/node_type: 1: CA", None, True),
        ("/sys/devices/virtual/infiniband/x0/parent: eth1", "rdma_rxe", True),
        # Before Linux 5.11 software devices had their interface's device below them.
        ("/sys/class/infiniband/x0/parent: eth1\n/sys/class/infiniband/x0/device/driver -> ../virtio_net", "rdma_rxe", True),
        ("/sys/class/infiniband/x0/node_desc: Software iWARP stack\n/sys/class/infiniband/x0/device/driver -> ../ice", "siw", True),
        ("/sys/class/infiniband/x0/device/driver -> ../../bus/pci/drivers/bnxt_en", "bnxt_en", False),
        ("/sys/class/infiniband/x0/device -> ../../0000:01:00.0", None, False),
        ("/sys/class/infiniband/x0/node_type: 4: RNIC", None, None),
    ],
)
def test_the_driver_is_reported_by_what_exists(tmp_path: Path, files: str, driver: str | None, software: bool | None) -> None:
    if "/virtual/" in files:
        files += "\n/sys/class/infiniband/x0 -> ../../devices/virtual/infiniband/x0"

    device = read(write_tree(tmp_path, files))["devices"]["x0"]

    assert (device["driver"], device["software"]) == (driver, software)


def test_what_a_device_does_not_report_is_none(tmp_path: Path) -> None:
    nothing = {"state": None, "physical_state": None, "link_layer": None, "rate_gbps": None, "width": None, "speed": None, "lid": None}
    port = {
        **nothing,
        "sm_lid": None,
        "netdev": None,
        "gids": [],
        "rocev2": {},
        "active_mtu_bytes": None,
        "active_mtu_error": None,
        "optic": None,
        "optic_unread": None,
        "pkeys": None,
        "counters": {},
        "hw_counters": {},
    }

    write_tree(tmp_path, "/sys/class/infiniband/mlx5_0/ports/1/cap_mask: 0x00010000")

    assert read(tmp_path)["devices"] == {"mlx5_0": {**NOT_READ, "ports": {"1": port}}}


def test_ports_and_gids_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        write_tree(
            tmp_path,
            f"/sys/class/infiniband/m/ports/{number}/gids/{number}: fe80::1\n/sys/class/infiniband/m/ports/1/gids/{number}: fe80::2",
        )

    ports = read(tmp_path)["devices"]["m"]["ports"]

    assert list(ports) == ["1", "2", "10"]
    assert [gid["index"] for gid in ports["1"]["gids"]] == [1, 2, 10]


def test_an_unused_infiniband_gid_has_the_prefix_alone(tmp_path: Path) -> None:
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    write_tree(
        tmp_path, f"{port}/link_layer: InfiniBand\n{port}/gids/0: fe80::2:c903:f9:bfa1\n{port}/gids/1: fe80::\n{port}/gids/2: {ZERO_GID}"
    )

    assert [gid["gid"] for gid in read_port(tmp_path)["gids"]] == ["fe80:0000:0000:0000:0002:c903:00f9:bfa1"]


def test_the_interface_of_a_port_is_the_one_of_its_gids(tmp_path: Path) -> None:
    root = mlx5_machine(tmp_path)
    for index in (0, 1, 10, 11):
        write_tree(root, f"/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/{index}: bond0")
    write_tree(root, "/sys/class/net/bond0/mtu: 9000\n/sys/class/net/bond1/mtu: 9000")

    facts = read(root)

    assert facts["devices"]["mlx5_0"]["ports"]["1"]["netdev"] == "bond0"
    assert sorted(facts["netdevs"]) == ["bond0", "ens1f0np0", "ens1f1np1"]
    assert facts["netdevs"]["bond0"]["mtu_bytes"] == 9000


def two_port_infiniband(root: Path, interfaces: dict[str, int]) -> Path:
    function = "/sys/devices/pci0000:80/0000:82:00.0"
    tree = f"""
        /sys/class/infiniband/mlx4_0 -> {function}/infiniband/mlx4_0
        {function}/infiniband/mlx4_0/device -> ../../../0000:82:00.0
        {function}/infiniband/mlx4_0/ports/1/link_layer: InfiniBand
        {function}/infiniband/mlx4_0/ports/2/link_layer: InfiniBand
    """
    for name, dev_port in interfaces.items():
        tree += f"""
            /sys/class/net/{name}/device -> {function}
            /sys/class/net/{name}/type: 32
            /sys/class/net/{name}/dev_port: {dev_port}
        """
    return write_tree(root, tree)


def test_the_interface_of_an_infiniband_port_has_the_ports_number(tmp_path: Path) -> None:
    two_port_infiniband(tmp_path, {"ib0": 0, "ib1": 1, "ib1.8001": 1, "eth9": 0})
    write_tree(tmp_path, "/sys/class/net/ib1.8001/parent: ib1\n/sys/class/net/eth9/type: 1")

    ports = read(tmp_path)["devices"]["mlx4_0"]["ports"]

    assert [port["netdev"] for port in ports.values()] == ["ib0", "ib1"]


def test_an_interface_is_not_guessed(tmp_path: Path) -> None:
    two_port_infiniband(tmp_path, {"ib0": 0, "ib1": 0})

    ports = read(tmp_path)["devices"]["mlx4_0"]["ports"]

    assert [port["netdev"] for port in ports.values()] == [None, None]


def test_a_file_that_makes_no_sense_is_named(tmp_path: Path) -> None:
    write_tree(soft_roce_machine(tmp_path), "/sys/class/infiniband/rxe0/ports/1/state: up")

    with pytest.raises(ParseError, match=r"^/sys/class/infiniband/rxe0/ports/1/state: not a port state: 'up'"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("ipv4", "index"),
    [("10.10.1.2", 11), ("10.10.1.1", None), ("0.0.0.0", None)],
)
def test_the_gid_index_for_roce_v2_is_that_of_the_address(tmp_path: Path, ipv4: str, index: int | None) -> None:
    facts = gather(SysRoot(str(mlx5_machine(tmp_path))))
    port = facts.devices["mlx5_0"].ports["1"]

    assert rocev2_gid_index(port, ipv4) == index
    assert digest(to_dict(facts))["devices"]["mlx5_0"]["ports"]["1"]["rocev2"] == port.rocev2


def test_a_global_ipv6_address_has_an_index_and_a_link_local_one_has_none(tmp_path: Path) -> None:
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    gids = ["fe80:0000:0000:0000:0050:56ff:fe00:0001", "2001:0db8:0100:0000:0000:0000:0000:0001"]
    for index, (gid, kind) in enumerate((gid, kind) for gid in gids for kind in ("IB/RoCE v1", "RoCE v2")):
        write_tree(tmp_path, f"{port}/gids/{index}: {gid}\n{port}/gid_attrs/types/{index}: {kind}")

    assert read_port(tmp_path)["rocev2"] == {"2001:db8:100::1": 3}


def test_the_first_of_two_indexes_is_taken(tmp_path: Path) -> None:
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    for index in (20, 3):
        write_tree(tmp_path, f"{port}/gids/{index}: ::ffff:10.0.0.1\n{port}/gid_attrs/types/{index}: RoCE v2")

    assert read_port(tmp_path)["rocev2"] == {"10.0.0.1": 3}


def test_counters_are_read_only_if_asked_for(tmp_path: Path) -> None:
    facts = to_dict(gather(SysRoot(str(mlx5_machine(tmp_path))), asked=Asked(frozenset())))

    port = facts["devices"]["mlx5_0"]["ports"]["1"]
    assert (port["counters"], port["hw_counters"]) == (None, None)


@pytest.mark.parametrize(
    ("node", "expected"),
    [("/dev/infiniband/uverbs0: ", "/dev/infiniband/uverbs0"), ("/dev/infiniband/uverbs1: ", None), ("", None)],
)
def test_the_node_that_programs_open(tmp_path: Path, node: str, expected: str | None) -> None:
    write_tree(mlx5_machine(tmp_path), f"/sys/class/infiniband_verbs/uverbs0/ibdev: mlx5_0\n{node}")

    assert read(tmp_path)["devices"]["mlx5_0"]["uverbs"] == expected
    assert read(tmp_path)["devices"]["mlx5_1"]["uverbs"] is None


DEVINFO = """hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t28.41.1000
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t2048 (4)
\t\t\tsm_lid:\t\t\t0
\t\t\tport_lid:\t\t0
\t\t\tport_lmc:\t\t0x00
\t\t\tlink_layer:\t\tEthernet

"""


MISSING = "`ibv_devinfo` prints no active_mtu for {}"


@pytest.mark.parametrize(
    ("answer", "mtu_bytes", "why"),
    [
        ((0, DEVINFO), 2048, None),
        ((255, "No IB devices found\n"), None, "`ibv_devinfo` failed: No IB devices found"),
        ((0, "Failed to get IB devices list"), None, "Failed to get IB devices list"),
    ],
)
def test_the_mtu_of_a_port_is_asked_of_libibverbs(tmp_path: Path, answer: tuple[int, str], mtu_bytes: int | None, why: str | None) -> None:
    runner = FakeRunner([(["ip", "-json", "-details", "address", "show"], 0, "[]", ""), (["ibv_devinfo"], *answer, "")])

    facts = to_dict(gather(SysRoot(str(mlx5_machine(tmp_path))), runner, Asked(frozenset({"netdevs"})), SilentPort()))

    ports = {name: device["ports"]["1"] for name, device in facts["devices"].items()}
    assert [port["active_mtu_bytes"] for port in ports.values()] == [mtu_bytes, None]
    first, second = ports.values()
    assert (first["active_mtu_error"] or "").find(why or "") >= 0
    assert (first["active_mtu_error"] is None) is (why is None)
    assert second["active_mtu_error"] == (first["active_mtu_error"] or MISSING.format(list(ports)[1]))


MSTLINK = ["mstlink", "-d", "0000:3d:00.0", "-m"]
MODULE_INFO = """
Module Info
-----------
Identifier                                  : OSFP
Vendor Name                                 : NVIDIA
Vendor Part Number                          : MMA4Z00-NS400
Vendor Serial Number                        : MT2345
Cable Type                                  : Optical Module (separated)
Temperature [C]                             : 91 [0..70]
"""


@pytest.mark.parametrize(("answer", "value"), [((0, MODULE_INFO), 91.0), ((1, "-E- no device"), None), ((0, "-E- no module"), None)])
def test_the_module_of_an_infiniband_card_is_asked_of_mstlink(tmp_path: Path, answer: tuple[int, str], value: float | None) -> None:
    root = mlx5_machine(tmp_path)
    write_tree(root, "/sys/class/infiniband/mlx5_0/ports/1/link_layer: InfiniBand")
    runner = FakeRunner([(MSTLINK, *answer, "")])

    facts = to_dict(gather(SysRoot(str(root)), runner, Asked(frozenset({"optics"}))))

    optic = facts["devices"]["mlx5_0"]["ports"]["1"]["optic"]
    assert (optic and optic["temperature_celsius"]["value"]) == value
    assert facts["devices"]["mlx5_1"]["ports"]["1"]["optic"] is None


def test_the_used_p_keys_of_an_infiniband_port(tmp_path: Path) -> None:
    base = "/sys/class/infiniband/mlx5_0/ports/1"
    write_tree(tmp_path, f"{base}/link_layer: InfiniBand\n{base}/gids/0: fe80:0000:0000:0000:0002:c903:00f9:bfa1\n")
    assert read(tmp_path)["devices"]["mlx5_0"]["ports"]["1"]["pkeys"] is None
    write_tree(tmp_path, f"{base}/pkeys/0: 0x8101\n{base}/pkeys/1: 0x0000\n{base}/pkeys/10: 0x7fff\n{base}/pkeys/2: 0x0102\n")
    port = read(tmp_path)["devices"]["mlx5_0"]["ports"]["1"]
    assert port["pkeys"] == {"0": 0x8101, "2": 0x0102, "10": 0x7FFF}
    seen = gather(SysRoot(str(tmp_path))).devices["mlx5_0"].ports["1"]
    assert port_guid(seen) == "0x0002c90300f9bfa1"
    assert port_guid(replace(seen, gids=[])) is None
    write_tree(tmp_path, f"{base}/link_layer: Ethernet\n")
    assert read(tmp_path)["devices"]["mlx5_0"]["ports"]["1"]["pkeys"] is None
