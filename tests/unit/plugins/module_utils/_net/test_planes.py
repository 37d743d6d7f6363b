# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Default routes, name servers and listeners, as the kernel and files show them."""

from __future__ import annotations

import ipaddress
import re
import subprocess
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.planes import (
    IPV6_DEFAULTS,
    DefaultRoute,
    NameServer,
    netdev_towards,
    parse_forwarding,
    parse_listeners,
    parse_routes,
    read_planes,
)
from tests.unit.builders.fakes import FakeRunner

#: A machine of the lab; the columns are separated by tabs and end in blanks.
ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT                                                       
enp0s2\t00000000\t0202000A\t0003\t0\t0\t1024\t00000000\t0\t0\t0                                                                         
enp0s2\t0002000A\t00000000\t0001\t0\t0\t1024\t00FFFFFF\t0\t0\t0                                                                         
ens1\t0064A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0                                                                              
ens1\t0000000A\t00000000\t0200\t0\t0\t0\t000000FF\t0\t0\t0                                                                              
"""  # noqa: W291
TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 18210 1 0000000000000000 100 0 0 10 0
   1: 0164A8C0:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 18211 1 0000000000000000 100 0 0 10 0
   2: 0164A8C0:0016 0264A8C0:9C40 01 00000000:00000000 00:00000000 00000000     0        0 18212 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:0035 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 18213 1 0000000000000000 100 0 0 10 0
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0
   2: 0000000000000000FFFF00000264A8C0:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0
   1: B80D0120000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0
"""


def host(root: Path, **files: str) -> SysRoot:
    """A host; files: changed ones, "" for one that is missing."""
    tree = {
        "/proc/net/route": ROUTES,
        "/proc/net/tcp": TCP,
        "/proc/net/tcp6": TCP6,
        "/proc/sys/net/ipv4/ip_forward": "1\n",
        "/etc/resolv.conf": "# by hand\nnameserver 10.0.2.3\nnameserver 192.168.100.53\nsearch example\n",
        **{name.replace("__", "."): text for name, text in files.items()},
    }
    for name, text in tree.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text:
            path.write_text(text)
    return SysRoot(str(root))


def test_routes_of_the_main_table_without_unusable_ones() -> None:
    routes = parse_routes(ROUTES)
    assert [(str(each.network), each.netdev, each.gateway, each.metric) for each in routes] == [
        ("0.0.0.0/0", "enp0s2", "10.0.2.2", 1024),
        ("10.0.2.0/24", "enp0s2", None, 1024),
        ("192.168.100.0/24", "ens1", None, 0),
    ]


def test_the_most_specific_route_with_the_lowest_metric_leads() -> None:
    routes = parse_routes(ROUTES)
    assert [netdev_towards(address, routes) for address in ("192.168.100.9", "8.8.8.8")] == ["ens1", "enp0s2"]
    assert netdev_towards("8.8.8.8", routes[1:]) is None


@pytest.mark.parametrize(("address", "netdev"), [("127.0.0.53", None), ("fe80::1%ens1", "ens1"), ("2001:db8::1", None), ("::1", None)])
def test_loopback_and_ipv6_have_no_route_in_the_table_of_ipv4(address: str, netdev: str | None) -> None:
    assert netdev_towards(address, parse_routes(ROUTES)) == netdev


def test_listeners_of_a_port() -> None:
    assert list(parse_listeners(TCP)) == [("0.0.0.0", 22), ("192.168.100.1", 22), ("127.0.0.1", 53)]
    assert list(parse_listeners(TCP6)) == [("::", 22), ("192.168.100.2", 22), ("2001:db8::1", 22)]


def test_a_host(tmp_path: Path) -> None:
    planes = read_planes(host(tmp_path), FakeRunner([]))
    assert planes is not None
    assert planes.ipv6_default_routes == []
    assert planes.default_routes == [DefaultRoute("enp0s2", "10.0.2.2", 1024)]
    assert planes.name_servers == [NameServer("10.0.2.3", "enp0s2"), NameServer("192.168.100.53", "ens1")]
    assert planes.forwarding is True
    assert planes.ssh == ["0.0.0.0", "192.168.100.1", "192.168.100.2", "2001:db8::1", "::"]


def test_a_captured_tree_and_a_kernel_without_ipv4_have_none(tmp_path: Path) -> None:
    assert read_planes(host(tmp_path), None) is None
    assert read_planes(SysRoot(str(tmp_path / "empty")), FakeRunner([])) is None


BY_RA = '[{"dst":"default","gateway":"fe80::1","dev":"ens1","protocol":"ra","metric":1024,"flags":[],"pref":"medium"}]'
BY_TWO = '[{"dst":"default","metric":20,"flags":[],"nexthops":[{"gateway":"fe80::2","dev":"ens2","weight":1,"flags":[]}]}]'


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ((0, BY_RA), [DefaultRoute("ens1", "fe80::1", 1024)]),
        ((0, BY_TWO), [DefaultRoute("ens2", "fe80::2", 20)]),
        ((0, ""), []),
        ((1, ""), None),
        ((0, "rubbish"), None),
    ],
)
def test_default_routes_of_ipv6_are_those_of_the_main_table(
    tmp_path: Path, answer: tuple[int, str], found: list[DefaultRoute] | None
) -> None:
    planes = read_planes(host(tmp_path), FakeRunner([(IPV6_DEFAULTS, *answer, "")]), (4, 6))
    assert planes is not None
    assert planes.ipv6_default_routes == found


def test_behind_systemd_resolved_its_own_servers_count(tmp_path: Path) -> None:
    files = {"/etc/resolv.conf": "nameserver 127.0.0.53\n", "/run/systemd/resolve/resolv.conf": "nameserver 192.168.100.53\n"}
    planes = read_planes(host(tmp_path, **files), FakeRunner([]))
    assert planes is not None
    assert planes.name_servers == [NameServer("192.168.100.53", "ens1")]


@pytest.mark.parametrize("text", ["nameserver\n", "nameserver nobody\n", "; nameserver 10.0.2.3\n", ""])
def test_lines_without_an_address_are_no_servers(tmp_path: Path, text: str) -> None:
    planes = read_planes(host(tmp_path, **{"/etc/resolv.conf": text}), FakeRunner([]))
    assert planes is not None
    assert planes.name_servers == []


@pytest.mark.parametrize(
    "text", ["", "nothing\n", "Iface\nens1\n", "Iface\nens1 zz 0 1 0 0 0 0\n", "Iface\nens1 01000000 0 1 0 0 0 000000FF\n"]
)
def test_another_form_of_routes_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match=r"not a (table of )?routes?"):
        parse_routes(text)


def test_another_form_of_other_tables_is_refused() -> None:
    with pytest.raises(ParseError, match="not a table of sockets"):
        list(parse_listeners("nothing"))
    with pytest.raises(ParseError, match="not a socket"):
        list(parse_listeners("local_address\n 0: 00000000:0016\n"))


def test_forwarding_is_a_switch() -> None:
    assert (parse_forwarding("1\n"), parse_forwarding("0\n")) == (True, False)
    with pytest.raises(ParseError, match="neither 0 nor 1"):
        parse_forwarding("yes")


def test_without_ipv6_the_table_of_ipv4_counts_alone(tmp_path: Path) -> None:
    planes = read_planes(host(tmp_path, **{"/proc/net/tcp6": ""}), FakeRunner([]))
    assert planes is not None
    assert planes.ssh == ["0.0.0.0", "192.168.100.1"]


def test_without_a_table_of_listeners_they_are_not_known(tmp_path: Path) -> None:
    planes = read_planes(host(tmp_path, **{"/proc/net/tcp": ""}), FakeRunner([]))
    assert planes is not None
    assert planes.ssh is None


def test_this_machine_has_the_routes_that_ip_shows() -> None:
    said = subprocess.run(["ip", "-4", "route", "show", "table", "main", "default"], capture_output=True, text=True, check=True).stdout
    expected = {(match[2], match[1]) for match in re.finditer(r"^default via (\S+) dev (\S+)", said, re.M)}
    planes = read_planes(SysRoot(), FakeRunner([]))
    assert planes is not None
    ours = {(route.netdev, route.gateway) for route in planes.default_routes if route.gateway and "." in route.gateway}
    assert ours == expected
    assert all(ipaddress.ip_address(address) for address in planes.ssh or ())
