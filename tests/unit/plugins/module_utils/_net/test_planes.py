# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Default routes, name servers and listeners, as the kernel and files show them."""

from __future__ import annotations

import ipaddress
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host.sockets import Listener
from ansible_collections.rdma.cluster.plugins.module_utils._net.planes import (
    MOST_NETWORKS,
    DefaultRoute,
    MultipathRoute,
    NameServer,
    Planes,
    RoutedNetwork,
    Service,
    parse_forwarding,
    parse_hash_policy,
    parse_routes,
    read_planes,
)
from tests.unit.builders.sockets import TCP, TCP6

#: A machine of the lab; the columns are separated by tabs and end in blanks.
ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT                                                       
enp0s2\t00000000\t0202000A\t0003\t0\t0\t1024\t00000000\t0\t0\t0                                                                         
enp0s2\t0002000A\t00000000\t0001\t0\t0\t1024\t00FFFFFF\t0\t0\t0                                                                         
ens1\t0064A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0                                                                              
ens1\t0000000A\t00000000\t0200\t0\t0\t0\t000000FF\t0\t0\t0                                                                              
"""  # noqa: W291


def way(address: str) -> str | None:
    """Which way a host with ROUTES sends packets to an address."""
    if "%" in address:
        return address.partition("%")[2]
    if ipaddress.ip_address(address).is_loopback:
        return None
    return "ens1" if address.startswith(("192.168.100.", "fd00:100::")) else "enp0s2"


def planes_of(sys: SysRoot, **more: Any) -> Planes:
    """The planes of a running host with these files."""
    answers: dict[str, Any] = {"way": way, "default_routes6": list, "multipath_routes": list, **more}
    planes = read_planes(sys, running=True, addresses={"ens1": ["192.168.100.1/24"], "enp0s2": ["10.0.2.15/24"]}, **answers)
    assert planes is not None
    return planes


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


def test_a_host(tmp_path: Path) -> None:
    planes = planes_of(host(tmp_path))
    assert planes.default_routes == [DefaultRoute("enp0s2", "10.0.2.2", 1024)]
    assert planes.name_servers == [NameServer("10.0.2.3", "enp0s2"), NameServer("192.168.100.53", "ens1")]
    assert planes.forwarding is True
    assert planes.ssh == ["0.0.0.0", "192.168.100.1", "192.168.100.2", "2001:db8::1", "::"]


def test_networks_behind_gateways(tmp_path: Path) -> None:
    route = "eno1\t{}\t0102A8C0\t0003\t0\t0\t100\t{}\t0\t0\t0\n"
    planes = planes_of(host(tmp_path, **{"/proc/net/route": ROUTES + route.format("0000000A", "000000FF")}))
    assert planes.networks == [RoutedNetwork("10.0.0.0/8", "eno1")]
    assert planes_of(host(tmp_path)).networks == []
    many = "".join(route.format(f"00{number % 256:02X}{number // 256:02X}0A", "00FFFFFF") for number in range(MOST_NETWORKS + 1))
    assert planes_of(host(tmp_path, **{"/proc/net/route": ROUTES + many})).networks is None


def test_a_captured_tree_and_a_kernel_without_ipv4_have_none(tmp_path: Path) -> None:
    assert read_planes(host(tmp_path), running=False) is None
    assert read_planes(SysRoot(str(tmp_path / "empty")), running=True) is None


def test_behind_systemd_resolved_its_own_servers_count(tmp_path: Path) -> None:
    files = {"/etc/resolv.conf": "nameserver 127.0.0.53\n", "/run/systemd/resolve/resolv.conf": "nameserver 192.168.100.53\n"}
    planes = planes_of(host(tmp_path, **files))
    assert planes.name_servers == [NameServer("192.168.100.53", "ens1")]


@pytest.mark.parametrize("text", ["nameserver\n", "nameserver nobody\n", "; nameserver 10.0.2.3\n", ""])
def test_lines_without_an_address_are_no_servers(tmp_path: Path, text: str) -> None:
    planes = planes_of(host(tmp_path, **{"/etc/resolv.conf": text}))
    assert planes.name_servers == []


@pytest.mark.parametrize(
    "text", ["", "nothing\n", "Iface\nens1\n", "Iface\nens1 zz 0 1 0 0 0 0\n", "Iface\nens1 01000000 0 1 0 0 0 000000FF\n"]
)
def test_another_form_of_routes_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match=r"not a (table of )?routes?"):
        parse_routes(text)


def test_routes_with_several_next_hops_and_the_hash_policy(tmp_path: Path) -> None:
    several = [("10.1.0.0/16", ["ens1", "ens2"])]
    planes = planes_of(host(tmp_path, **{"/proc/sys/net/ipv4/fib_multipath_hash_policy": "1\n"}), multipath_routes=lambda: several)
    assert (planes.multipath, planes.hash_policy) == ([MultipathRoute("10.1.0.0/16", ["ens1", "ens2"])], 1)


def test_without_an_answer_of_the_kernel_they_are_unknown(tmp_path: Path) -> None:
    def no_answer() -> list[tuple[str, list[str]]]:
        raise OSError(5, "Input/output error")

    planes = planes_of(host(tmp_path), multipath_routes=no_answer)
    assert (planes.multipath, planes.hash_policy, planes.way_error) == (None, None, "[Errno 5] Input/output error")


def test_a_hash_policy_is_a_number_of_the_kernel() -> None:
    assert [parse_hash_policy(text) for text in ("0\n", "3\n")] == [0, 3]
    with pytest.raises(ParseError, match="not a number from 0 to 3: '4'"):
        parse_hash_policy("4")


def test_forwarding_is_a_switch() -> None:
    assert (parse_forwarding("1\n"), parse_forwarding("0\n")) == (True, False)
    with pytest.raises(ParseError, match="neither 0 nor 1"):
        parse_forwarding("yes")


def test_without_ipv6_the_table_of_ipv4_counts_alone(tmp_path: Path) -> None:
    planes = planes_of(host(tmp_path, **{"/proc/net/tcp6": ""}))
    assert planes.ssh == ["0.0.0.0", "192.168.100.1"]


def test_without_a_table_of_listeners_they_are_not_known(tmp_path: Path) -> None:
    planes = planes_of(host(tmp_path, **{"/proc/net/tcp": ""}))
    assert planes.ssh is None


def test_this_machine_has_the_routes_that_ip_shows() -> None:
    said = subprocess.run(["ip", "-4", "route", "show", "table", "main", "default"], capture_output=True, text=True, check=True).stdout
    expected = {(match[2], match[1]) for match in re.finditer(r"^default via (\S+) dev (\S+)", said, re.M)}
    planes = read_planes(SysRoot(), running=True)
    assert planes is not None
    ours = {(route.netdev, route.gateway) for route in planes.default_routes if route.gateway and "." in route.gateway}
    assert ours == expected
    assert all(ipaddress.ip_address(address) for address in planes.ssh or ())


def test_default_routes_of_ipv6_follow_those_of_ipv4(tmp_path: Path) -> None:
    planes = planes_of(host(tmp_path), default_routes6=lambda: [("ens1", "fe80::1", 1024)])
    assert planes.default_routes == [DefaultRoute("enp0s2", "10.0.2.2", 1024), DefaultRoute("ens1", "fe80::1", 1024, 6)]


#: Debian 12: chrony 4.3, rsyslog 8.2302, a mount of NFS 4.2.
CHRONY = "# server 10.9.9.9\nconfdir /etc/chrony/conf.d\npool 2.debian.pool.ntp.org iburst\nserver 192.168.100.5 iburst\n"
RSYSLOG = """\
module(load="imuxsock")
#*.* @10.9.9.9
$ActionQueueType LinkedList
*.* @@192.168.100.6:514
auth,authpriv.*\t\t-/var/log/auth.log
action(type="omfwd"
       target="fd00:100::6" port="514" protocol="tcp")
*.emerg :omusrmsg:*
"""
MOUNTS = """\
/dev/vda1 / ext4 rw,relatime 0 0
192.168.100.7:/home /home nfs4 rw,relatime,vers=4.2,rsize=131072,proto=tcp,clientaddr=192.168.100.1,local_lock=none,addr=192.168.100.7 0 0
"""


def test_remote_services_with_their_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "10.0.2.2 50022 10.0.2.15 22")
    files = {"/etc/chrony/chrony.conf": CHRONY, "/etc/rsyslog.d/50-far.conf": RSYSLOG, "/proc/mounts": MOUNTS}
    assert planes_of(host(tmp_path, **files)).services == [
        Service("NTP server", "2.debian.pool.ntp.org", None, "/etc/chrony/chrony.conf"),
        Service("NTP server", "192.168.100.5", "ens1", "/etc/chrony/chrony.conf"),
        Service("syslog server", "192.168.100.6", "ens1", "/etc/rsyslog.d/50-far.conf"),
        Service("syslog server", "fd00:100::6", "ens1", "/etc/rsyslog.d/50-far.conf"),
        Service("NFS server", "192.168.100.7", "ens1", "/proc/mounts"),
        Service("control node", "10.0.2.2", "enp0s2", "the SSH session"),
    ]


def test_timesyncd_counts_without_chrony_and_a_forwarded_session_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "127.0.0.1 50022 127.0.0.1 22")
    files = {"/etc/systemd/timesyncd.conf": "[Time]\n#NTP=10.9.9.9\nNTP=192.168.100.5 ntp.example\nFallbackNTP=\n"}
    assert [(each.address, each.netdev) for each in planes_of(host(tmp_path, **files)).services or ()] == [
        ("192.168.100.5", "ens1"),
        ("ntp.example", None),
    ]


def test_if_the_kernel_does_not_answer_the_way_is_not_known(tmp_path: Path) -> None:
    def silent(_address: str) -> str | None:
        raise TimeoutError("timed out")

    planes = planes_of(host(tmp_path), way=silent)
    assert (planes.name_servers, planes.services, planes.way_error) == (None, None, "timed out")
    assert planes.ssh is not None, "listeners need no way"


def daemon(root: Path, pid: int, name: str, *inodes: int) -> None:
    (root / f"proc/{pid}/fd").mkdir(parents=True)
    (root / f"proc/{pid}/comm").write_text(name + "\n")
    for number, inode in enumerate(inodes, 3):
        (root / f"proc/{pid}/fd/{number}").symlink_to(f"socket:[{inode}]")


def test_listeners_of_management_daemons_have_their_interface(tmp_path: Path) -> None:
    sys = host(tmp_path, **{"/proc/net/if_inet6": "20010db8000000000000000000000001 03 40 00 80     ens2\n"})
    daemon(tmp_path, 700, "sshd", 18210, 18211)
    daemon(tmp_path, 701, "python3", 18213)
    assert planes_of(sys).listeners == [Listener("sshd", 22, "0.0.0.0"), Listener("sshd", 22, "192.168.100.1", "ens1")]
    # The kernel's table of IPv6 has the inodes behind the columns of this fixture.
    rows = [f"{row}        0 {18220 + number} 1" if number else row for number, row in enumerate(TCP6.splitlines())]
    (tmp_path / "proc/net/tcp6").write_text("\n".join(rows) + "\n")
    daemon(tmp_path, 702, "slurmd", 18223)
    assert Listener("slurmd", 22, "2001:db8::1", "ens2") in (planes_of(SysRoot(str(tmp_path))).listeners or [])
