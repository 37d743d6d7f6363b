# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who claims an interface. The state files are those of systemd-networkd 252 and NetworkManager 1.42 (Debian 12)."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.managers import (
    NetworkdLink,
    parse_ifstate,
    parse_networkd_link,
    parse_nm_device,
    read_backend,
    read_managers,
    read_networkd_link,
)
from tests.unit.builders.garbled import garbled
from tests.unit.builders.trees import write_tree

LINK = """\
# This is private data. Do not parse.
ADMIN_STATE=configured
OPER_STATE=routable
CARRIER_STATE=carrier
ADDRESS_STATE=routable
IPV4_ADDRESS_STATE=routable
IPV6_ADDRESS_STATE=degraded
ONLINE_STATE=online
REQUIRED_FOR_ONLINE=no
REQUIRED_OPER_STATE_FOR_ONLINE=degraded
REQUIRED_FAMILY_FOR_ONLINE=any
ACTIVATION_POLICY=up
NETWORK_FILE=/etc/systemd/network/60-rdma-rail0.network
DNS=
NTP=
"""
UNMANAGED = LINK[: LINK.index("ONLINE_STATE")].replace("configured", "unmanaged")
DEVICE = """\
[device]
managed=true
connection-uuid=5fb06bd0-0bb0-7ffb-45f1-d6edd65f3e03
route-metric-default-effective=100

[dhcp4]
dhcp4.ip_address=192.0.2.1
dhcp4.managed=no
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(LINK, True, id="configured"),
        pytest.param(LINK.replace("configured", "configuring"), True, id="configuring"),
        pytest.param(LINK.replace("configured", "failed"), True, id="failed"),
        pytest.param(LINK.replace("\n", "\r\n"), True, id="CRLF"),
        pytest.param(UNMANAGED, False, id="no file for it"),
        pytest.param(LINK.replace("configured", "unmanaged"), False, id="configured to leave it alone"),
        pytest.param(LINK.replace("/etc/systemd/network/60-rdma-rail0.network", ""), False, id="an empty file name"),
        pytest.param("ADMIN_STATE=pending\n", False, id="not looked at yet"),
    ],
)
def test_networkd(text: str, expected: bool) -> None:
    assert parse_networkd_link(text).is_managed is expected


def test_the_file_that_networkd_uses(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(tmp_path, NETWORKD_FILE + "/sys/class/net/ens1/ifindex: 3\n/sys/class/net/ens2/ifindex: 4\n")))
    assert read_networkd_link(sys, "ens1") == NetworkdLink("configured", "/etc/systemd/network/60-rdma-rail0.network")
    assert read_networkd_link(sys, "ens2") is None
    assert read_networkd_link(sys, "ens3") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(DEVICE, True, id="managed"),
        pytest.param(DEVICE.replace("=true", "=1"), True, id="a number"),
        pytest.param(DEVICE.replace("=true", "=false"), False, id="configured to leave it alone"),
        pytest.param(DEVICE.replace("managed=true\n", ""), False, id="not decided"),
        pytest.param("[dhcp4]\nmanaged=true\n", False, id="another section"),
        pytest.param("# x\n\n[device]\n managed = true\r\n", True, id="blanks and comments"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_network_manager(text: str, expected: bool) -> None:
    assert parse_nm_device(text) is expected


def test_ifupdown() -> None:
    assert parse_ifstate("lo=lo\neth1=eth1\neth2=home\n\n") == ["lo", "eth1", "eth2"]


@pytest.mark.parametrize("text", ["", "NETWORK_FILE=x\n", "[device]\n"])
def test_another_link_is_quoted(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_networkd_link(text)
    assert repr(text) in str(caught.value)


def test_another_device_is_quoted() -> None:
    with pytest.raises(ParseError, match="'ADMIN_STATE=configured'"):
        parse_nm_device(LINK)


@given(text=garbled(LINK) | garbled(DEVICE))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert isinstance(parse_networkd_link(text), NetworkdLink)
    with contextlib.suppress(ParseError):
        assert isinstance(parse_nm_device(text), bool)
    assert isinstance(parse_ifstate(text), list)


def tree(path: str, text: str) -> str:
    return f"{path}: {text.replace(chr(10), chr(92) + 'n')}\n"


NETWORKD_FILE = tree("/run/systemd/netif/links/3", LINK)
NM_FILE = tree("/run/NetworkManager/devices/3", DEVICE)
RUNNING = """
    /sys/fs/cgroup/system.slice/ssh.service/cgroup.procs: 1
    /sys/fs/cgroup/system.slice/systemd-networkd.service/cgroup.procs: 2
    /sys/fs/cgroup/system.slice/NetworkManager.service/cgroup.procs: 3
"""
PROCESSES = """
    /proc/1/comm: systemd
    /proc/812/comm: dhclient
    /proc/813/comm: dhcpcd
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="nobody"),
        pytest.param(NETWORKD_FILE, ["systemd-networkd"], id="networkd"),
        pytest.param(tree("/run/systemd/netif/links/3", UNMANAGED), [], id="networkd, unmanaged"),
        pytest.param(tree("/run/systemd/netif/links/30", LINK), [], id="networkd, another interface"),
        pytest.param(NM_FILE, ["NetworkManager"], id="NetworkManager"),
        pytest.param(NETWORKD_FILE + NM_FILE, ["systemd-networkd", "NetworkManager"], id="both"),
        pytest.param(NETWORKD_FILE + NM_FILE + RUNNING, ["systemd-networkd", "NetworkManager"], id="both run"),
        pytest.param(NETWORKD_FILE + NM_FILE + RUNNING.replace("NetworkManager.s", "x.s"), ["systemd-networkd"], id="one has stopped"),
        pytest.param(
            NETWORKD_FILE + NM_FILE + RUNNING.replace("cgroup/", "cgroup/systemd/").replace("systemd-networkd.s", "x.s"),
            ["NetworkManager"],
            id="the other has stopped, control groups of version 1",
        ),
        pytest.param("/run/network/ifstate.eth1: eth1", ["ifupdown"], id="ifupdown, own file"),
        pytest.param("/run/network/ifstate.eth1:\n/run/network/ifstate: eth10=eth1", [], id="ifupdown, brought down"),
        pytest.param("/run/network/ifstate: lo=lo\\neth1=home", ["ifupdown"], id="ifupdown, common file"),
        pytest.param("/run/dhclient.eth1.pid: 812" + PROCESSES, ["dhclient"], id="dhclient"),
        pytest.param("/run/dhclient-eth1.pid: 812" + PROCESSES, ["dhclient"], id="dhclient of RHEL"),
        pytest.param("/run/dhclient.eth1.pid: 812", ["dhclient"], id="dhclient, no processes in the tree"),
        pytest.param("/run/dhclient.eth1.pid: 814" + PROCESSES, [], id="dhclient has ended"),
        pytest.param("/run/dhclient.eth1.pid: 813" + PROCESSES, [], id="dhclient has ended, another has its number"),
        pytest.param("/run/dhclient.eth1.pid: ../1", [], id="no number"),
        pytest.param("/run/dhclient.eth10.pid: 812" + PROCESSES, [], id="dhclient of another interface"),
        pytest.param("/run/dhcpcd/eth1.pid: 813" + PROCESSES, ["dhcpcd"], id="dhcpcd"),
        pytest.param("/run/dhcpcd/eth1-4.pid: 813" + PROCESSES, ["dhcpcd"], id="dhcpcd, IPv4 alone"),
        pytest.param("/run/dhcpcd/eth10.pid: 813" + PROCESSES, [], id="dhcpcd of another interface"),
        pytest.param("/run/network/ifstate.eth1: eth1\n/run/dhclient.eth1.pid: 812", ["ifupdown", "dhclient"], id="ifupdown with dhclient"),
    ],
)
def test_who_claims_eth1(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert read_managers(SysRoot(str(write_tree(tmp_path, text))), "eth1", 3) == expected


def test_without_an_index_the_files_by_name_are_read(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(tmp_path, NETWORKD_FILE + NM_FILE + "/run/network/ifstate: eth1=eth1")))
    assert read_managers(sys, "eth1", None) == ["ifupdown"]
    assert read_managers(sys, "eth2", None) is None


def test_another_form_is_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match=r"^/run/systemd/netif/links/3: not the state"):
        read_managers(SysRoot(str(write_tree(tmp_path, "/run/systemd/netif/links/3: x"))), "eth1", 3)


NETPLAN = "etc/netplan/50-cloud-init.yaml"
YAML = "network:\n  version: 2\n  ethernets:\n    eth0:\n      dhcp4: true\n"
NM_HAS_ETH0 = {"run/NetworkManager/devices/2": DEVICE}
OUR_PROFILE = {"etc/NetworkManager/system-connections/60-rdma-rail0.nmconnection": "[connection]\n"}
OUR_FILE = {"etc/systemd/network/60-rdma-rail0.network": "[Network]\n"}
OUR_RELEASE = {"etc/systemd/network/60-rdma-rail0.network": "[Link]\nUnmanaged=yes\n"}
PROGRAM = {"usr/sbin/netplan": "#!/usr/bin/python3\n"}


@pytest.mark.parametrize(
    ("running", "files", "management", "expected"),
    [
        pytest.param(["systemd-networkd"], {}, "eth0", "networkd", id="systemd-networkd alone"),
        pytest.param(["NetworkManager"], {}, None, "networkmanager", id="NetworkManager alone"),
        pytest.param(["NetworkManager", "systemd-networkd"], NM_HAS_ETH0, "eth0", "networkmanager", id="both, the session is on its side"),
        pytest.param(["NetworkManager", "systemd-networkd"], {}, "eth0", "networkd", id="both, the session is not"),
        pytest.param(["NetworkManager", "systemd-networkd"], {}, None, "networkd", id="both, no session"),
        pytest.param([], {}, "eth0", "networkd", id="ifupdown"),
        pytest.param(["systemd-networkd"], {NETPLAN: YAML, **PROGRAM}, "eth0", "netplan", id="netplan"),
        pytest.param(["systemd-networkd"], {NETPLAN: YAML}, "eth0", "networkd", id="files of netplan without netplan"),
        pytest.param(["systemd-networkd"], PROGRAM, "eth0", "networkd", id="netplan without files"),
        pytest.param(
            ["NetworkManager"],
            {NETPLAN: "network:\n  renderer: NetworkManager\n", **PROGRAM, **NM_HAS_ETH0},
            "eth0",
            "networkmanager",
            id="netplan renders for NetworkManager",
        ),
        pytest.param(["systemd-networkd"], OUR_PROFILE, "eth0", "networkmanager", id="NetworkManager has our files, and does not run"),
        pytest.param(["NetworkManager"], {**OUR_FILE, **NM_HAS_ETH0}, "eth0", "networkd", id="systemd-networkd has our files"),
        pytest.param(
            ["NetworkManager", "systemd-networkd"], {**OUR_PROFILE, **OUR_RELEASE}, "eth9", "networkmanager", id="released by the other"
        ),
        pytest.param(["NetworkManager"], {**OUR_PROFILE, **OUR_FILE, **NM_HAS_ETH0}, "eth0", "networkmanager", id="both have our files"),
        pytest.param(["NetworkManager"], {"etc/netplan/90-rdma-rail0.yaml": YAML, **NM_HAS_ETH0}, "eth0", "netplan", id="our netplan"),
    ],
)
def test_the_manager_of_the_host(tmp_path: Path, running: list[str], files: dict[str, str], management: str | None, expected: str) -> None:
    groups = {f"sys/fs/cgroup/system.slice/{name}.service/cgroup.procs": "1\n" for name in (*running, "ssh")}
    for path, text in {"sys/class/net/eth0/ifindex": "2\n", **groups, **files}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert read_backend(SysRoot(str(tmp_path)), management) == expected


def test_a_captured_tree_has_no_manager(tmp_path: Path) -> None:
    assert read_backend(SysRoot(str(tmp_path)), "eth0") is None
