# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd-networkd: the file of a rail, the comparison with the live interface, and which links are touched."""

from __future__ import annotations

import functools
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net import rail_network
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import change, choice, networkd
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.networkd import parse_network_file, render
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail, Withheld, live_differences
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session
from tests.unit.builders.fakes import FakeRunner, Without
from tests.unit.builders.hosts import FIXTURES

ensure = functools.partial(choice.ensure, "networkd")
RAIL = NetworkRail("rail0", {"pci": "0000:21:00.0"}, "ens1", "192.168.100.1/24", 9000, device="rxe_rail0", port=1)
SHOW = ["ip", "-j", "address", "show", "dev", "ens1"]


def shown(**changes: Any) -> dict[str, Any]:
    """One element of `ip -j address show dev ens1` on a lab machine (iproute2 6.1), with changes."""
    element: dict[str, Any] = json.loads((FIXTURES / "ip/address-ens1.json").read_text())[0]
    return {**element, **changes}


def units(active: str, file: str) -> tuple[list[str], int, str, str]:
    """systemd's answer for systemd-networkd on a host without NetworkManager."""
    names = ["systemd-networkd.service", "NetworkManager.service"]
    states = f"Id={names[0]}\nActiveState={active}\nUnitFileState={file}\n\nId={names[1]}\nActiveState=inactive\nUnitFileState=\n"
    return ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", *names], 0, states, ""


SERVES = units("active", "enabled")


RELOAD = (["networkctl", "reload"], 0, "", "")
SET_MTU = (["ip", "link", "set", "dev", "ens1", "mtu", "9000"], 0, "", "")
ADD = (["ip", "address", "add", "192.168.100.1/24", "brd", "+", "dev", "ens1"], 0, "", "")
QPS = ["rdma", "-j", "resource", "show", "qp"]
#: As iproute2 6.1 prints them: the kernel's own, and one of perftest.
KERNEL_QP = {"ifindex": 0, "ifname": "rxe_rail0", "port": 1, "lqpn": 1, "type": "GSI", "state": "RTS", "sq-psn": 0, "comm": "ib_core"}
USER_QP = {"ifindex": 0, "ifname": "rxe_rail0", "port": 1, "lqpn": 17, "type": "RC", "state": "RTS", "pid": 4711, "comm": "ib_write_bw"}
USERS = "1 queue pair of ib_write_bw (pid 4711) on rxe_rail0/1"


def report(**changes: Any) -> tuple[list[str], int, str, str]:
    return (SHOW, 0, json.dumps([shown(**changes)]), "")


def with_addresses(*texts: str, **changes: Any) -> tuple[list[str], int, str, str]:
    """`ip` of an interface with these addresses."""
    parts = [text.split("/") for text in texts]
    return report(addr_info=[{"family": "inet", "local": ip, "prefixlen": int(bits)} for ip, bits in parts], **changes)


def qps(*entries: dict[str, Any]) -> tuple[list[str], int, str, str]:
    return QPS, 0, json.dumps([KERNEL_QP, *entries]), ""


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in USER_QP.items() if name != key}


def host(root: Path, *, networkd: str | None = None) -> SysRoot:
    """A host with an RDMA device and a process 1. networkd: the file that it uses for ens1."""
    for path, text in {
        "proc/1/comm": "systemd\n",
        "sys/class/infiniband/rxe_rail0/node_type": "1: CA\n",
        "sys/class/net/ens1/ifindex": "3\n",
        **({"run/systemd/netif/links/3": f"ADMIN_STATE=configured\nNETWORK_FILE={networkd}\n"} if networkd else {}),
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return SysRoot(str(root))


def install(folder: Path, rail: NetworkRail, text: str | None = None) -> Path:
    """Put a rail's file there."""
    path = folder / f"60-rdma-{rail.name}.network"
    path.write_text(render(rail) if text is None else text)
    path.chmod(0o644)
    return path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "network"
    folder.mkdir()
    monkeypatch.setattr(rail_network, "NETWORKD_FOLDER", str(folder))
    for name in ("PROFILES", "CONF", "NETPLAN_FOLDER", "PENDING"):
        monkeypatch.setattr(rail_network, name, str(tmp_path / name.lower()))
    monkeypatch.setattr(networkd, "RENDERED", str(tmp_path / "rendered"))
    monkeypatch.setattr(networkd, "LOADED", str(tmp_path / "loaded"))
    monkeypatch.setattr(networkd, "LOAD_SECONDS", 0.0)
    return folder


@pytest.fixture
def pending(tmp_path: Path) -> Path:
    return tmp_path / "pending"


def test_the_whole_file() -> None:
    assert render(RAIL) == (
        "# Managed by rdma.cluster: rail0.\n[Match]\nPath=pci-0000:21:00.0\n\n[Link]\nMTUBytes=9000\nRequiredForOnline=no\n\n"
        "[Network]\nDHCP=no\nIPv6AcceptRA=no\nConfigureWithoutCarrier=yes\nKeepConfiguration=static\nAddress=192.168.100.1/24\n"
    )


def test_a_rail_without_mtu_keeps_the_mtu_of_its_interface(folder: Path, tmp_path: Path) -> None:
    rail = NetworkRail(**{**vars(RAIL), "mtu_bytes": None})
    assert "MTUBytes" not in render(rail)
    assert live_differences(rail, 1500, ["192.168.100.1/24"]) == []
    install(folder, rail)
    runner = FakeRunner([SERVES, report(mtu=1500), report(mtu=1500)])
    assert not ensure([rail], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False).changed


def test_a_rail_without_any_setting_has_no_file_and_needs_no_systemd_networkd(folder: Path, tmp_path: Path) -> None:
    bare = NetworkRail("rail0", {"pci": "0000:21:00.0"}, "ens1", None, None)
    off = units("inactive", "disabled")
    runner = FakeRunner([off, report(), report()])
    assert not ensure([bare], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False).changed
    assert list(folder.iterdir()) == []


def test_the_file_of_a_rail_whose_settings_have_gone_is_removed_on_an_idle_host(folder: Path, tmp_path: Path) -> None:
    bare = NetworkRail(**{**vars(RAIL), "address": None, "mtu_bytes": None})
    earlier = install(folder, NetworkRail(**{**vars(RAIL), "address": None}))
    runner = FakeRunner([SERVES, report(), report(), qps(), RELOAD, report()])
    ensure([bare], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False)
    assert not earlier.exists()


def test_a_nic_that_hyper_v_has_handed_on_is_matched_behind_its_bus() -> None:
    """Azure: udev's ID_PATH is acpi-VMBUS:00-pci-0101:00:00.0."""
    assert "\nPath=*pci-0101:00:00.0\n" in render(NetworkRail("rail0", {"pci": "0101:00:00.0"}, "ib0", None, 2044))


def test_a_nic_named_by_mac_is_matched_by_mac_and_not_a_vlan_on_it() -> None:
    rail = NetworkRail("rail0", {"mac": "52:54:00:1A:00:01"}, "ens1", None, 9000)
    assert "[Match]\nMACAddress=52:54:00:1a:00:01\nType=ether\n\n" in render(rail)


DIFFERENCES = [
    (9000, ["192.168.100.1/24"], []),
    (9000, ["10.0.0.1/8", "192.168.100.1/24"], []),
    (1500, ["192.168.100.1/24"], [("MTU 1500 bytes", "MTU 9000 bytes")]),
    (9000, [], [("address none", "address 192.168.100.1/24")]),
    (9000, ["192.168.100.1/16"], [("address 192.168.100.1/16", "address 192.168.100.1/24")]),
]


@pytest.mark.parametrize(("mtu_bytes", "ipv4", "expected"), DIFFERENCES)
def test_live_differences(mtu_bytes: int, ipv4: list[str], expected: list[tuple[str, str]]) -> None:
    assert live_differences(RAIL, mtu_bytes, ipv4) == expected


def test_first_run_on_an_idle_host(folder: Path, tmp_path: Path) -> None:
    """systemd-networkd loads the file; what it has not done by then is done with `ip`."""
    sys = host(tmp_path / "host", networkd=str(folder / "60-rdma-rail0.network"))
    bare, half, good = report(mtu=1500, addr_info=[]), with_addresses("192.168.100.1/24", mtu=1500), report()
    runner = FakeRunner([SERVES, bare, bare, qps(), RELOAD, half, SET_MTU, good])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert result.changed
    assert result.withheld == []
    assert (folder / "60-rdma-rail0.network").read_text() == render(RAIL)
    second = FakeRunner([SERVES, report(), report()])
    assert not ensure([RAIL], ["rail0"], runner=second, sys=sys, check_mode=False).changed


def test_an_address_that_the_manager_adds_meanwhile_is_no_error(folder: Path, tmp_path: Path) -> None:
    """systemd-networkd configures the interface while we do."""
    sys = host(tmp_path / "host", networkd=str(folder / "60-rdma-rail0.network"))
    bare, good = report(addr_info=[]), report()
    late = (ADD[0], 2, "", "RTNETLINK answers: File exists\n")
    runner = FakeRunner([SERVES, bare, bare, qps(), RELOAD, bare, late, good])
    assert ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False).changed


def test_a_step_that_fails_is_an_error(folder: Path, tmp_path: Path) -> None:
    install(folder, RAIL)
    bare = report(addr_info=[])
    runner = FakeRunner([SERVES, bare, bare, bare, (ADD[0], 2, "", "RTNETLINK answers: Operation not permitted\n")])
    with pytest.raises(ApplyError, match=r"`ip address add .* failed: RTNETLINK answers: Operation not permitted"):
        ensure([RAIL], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False)


def test_live_drift_on_an_idle_rail_is_changed_alone(folder: Path, tmp_path: Path) -> None:
    """No reload and no reconfigure: an address of somebody else and the other rail are not touched."""
    other = NetworkRail("rail1", {"pci": "0000:41:00.0"}, "ens2", None, 9000)
    for rail in (RAIL, other):
        install(folder, rail)
    show_other = (["ip", "-j", "address", "show", "dev", "ens2"], 0, json.dumps([shown(ifname="ens2")]), "")
    drifted = with_addresses("10.1.1.1/24", mtu=1500)
    good = with_addresses("10.1.1.1/24", "192.168.100.1/24", mtu=9000)
    runner = FakeRunner([SERVES, drifted, show_other, drifted, show_other, qps(), drifted, SET_MTU, ADD, good])
    found = ensure([RAIL, other], ["rail0", "rail1"], runner=runner, sys=host(tmp_path / "host"), check_mode=False)
    assert found.live == {"ens1": [("MTU 1500 bytes", "MTU 9000 bytes"), ("address 10.1.1.1/24", "address 192.168.100.1/24")]}


def test_a_change_that_harms_is_withheld_while_queue_pairs_are_open(folder: Path, tmp_path: Path, pending: Path) -> None:
    """The missing address is added all the same; the file stays, so that nothing else does what was withheld."""
    earlier = install(folder, RAIL, render(NetworkRail(**{**vars(RAIL), "mtu_bytes": 1500})))
    before = earlier.read_text()
    drifted, added = with_addresses("10.1.1.1/24", mtu=1500), with_addresses("10.1.1.1/24", "192.168.100.1/24", mtu=1500)
    runner = FakeRunner([SERVES, drifted, drifted, qps(USER_QP), drifted, ADD, added])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False)
    words = "MTU 1500 bytes → MTU 9000 bytes (restarts the interface's queues)"
    assert result.withheld == [Withheld("rail0", "ens1", words, USERS)]
    assert result.withheld[0].words == f"rail0 (ens1): {words}; withheld because of {USERS}"
    assert result.live == {"ens1": [("address 10.1.1.1/24", "address 192.168.100.1/24")]}
    assert earlier.read_text() == before
    assert not pending.exists()


def test_the_same_change_is_applied_when_it_is_allowed_by_name(folder: Path, tmp_path: Path) -> None:
    """Nobody is asked who uses the rail then."""
    install(folder, RAIL)
    drifted = with_addresses("192.168.100.1/24", mtu=1500)
    runner = FakeRunner([SERVES, drifted, drifted, drifted, SET_MTU, report()])
    done = ensure([RAIL], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False, change_allowed=True)
    assert (done.withheld, done.changed) == ([], True)


@pytest.mark.parametrize(
    ("answer", "users"),
    [
        pytest.param((QPS, 1, "", "Error: no such object"), "queue pairs cannot be read (`rdma -j resource show qp` failed", id="fails"),
        pytest.param((QPS, 0, "rubbish", ""), "queue pairs cannot be read (not the JSON of", id="garbled"),
        pytest.param(qps({**USER_QP, "ifname": "other", "port": 1}), "", id="another device"),
        pytest.param(qps({**USER_QP, "port": 2}), "", id="another port"),
        pytest.param(
            qps({key: USER_QP[key] for key in USER_QP if key != "port"}), "1 queue pair of ib_write_bw (pid 4711)", id="no port yet"
        ),
        pytest.param(qps({**KERNEL_QP, "comm": "nvme_rdma"}), "1 queue pair of nvme_rdma (kernel)", id="storage in the kernel"),
        pytest.param(
            qps({**without("pid"), "comm": None}), "1 queue pair of a process that has ended on rxe_rail0/1", id="the process has ended"
        ),
        pytest.param(qps({**USER_QP, "comm": "ibacm"}), "", id="a service of rdma-core"),
    ],
)
def test_who_uses_a_rail(folder: Path, tmp_path: Path, answer: Any, users: str) -> None:
    install(folder, RAIL)
    drifted = with_addresses("192.168.100.1/24", mtu=1500)
    after = [] if users else [drifted, SET_MTU, report()]
    runner = FakeRunner([SERVES, drifted, drifted, answer, *after])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False)
    assert [users in each.users for each in result.withheld] == ([True] if users else [])


def test_a_host_without_the_tool_counts_as_in_use(folder: Path, tmp_path: Path) -> None:
    install(folder, RAIL)
    drifted = with_addresses("192.168.100.1/24", mtu=1500)
    runner = Without(["rdma"], [SERVES, drifted, drifted])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False)
    assert "command not found: rdma" in result.withheld[0].users


def test_a_job_on_the_host_uses_every_rail(folder: Path, tmp_path: Path) -> None:
    install(folder, RAIL)
    sys = host(tmp_path / "host")
    (tmp_path / "host/proc/812").mkdir()
    (tmp_path / "host/proc/812/comm").write_text("slurmstepd\n")
    drifted = with_addresses("192.168.100.1/24", mtu=1500)
    runner = FakeRunner([SERVES, drifted, drifted, qps()])
    assert ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False).withheld[0].users == "job process 812 (slurmstepd)"


@pytest.mark.parametrize("name", ["rail0", "another"])
@pytest.mark.parametrize("error", ["", "RTNETLINK answers: Cannot assign requested address\n"], ids=["ours", "the manager was faster"])
def test_an_address_that_our_file_gave_before_goes_and_others_stay(folder: Path, tmp_path: Path, error: str, name: str) -> None:
    """The kernel may take secondary addresses along with the primary one: they come back. name: of the rail, before."""
    install(folder, NetworkRail(**{**vars(RAIL), "name": name, "address": "192.168.100.9/24"}))
    former, foreign, planned = "192.168.100.9/24", "192.168.100.77/24", "192.168.100.1/24"
    before = with_addresses(former, foreign)
    delete = (["ip", "address", "del", former, "dev", "ens1"], 2 if error else 0, "", error)
    add_foreign = (["ip", "address", "add", foreign, "brd", "+", "dev", "ens1"], 0, "", "")
    sys = host(tmp_path / "host", networkd=str(folder / "60-rdma-rail0.network"))
    steps = [ADD, delete, with_addresses(), ADD, add_foreign, with_addresses(planned, foreign)]
    runner = FakeRunner([SERVES, before, before, qps(), RELOAD, before, *steps])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    assert ("address 192.168.100.9/24", "no address 192.168.100.9/24") in result.live["ens1"]


def test_a_reload_is_put_off_while_the_rail_is_in_use_and_made_up_for_later(folder: Path, tmp_path: Path, pending: Path) -> None:
    """The file is for the next boot; the live state needs nothing."""
    sys = host(tmp_path / "host", networkd=str(folder / "60-rdma-rail0.network"))
    busy = FakeRunner([SERVES, report(), report(), qps(USER_QP)])
    result = ensure([RAIL], ["rail0"], runner=busy, sys=sys, check_mode=False)
    verb = "`networkctl reload`, which loads the files of the rails"
    assert result.withheld == [Withheld("rail0", "ens1", verb, USERS)]
    assert (folder / "60-rdma-rail0.network").exists()
    assert pending.exists()
    idle = FakeRunner([SERVES, report(), report(), qps(), RELOAD, report()])
    assert ensure([RAIL], ["rail0"], runner=idle, sys=sys, check_mode=False).reloaded
    assert not pending.exists()


def test_a_file_of_a_rail_that_is_no_longer_planned_goes(folder: Path, tmp_path: Path) -> None:
    (folder / "60-rdma-old.network").write_text("x")
    (folder / "60-rdma-rail1.network").write_text("planned, and its NIC is not there now")
    (folder / "70-other.network").write_text("x")
    runner = FakeRunner([SERVES, qps(), RELOAD])
    ensure([], ["rail1"], runner=runner, sys=host(tmp_path / "host"), check_mode=False)
    assert sorted(path.name for path in folder.iterdir()) == ["60-rdma-rail1.network", "70-other.network"]


def test_it_stays_while_anything_of_the_host_is_in_use(folder: Path, tmp_path: Path) -> None:
    """Nobody knows which device the rail had: systemd-networkd would remove its addresses."""
    (folder / "60-rdma-old.network").write_text("x")
    runner = FakeRunner([SERVES, qps(USER_QP)])
    result = ensure([], [], runner=runner, sys=host(tmp_path / "host"), check_mode=False)
    assert (folder / "60-rdma-old.network").exists()
    assert "60-rdma-old.network" in result.withheld[0].change
    assert not result.changed


def unit(name: str, active: str, file: str) -> tuple[list[str], int, str, str]:
    show = ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", name]
    return show, 0, f"Id={name}\nActiveState={active}\nUnitFileState={file}\n", ""


WAIT = "systemd-networkd-wait-online.service"
NO_WAIT = (["systemctl", "disable", WAIT], 0, "", "")


@pytest.mark.parametrize(
    ("before", "then"),
    [
        pytest.param("enabled", [], id="stopped"),
        pytest.param("disabled", [unit(WAIT, "inactive", "enabled"), NO_WAIT], id="not used so far"),
        pytest.param("disabled", [unit(WAIT, "inactive", "masked")], id="not used so far, and nobody waits for it"),
    ],
)
def test_networkd_that_is_off_is_started_and_enabled(tmp_path: Path, before: str, then: list[Any]) -> None:
    """Where another manager has the other links, no boot waits for one of systemd-networkd's: none of ours is required."""
    start = (["systemctl", "enable", "--now", "systemd-networkd.service"], 0, "", "")
    runner = FakeRunner([units("inactive", before), start, *then])
    assert ensure([], [], runner=runner, sys=host(tmp_path / "host"), check_mode=False).service


def test_networkd_that_is_off_is_only_enabled_while_a_rail_is_in_use(folder: Path, tmp_path: Path, pending: Path) -> None:
    install(folder, RAIL)
    enable = (["systemctl", "enable", "systemd-networkd.service"], 0, "", "")
    off = units("inactive", "disabled")
    runner = FakeRunner([off, report(), report(), qps(USER_QP), enable, unit(WAIT, "inactive", "masked")])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False)
    assert [each.change for each in result.withheld] == ["start of systemd-networkd"]
    assert pending.exists()


def test_networkd_is_not_enabled_where_it_would_take_over_an_interface_that_is_no_rail(tmp_path: Path) -> None:
    """A file that somebody left: another manager has that interface now."""
    sys = host(tmp_path / "host")
    (tmp_path / "host/sys/class/net/eth0").mkdir()
    (tmp_path / "host/sys/class/net/eth0/device").symlink_to("../../../0000:01:00.0")
    (tmp_path / "host/etc/systemd/network").mkdir(parents=True)
    (tmp_path / "host/etc/systemd/network/80-dhcp.network").write_text("[Match]\nName=eth*\n[Network]\nDHCP=yes\n")
    runner = FakeRunner([units("inactive", "disabled")])
    result = ensure([], [], runner=runner, sys=sys, check_mode=False)
    assert [(each.netdev, each.users) for each in result.withheld] == [("eth0", "/etc/systemd/network/80-dhcp.network would apply to it")]


def test_check_mode_reads_and_changes_nothing(folder: Path, tmp_path: Path, pending: Path) -> None:
    """It shows what is withheld as well."""
    drifted = report(mtu=1500)
    runner = FakeRunner([SERVES, drifted, drifted, qps(USER_QP)])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=True)
    assert result.changed
    assert (result.diffs[-1]["before"], result.diffs[-1]["after"]) == ("MTU 1500 bytes\n", "MTU 9000 bytes\n")
    assert [each.rail for each in result.withheld] == ["rail0"]
    assert list(folder.iterdir()) == []
    assert not pending.exists()


OURS = "our SSH session"


@pytest.mark.parametrize("session", [Session("192.168.100.9", None), Session("fe80::1%ens1", "ens1"), Session("10.0.0.9", "ens1.8001")])
def test_what_would_cut_our_own_session_is_withheld_although_it_is_allowed(folder: Path, tmp_path: Path, session: Session) -> None:
    """Its address is a former one of ours, the MTU differs, and the file would be loaded."""
    earlier = install(folder, RAIL, render(NetworkRail(**{**vars(RAIL), "address": "192.168.100.9/24"})))
    before, text = with_addresses("192.168.100.9/24", mtu=1500), earlier.read_text()
    runner = FakeRunner([SERVES, before, before, before, ADD, with_addresses("192.168.100.9/24", "192.168.100.1/24", mtu=1500)])
    result = ensure(
        [RAIL], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False, change_allowed=True, session=session
    )  # fmt: skip
    (withheld,) = result.withheld
    assert (withheld.users, "no address 192.168.100.9/24" in withheld.change, "MTU 9000" in withheld.change) == (OURS, True, True)
    assert earlier.read_text() == text


def test_a_file_is_not_loaded_for_the_interface_of_our_session(folder: Path, tmp_path: Path, pending: Path) -> None:
    runner = FakeRunner([SERVES, report(), report()])
    session = Session("192.168.100.1", "ens1")
    result = ensure(
        [RAIL], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False, change_allowed=True, session=session
    )  # fmt: skip
    assert [(each.netdev, each.users) for each in result.withheld] == [("ens1", OURS)]
    assert pending.exists()


def test_the_file_of_a_former_rail_with_our_session_stays(folder: Path, tmp_path: Path) -> None:
    old = folder / "60-rdma-old.network"
    old.write_text("[Network]\nAddress=192.168.100.9/24\n")
    runner = FakeRunner([SERVES])
    session = Session("192.168.100.9", "ens9")
    result = ensure([], [], runner=runner, sys=host(tmp_path / "host"), check_mode=False, change_allowed=True, session=session)
    assert ([each.users for each in result.withheld], old.exists()) == ([OURS], True)


def test_a_rail_without_our_session_is_changed_as_before(folder: Path, tmp_path: Path) -> None:
    install(folder, RAIL)
    drifted = with_addresses("192.168.100.1/24", mtu=1500)
    runner = FakeRunner([SERVES, drifted, drifted, drifted, SET_MTU, report()])
    session = Session("192.0.2.1", "eth0")
    done = ensure([RAIL], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False, change_allowed=True, session=session)
    assert (done.withheld, done.changed) == ([], True)


def started(seconds_ago: float | None) -> tuple[list[str], int, str, str]:
    """systemd's answer of when systemd-networkd was started."""
    usec = 0 if seconds_ago is None else int((time.clock_gettime(time.CLOCK_MONOTONIC) - seconds_ago) * 1e6)
    show = ["systemctl", "show", "--property=ExecMainStartTimestampMonotonic", "systemd-networkd.service"]
    return show, 0, f"ExecMainStartTimestampMonotonic={usec}\n", ""


def with_site_file(root: Path, text: str, *, used: str = "/etc/systemd/network/80-site.network") -> SysRoot:
    """A host whose eth0 is served by systemd-networkd, and somebody's file, which is as old as this test."""
    sys = host(root)
    for path, content in {
        "sys/class/net/eth0/ifindex": "2\n",
        "etc/systemd/network/80-site.network": text,
        "run/systemd/netif/links/2": f"ADMIN_STATE=configured\nNETWORK_FILE={used}\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return sys


SITE, NONE = "[Match]\nName=eth*\n[Network]\nDHCP=yes\n", "[Match]\nName=nobody\n"
GONE = "/etc/systemd/network/70-gone.network"


@pytest.mark.parametrize(
    ("case", "withheld"),
    [
        pytest.param((SITE, None, 10.0), True, id="changed after the start"),
        pytest.param((SITE, None, -1.0), False, id="older than the start"),
        pytest.param((SITE, None, None), True, id="the start is not known"),
        pytest.param(("[Match]\nSSID=x\n[Network]\nDHCP=yes\n", None, 10.0), True, id="may apply"),
        pytest.param(("", None, 10.0), True, id="emptied, and in use"),
        pytest.param((NONE, GONE, -1.0), True, id="the file in use has gone"),
        pytest.param((NONE, "", 10.0), False, id="applies to no interface"),
    ],
)
def test_a_reload_is_put_off_where_it_applies_files_of_others(
    tmp_path: Path, pending: Path, case: tuple[str, str | None, float | None], withheld: bool
) -> None:
    """The live change is made with `ip`, and our file waits for the boot."""
    text, used, seconds_ago = case
    sys = with_site_file(tmp_path / "host", text, **({} if used is None else {"used": used}))
    bare, asks = with_addresses(), () if used == "" else (started(seconds_ago),)
    loads = () if withheld else (RELOAD, bare)
    runner = FakeRunner([SERVES, bare, bare, qps(), *asks, *(loads or [bare]), ADD, report()])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False)
    file = GONE if used == GONE else "/etc/systemd/network/80-site.network"
    words = f"{file}, changed since systemd-networkd loaded it, which applies or may apply to it"
    assert [(each.netdev, each.users) for each in result.withheld] == ([("eth0", words)] if withheld else [])
    assert (pending.exists(), result.reloaded) == (withheld, not withheld)


def test_after_our_own_reload_what_changed_before_is_loaded(folder: Path, tmp_path: Path) -> None:
    sys = with_site_file(tmp_path / "host", SITE)
    (tmp_path / "loaded").touch()
    os.utime(tmp_path / "loaded", (time.time() + 1, time.time() + 1))
    runner = FakeRunner([SERVES, report(), report(), qps(), started(10.0), RELOAD, report()])
    began = time.time()
    assert ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False).reloaded
    assert began - 1 < (tmp_path / "loaded").stat().st_mtime <= time.time()


def test_a_new_interface_of_somebody_else_puts_the_reload_off(folder: Path, tmp_path: Path) -> None:
    sys = host(tmp_path / "host")
    (tmp_path / "host/etc/systemd/network").mkdir(parents=True)
    (tmp_path / "host/etc/systemd/network/10-bond.netdev").write_text("[NetDev]\nName=bond0\nKind=bond\n")
    runner = FakeRunner([SERVES, report(), report(), qps(), started(10.0)])
    result = ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=True)
    assert [each.netdev for each in result.withheld] == ["bond0"]


def test_a_reload_that_is_allowed_by_name_asks_nobody(folder: Path, tmp_path: Path) -> None:
    sys = with_site_file(tmp_path / "host", SITE)
    runner = FakeRunner([SERVES, report(), report(), RELOAD, report()])
    assert ensure([RAIL], ["rail0"], runner=runner, sys=sys, check_mode=False, change_allowed=True).reloaded


#: `networkctl status` of systemd 252, its first lines.
STATUS = """\
● 3: ens1
                     Link File: /usr/lib/systemd/network/99-default.link
                  Network File: {file}
                         State: degraded (configured)
"""
#: Which file it names → what the error says of it.
FILES = {
    "{folder}/60-rdma-rail0.network": "",
    "n/a": "",
    "/run/systemd/network/10-netplan-ens1.network": " It takes /run/systemd/network/10-netplan-ens1.network in the place of "
    "{folder}/60-rdma-rail0.network: take ens1 out of /etc/netplan, run `netplan generate`, then `networkctl reload`.",
    "/etc/systemd/network/50-site.network": " It takes /etc/systemd/network/50-site.network in the place of "
    "{folder}/60-rdma-rail0.network: take ens1 out of it, then `networkctl reload`.",
}


@pytest.mark.parametrize("file", FILES)
def test_a_link_that_does_not_come_to_the_planned_state_is_an_error(folder: Path, tmp_path: Path, file: str) -> None:
    """Something else sets it back again and again."""
    install(folder, RAIL)
    status = (["networkctl", "status", "ens1"], 0, STATUS.format(file=file.format(folder=folder)), "")
    drifted = report(mtu=1500)
    fight = [drifted, SET_MTU] * (change._PASSES + 1)
    runner = FakeRunner([SERVES, drifted, drifted, qps(), *fight, drifted, status])
    with pytest.raises(ApplyError, match=r"ens1.*MTU 1500") as caught:
        ensure([RAIL], ["rail0"], runner=runner, sys=host(tmp_path / "host"), check_mode=False)
    assert str(caught.value).partition("9000 bytes.")[2] == FILES[file].format(folder=folder)


@pytest.mark.parametrize("text", ["", "n/a\n", "Network File: n/a\n", "no Network File: /etc/x.network\n"])
def test_an_interface_without_a_file(text: str) -> None:
    assert parse_network_file(text) is None
