# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net import netdev as net_netdev
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import IpAddresses
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Interface, Netdev, read_interfaces, read_netdev, read_netdevs
from tests.unit.builders.garbled import read_or_refused
from tests.unit.builders.trees import soft_roce_machine, write_tree

PARSERS = [getattr(net_netdev, name) for name in dir(net_netdev) if name.startswith("parse_") and name != "parse_numa_node"]
IPOIB_MAC = "80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:f9:bf:a1"


@pytest.mark.parametrize(
    ("parser", "text", "value"),
    [
        (net_netdev.parse_mac, "A0:88:C2:00:00:01\n", "a0:88:c2:00:00:01"),
        (net_netdev.parse_mac, IPOIB_MAC, IPOIB_MAC),
        (net_netdev.parse_integer, "9000\n", 9000),
        (net_netdev.parse_carrier, "1\n", True),
        (net_netdev.parse_carrier, "0\n", False),
        (net_netdev.parse_admin_up, "0x1003\n", True),
        (net_netdev.parse_admin_up, "0x1002\n", False),
    ],
)
def test_parses(parser, text: str, value: object) -> None:
    assert parser(text) == value


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (net_netdev.parse_mac, "a0:88:c2:00:00"),
        (net_netdev.parse_integer, "-1"),
        (net_netdev.parse_carrier, "2"),
        (net_netdev.parse_admin_up, "1003"),
    ],
)
def test_another_text_is_an_error_that_quotes_it(parser, text: str) -> None:
    with pytest.raises(ParseError, match=f"'{text}'"):
        parser(text)


@pytest.mark.parametrize("parser", PARSERS)
@given(text=st.text() | st.from_regex(r"(0x)?[0-9a-f:]*"))
def test_nothing_but_a_parse_error_escapes(parser, text: str) -> None:
    assert read_or_refused(parser, text)


def test_reads_all_interfaces_and_no_file_beside_them(tmp_path: Path) -> None:
    """As of Linux 6.1: bonding_masters is a file, a bond and a VLAN have no device."""
    tree = """
        /sys/class/net/bond0/flags: 0x1403
        /sys/class/net/bond0.10/flags: 0x1002
        /sys/class/net/lo/flags: 0x9
        /sys/class/net/lost -> ../../devices/virtual/net/lost
        /sys/class/net/bonding_masters: bond0
    """
    sys = SysRoot(str(write_tree(soft_roce_machine(tmp_path), tree)))

    seen = read_interfaces(sys, {"bond0": IpAddresses(None, ["10.0.0.1/24"], ["fd00::1/64"]), "eth0": IpAddresses(None, [])})
    assert seen is not None
    assert set(read_netdevs(sys)) < set(seen)
    assert (seen["bond0"], seen["bond0.10"]) == (
        Interface(admin_up=True, ipv4=["10.0.0.1/24"], ipv6=["fd00::1/64"]),
        Interface(admin_up=False),
    )
    assert (seen["lo"], seen["eth0"]) == (Interface(admin_up=True), Interface(admin_up=True, ipv4=[], ipv6=[]))
    assert [seen[name].addresses for name in ("bond0", "eth0", "lo")] == [["10.0.0.1/24", "fd00::1/64"], [], None]
    assert seen["lost"] == Interface(admin_up=None)
    assert "bonding_masters" not in seen


def test_a_tree_without_interfaces_reports_nothing_of_them(tmp_path: Path) -> None:
    assert read_interfaces(SysRoot(str(tmp_path))) is None


def test_reads_the_interfaces_that_have_a_device(tmp_path: Path) -> None:
    write_tree(soft_roce_machine(tmp_path), "/sys/class/net/lo/mtu: 65536\n/sys/class/net/bonding_masters: bond0")

    assert read_netdevs(SysRoot(str(tmp_path))) == {
        "eth0": Netdev(
            mac="52:54:00:00:00:01",
            mtu_bytes=1500,
            operstate="up",
            carrier=True,
            admin_up=True,
            type=1,
            dev_port=0,
            driver="virtio_net",
            pci="0000:00:03.0",
            numa_node=None,
            ifindex=None,
            function="pf",
            master=None,
            carrier_downs=None,
        ),
        "eth1": Netdev(
            mac="52:54:00:00:01:01",
            mtu_bytes=9000,
            operstate="up",
            carrier=True,
            admin_up=True,
            type=1,
            dev_port=0,
            driver="virtio_net",
            pci="0000:01:00.0",
            numa_node=1,
            ifindex=None,
            function="pf",
            master=None,
            carrier_downs=None,
        ),
        "eth2": Netdev(
            mac="52:54:00:00:02:01",
            mtu_bytes=9000,
            operstate="down",
            carrier=None,
            admin_up=False,
            type=1,
            dev_port=0,
            driver="virtio_net",
            pci="0000:02:00.0",
            numa_node=None,
            ifindex=None,
            function="pf",
            master=None,
            carrier_downs=None,
        ),
    }


def test_reads_an_interface_without_device(tmp_path: Path) -> None:
    write_tree(tmp_path, "/sys/class/net/bond0/mtu: 9000\n/sys/class/net/bond0/flags: 0x1403\n/sys/class/net/bond0/carrier: 0")

    assert read_netdev(SysRoot(str(tmp_path)), "bond0") == Netdev(
        mac=None, mtu_bytes=9000, operstate=None, carrier=False, admin_up=True, type=None, dev_port=None, driver=None, pci=None,
        numa_node=None, ifindex=None, function=None, master=None, carrier_downs=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("port_name", "function"), [("pf0vf3", "representor"), ("c1pf0sf88", "representor"), ("p0", "pf"), ("", "pf"), ("pf0", "pf")]
)
def test_a_representor_is_reported_by_the_name_of_its_port(tmp_path: Path, port_name: str, function: str) -> None:
    write_tree(soft_roce_machine(tmp_path), f"/sys/class/net/eth1/phys_port_name: {port_name}")

    assert read_netdev(SysRoot(str(tmp_path)), "eth1").function == function


def test_what_an_interface_is_part_of_and_how_often_its_link_went(tmp_path: Path) -> None:
    text = "/sys/class/net/eth1/master -> ../bond0\n/sys/class/net/eth1/carrier_down_count: 3\n/sys/class/net/eth1/ifindex: 7"
    netdev = read_netdev(SysRoot(str(write_tree(soft_roce_machine(tmp_path), text))), "eth1")

    assert (netdev.master, netdev.carrier_downs, netdev.ifindex) == ("bond0", 3, 7)


def test_a_file_that_makes_no_sense_is_named(tmp_path: Path) -> None:
    write_tree(tmp_path, "/sys/class/net/eth0/mtu: lots")

    with pytest.raises(ParseError, match=r"^/sys/class/net/eth0/mtu: not a number: 'lots'"):
        read_netdev(SysRoot(str(tmp_path)), "eth0")
