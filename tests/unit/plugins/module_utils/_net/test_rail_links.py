# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rail on a VLAN, for the three network managers: two interfaces, their files, and what is done with `ip`."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice, netplan, networkd, nm_profiles
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.change import SESSION
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import SeenVlan
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_links import link_differs, make_rails
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail, Running, make_rail
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session
from tests.unit.builders.fakes import FakeRunner

ensure = functools.partial(choice.ensure, "networkd", ["rail0"])
PLAIN = {
    "name": "rail0", "nic": {"pci": "0000:21:00.0"}, "netdev": "ens1", "device": "rxe_rail0", "port": 1, "mac": "02:00:00:00:09:01",
    "address": "192.168.100.1/24", "mtu_bytes": 9000, "table": 1000, "gateway": "192.168.100.254", "routes": ["192.168.0.0/16"],
}  # fmt: skip
GIVEN = {**PLAIN, "vlan": {"interface": "ens1.100", "id": 100, "pcp": None}}
MARKED = {**PLAIN, "vlan": {"interface": "ens1.100", "id": 100, "pcp": 3}}
#: Without routes, so that tests of the order of commands stay short.
SHORT = {**GIVEN, "table": None, "gateway": None, "routes": []}
ALONE = Running(networkd=False, networkmanager=False)
QPS = ["rdma", "-j", "resource", "show", "qp"]
IDLE = (QPS, 0, "[]", "")
BUSY = (QPS, 0, json.dumps([{"ifname": "rxe_rail0", "port": 1, "lqpn": 17, "type": "RC", "pid": 4711, "comm": "ib_write_bw"}]), "")
RELOAD = (["networkctl", "reload"], 0, "", "")
NAMES = ["systemd-networkd.service", "NetworkManager.service"]
STATES = "".join(
    f"Id={name}\nActiveState={state}\nUnitFileState=enabled\n\n" for name, state in {NAMES[0]: "active", NAMES[1]: "inactive"}.items()
)
UNITS = (
    ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", *NAMES],
    0,
    STATES.replace("inactive\nUnitFileState=enabled", "inactive\nUnitFileState="),
    "",
)
ADD_VLAN = (["ip", "link", "add", "link", "ens1", "name", "ens1.100", "type", "vlan", "id", "100"], 0, "", "")
UP = (["ip", "link", "set", "dev", "ens1.100", "up"], 0, "", "")
DELETE = (["ip", "link", "delete", "dev", "ens1.100"], 0, "", "")


def address(netdev: str, *texts: str, mtu: int = 9000) -> tuple[list[str], int, str, str]:
    """`ip` of an interface with these addresses."""
    parts = [text.split("/") for text in texts]
    entries = [{"family": "inet6" if ":" in ip else "inet", "local": ip, "prefixlen": int(bits), "scope": "global"} for ip, bits in parts]
    return ["ip", "-j", "address", "show", "dev", netdev], 0, json.dumps([{"mtu": mtu, "addr_info": entries}]), ""


def link(*, vlan_id: int = 100, up: bool = True) -> tuple[list[str], int, str, str]:
    info = {"info_kind": "vlan", "info_data": {"id": vlan_id}}
    entry = {"ifname": "ens1.100", "link": "ens1", "flags": ["UP"] if up else [], "linkinfo": info}
    return ["ip", "-j", "-d", "link", "show", "dev", "ens1.100"], 0, json.dumps([entry]), ""


NO_LINK = (link()[0], 1, "", "does not exist")
NO_ADDRESS = (address("ens1.100")[0], 1, "", "does not exist")
GOOD = [link(), address("ens1.100", "192.168.100.1/24")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("NETWORKD_FOLDER", "PROFILES", "CONF", "NETPLAN_FOLDER"):
        (tmp_path / name.lower()).mkdir()
        monkeypatch.setattr(rail_network, name, str(tmp_path / name.lower()))
    monkeypatch.setattr(rail_network, "PENDING", str(tmp_path / "pending"))
    monkeypatch.setattr(networkd, "RENDERED", str(tmp_path / "rendered"))
    monkeypatch.setattr(networkd, "LOADED", str(tmp_path / "loaded"))
    monkeypatch.setattr(networkd, "LOAD_SECONDS", 0.0)
    return tmp_path / "networkd_folder"


@pytest.fixture
def sys(tmp_path: Path) -> SysRoot:
    for path, text in {"proc/1/comm": "systemd\n", "sys/class/infiniband/rxe_rail0/node_type": "1: CA\n"}.items():
        (tmp_path / "host" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "host" / path).write_text(text)
    return SysRoot(str(tmp_path / "host"))


def write(folder: Path, given: dict[str, Any]) -> None:
    for file in choice.files("networkd", make_rails([given]), [], ["rail0"], ALONE):
        Path(file.path).write_text(file.text)
        Path(file.path).chmod(0o644)
    assert folder.exists()


def run(script: list[tuple[list[str], int, str, str]], given: dict[str, Any], sys: SysRoot, **options: Any) -> rail_network.NetworkResult:
    options = {"check_mode": False, **options}
    return choice.ensure("networkd", make_rails([given]), ["rail0"], runner=FakeRunner(script), sys=sys, **options)


def test_a_rail_without_vlan_is_one_interface() -> None:
    assert make_rails([PLAIN]) == [make_rail(PLAIN)]
    assert make_rails([{**PLAIN, "vlan": None}]) == [make_rail(PLAIN)]


def test_two_rails_on_one_nic_are_refused() -> None:
    """One is named by its PCI address, the other by its MAC: only the host knows that both are one NIC."""
    other = {**GIVEN, "name": "rail1", "nic": {"mac": "02:00:00:00:00:01"}, "vlan": {"interface": "ens1.200", "id": 200, "pcp": None}}
    with pytest.raises(ApplyError, match=r"rail0 and rail1 are both on ens1: a NIC has one rail, .* 1\. In rdma_rails, correct `nic`"):
        make_rails([GIVEN, other])
    assert len(make_rails([GIVEN, {**other, "netdev": "ens2", "vlan": {"interface": "ens2.100", "id": 100, "pcp": None}}])) == 4


def test_the_nic_has_the_mtu_and_the_vlan_the_rest() -> None:
    nic, vlan = make_rails([GIVEN])
    assert (nic.name, nic.netdev, nic.address, nic.mtu_bytes, nic.routing.planned, nic.link.vlans) == (
        "rail0", "ens1", None, 9000, [], ("ens1.100",),
    )  # fmt: skip
    assert (vlan.name, vlan.netdev, vlan.address, vlan.mtu_bytes) == ("rail0@vlan", "ens1.100", "192.168.100.1/24", 9000)
    assert {route.netdev for route in vlan.routing.planned} == {"ens1.100"}
    assert (vlan.device, vlan.port) == ("rxe_rail0", 1)


def test_a_nic_under_a_vlan_without_mtu_has_a_file() -> None:
    nic = make_rails([{**SHORT, "mtu_bytes": None}])[0]
    assert nic.is_configured
    assert "MTUBytes" not in networkd.render(nic)


def texts(backend: str, given: dict[str, Any]) -> dict[str, str]:
    files = choice.files(backend, make_rails([given]), [], ["rail0"], ALONE)
    return {Path(file.path).name: file.text for file in files}


def test_the_files_of_systemd_networkd() -> None:
    assert texts("networkd", {**MARKED, "table": None, "gateway": None, "routes": []}) == {
        "60-rdma-rail0.network": (
            "# Managed by rdma.cluster: rail0.\n[Match]\nPath=pci-0000:21:00.0\n\n[Link]\nMTUBytes=9000\nRequiredForOnline=no\n\n"
            "[Network]\nDHCP=no\nIPv6AcceptRA=no\nConfigureWithoutCarrier=yes\nKeepConfiguration=static\nVLAN=ens1.100\n"
        ),
        "60-rdma-rail0@vlan.netdev": (
            "# Managed by rdma.cluster: rail0@vlan.\n[NetDev]\nName=ens1.100\nKind=vlan\n\n[VLAN]\nId=100\n"
            "EgressQOSMaps=0-3 1-3 2-3 3-3 4-3 5-3 6-3 7-3\n"
        ),
        "60-rdma-rail0@vlan.network": (
            "# Managed by rdma.cluster: rail0@vlan.\n[Match]\nName=ens1.100\n\n[Link]\nMTUBytes=9000\nRequiredForOnline=no\n\n"
            "[Network]\nDHCP=no\nIPv6AcceptRA=no\nConfigureWithoutCarrier=yes\nKeepConfiguration=static\nAddress=192.168.100.1/24\n"
        ),
    }
    assert "EgressQOSMaps" not in texts("networkd", GIVEN)["60-rdma-rail0@vlan.netdev"]


def test_the_profiles_of_networkmanager() -> None:
    found = texts("networkmanager", {**MARKED, "table": None, "gateway": None, "routes": []})
    assert sorted(found) == [
        "60-rdma-rail0.conf", "60-rdma-rail0.nmconnection", "60-rdma-rail0@vlan.conf", "60-rdma-rail0@vlan.nmconnection",
    ]  # fmt: skip
    assert found["60-rdma-rail0@vlan.nmconnection"] == (
        "# Managed by rdma.cluster: rail0@vlan.\n[connection]\nid=rdma-rail0@vlan\n"
        f"uuid={nm_profiles.uuid_of('rail0@vlan')}\ntype=vlan\ninterface-name=ens1.100\nautoconnect-priority=100\n\n"
        "[vlan]\nparent=ens1\nid=100\nflags=1\negress-priority-map=0:3,1:3,2:3,3:3,4:3,5:3,6:3,7:3\n\n"
        "[ethernet]\nmtu=9000\n\n[ipv4]\nmethod=manual\naddress1=192.168.100.1/24\nnever-default=true\n\n[ipv6]\nmethod=link-local\n"
    )
    assert found["60-rdma-rail0@vlan.conf"].endswith("match-device=interface-name:ens1.100\nignore-carrier=yes\n")
    nic = found["60-rdma-rail0.nmconnection"]
    assert "type=ethernet\n" in nic
    assert "path=pci-0000:21:00.0;\n" in nic
    assert "method=disabled\n" in nic
    by_mac = texts("networkmanager", {**SHORT, "nic": {"mac": "02:00:00:00:09:01"}})["60-rdma-rail0@vlan.nmconnection"]
    assert "mac-address" not in by_mac


def test_the_files_of_netplan() -> None:
    found = texts("netplan", SHORT)
    assert sorted(found) == ["90-rdma-rail0.yaml", "90-rdma-rail0@vlan.yaml"]
    assert found["90-rdma-rail0@vlan.yaml"].startswith(
        "# Managed by rdma.cluster: rail0@vlan.\nnetwork:\n  version: 2\n  vlans:\n    ens1.100:\n      renderer: networkd\n"
        "      id: 100\n      link: rdma-rail0\n      mtu: 9000\n"
    )
    assert found["90-rdma-rail0@vlan.yaml"].endswith("      addresses:\n        - 192.168.100.1/24\n")
    assert "addresses" not in found["90-rdma-rail0.yaml"]
    assert choice.boot_file("netplan", "rail0@vlan", is_infiniband=False, made="ens1.100").endswith("/10-netplan-ens1.100.network")


#: A rail on a VLAN whose RDMA address is IPv6, with a router and a further address of IPv4.
BOTH = {
    **GIVEN, "address": "2001:db8:100::1/64", "addresses": ["192.168.100.1/24"], "gateway": "2001:db8:100::fe", "routes": ["2001:db8::/32"],
}  # fmt: skip


def test_systemd_networkd_gives_the_vlan_both_families_and_the_nic_none() -> None:
    found = texts("networkd", BOTH)
    assert found["60-rdma-rail0.network"].endswith("KeepConfiguration=static\nVLAN=ens1.100\n")
    assert "LinkLocalAddressing" not in found["60-rdma-rail0.network"]
    assert found["60-rdma-rail0@vlan.network"].endswith(
        "IPv6AcceptRA=no\nLinkLocalAddressing=ipv6\nConfigureWithoutCarrier=yes\nKeepConfiguration=static\nAddress=192.168.100.1/24\n\n"
        "[Address]\nAddress=2001:db8:100::1/64\nDuplicateAddressDetection=none\n\n"
        "[RoutingPolicyRule]\nFrom=2001:db8:100::1/128\nTable=1000\nPriority=1000\n\n"
        "[Route]\nDestination=2001:db8:100::/64\nPreferredSource=2001:db8:100::1\nTable=1000\n\n"
        "[Route]\nDestination=::/0\nGateway=2001:db8:100::fe\nTable=1000\n\n"
        "[Route]\nDestination=2001:db8::/32\nGateway=2001:db8:100::fe\n"
    )


def test_networkmanager_gives_the_vlan_both_families_and_the_nic_none() -> None:
    found = texts("networkmanager", BOTH)
    assert found["60-rdma-rail0.nmconnection"].endswith("[ipv4]\nmethod=disabled\n\n[ipv6]\nmethod=link-local\n")
    vlan = found["60-rdma-rail0@vlan.nmconnection"]
    assert "[vlan]\nparent=ens1\nid=100\nflags=1\n\n[ethernet]\nmtu=9000\n\n" in vlan
    ipv4, ipv6 = vlan.split("[ipv4]\n")[1].split("[ipv6]\n")
    assert ipv4 == "method=manual\naddress1=192.168.100.1/24\nnever-default=true\n\n"
    assert ipv6.startswith("method=manual\naddress1=2001:db8:100::1/64\n")
    assert "routing-rule1=priority 1000 from 2001:db8:100::1/128 table 1000\n" in ipv6
    assert "route3=2001:db8::/32,2001:db8:100::fe\n" in ipv6


#: The end of the interface with the addresses of BOTH and DUAL.
BOTH_IN_NETPLAN = """\
      addresses:
        - "2001:db8:100::1/64"
        - 192.168.100.1/24
      routing-policy:
        - from: "2001:db8:100::1/128"
          table: 1000
          priority: 1000
      routes:
        - to: "2001:db8:100::/64"
          scope: link
          from: "2001:db8:100::1"
          table: 1000
        - to: "::/0"
          via: "2001:db8:100::fe"
          table: 1000
        - to: "2001:db8::/32"
          via: "2001:db8:100::fe"
"""


def test_netplan_gives_the_vlan_both_families_and_the_nic_none() -> None:
    found = texts("netplan", BOTH)
    assert "addresses:" not in found["90-rdma-rail0.yaml"]
    vlan = found["90-rdma-rail0@vlan.yaml"]
    assert "  vlans:\n    ens1.100:\n      renderer: networkd\n      id: 100\n      link: rdma-rail0\n" in vlan
    assert vlan.endswith(BOTH_IN_NETPLAN)


def test_a_new_vlan_gets_its_ipv6_address_with_ip(folder: Path, sys: SysRoot) -> None:
    """Beside a job the files wait, and `ip` makes the VLAN with the addresses of both families."""
    given = {**BOTH, "table": None, "gateway": None, "routes": []}
    nic, both = address("ens1"), address("ens1.100", "192.168.100.1/24", "2001:db8:100::1/64")
    add6 = (["ip", "address", "add", "2001:db8:100::1/64", "nodad", "dev", "ens1.100"], 0, "", "")
    add4 = (["ip", "address", "add", "192.168.100.1/24", "brd", "+", "dev", "ens1.100"], 0, "", "")
    script = [UNITS, nic, NO_ADDRESS, nic, NO_LINK, NO_ADDRESS, BUSY]
    script += [NO_LINK, NO_ADDRESS, ADD_VLAN, UP, link(), address("ens1.100"), add6, add4, link(), both]
    result = run(script, given, sys)
    assert result.live["ens1.100"][0][1] == "VLAN 100 on ens1, MTU 9000 bytes, address 2001:db8:100::1/64, address 192.168.100.1/24"
    assert [each.change for each in result.withheld]
    assert folder.exists()


def test_a_session_on_a_vlan_of_another_name_protects_the_nic(folder: Path, sys: SysRoot, tmp_path: Path) -> None:
    (tmp_path / "host/proc/net/vlan").mkdir(parents=True)
    text = "admin  VID: 7\t REORDER_HDR: 1\nDevice: ens1\n EGRESS priority mappings: \n"
    (tmp_path / "host/proc/net/vlan/admin").write_text(text)
    nic = address("ens1", mtu=1500)
    result = run(
        [UNITS, nic, NO_ADDRESS, nic, NO_LINK, NO_ADDRESS],
        SHORT,
        sys,
        session=Session("10.0.0.1", "admin"),
        check_mode=True,
        change_allowed=True,
    )
    assert {each.users for each in result.withheld} == {SESSION}
    assert list(folder.iterdir()) == []


def test_a_vlan_with_an_ipv6_address_of_others_stays(folder: Path, sys: SysRoot) -> None:
    write(folder, SHORT)
    nic, vlan = address("ens1"), address("ens1.100", "192.168.100.1/24", "2001:db8:5::1/64")
    result = run([UNITS, nic, vlan, nic, IDLE], {**SHORT, "vlan": None}, sys, check_mode=True)
    assert [each.words for each in result.withheld] == [
        "rail0 (ens1.100): removal of ens1.100; withheld because of 2001:db8:5::1/64, which no file of ours has"
    ]


def test_netplan_has_no_priorities_of_tags() -> None:
    with pytest.raises(ApplyError, match=r"rail0@vlan: netplan cannot set the priority in the tag of a VLAN\. Remove pcp"):
        netplan.render(make_rails([MARKED])[1])


def test_another_manager_leaves_both_interfaces_alone() -> None:
    files = choice.files("networkd", make_rails([GIVEN]), [], ["rail0"], Running(networkd=True, networkmanager=True))
    released = [file.text for file in files if file.path.endswith(".conf")]
    assert ["mac:02:00:00:00:09:01" in released[0], "interface-name:ens1.100" in released[1]] == [True, True]
    files = choice.files("networkmanager", make_rails([GIVEN]), [], ["rail0"], Running(networkd=True, networkmanager=True))
    released = [file.text for file in files if file.path.endswith(".network")]
    assert "[Match]\nName=ens1.100\n\n[Link]\nUnmanaged=yes\n" in released[1]


def test_files_of_a_rail_whose_nic_is_missing_stay(folder: Path) -> None:
    write(folder, GIVEN)
    present = [str(path) for path in folder.iterdir()]
    assert choice.files("networkd", [], present, ["rail0"], ALONE) == []
    assert sorted(file.path for file in choice.files("networkd", [], present, [], ALONE)) == sorted(present)


def test_first_run_on_an_idle_host(folder: Path, sys: SysRoot) -> None:
    """systemd-networkd makes the VLAN when it loads the files; the steps see it there."""
    nic = address("ens1", mtu=9000)
    script = [UNITS, nic, NO_ADDRESS, nic, NO_LINK, NO_ADDRESS, IDLE, RELOAD, nic, *GOOD]
    result = run(script, SHORT, sys)
    assert result.live == {
        "ens1.100": [("no ens1.100", "VLAN 100 on ens1, MTU 9000 bytes, address 192.168.100.1/24"), ("ens1.100 is down", "ens1.100 is up")]
    }
    assert (result.withheld, result.reloaded) == ([], True)
    assert sorted(path.name for path in folder.iterdir()) == [
        "60-rdma-rail0.network",
        "60-rdma-rail0@vlan.netdev",
        "60-rdma-rail0@vlan.network",
    ]


def test_a_second_run_changes_nothing(folder: Path, sys: SysRoot) -> None:
    write(folder, SHORT)
    nic, seen = address("ens1"), GOOD[1]
    assert not run([UNITS, nic, seen, nic, *GOOD], SHORT, sys).changed


def test_check_mode_shows_the_vlan_and_touches_nothing(folder: Path, sys: SysRoot) -> None:
    nic = address("ens1", mtu=1500)
    result = run([UNITS, nic, NO_ADDRESS, nic, NO_LINK, NO_ADDRESS, IDLE], SHORT, sys, check_mode=True)
    assert list(result.live) == ["ens1", "ens1.100"]
    assert result.live["ens1"] == [("MTU 1500 bytes", "MTU 9000 bytes")]
    assert list(folder.iterdir()) == []


def test_beside_a_job_the_vlan_is_added_with_ip_and_the_files_wait(folder: Path, sys: SysRoot) -> None:
    """A VLAN more does no harm to the NIC's queue pairs; a reload would."""
    nic, bare = address("ens1"), address("ens1.100")
    add = (["ip", "address", "add", "192.168.100.1/24", "brd", "+", "dev", "ens1.100"], 0, "", "")
    script = [UNITS, nic, NO_ADDRESS, nic, NO_LINK, NO_ADDRESS, BUSY, NO_LINK, NO_ADDRESS, ADD_VLAN, UP, link(), bare, add, *GOOD]
    result = run(script, SHORT, sys)
    assert [each.rail for each in result.withheld] == ["rail0", "rail0"]
    assert not result.reloaded
    assert (folder / "60-rdma-rail0@vlan.netdev").exists()


def test_a_nic_with_a_smaller_mtu_and_a_job_keeps_all(folder: Path, sys: SysRoot) -> None:
    """The MTU of the NIC would restart its queues: the VLAN waits as well."""
    nic = address("ens1", mtu=1500)
    result = run([UNITS, nic, NO_ADDRESS, nic, NO_LINK, NO_ADDRESS, BUSY], SHORT, sys)
    assert (result.live, result.files) == ({}, [])
    assert [(each.rail, each.netdev) for each in result.withheld] == [("rail0", "ens1")]
    assert list(folder.iterdir()) == []


def test_a_vlan_that_leaves_the_intent_is_removed_on_an_idle_host(folder: Path, sys: SysRoot) -> None:
    write(folder, SHORT)
    nic, vlan, good = address("ens1"), GOOD[1], address("ens1", "192.168.100.1/24")
    add = (["ip", "address", "add", "192.168.100.1/24", "brd", "+", "dev", "ens1"], 0, "", "")
    script = [UNITS, nic, vlan, nic, IDLE, RELOAD, vlan, DELETE, NO_ADDRESS, nic, add, NO_ADDRESS, good]
    result = run(script, {**SHORT, "vlan": None}, sys)
    assert result.live["ens1"][0] == ("interface ens1.100", "no ens1.100")
    assert [path.name for path in folder.iterdir()] == ["60-rdma-rail0.network"]


def test_a_vlan_in_use_stays_with_its_files_and_its_address(folder: Path, sys: SysRoot) -> None:
    write(folder, SHORT)
    before = {path.name: path.read_text() for path in folder.iterdir()}
    result = run([UNITS, address("ens1"), GOOD[1], address("ens1"), BUSY], {**SHORT, "vlan": None}, sys)
    assert (result.live, result.files) == ({}, [])
    assert "interface ens1.100 → no ens1.100 (removes an interface with its addresses and GIDs)" in result.withheld[0].change
    assert {path.name: path.read_text() for path in folder.iterdir()} == before


def test_a_vlan_with_an_address_of_others_stays(folder: Path, sys: SysRoot) -> None:
    write(folder, SHORT)
    nic, vlan, good = address("ens1"), address("ens1.100", "192.168.100.1/24", "10.9.0.1/24"), address("ens1", "192.168.100.1/24")
    add = (["ip", "address", "add", "192.168.100.1/24", "brd", "+", "dev", "ens1"], 0, "", "")
    result = run([UNITS, nic, vlan, nic, IDLE, RELOAD, vlan, vlan, nic, add, vlan, good], {**SHORT, "vlan": None}, sys)
    assert [each.words for each in result.withheld] == [
        "rail0 (ens1.100): removal of ens1.100; withheld because of 10.9.0.1/24, which no file of ours has"
    ]


def test_another_number_replaces_the_vlan(folder: Path, sys: SysRoot) -> None:
    write(folder, SHORT)
    given = {**SHORT, "vlan": {"interface": "ens1.200", "id": 200, "pcp": None}}
    missing = [(["ip", "-j", "-d", "link", "show", "dev", "ens1.200"], 1, "", ""), (address("ens1.200")[0], 1, "", "")]
    nic = address("ens1")
    result = run([UNITS, nic, missing[1], GOOD[1], nic, *missing, IDLE], given, sys, check_mode=True)
    assert [step for steps in result.live.values() for step in steps][:2] == [
        ("interface ens1.100", "no ens1.100"),
        ("no ens1.200", "VLAN 200 on ens1, MTU 9000 bytes, address 192.168.100.1/24"),
    ]


@pytest.mark.parametrize(
    ("seen", "up", "expected"),
    [
        ({"ens1.100": SeenVlan("ens1", 100)}, True, False),
        ({"ens1.100": SeenVlan("ens1", 100)}, False, True),
        ({"ens1.100": SeenVlan("ens1", 101)}, True, True),
        ({"ens1.100": SeenVlan("ens2", 100)}, True, True),
        ({}, None, True),
        (None, True, True),
    ],
)
def test_differences_of_a_vlan_on_the_control_node(seen: dict[str, SeenVlan] | None, up: bool | None, expected: bool) -> None:
    nic, vlan = make_rails([GIVEN])
    assert link_differs(vlan, seen, is_up=up) is expected
    assert not link_differs(nic, None, is_up=None)
    marked = make_rails([MARKED])[1]
    assert link_differs(marked, {"ens1.100": SeenVlan("ens1", 100)}, is_up=True)
    every = {str(priority): 3 for priority in range(8)}
    assert not link_differs(marked, {"ens1.100": SeenVlan("ens1", 100, every)}, is_up=True)
    assert isinstance(nic, NetworkRail)


MEMBERS = [
    {"nic": {"pci": "0000:21:00.0"}, "netdev": "ens1", "mac": "02:00:00:00:09:01"},
    {"nic": {"mac": "02:00:00:00:09:02"}, "netdev": "ens2", "mac": "02:00:00:00:09:02"},
]
BOND = {"interface": "bond-rail0", "mode": "802.3ad", "lacp_rate": "fast", "hash": "layer3+4", "members": MEMBERS}
BONDED = {**PLAIN, "table": None, "gateway": None, "routes": [], "bond": BOND}
TAGGED = {**BONDED, "vlan": {"interface": "bond-rail0.100", "id": 100, "pcp": None}}


def test_a_bond_is_its_members_and_the_interface_with_the_address() -> None:
    assert [(each.name, each.netdev, each.address, each.link.master) for each in make_rails([BONDED])] == [
        ("rail0", "ens1", None, "bond-rail0"),
        ("rail0@1", "ens2", None, "bond-rail0"),
        ("rail0@bond", "bond-rail0", "192.168.100.1/24", None),
    ]


def test_a_bond_may_carry_a_vlan() -> None:
    *_members, bond, vlan = make_rails([TAGGED])
    assert (bond.address, bond.link.vlans) == (None, ("bond-rail0.100",))
    assert (vlan.name, vlan.netdev, vlan.address) == ("rail0@vlan", "bond-rail0.100", "192.168.100.1/24")
    assert vlan.link.vlan is not None
    assert vlan.link.vlan.parent == "bond-rail0"


def test_the_files_of_a_bond_for_systemd_networkd() -> None:
    found = texts("networkd", TAGGED)
    assert sorted(found) == [
        "60-rdma-rail0.network", "60-rdma-rail0@1.network", "60-rdma-rail0@bond.netdev", "60-rdma-rail0@bond.network",
        "60-rdma-rail0@vlan.netdev", "60-rdma-rail0@vlan.network",
    ]  # fmt: skip
    assert found["60-rdma-rail0@bond.netdev"] == (
        "# Managed by rdma.cluster: rail0@bond.\n[NetDev]\nName=bond-rail0\nKind=bond\n\n[Bond]\nMode=802.3ad\nMIIMonitorSec=100ms\n"
        "LACPTransmitRate=fast\nTransmitHashPolicy=layer3+4\n"
    )
    assert "[Match]\nPermanentMACAddress=02:00:00:00:09:02\nType=ether\n" in found["60-rdma-rail0@1.network"]
    assert found["60-rdma-rail0.network"].endswith("KeepConfiguration=static\nBond=bond-rail0\n")
    assert found["60-rdma-rail0@bond.network"].endswith("KeepConfiguration=static\nVLAN=bond-rail0.100\n")


def test_the_profiles_of_a_bond_for_networkmanager() -> None:
    found = texts("networkmanager", BONDED)
    assert found["60-rdma-rail0@1.nmconnection"] == (
        "# Managed by rdma.cluster: rail0@1.\n[connection]\nid=rdma-rail0@1\n"
        f"uuid={nm_profiles.uuid_of('rail0@1')}\ntype=ethernet\nmaster=bond-rail0\nslave-type=bond\nautoconnect-priority=100\n\n"
        "[ethernet]\nmac-address=02:00:00:00:09:02\nmtu=9000\n"
    )
    bond = found["60-rdma-rail0@bond.nmconnection"]
    assert "type=bond\ninterface-name=bond-rail0\n" in bond
    assert "[bond]\nmode=802.3ad\nmiimon=100\nlacp_rate=fast\nxmit_hash_policy=layer3+4\n\n[ethernet]\nmtu=9000\n" in bond
    assert "address1=192.168.100.1/24\n" in bond


def test_the_files_of_a_bond_for_netplan() -> None:
    """netplan 0.106 renders them in this order, and refuses a bond before its members."""
    found = texts("netplan", TAGGED)
    assert sorted(found) == ["90-rdma-rail0.yaml", "90-rdma-rail0@1.yaml", "90-rdma-rail0@bond.yaml", "90-rdma-rail0@vlan.yaml"]
    assert found["90-rdma-rail0@bond.yaml"].startswith(
        "# Managed by rdma.cluster: rail0@bond.\nnetwork:\n  version: 2\n  bonds:\n    bond-rail0:\n      renderer: networkd\n"
        "      interfaces: [rdma-rail0, rdma-rail0@1]\n      parameters:\n        mode: 802.3ad\n        mii-monitor-interval: 100\n"
        "        lacp-rate: fast\n        transmit-hash-policy: layer3+4\n      mtu: 9000\n"
    )
    assert "      link: bond-rail0\n" in found["90-rdma-rail0@vlan.yaml"]
    assert "rdma-rail0@1:\n" in found["90-rdma-rail0@1.yaml"]


#: A bond whose RDMA address is IPv6, with a router and a further address of IPv4.
DUAL = {
    **BONDED, "address": "2001:db8:100::1/64", "addresses": ["192.168.100.1/24"], "table": 1000, "gateway": "2001:db8:100::fe",
    "routes": ["2001:db8::/32"],
}  # fmt: skip


@pytest.mark.parametrize("vlan", [None, TAGGED["vlan"]])
def test_only_the_last_part_of_a_rail_on_a_bond_has_addresses(vlan: dict[str, Any] | None) -> None:
    *below, last = make_rails([{**DUAL, "vlan": vlan}])
    assert [(each.planned, each.routing.planned, each.routing.rules) for each in below] == [([], [], [])] * (3 if vlan else 2)
    assert last.planned == ["2001:db8:100::1/64", "192.168.100.1/24"]
    assert len(last.routing.planned) == 3


def test_systemd_networkd_gives_the_bond_both_families_and_its_members_none() -> None:
    found = texts("networkd", DUAL)
    for member in ("rail0", "rail0@1"):
        assert found[f"60-rdma-{member}.network"].endswith("KeepConfiguration=static\nBond=bond-rail0\n")
        assert "LinkLocalAddressing" not in found[f"60-rdma-{member}.network"]
    assert found["60-rdma-rail0@bond.network"].endswith(
        "IPv6AcceptRA=no\nLinkLocalAddressing=ipv6\nConfigureWithoutCarrier=yes\nKeepConfiguration=static\nAddress=192.168.100.1/24\n\n"
        "[Address]\nAddress=2001:db8:100::1/64\nDuplicateAddressDetection=none\n\n"
        "[RoutingPolicyRule]\nFrom=2001:db8:100::1/128\nTable=1000\nPriority=1000\n\n"
        "[Route]\nDestination=2001:db8:100::/64\nPreferredSource=2001:db8:100::1\nTable=1000\n\n"
        "[Route]\nDestination=::/0\nGateway=2001:db8:100::fe\nTable=1000\n\n"
        "[Route]\nDestination=2001:db8::/32\nGateway=2001:db8:100::fe\n"
    )


def test_networkmanager_gives_the_bond_both_families_and_its_members_none() -> None:
    found = texts("networkmanager", DUAL)
    for member in ("rail0", "rail0@1"):
        assert "[ipv" not in found[f"60-rdma-{member}.nmconnection"]
    bond = found["60-rdma-rail0@bond.nmconnection"]
    assert "type=bond\ninterface-name=bond-rail0\n" in bond
    ipv4, ipv6 = bond.split("[ipv4]\n")[1].split("[ipv6]\n")
    assert ipv4 == "method=manual\naddress1=192.168.100.1/24\nnever-default=true\n\n"
    assert ipv6.startswith("method=manual\naddress1=2001:db8:100::1/64\n")
    assert "routing-rule1=priority 1000 from 2001:db8:100::1/128 table 1000\n" in ipv6
    assert "route3=2001:db8::/32,2001:db8:100::fe\n" in ipv6


def test_netplan_gives_the_bond_both_families_and_its_members_none() -> None:
    found = texts("netplan", DUAL)
    for member in ("rail0", "rail0@1"):
        assert "addresses:" not in found[f"90-rdma-{member}.yaml"]
    bond = found["90-rdma-rail0@bond.yaml"]
    assert "  bonds:\n    bond-rail0:\n" in bond
    assert "      interfaces: [rdma-rail0, rdma-rail0@1]\n" in bond
    assert bond.endswith(BOTH_IN_NETPLAN)


class Bonding(FakeRunner):
    """A FakeRunner whose host gets the bond when its members join."""

    def __init__(self, root: Path, script: list[tuple[list[str], int, str, str]]) -> None:
        super().__init__(script)
        self.root = root

    def run(self, argv: Any, *, timeout_seconds: float = 30.0) -> Any:
        done = super().run(argv, timeout_seconds=timeout_seconds)
        path = self.root / "proc/net/bonding/bond-rail0"
        if list(argv[:3]) == ["ip", "link", "add"]:
            path.parent.mkdir(parents=True)
            path.write_text("Bonding Mode: IEEE 802.3ad Dynamic link aggregation\n")
        if "master" in argv:
            path.write_text(path.read_text() + f"\nSlave Interface: {argv[4]}\nMII Status: up\n")
        return done


def with_bond(up: bool = True) -> tuple[list[str], int, str, str]:
    entry = {"ifname": "bond-rail0", "flags": ["UP"] if up else [], "linkinfo": {"info_kind": "bond"}}
    return ["ip", "-j", "-d", "link", "show", "dev", "bond-rail0"], 0, json.dumps([entry]), ""


ONE, TWO = address("ens1"), address("ens2")
NO_BOND = [(with_bond()[0], 1, "", ""), (address("bond-rail0")[0], 1, "", "")]
#: What is read before anything is decided.
READ = [UNITS, ONE, TWO, NO_BOND[1], ONE, TWO, *NO_BOND]


def test_without_permission_no_nic_goes_down(folder: Path, sys: SysRoot) -> None:
    result = run([*READ, IDLE], BONDED, sys)
    assert (result.live, result.files, list(folder.iterdir())) == ({}, [], [])
    assert {each.users for each in result.withheld} == {"network_change_allowed, which is not set"}
    assert "takes the NIC down to make it a member of a bond" in result.withheld[0].change


def test_beside_a_job_no_nic_goes_down_although_it_is_allowed(folder: Path, sys: SysRoot) -> None:
    result = run([*READ, BUSY], BONDED, sys, change_allowed=True)
    assert (result.live, result.files, list(folder.iterdir())) == ({}, [], [])
    assert all("ib_write_bw" in each.users for each in result.withheld)


def test_check_mode_shows_the_bond(folder: Path, sys: SysRoot) -> None:
    result = run([*READ, IDLE], BONDED, sys, check_mode=True, change_allowed=True)
    assert result.live["ens1"][0] == ("no bond-rail0", "bond of ens1, ens2 in mode 802.3ad with LACP rate fast and hash layer3+4")
    assert result.live["ens2"][-1] == ("ens2 outside bond-rail0", "ens2 in bond-rail0")
    assert list(folder.iterdir()) == []


def test_with_permission_an_idle_host_gets_the_bond(folder: Path, sys: SysRoot, tmp_path: Path) -> None:
    def done(*words: str) -> tuple[list[str], int, str, str]:
        return ["ip", "link", *words], 0, "", ""

    options = ("mode", "802.3ad", "miimon", "100", "lacp_rate", "fast", "xmit_hash_policy", "layer3+4")
    add = done("add", "name", "bond-rail0", "type", "bond", *options)
    joins = [[done("set", "dev", name, "down"), done("set", "dev", name, "master", "bond-rail0")] for name in ("ens1", "ens2")]
    good = address("bond-rail0", "192.168.100.1/24")
    script = [*READ, IDLE, RELOAD, ONE, add, *joins[0], ONE, TWO, *joins[1], TWO, with_bond(up=False), good]
    script += [done("set", "dev", "bond-rail0", "up"), with_bond(), good]
    runner = Bonding(tmp_path / "host", script)
    result = choice.ensure("networkd", make_rails([BONDED]), ["rail0"], runner=runner, sys=sys, check_mode=False, change_allowed=True)
    assert (result.withheld, result.reloaded) == ([], True)
    second = Bonding(tmp_path / "host", [UNITS, ONE, TWO, good, ONE, TWO, with_bond(), good])
    assert not choice.ensure("networkd", make_rails([BONDED]), ["rail0"], runner=second, sys=sys, check_mode=False).changed


@pytest.mark.parametrize("netdev", ["bond0", "admin"])
def test_a_session_on_a_bond_or_its_vlan_protects_the_members(folder: Path, sys: SysRoot, tmp_path: Path, netdev: str) -> None:
    """A rail on ens1 alone, which others have made a member of bond0."""
    texts = {
        "net/bonding/bond0": "Bonding Mode: fault-tolerance (active-backup)\n\nSlave Interface: ens1\nMII Status: up\n",
        "net/vlan/admin": "admin  VID: 7\t REORDER_HDR: 1\nDevice: bond0\n EGRESS priority mappings: \n",
    }
    for path, text in texts.items():
        (tmp_path / "host/proc" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "host/proc" / path).write_text(text)
    nic, given = address("ens1", mtu=1500), {**SHORT, "vlan": None}
    result = run([UNITS, nic, nic], given, sys, session=Session("10.0.0.1", netdev), check_mode=True, change_allowed=True)
    assert {each.users for each in result.withheld} == {SESSION}
    assert list(folder.iterdir()) == []


def test_another_interface_with_the_name_of_the_bond_is_refused(sys: SysRoot) -> None:
    entry = (with_bond()[0], 0, json.dumps([{"ifname": "bond-rail0", "flags": []}]), "")
    with pytest.raises(ApplyError, match="bond-rail0 exists, but it is not a bond"):
        run([UNITS, ONE, TWO, address("bond-rail0"), ONE, TWO, entry], BONDED, sys)
