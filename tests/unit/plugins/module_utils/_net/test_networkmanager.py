# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NetworkManager: the profile of a rail, and which commands touch its interface. The answers are those of nmcli 1.42.4."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import RUNS, UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import choice, networkd, networkmanager
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.change import Loading
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.nm_profiles import (
    parse_status,
    render_conf,
    render_profile,
    render_release,
    uuid_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.ipoib import Child, Ipoib
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NETWORKD_UNIT, NM_UNIT, NetworkRail, Running
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session
from tests.unit.builders.fakes import FakeRunner

ensure = functools.partial(choice.ensure, "networkmanager")
MAC = "02:00:00:00:09:01"
RAIL = NetworkRail("rail0", {"mac": MAC}, "eth1", "192.168.101.1/24", 9000, device="rxe_rail0", port=1, mac=MAC)
OURS = uuid_of("rail0")
OTHER = "ba4909b2-0e11-3bc6-bced-1981cffb3db8"
KNOWN = (["nmcli", "--get-values", "connection.uuid", "connection", "show", "uuid", OURS], 0, f"{OURS}\n", "")
UNKNOWN = (KNOWN[0], 10, "", f"Error: {OURS} - no such connection profile.\n")
READ_CONF = (["nmcli", "general", "reload", "conf"], 0, "", "")
UP = (
    ["nmcli", "connection", "up", "uuid", OURS, "ifname", "eth1"],
    0,
    "Connection successfully activated (D-Bus active path: /org/freedesktop/NetworkManager/ActiveConnection/5)\n",
    "",
)
REAPPLY = (["nmcli", "device", "reapply", "eth1"], 0, "Connection successfully reapplied to device 'eth1'.\n", "")
SET_MTU = (["ip", "link", "set", "dev", "eth1", "mtu", "9000"], 0, "", "")
IPV6 = (["ip", "-j", "-6", "address", "show", "dev", "eth1", "scope", "global"], 0, "[]\n", "")
QPS = ["rdma", "-j", "resource", "show", "qp"]
USER_QP = {"ifindex": 0, "ifname": "rxe_rail0", "port": 1, "lqpn": 17, "type": "RC", "state": "RTS", "pid": 4711, "comm": "ib_write_bw"}
IDLE, BUSY = (QPS, 0, "[]", ""), (QPS, 0, json.dumps([USER_QP]), "")
USERS = "1 queue pair of ib_write_bw (pid 4711) on rxe_rail0/1"


def units(networkd_state: str = "inactive", nm_state: str = "active") -> tuple[list[str], int, str, str]:
    """systemd's answer on a host that uses NetworkManager."""
    files = {"active": "enabled", "inactive": "disabled"}
    states = {"systemd-networkd.service": networkd_state, "NetworkManager.service": nm_state}
    blocks = [f"Id={name}\nActiveState={state}\nUnitFileState={files[state]}\n" for name, state in states.items()]
    return ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", *states], 0, "\n".join(blocks), ""


def show(*texts: str, mtu: int = 9000) -> tuple[list[str], int, str, str]:
    """`ip` of the interface with these addresses."""
    parts = [text.split("/") for text in texts]
    element = {"mtu": mtu, "addr_info": [{"family": "inet", "local": ip, "prefixlen": int(bits)} for ip, bits in parts]}
    return ["ip", "-j", "address", "show", "dev", "eth1"], 0, json.dumps([element]), ""


def status(active: str, state: str = "connected") -> tuple[list[str], int, str, str]:
    text = f"eth1:{state}:{active}\nlo:connected (externally):7f8f64f8-b39f-4eb4-80cd-117f0acf2b75\neth2:unmanaged:\n"
    return ["nmcli", "--terse", "--fields", "DEVICE,STATE,CON-UUID", "device", "status"], 0, text, ""


def load(folder: Path) -> tuple[list[str], int, str, str]:
    return ["nmcli", "connection", "load", str(folder / "system-connections/60-rdma-rail0.nmconnection")], 0, "", ""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    places = {"NETWORKD_FOLDER": "network", "PROFILES": "system-connections", "CONF": "conf.d", "NETPLAN_FOLDER": "netplan"}
    for name, part in places.items():
        (tmp_path / part).mkdir()
        monkeypatch.setattr(rail_network, name, str(tmp_path / part))
    monkeypatch.setattr(rail_network, "PENDING", str(tmp_path / "pending"))
    monkeypatch.setattr(networkd, "RENDERED", str(tmp_path / "rendered"))
    monkeypatch.setattr(networkd, "LOADED", str(tmp_path / "loaded"))
    return tmp_path


@pytest.fixture
def sys(tmp_path: Path) -> SysRoot:
    """A host with an RDMA device and a process 1."""
    for path, text in {"proc/1/comm": "systemd\n", "sys/class/infiniband/rxe_rail0/node_type": "1: CA\n"}.items():
        (tmp_path / "host" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "host" / path).write_text(text)
    return SysRoot(str(tmp_path / "host"))


def install(folder: Path, rail: NetworkRail = RAIL) -> Path:
    """Put the files of a rail there, and return its profile."""
    for file in choice.files("networkmanager", [rail], [], [], Running(networkd=False, networkmanager=True)):
        Path(file.path).write_text(file.text)
        Path(file.path).chmod(file.mode)
    return folder / f"system-connections/60-rdma-{rail.name}.nmconnection"


def test_the_whole_profile() -> None:
    assert render_profile(RAIL) == (
        f"# Managed by rdma.cluster: rail0.\n[connection]\nid=rdma-rail0\nuuid={OURS}\ntype=ethernet\nautoconnect-priority=100\n\n"
        f"[ethernet]\nmac-address={MAC.upper()}\nmtu=9000\n\n[ipv4]\nmethod=manual\naddress1=192.168.101.1/24\nnever-default=true\n\n"
        "[ipv6]\nmethod=link-local\n"
    )


@pytest.mark.parametrize(
    ("nic", "line"),
    [
        ({"pci": "0000:21:00.0"}, "[match]\npath=pci-0000:21:00.0;\n"),
        ({"pci": "0101:00:00.0"}, "[match]\npath=*pci-0101:00:00.0;\n"),
    ],
)
def test_a_nic_named_by_its_pci_address_is_matched_by_its_path(nic: dict[str, str], line: str) -> None:
    text = render_profile(NetworkRail("rail0", nic, "eth1", None, None))
    assert line in text
    assert "mac-address" not in text
    assert "method=disabled" in text
    assert "mtu=" not in text


def test_an_infiniband_rail_has_the_mode_of_its_interface() -> None:
    rail = NetworkRail("rail0", {"pci": "0000:21:00.0"}, "ib0", None, 2044, Ipoib("ib0", "connected"), link_layer="infiniband")
    assert "type=infiniband\n" in render_profile(rail)
    assert "[infiniband]\nmtu=2044\ntransport-mode=connected\n" in render_profile(rail)


def test_partitions_are_refused_with_a_way_out() -> None:
    rail = NetworkRail("rail0", {"pci": "0000:21:00.0"}, "ib0", None, None, Ipoib("ib0", children=[Child(0x101, 2044)]))
    with pytest.raises(ApplyError, match=r"rail0: .* for systemd-networkd only\. Set rdma_host\.network\.backend to networkd"):
        render_profile(rail)


def test_what_keeps_a_rail_without_carrier_and_what_releases_it() -> None:
    """The release names the MAC, since a name may be another interface's after a boot; InfiniBand has no such MAC."""
    assert render_conf(RAIL).endswith("[device-rdma-rail0]\nmatch-device=interface-name:eth1\nignore-carrier=yes\n")
    assert render_release(RAIL).endswith(f"[device-rdma-rail0]\nmatch-device=mac:{MAC}\nmanaged=0\n")
    rail = NetworkRail("rail0", {"pci": "0000:21:00.0"}, "ib0", None, 2044, link_layer="infiniband", mac="00:00")
    assert "match-device=interface-name:ib0\nmanaged=0" in render_release(rail)


def test_the_states_of_nmcli() -> None:
    text = f"eth1:connected:{OURS}\nlo:connected (externally):{OTHER}\nenp1s0\\:1:unmanaged:\n"
    text += "eth0:connecting (getting IP configuration):\nx\n"
    assert parse_status(text) == {
        "eth1": ("connected", OURS),
        "lo": ("connected (externally)", OTHER),
        "enp1s0:1": ("unmanaged", ""),
        "eth0": ("connecting (getting IP configuration)", ""),
    }


def test_first_run_on_an_idle_host_takes_the_rail_over_from_another_profile(folder: Path, sys: SysRoot) -> None:
    bare, good = show(mtu=1500), show("192.168.101.1/24")
    planned = [units(), bare, bare, status(OTHER), IDLE, status(OTHER)]
    loads = [READ_CONF, load(folder), KNOWN, status(OTHER)]
    runner = FakeRunner([*planned, *loads, bare, status(OTHER), UP, good, status(OURS)])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert result.withheld == []
    assert (f"profile {OTHER} of NetworkManager", "profile rdma-rail0 of NetworkManager") in result.live["eth1"]
    profile = folder / "system-connections/60-rdma-rail0.nmconnection"
    assert profile.read_text() == render_profile(RAIL)
    assert profile.stat().st_mode & 0o777 == 0o600
    assert (folder / "conf.d/60-rdma-rail0.conf").read_text() == render_conf(RAIL)
    assert list((folder / "network").iterdir()) == []


def test_a_second_run_changes_nothing(folder: Path, sys: SysRoot) -> None:
    install(folder)
    good = show("192.168.101.1/24")
    runner = FakeRunner([units(), good, good, status(OURS)])
    assert not ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False).changed


def test_the_profile_of_another_manager_stays_while_the_rail_is_in_use(folder: Path, sys: SysRoot) -> None:
    """Its file is not written either: a restart of NetworkManager must not do what was withheld. The missing address is added."""
    bare, added = show(), show("192.168.101.1/24")
    add = (["ip", "address", "add", "192.168.101.1/24", "brd", "+", "dev", "eth1"], 0, "", "")
    runner = FakeRunner([units(), bare, bare, status(OTHER), BUSY, bare, status(OTHER), add, added, status(OTHER)])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert [each.users for each in result.withheld] == [USERS]
    assert "profile rdma-rail0" in result.withheld[0].change
    assert list((folder / "system-connections").iterdir()) == []


def test_a_changed_profile_is_reapplied_and_drift_is_changed_alone(folder: Path, sys: SysRoot) -> None:
    install(folder, NetworkRail(**{**vars(RAIL), "mtu_bytes": 1500}))
    drifted, good = show("192.168.101.1/24", mtu=1500), show("192.168.101.1/24")
    planned = [units(), drifted, drifted, status(OURS), IDLE, status(OURS), IPV6]
    loads = [READ_CONF, load(folder), KNOWN, status(OURS), REAPPLY]
    runner = FakeRunner([*planned, *loads, drifted, status(OURS), SET_MTU, good, status(OURS)])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert result.live == {"eth1": [("MTU 1500 bytes", "MTU 9000 bytes")]}


def test_a_profile_that_joins_a_bond_is_activated_anew(folder: Path, sys: SysRoot) -> None:
    """NetworkManager 1.42 on a lab machine."""
    install(folder, NetworkRail(**{**vars(RAIL), "mtu_bytes": 1500}))
    drifted, good = show("192.168.101.1/24", mtu=1500), show("192.168.101.1/24")
    planned = [units(), drifted, drifted, status(OURS), IDLE, status(OURS), IPV6]
    words = "Error: Reapplying connection to device 'eth1' (/org/freedesktop/NetworkManager/Devices/3) failed: "
    refused = (REAPPLY[0], 1, "", f"{words}Can't reapply changes to 'connection.slave-type' setting")
    loads = [READ_CONF, load(folder), KNOWN, status(OURS), refused, UP]
    ensure(
        [RAIL],
        ["rail0"],
        runner=FakeRunner([*planned, *loads, drifted, status(OURS), SET_MTU, good, status(OURS)]),
        sys=sys,
        check_mode=False,
    )
    install(folder, NetworkRail(**{**vars(RAIL), "mtu_bytes": 1500}))
    other = (REAPPLY[0], 1, "", f"{words}Can't reapply changes to 'connection.type' setting")
    with pytest.raises(ApplyError, match=r"connection\.type"):
        ensure([RAIL], ["rail0"], runner=FakeRunner([*planned, *loads[:-2], other]), sys=sys, check_mode=False)


def test_all_profiles_are_loaded_before_one_is_applied(folder: Path, sys: SysRoot) -> None:
    """NetworkManager activates a member of a bond only if it knows the profile of the bond."""
    bond = NetworkRail("rail0@bond", {"mac": MAC}, "bond-rail0", "192.168.101.1/24", 9000)
    known = uuid_of("rail0@bond")
    second = (["nmcli", "connection", "load", str(install(folder, bond))], 0, "", "")
    shown = (["nmcli", "--get-values", "connection.uuid", "connection", "show", "uuid", known], 0, f"{known}\n", "")
    changes = [FileChange(str(install(folder, rail)), "", "x") for rail in (RAIL, bond)]
    runner = FakeRunner([READ_CONF, load(folder), KNOWN, second, shown, status(OURS), REAPPLY, status(OURS)])
    change = networkmanager.NmChange([RAIL, bond], ["rail0"], runner, sys, allowed=True, session=Session(None, None), check_mode=False)
    change.load(Loading(loads=True), changes, {NM_UNIT: RUNS, NETWORKD_UNIT: UnitState(active=False, enabled=False)}, pending=False)
    runner.assert_done()


def test_an_address_of_others_puts_the_load_off_while_the_rail_is_in_use(folder: Path, sys: SysRoot) -> None:
    """`nmcli device reapply` would remove it. The file is for the next boot."""
    profile = install(folder)
    profile.write_text(profile.read_text() + "# changed\n")
    seen = show("192.168.101.1/24", "10.77.0.1/24")
    runner = FakeRunner([units(), seen, seen, status(OURS), status(OURS), BUSY])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert [(each.rail, each.users) for each in result.withheld] == [("rail0", USERS)]
    assert profile.read_text() == render_profile(RAIL)
    assert (folder / "pending").exists()


def test_a_profile_that_networkmanager_refuses_is_an_error(folder: Path, sys: SysRoot) -> None:
    """nmcli ends with 0 and writes "Could not load file"."""
    bare = show(mtu=1500)
    loads = [READ_CONF, load(folder), UNKNOWN]
    runner = FakeRunner([units(), bare, bare, status(""), IDLE, status(""), *loads])
    with pytest.raises(ApplyError, match=r"NetworkManager does not read .*60-rdma-rail0\.nmconnection: `journalctl"):
        ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)


def test_networkmanager_is_never_started(folder: Path, sys: SysRoot) -> None:
    with pytest.raises(ApplyError, match=r"NetworkManager\.service does not run, .* 1\. Start it .* 2\. Run the network stage again"):
        ensure([RAIL], ["rail0"], runner=FakeRunner([units(nm_state="inactive")]), sys=sys, check_mode=True)
    assert list((folder / "system-connections").iterdir()) == []


def test_systemd_networkd_leaves_the_rail_alone(folder: Path, sys: SysRoot) -> None:
    """It runs for another interface. Its file of the rail, from when it had it, becomes one that releases the rail."""
    ours = folder / "network/60-rdma-rail0.network"
    ours.write_text(networkd.render(RAIL))
    seen = show("192.168.101.1/24")
    planned = [units("active"), seen, seen, status("", "unmanaged"), IDLE]
    managed = (["nmcli", "device", "set", "eth1", "managed", "yes"], 0, "", "")
    loads = [READ_CONF, (["networkctl", "reload"], 0, "", ""), load(folder), KNOWN, status("", "unmanaged"), managed]
    runner = FakeRunner([*planned, *loads, seen, status(""), UP, seen, status(OURS)])
    ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert ours.read_text().endswith("[Link]\nUnmanaged=yes\n")


def test_a_rail_that_goes_back_to_systemd_networkd_keeps_its_address(folder: Path, sys: SysRoot) -> None:
    """NetworkManager releases the interface before its profile is deleted: deleting an active one would drop the address."""
    profile = install(folder)
    (folder / "host/sys/class/net/eth1").mkdir(parents=True)
    (folder / "host/sys/class/net/eth1/ifindex").write_text("3\n")
    (folder / "host/run/systemd/netif/links").mkdir(parents=True)
    link = f"ADMIN_STATE=configured\nNETWORK_FILE={folder}/network/60-rdma-rail0.network\n"
    (folder / "host/run/systemd/netif/links/3").write_text(link)
    seen = show("192.168.101.1/24")
    release = (["nmcli", "device", "set", "eth1", "managed", "no"], 0, "", "")
    delete = (["nmcli", "connection", "delete", "uuid", OURS], 0, "", "")
    loads = [READ_CONF, status(OURS), release, KNOWN, delete, (["networkctl", "reload"], 0, "", "")]
    runner = FakeRunner([units("active"), seen, seen, IDLE, *loads, seen])
    result = choice.ensure("networkd", [RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert result.withheld == []
    assert not profile.exists()
    assert (folder / "conf.d/60-rdma-rail0.conf").read_text() == render_release(RAIL)
    assert (folder / "network/60-rdma-rail0.network").read_text() == networkd.render(RAIL)


def test_a_switch_of_managers_waits_as_a_whole_while_the_host_is_in_use(folder: Path, sys: SysRoot) -> None:
    """A rail must not have two managers: neither the new files are written nor the old ones removed."""
    profile = install(folder)
    before = {path: path.read_text() for path in folder.rglob("60-rdma-*")}
    seen = show("192.168.101.1/24")
    runner = FakeRunner([units("active"), seen, seen, BUSY])
    result = choice.ensure("networkd", [RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert {path: path.read_text() for path in folder.rglob("60-rdma-*")} == before
    assert [(each.rail, each.users) for each in result.withheld] == [("rail0", "1 queue pair of ib_write_bw (pid 4711) on rxe_rail0/1")]
    assert str(profile) in result.withheld[0].change


def test_the_profile_of_a_rail_that_is_no_longer_planned_goes(folder: Path, sys: SysRoot) -> None:
    old = install(folder, NetworkRail(**{**vars(RAIL), "name": "old"}))
    known = uuid_of("old")
    asked = (["nmcli", "--get-values", "connection.uuid", "connection", "show", "uuid", known], 0, f"{known}\n", "")
    delete = (["nmcli", "connection", "delete", "uuid", known], 0, "", "")
    runner = FakeRunner([units(), IDLE, READ_CONF, asked, delete])
    assert ensure([], [], runner=runner, sys=sys, check_mode=False).changed
    assert not old.exists()


def test_check_mode_reads_and_changes_nothing(folder: Path, sys: SysRoot) -> None:
    bare = show(mtu=1500)
    runner = FakeRunner([units(), bare, bare, status(OTHER), BUSY])
    result: Any = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=True)
    assert result.changed
    assert [each.users for each in result.withheld] == [USERS]
    assert list(folder.rglob("60-rdma-*")) == []


def test_an_ipv6_address_of_others_puts_the_load_off_as_well(folder: Path, sys: SysRoot) -> None:
    """It would go with `nmcli device reapply`, and its GID."""
    profile = install(folder)
    profile.write_text(profile.read_text() + "# changed\n")
    good = show("192.168.101.1/24")
    shown = (IPV6[0], 0, '[{"ifname": "eth1", "addr_info": [{"family": "inet6", "local": "fd00::1", "prefixlen": 64}]}]', "")
    runner = FakeRunner([units(), good, good, status(OURS), status(OURS), shown, BUSY])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert [each.users for each in result.withheld] == [USERS]


@pytest.mark.parametrize(("further", "reapplied"), [(("fd00::1/64",), False), ((), True)])
def test_an_ipv6_address_in_the_profile_is_not_one_of_others(further: tuple[str, ...], reapplied: bool) -> None:
    rail = NetworkRail(**{**vars(RAIL), "addresses": further})
    shown = (IPV6[0], 0, '[{"ifname": "eth1", "addr_info": [{"family": "inet6", "local": "fd00::1", "prefixlen": 64}]}]', "")
    assert networkmanager._has_ipv6(rail, FakeRunner([shown])) is reapplied


def test_no_profile_is_activated_that_was_not_loaded(folder: Path, sys: SysRoot) -> None:
    """The load of one rail is put off, and so is the start of the new profile of another one."""
    other = NetworkRail("rail1", {"mac": "02:00:00:00:09:02"}, "eth2", "192.168.102.1/24", None, device="rxe_rail1", port=1)
    profile = install(folder)
    profile.write_text(profile.read_text() + "# changed\n")
    seen = show("192.168.101.1/24", "10.77.0.1/24")
    bare = (["ip", "-j", "address", "show", "dev", "eth2"], 0, '[{"mtu": 1500, "addr_info": []}]', "")
    both = (status("")[0], 0, f"eth1:connected:{OURS}\neth2:disconnected:\n", "")
    add = (["ip", "address", "add", "192.168.102.1/24", "brd", "+", "dev", "eth2"], 0, "", "")
    has = (bare[0], 0, '[{"mtu": 1500, "addr_info": [{"family": "inet", "local": "192.168.102.1", "prefixlen": 24}]}]', "")
    planned = [units(), seen, bare, seen, both, bare, both, BUSY, both, both]
    runner = FakeRunner([*planned, bare, both, add, has, both])
    result = ensure([RAIL, other], ["rail0", "rail1"], runner=runner, sys=sys, check_mode=False)
    assert [each.rail for each in result.withheld] == ["rail0"]
    assert (folder / "system-connections/60-rdma-rail1.nmconnection").exists()
