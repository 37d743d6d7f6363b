# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of rtnetlink, as a kernel gave them in a namespace with veth devices, and this machine's own."""

from __future__ import annotations

import errno
import json
import struct
import subprocess

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._net import kernel_routes
from ansible_collections.rdma.cluster.plugins.module_utils._net.kernel_routes import (
    KernelRoute,
    kernel_default_routes6,
    kernel_multipath_routes,
    kernel_way,
    parse_routes,
    request,
)

#: The way to 10.9.9.9: default via 192.168.100.254 by interface 3.
FOUR = bytes.fromhex(
    "700000001800000001000000d665000002200000fe0000010002000008000f00fe000000080001000a090909080004000300000008000700c0a86401"
    "08000500c0a864fe080019000000000024000c000200000000000000000000000000000000000000000000000000000000000000"
)
#: The way to the host's own 192.168.100.1.
OWN = bytes.fromhex(
    "680000001800000001000000d665000002200000fe0000020002008008000f00fe00000008000100c0a86401080004000100000008000700c0a86401"
    "080019000000000024000c000100000000000000000000000000000000000000000000000000000000000000"
)
_CACHE = "24000c0000000000000000000000000000000000000000000000000000000000000000000500140000000000"
#: Of `ip -6 route`: default via fd00:1::fd in table 1000, and default via fd00:1::fe metric 77 in the main one.
SIX = bytes.fromhex(
    "740000001800020001000000d66500000a000000fc0300010000000008000f00e8030000080006000004000014000500fd0000010000000000000000000000fd"
    f"0800040003000000{_CACHE}"
    "740000001800020001000000d66500000a000000fe0300010000000008000f00fe000000080006004d00000014000500fd0000010000000000000000000000fe"
    f"0800040003000000{_CACHE}"
)
#: Of a dump of IPv4 (Linux 6.18): default by interfaces 3 and 5 in table 1001, default via 10.1.0.2 by 3, and 10.1.2.0/24 via 10.1.0.2 by 3
#: and via 10.1.0.6 by 5 with weight 2.
SEVERAL = bytes.fromhex(
    "4000000018000200010000000826000002000000fc0300010000000008000f00e903000008000600090000001400090008000000030000000800000005000000"
    "3400000018000200010000000826000002000000fe0300010000000008000f00fe000000080005000a0100020800040003000000"
    "5000000018000200010000000826000002180000fe0300010000000008000f00fe000000080001000a01020024000900"
    "1000000003000000080005000a0100021000000105000000080005000a010006"
)
DONE = bytes.fromhex("140000000300020001000000d665000000000000")


def test_a_way_of_ipv4_and_the_hosts_own_address() -> None:
    assert parse_routes(FOUR) == ([KernelRoute(1, 32, 254, 3, "192.168.100.254", 0, "10.9.9.9")], False)
    assert parse_routes(OWN) == ([KernelRoute(2, 32, 254, 1, None, 0, "192.168.100.1")], False)


def test_a_dump_of_ipv6_has_its_tables_and_an_end() -> None:
    routes, complete = parse_routes(SIX)
    assert ([(each.table, each.gateway, each.metric) for each in routes], complete) == (
        [(1000, "fd00:1::fd", 1024), (254, "fd00:1::fe", 77)],
        False,
    )
    assert parse_routes(SIX + DONE)[1] is True


def test_only_default_routes_of_the_main_table_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_routes, "_exchange", lambda _message, dump: parse_routes(SIX)[0])
    monkeypatch.setattr(kernel_routes.socket, "if_indextoname", lambda number: f"eth{number}")
    assert kernel_default_routes6() == [("eth3", "fd00:1::fe", 77)]


def test_routes_with_several_next_hops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_routes, "_exchange", lambda _message, dump: parse_routes(SEVERAL + DONE)[0])
    monkeypatch.setattr(kernel_routes.socket, "if_indextoname", lambda number: f"eth{number}")
    assert kernel_multipath_routes() == [("0.0.0.0/0", ["eth3", "eth5"]), ("10.1.2.0/24", ["eth3", "eth5"])]


def test_a_next_hop_without_a_length_is_refused() -> None:
    with pytest.raises(ParseError, match="a next hop of 0 bytes"):
        parse_routes(SEVERAL.replace(bytes.fromhex("1000000003000000"), bytes.fromhex("0000000003000000")))


def test_this_machine_has_the_multipath_routes_that_ip_shows() -> None:
    done = subprocess.run(["ip", "-j", "-4", "route", "show", "table", "all"], capture_output=True, text=True, check=False)
    shown = [[hop["dev"] for hop in each["nexthops"]] for each in json.loads(done.stdout or "[]") if "nexthops" in each]
    assert sorted(netdevs for _network, netdevs in kernel_multipath_routes()) == sorted(shown)


def test_an_error_of_the_kernel_is_raised() -> None:
    refused = struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -errno.ENETUNREACH) + bytes(16)
    with pytest.raises(OSError, match="unreachable") as error:
        parse_routes(refused)
    assert error.value.errno == errno.ENETUNREACH


@pytest.mark.parametrize("data", [b"short", bytes(16), FOUR[:20], FOUR[:28] + b"\0\0\0\0" + FOUR[32:]])
def test_another_form_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError, match="rtnetlink answers"):
        parse_routes(data)


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:db8::1"])
def test_this_machine_answers_as_ip_does(address: str) -> None:
    done = subprocess.run(["ip", "-j", "route", "get", address], capture_output=True, text=True, check=False)
    assert kernel_way(address) == (json.loads(done.stdout)[0]["dev"] if done.returncode == 0 else None)


def test_this_machine_has_the_default_routes_of_ipv6_that_ip_shows() -> None:
    done = subprocess.run(["ip", "-j", "-6", "route", "show", "default", "table", "main"], capture_output=True, text=True, check=False)
    shown = {(each["dev"], each.get("gateway")) for each in json.loads(done.stdout or "[]") if "dev" in each}
    assert {(netdev, gateway) for netdev, gateway, _metric in kernel_default_routes6()} == shown


@pytest.mark.parametrize(("address", "netdev"), [("127.0.0.1", None), ("fe80::1%eth9", "eth9")])
def test_loopback_leads_nowhere_and_a_zone_names_the_interface(address: str, netdev: str | None) -> None:
    assert kernel_way(address) == netdev


def test_a_request_names_the_whole_address() -> None:
    assert request("10.9.9.9").hex().endswith("080001000a090909")
    assert request("fd00::1")[16:18] == bytes([10, 128])
