# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""IP over InfiniBand: files for systemd-networkd, and what differs on live interfaces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.networkd import render
from ansible_collections.rdma.cluster.plugins.module_utils._net.ipoib import (
    Child,
    Ipoib,
    child_files,
    ipoib_differences,
    is_child_of,
    netdev_of,
    parse_interface,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NETWORKD_FOLDER as FOLDER
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import Running, make_rail
from tests.unit.builders.fakes import FakeRunner

CHILD = Child(0x0101, 4092, "172.16.8.1/24")
IPOIB = Ipoib("ib0", children=[CHILD])


def files(*given: Any) -> list[ManagedFile]:
    """The planned files on a host with systemd-networkd alone."""
    return choice.files("networkd", *given, Running(networkd=True, networkmanager=False))


RAIL = {"name": "rail0", "nic": {"pci": "0000:18:00.0"}, "netdev": "ib0", "address": "172.16.0.1/24", "mtu_bytes": 4092}
GIVEN = {"mode": "datagram", "children": [{"key": 0x0101, "mtu_bytes": 4092, "address": "172.16.8.1/24"}]}


def shown(mtu: int = 4092, **data: str) -> str:
    addresses = [{"family": "inet", "local": "172.16.8.1", "prefixlen": 24}, {"family": "inet6", "local": "fe80::1", "prefixlen": 64}]
    return json.dumps([{"ifname": "x", "mtu": mtu, "addr_info": addresses, "linkinfo": {"info_kind": "ipoib", "info_data": data}}])


def asked(name: str, rc: int, stdout: str) -> Any:
    return (["ip", "-j", "-d", "address", "show", "dev", name], rc, stdout, "")


def differences(own: str, child: str | None, ipoib: Ipoib = IPOIB) -> list[tuple[str, str]]:
    calls = [asked("ib0", 0, own)]
    if ipoib.children:
        calls.append(asked("ib0.8101", 1 if child is None else 0, child or ""))
    runner = FakeRunner(calls)
    return ipoib_differences("ib0", ipoib, runner)


def test_a_rail_without_more_has_the_file_it_had() -> None:
    assert "[IPoIB]" not in render(make_rail(RAIL))
    assert render(make_rail({**RAIL, "ipoib": None})) == render(make_rail(RAIL))


def test_the_rail_s_file_makes_its_children_and_says_the_mode() -> None:
    text = render(make_rail({**RAIL, "ipoib": GIVEN}))
    assert "\nAddress=172.16.0.1/24\nIPoIB=ib0.8101\n\n[IPoIB]\nMode=datagram\n" in text


def test_a_child_has_two_files_that_come_before_the_rail_s() -> None:
    wanted = {file.path: file.text for file in files([make_rail({**RAIL, "ipoib": GIVEN})], [], ["rail0"])}
    own, netdev, network = (f"{FOLDER}/60-rdma-rail0{end}" for end in (".network", "-8101.netdev", "-8101.network"))
    assert sorted(wanted) == [netdev, network, own]
    assert "Name=ib0.8101\nKind=ipoib\n\n[IPoIB]\nPartitionKey=0x8101\nMode=datagram\n" in wanted[netdev]
    assert "[Match]\nName=ib0.8101\n" in wanted[network]
    assert "MTUBytes=4092\n" in wanted[network]
    assert wanted[network].endswith("Address=172.16.8.1/24\n")


def test_children_need_systemd_networkd_which_netplan_has_and_networkmanager_has_not() -> None:
    rail = make_rail({**RAIL, "ipoib": GIVEN, "link_layer": "infiniband"})
    alone = Running(networkd=True, networkmanager=False)
    assert choice.files("netplan", [rail], [], ["rail0"], alone) == choice.files("networkd", [rail], [], ["rail0"], alone)
    with pytest.raises(ApplyError, match="IP over InfiniBand on partitions is written for systemd-networkd only"):
        choice.files("networkmanager", [rail], [], ["rail0"], Running(networkd=False, networkmanager=True))


def test_files_of_children_that_are_not_planned_go_and_those_of_an_absent_nic_stay() -> None:
    there = [f"{FOLDER}/60-rdma-{name}" for name in ("rail0-8101.netdev", "rail0-8102.netdev", "rail1-8101.network", "rail1.network")]
    gone = [file.path for file in files([make_rail({**RAIL, "ipoib": GIVEN})], there, ["rail0", "rail1"]) if file.content is None]
    assert gone == [f"{FOLDER}/60-rdma-rail0-8102.netdev"]
    gone = [file.path for file in files([make_rail(RAIL)], there, ["rail0"]) if file.content is None]
    assert gone == sorted(there)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("rail0-8101.netdev", True),
        ("rail0-8101.network", True),
        ("rail0.network", False),
        ("rail0-x101.netdev", False),
        ("r-8101.netdev", False),
    ],
)
def test_a_child_s_file_by_its_name(name: str, answer: bool) -> None:
    assert is_child_of(name, ["rail0"]) is answer


def test_a_name_longer_than_the_kernel_s_is_refused() -> None:
    with pytest.raises(ApplyError, match=r"ibp24s0f0v1\.8101 has 16 characters"):
        child_files("rail0", Ipoib("ibp24s0f0v1", children=[CHILD]))


def test_what_is_as_requested_does_not_differ() -> None:
    assert differences(shown(key="0xffff", mode="datagram"), shown(key="0x8101", mode="datagram")) == []


def test_a_child_that_is_not_there_or_is_another() -> None:
    assert differences(shown(mode="datagram"), None) == [("no ib0.8101", "ib0.8101 on P_Key 0x8101")]
    assert differences(shown(), shown(2044, pkey="0x8102")) == [
        ("ib0.8101 P_Key 0x8102", "ib0.8101 P_Key 0x8101"),
        ("ib0.8101 MTU 2044", "ib0.8101 MTU 4092"),
    ]
    other = shown().replace("172.16.8.1", "172.16.8.9")
    assert differences(shown(), other) == [("ib0.8101 address 172.16.8.9/24", "ib0.8101 address 172.16.8.1/24")]


def test_a_mode_that_the_driver_does_not_take_is_reported() -> None:
    connected = Ipoib("ib0", "connected")
    assert differences(shown(key="0xffff", mode="datagram"), None, connected) == [("mode datagram", "mode connected")]
    assert "ConnectX-4" in connected.hint
    assert "link.pkey" in IPOIB.hint


@pytest.mark.parametrize("text", ["", "[]", "[{}]", "{}", "[1]", '[{"mtu": 1}]', "null"])
def test_what_is_no_interface(text: str) -> None:
    with pytest.raises(ParseError):
        parse_interface(text)


def test_the_interface_of_a_file_that_went() -> None:
    before = child_files("rail0", IPOIB)[0][1]
    assert netdev_of(FileChange("/x/60-rdma-rail0-8101.netdev", before, None)) == "ib0.8101"
    assert netdev_of(FileChange("/x/60-rdma-rail0-8101.network", before, None)) is None
