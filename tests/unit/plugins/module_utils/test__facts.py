# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils import _limits, _networkd
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._facts import digest, gather, rocev2_gid_index, to_dict
from ansible_collections.rdma.cluster.plugins.module_utils._sysctl import sysctl_files
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot
from tests.unit.fakes import Call, FakeRunner
from tests.unit.hosts import FIXTURES, on_host
from tests.unit.trees import ZERO_GID, mlx5_machine, soft_roce_machine, write_tree

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


NO_LOGINS = {"*": None, "root": None}
#: What a captured tree without our files tells of the rest.
NOT_ASKED: dict[str, Any] = {
    "limits": {"service_memlock": None, "login_memlock": NO_LOGINS},
    "sysctl": {"live": {}, "boot": {}},
    "files": {},
    "units": None,
    "load": {"gpu_processes": None, "jobs": []},
}
IP = ["ip", "-json", "-details", "address", "show"]
SERVICE_LIMITS = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "cat", "/proc/self/limits"]
UNITS = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", "rdma-soft-links.service", "systemd-networkd.service"]
ARP_IGNORE, RMEM, ABSENT = "net.ipv4.conf.all.arp_ignore", "net/ipv4/tcp_rmem", "net.ipv4.conf.eth9.rp_filter"
NO_DISTRIBUTION = {"id": None, "version_id": None, "like": [], "packages": None}


def test_an_empty_tree_has_nothing(tmp_path: Path) -> None:
    assert read(tmp_path) == {
        "schema": 1,
        "devices": {},
        "netdevs": {},
        "stack": {"kind": None, "kernel": None, "modules": {}, "distribution": NO_DISTRIBUTION},
        "boot": {"boot_id": None, "machine_id": None, "hostname": None},
        **NOT_ASKED,
    }


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
                "lid": None,
                "sm_lid": None,
                "netdev": "eth1",
                "gids": RXE0_GIDS,
                "counters": {},
                "hw_counters": {"sent_pkts": 12},
            },
        },
    }
    down = {"state": "DOWN", "physical_state": "Disabled", "netdev": "eth2", "gids": []}
    rxe1 = {
        **rxe0,
        "node_guid": "5054:00ff:fe00:0201",
        "sys_image_guid": "5054:00ff:fe00:0201",
        "ports": {"1": {**rxe0["ports"]["1"], **down}},
    }

    assert read(soft_roce_machine(tmp_path))["devices"] == {"rxe0": rxe0, "rxe1": rxe1}


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
        "pci": pci,
        "ports": {
            "1": {
                "state": "ACTIVE",
                "physical_state": "LinkUp",
                "link_layer": "Ethernet",
                "rate_gbps": 200.0,
                "width": 2,
                "lid": None,
                "sm_lid": None,
                "netdev": "ens1f0np0",
                "gids": MLX5_0_GIDS,
                "counters": {"port_xmit_data": 2**64 - 1, "symbol_error": None},
                "hw_counters": {"out_of_sequence": 7},
            },
        },
    }
    down = {"state": "DOWN", "physical_state": "Disabled", "rate_gbps": 40.0, "width": 4, "netdev": "ens1f1np1"}
    mlx5_1 = {
        **mlx5_0,
        "node_guid": "a088:c203:0000:0001",
        "pci": {**pci, "address": "0000:3d:00.1"},
        "ports": {"1": {**mlx5_0["ports"]["1"], **down, "gids": [], "hw_counters": {}}},
    }

    assert read(mlx5_machine(tmp_path))["devices"] == {"mlx5_0": mlx5_0, "mlx5_1": mlx5_1}


def test_the_stack_and_the_boot(tmp_path: Path) -> None:
    facts = read(soft_roce_machine(tmp_path))

    assert facts["stack"] == {
        "kind": None,
        "kernel": "6.1.0-28-amd64",
        "modules": {
            "ib_core": {"version": None, "srcversion": "IB_CORE0123", "holders": ["ib_uverbs", "rdma_rxe"]},
            "ib_uverbs": {"version": None, "srcversion": "IB_UVERBS0123", "holders": []},
            "rdma_rxe": {"version": None, "srcversion": "RDMA_RXE0123", "holders": []},
        },
        "distribution": NO_DISTRIBUTION,
    }
    assert facts["boot"] == {
        "boot_id": "6f2f6d0e-4d6f-4d2a-9a43-0d2c3e3f5a11",
        "machine_id": "0123456789abcdef0123456789abcdef",
        "hostname": None,
    }


def test_the_compatibility_layer_tells_ofed(tmp_path: Path) -> None:
    stack = read(mlx5_machine(tmp_path))["stack"]

    assert stack["kind"] == "ofed"
    assert stack["modules"]["mlx5_core"] == {"version": "24.10-1.1.4", "srcversion": "MLX5_CORE0123", "holders": ["mlx5_ib"]}


def test_a_holder_of_ib_core_counts_as_a_module_for_rdma(tmp_path: Path) -> None:
    write_tree(tmp_path, "/sys/module/ib_core/holders/qedr -> ../../qedr\n/sys/module/qedr/version: 8.37.0.20")

    assert list(read(tmp_path)["stack"]["modules"]) == ["ib_core", "qedr"]


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
def test_the_driver_is_told_by_what_exists(tmp_path: Path, files: str, driver: str | None, software: bool | None) -> None:
    if "/virtual/" in files:
        files += "\n/sys/class/infiniband/x0 -> ../../devices/virtual/infiniband/x0"

    device = read(write_tree(tmp_path, files))["devices"]["x0"]

    assert (device["driver"], device["software"]) == (driver, software)


def test_what_a_device_does_not_tell_is_none(tmp_path: Path) -> None:
    nothing = {"state": None, "physical_state": None, "link_layer": None, "rate_gbps": None, "width": None, "lid": None}
    port = {**nothing, "sm_lid": None, "netdev": None, "gids": [], "counters": {}, "hw_counters": {}}

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
    facts = read(mlx5_machine(tmp_path))

    for tree in (facts, digest(facts)):
        assert rocev2_gid_index(tree["devices"]["mlx5_0"]["ports"]["1"], ipv4) == index


def test_the_first_of_two_indexes_is_taken() -> None:
    gid = {"gid": "0000:0000:0000:0000:0000:ffff:0a00:0001", "type": "RoCE v2", "netdev": "eth1", "ipv4": "10.0.0.1"}

    assert rocev2_gid_index({"gids": [{**gid, "index": 20}, {**gid, "index": 3}]}, "10.0.0.1") == 3


def test_the_digest_has_neither_counters_nor_gids_that_nothing_uses(tmp_path: Path) -> None:
    facts = read(mlx5_machine(tmp_path))
    before = copy.deepcopy(facts)
    expected = copy.deepcopy(facts)
    for device in expected["devices"].values():
        del device["ports"]["1"]["counters"], device["ports"]["1"]["hw_counters"]
        del device["ports"]["1"]["lid"], device["ports"]["1"]["sm_lid"]
    gid = {key: MLX5_0_GIDS[3][key] for key in ("index", "type", "ipv4")}
    expected["devices"]["mlx5_0"]["ports"]["1"]["gids"] = [gid]
    for part, names in (("devices", ("hca_type", "node_type", "sys_image_guid")), ("netdevs", ("driver", "operstate", "type"))):
        for item in expected[part].values():
            for name in names:
                del item[name]
    for device in expected["devices"].values():
        for name in ("device_id", "max_speed_gtps", "max_width", "vendor_id"):
            del device["pci"][name]
    for module in expected["stack"]["modules"].values():
        del module["holders"]

    assert digest(facts) == expected
    assert facts == before


def test_the_digest_keeps_infiniband_gids(tmp_path: Path) -> None:
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    write_tree(tmp_path, f"{port}/link_layer: InfiniBand\n{port}/gids/0: fe80::1\n{port}/gid_attrs/types/0: IB/RoCE v1")

    assert len(digest(read(tmp_path))["devices"]["mlx5_0"]["ports"]["1"]["gids"]) == 1


def running(root: Path) -> Path:
    """A machine that is up: a name, a first process, kernel settings, and a file of ours."""
    return write_tree(
        soft_roce_machine(root),
        """
        /proc/sys/kernel/hostname: node1
        /proc/1/comm: systemd
        /proc/sys/net/ipv4/conf/all/arp_ignore: 1
        /proc/sys/net/ipv4/tcp_rmem: 4096\t131072\t6291456
        /etc/sysctl.d/99-zz-rdma-cluster.conf: net.ipv4.conf.all.arp_ignore = 1
        /etc/nccl.conf: NCCL_DEBUG=WARN
        """,
    )


def script(*changes: Call) -> FakeRunner:
    """What a machine answers, in the order in which it is asked; of changes, each replaces the answer to its command."""
    shown = (FIXTURES / "ip/details-address-6.1.json").read_text(encoding="utf-8")
    limits = (FIXTURES / "proc/limits-6.18.txt").read_text(encoding="utf-8")
    states = "Id=rdma-soft-links.service\nActiveState=inactive\nUnitFileState=\n\n"
    states += "Id=systemd-networkd.service\nActiveState=active\nUnitFileState=enabled\n"
    calls: list[Call] = [(IP, 0, shown, ""), (SERVICE_LIMITS, 0, limits, ""), (UNITS, 0, states, "")]
    changed = {tuple(call[0]): call for call in changes}
    return FakeRunner([changed.get(tuple(call[0]), call) for call in calls])


def ask(root: Path, runner: FakeRunner, *sysctl_keys: str) -> dict[str, Any]:
    facts = to_dict(gather(SysRoot(str(root)), runner, sysctl_keys))
    runner.assert_done()
    return facts


def test_a_running_system_is_asked_for_what_files_do_not_tell(tmp_path: Path) -> None:
    facts = ask(running(tmp_path), script())

    assert [facts["netdevs"]["eth0"][key] for key in ("max_mtu_bytes", "ipv4", "mtu_bytes")] == [65535, ["192.0.2.2/24"], 1500]
    # ip has not named this one: not known, which is not the same as no address.
    assert [facts["netdevs"]["eth1"][key] for key in ("max_mtu_bytes", "ipv4")] == [None, None]
    assert facts["limits"] == {"service_memlock": {"unlimited": False, "bytes": 8388608}, "login_memlock": NO_LOGINS}
    assert facts["units"] == {
        "rdma-soft-links.service": {"active": False, "enabled": False},
        "systemd-networkd.service": {"active": True, "enabled": True},
    }
    assert facts["boot"]["hostname"] == "node1"
    assert facts["load"] == {"gpu_processes": [], "jobs": []}


def test_of_a_captured_tree_nobody_is_asked(tmp_path: Path) -> None:
    facts = read(running(tmp_path))

    assert (facts["limits"], facts["units"]) == ({"service_memlock": None, "login_memlock": NO_LOGINS}, None)
    assert {(netdev["max_mtu_bytes"], netdev["ipv4"]) for netdev in facts["netdevs"].values()} == {(None, None)}
    assert (facts["boot"]["hostname"], sorted(facts["files"])) == ("node1", ["/etc/nccl.conf", "/etc/sysctl.d/99-zz-rdma-cluster.conf"])


def test_a_system_that_answers_nothing_is_still_read(tmp_path: Path) -> None:
    runner = script((IP, 255, "", "unknown"), (SERVICE_LIMITS, 1, "", "Host is down"), (UNITS, 1, "", "Host is down"))

    facts = ask(running(tmp_path), runner)

    assert (facts["limits"], facts["units"]) == ({"service_memlock": None, "login_memlock": NO_LOGINS}, None)
    assert facts["netdevs"]["eth0"]["ipv4"] is None
    assert list(facts["devices"]) == ["rxe0", "rxe1"]


def test_kernel_settings_are_those_that_are_asked_for(tmp_path: Path) -> None:
    facts = ask(running(tmp_path), script(), ARP_IGNORE, RMEM, ABSENT)

    assert facts["sysctl"] == {
        "live": {ARP_IGNORE: "1", RMEM: "4096 131072 6291456", ABSENT: None},
        "boot": {ARP_IGNORE: {"value": "1", "file": "/etc/sysctl.d/99-zz-rdma-cluster.conf"}, RMEM: None, ABSENT: None},
    }


def test_a_file_of_ours_has_a_hash_and_a_mode(tmp_path: Path) -> None:
    (running(tmp_path) / "etc/nccl.conf").chmod(0o600)

    assert read(tmp_path)["files"]["/etc/nccl.conf"] == {
        "sha256": hashlib.sha256(b"NCCL_DEBUG=WARN\n").hexdigest(),
        "mode": 0o600,
        "owner": "0:0",
    }


def test_files_in_other_places_are_those_that_are_asked_for(tmp_path: Path) -> None:
    write_tree(tmp_path, "/opt/site/nccl.conf: NCCL_DEBUG=WARN\n/opt/site/other: x")

    facts = to_dict(gather(SysRoot(str(tmp_path)), files=["/opt/site/nccl.conf", "/opt/site/absent"]))

    assert list(facts["files"]) == ["/opt/site/nccl.conf"]


def test_the_digest_keeps_what_roles_compare(tmp_path: Path) -> None:
    facts = ask(running(tmp_path), script(), ARP_IGNORE)
    kept = digest(facts)

    for key in ("boot", "limits", "sysctl", "files", "units", "load"):
        assert kept[key] == facts[key]
    for name, netdev in facts["netdevs"].items():
        assert kept["netdevs"][name] == {key: value for key, value in netdev.items() if key not in ("driver", "operstate", "type")}


def test_the_digest_of_a_host_with_eight_nics_is_small(tmp_path: Path) -> None:
    facts = ask(mlx5_machine(tmp_path), script())
    for netdev in facts["netdevs"].values():
        netdev.update(max_mtu_bytes=9978, ipv4=["192.168.100.100/24"])
    settings = dict.fromkeys(("net.ipv4.conf.all.arp_ignore", "net.ipv4.conf.all.arp_announce", "net.ipv4.conf.all.rp_filter"), "1")
    facts["sysctl"] = {"live": settings, "boot": {key: {"value": "1", "file": "/etc/sysctl.d/99-zz-rdma-cluster.conf"} for key in settings}}
    rails = [_networkd.NetworkRail(f"rail{number}", {"pci": "0000:3d:00.0"}, "ens1", "10.0.0.1/24", 9000) for number in range(8)]
    facts["files"] = on_host([*_networkd.files(rails, [], [rail.name for rail in rails]), *_limits.files(), *sysctl_files(settings)])
    facts["files"].update(
        {path: {"sha256": "0" * 64, "mode": 0o644, "owner": "0:0"} for path in ("/etc/nccl.conf", "/etc/rdma-cluster/nccl.env")}
    )
    facts["load"]["gpu_processes"] = [{"pid": 1000000 + number, "name": "python3"} for number in range(8)]
    facts["devices"] = {f"mlx5_{number}": facts["devices"]["mlx5_0"] for number in range(8)}
    facts["netdevs"] = {f"enp{number}f0np0": facts["netdevs"]["ens1f0np0"] for number in range(10)}
    facts["stack"]["modules"] = {f"module_{number}": facts["stack"]["modules"]["mlx5_core"] for number in range(15)}

    assert len(json.dumps(digest(facts), separators=(",", ":"))) <= 10_000
