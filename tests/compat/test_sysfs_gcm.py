# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""DGX A100 nodes of a cluster's health checks: four maps of paths in /sys to contents, and four files of other things.

Those who published them put a word in the place of each value that names a machine: "address", "flags", "node_guid" and so on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import IpAddresses, parse_ip_address
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader, parse_link_speed
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.sysfs import Rate, parse_rate
from tests.compat.test_sysfs_unpacking import DEVICE, ETHERNET, FUNCTION, PORT, capture, facts_of, load_map, write_map

GOOD, MANIFEST = "gcm-learn_good.json", "gcm-DGX_A100.json"
#: Files whose word makes no sense, each with what is said of it. The words in board_id, hca_type and fw_ver could be true.
REFUSED = {
    "address": "/sys/class/net/ib0/address: not a hardware address: 'address'",
    "flags": "/sys/class/net/ib0/flags: not interface flags: 'flags'",
    "node_guid": "/sys/class/infiniband/mlx5_0/node_guid: not a GUID: 'node_guid'",
    "sys_image_guid": "/sys/class/infiniband/mlx5_0/sys_image_guid: not a GUID: 'sys_image_guid'",
    "lid": "/sys/class/infiniband/mlx5_0/ports/1/lid: not a LID: 'lid'",
    "sm_lid": "/sys/class/infiniband/mlx5_0/ports/1/sm_lid: not a LID: 'sm_lid'",
}
#: Interface → device, PCI function.
RAILS = {
    "ib0": ("mlx5_0", "0000:0c:00.0"),
    "ib1": ("mlx5_1", "0000:12:00.0"),
    "ib2": ("mlx5_2", "0000:4b:00.0"),
    "ib3": ("mlx5_3", "0000:54:00.0"),
    "ib4": ("mlx5_6", "0000:8d:00.0"),
    "ib5": ("mlx5_7", "0000:94:00.0"),
    "ib6": ("mlx5_8", "0000:ba:00.0"),
    "ib7": ("mlx5_9", "0000:cc:00.0"),
}
HDR = {"rate_gbps": 200.0, "speed": "HDR"}
X16 = {"speed_gtps": 16.0, "width": 16}


@dataclass(frozen=True)
class Tree:
    """What one map says of all eight, and of some of them. first_ifindex is that of ib0, of which they count on."""

    firmware: str
    rate: Mapping[str, Any] = field(default_factory=lambda: HDR)
    link: Mapping[str, Any] | None = None
    first_ifindex: int = 8
    carrier_downs: int = 1
    ports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    netdevs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


STUCK = {"mtu_bytes": 4092, "operstate": "down", "carrier": False}
TREES = {
    GOOD: Tree(firmware="20.31.2354", link=X16),
    "gcm-learn_ib_intf_bad_version.json": Tree(firmware="fw_ver", rate={"rate_gbps": 100.0, "speed": "EDR"}),
    "gcm-learn_ib_intf_operstate_down.json": Tree(
        firmware="fw_ver",
        first_ifindex=7,
        carrier_downs=0,
        # The file carrier of ib4 is there and empty, as of an interface that is administratively down.
        netdevs={"ib2": {"carrier_downs": 1}, "ib4": {"operstate": "down", "carrier": None, "carrier_downs": 49}},
    ),
    "gcm-learn_stuck_ib_intf.json": Tree(
        firmware="20.31.2354",
        carrier_downs=0,
        ports={"ib4": {"state": "INIT"}, "ib6": {"state": "INIT"}},
        netdevs={"ib4": STUCK, "ib6": STUCK},
    ),
}
ETHERNETS = {
    "gcm-eth_learn_degraded_intf.json": ["enp97s0f0", "enp225s0f0", "front0"],
    "gcm-eth_learn_missing_intf.json": ["enp97s0f0", "front0"],
    "gcm-eth_learn_mtu_bad.json": ["enp97s0f0", "enp225s0f0", "front0"],
}
OTHERS = (MANIFEST, *ETHERNETS)


def without(files: Mapping[str, str], names: set[str]) -> dict[str, str]:
    return {path: content for path, content in files.items() if path.rsplit("/", 1)[1] not in names}


def load_json(name: str) -> dict[str, Any]:
    document = json.loads(capture(name).read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def expected_device(tree: Tree, netdev: str) -> dict[str, Any]:
    address = RAILS[netdev][1]
    link = {**tree.link, "narrowest": {"address": address, **tree.link}} if tree.link is not None else {}
    return {
        **DEVICE,
        # No map has the link to the driver.
        "software": False,
        "firmware": tree.firmware,
        "board_id": "board_id",
        "hca_type": "hca_type",
        "node_type": "CA",
        "function": "pf",
        "pci": {**FUNCTION, "address": address, **link},
        "ports": {"1": {**PORT, **tree.rate, "netdev": netdev, "counters": {}, **tree.ports.get(netdev, {})}},
    }


def expected_netdev(tree: Tree, name: str) -> dict[str, Any]:
    return {
        **ETHERNET,
        "mtu_bytes": 2044,
        "admin_up": None,
        "type": 32,
        "dev_port": 0,
        "pci": RAILS[name][1],
        "ifindex": tree.first_ifindex + list(RAILS).index(name),
        "carrier_downs": tree.carrier_downs,
        **tree.netdevs.get(name, {}),
    }


@pytest.mark.parametrize("name", TREES)
def test_a_map_as_it_was_published_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ParseError) as caught:
        facts_of(write_map(load_map(name), tmp_path))
    assert str(caught.value).startswith(REFUSED["address"])


@pytest.mark.parametrize("name", REFUSED)
def test_a_word_in_place_of_a_value_is_refused_by_its_path(name: str, tmp_path: Path) -> None:
    files = {path: content for path, content in load_map(GOOD).items() if "/0000:0c:00.0/" in path}
    with pytest.raises(ParseError) as caught:
        facts_of(write_map(without(files, REFUSED.keys() - {name}), tmp_path))
    assert str(caught.value).startswith(f"{REFUSED[name]}, expected ")


@pytest.mark.parametrize("name", TREES)
def test_a_map_without_these_words(name: str, tmp_path: Path) -> None:
    facts = facts_of(write_map(without(load_map(name), set(REFUSED)), tmp_path))

    assert facts["devices"] == {RAILS[netdev][0]: expected_device(TREES[name], netdev) for netdev in RAILS}
    assert facts["netdevs"] == {netdev: expected_netdev(TREES[name], netdev) for netdev in RAILS}


def test_the_good_node_is_what_the_manifest_of_a_dgx_a100_wants(tmp_path: Path) -> None:
    manifest = load_json(MANIFEST)["ib"]
    facts = facts_of(write_map(without(load_map(GOOD), set(REFUSED)), tmp_path))
    rate = parse_rate(manifest["link_rate"])

    assert rate == Rate(200.0, 4, "HDR")
    assert {netdev: reported["mlx"] for netdev, reported in manifest["interfaces"].items()} == {name: RAILS[name][0] for name in RAILS}
    for netdev, reported in manifest["interfaces"].items():
        device = facts["devices"][reported["mlx"]]
        port = device["ports"]["1"]
        assert (port["netdev"], port["rate_gbps"], port["width"], port["speed"]) == (netdev, rate.gbps, rate.width, rate.speed)
        assert device["firmware"] in manifest["firmware_version"]


def test_the_pci_links_of_the_manifest_in_both_spellings(tmp_path: Path) -> None:
    manifest = load_json(MANIFEST)["pci"]
    reader = PciReader(SysRoot(str(write_map(load_map(GOOD), tmp_path))))
    read = {address: reader.function(f"/sys/bus/pci/devices/{address}") for address in manifest}

    assert len(manifest) == 36
    for address, reported in manifest.items():
        # "8 GT/s" and "8.0 GT/s PCIe" are one speed; of two disks, one of two speeds will do.
        assert read[address].speed_gtps in {parse_link_speed(text) for text in reported["link_speed"]}
        assert read[address].width == int(reported["link_width"])
    assert {address: (read[address].speed_gtps, read[address].width) for address in ("0000:22:00.0", "0000:c4:00.0", "0000:e1:00.1")} == {
        "0000:22:00.0": (8.0, 4),
        "0000:c4:00.0": (8.0, 2),
        "0000:e1:00.1": (16.0, 16),
    }


@pytest.mark.parametrize("name", ETHERNETS)
def test_ethernet_was_captured_with_iproute2(name: str) -> None:
    """Addresses, LLDP, ethtool's speed and the files of RHEL's scripts: nothing of it is /sys."""
    status = load_json(name)["intf_status"]
    addresses = {interface: IpAddresses(max_mtu_bytes=None, ipv4=[]) for interface in ETHERNETS[name]}
    # The word "local" stands for the address; only the kernel's own output is ever read, so no address is checked.
    addresses["front0"] = IpAddresses(max_mtu_bytes=None, ipv4=["local/27"], ipv6=["local/64"])
    assert parse_ip_address(json.dumps(status)) == addresses
