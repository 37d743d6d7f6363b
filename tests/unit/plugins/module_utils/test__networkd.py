# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd-networkd: the file of a rail, the comparison with the live interface, and which links are touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils import _networkd
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._networkd import (
    NetworkRail,
    ensure,
    live_differences,
    parse_network_file,
    render,
)
from tests.unit.fakes import FakeRunner
from tests.unit.hosts import FIXTURES

RAIL = NetworkRail("rail0", {"pci": "0000:21:00.0"}, "ens1", "192.168.100.1/24", 9000)
SHOW = ["ip", "-j", "address", "show", "dev", "ens1"]


def shown(**changes: Any) -> dict[str, Any]:
    """One element of `ip -j address show dev ens1` on a lab machine (iproute2 6.1), with changes."""
    element: dict[str, Any] = json.loads((FIXTURES / "ip/address-ens1.json").read_text())[0]
    return {**element, **changes}


SERVES = (
    ["systemctl", "show", "--property=Id,ActiveState,UnitFileState", "systemd-networkd.service"],
    0,
    "Id=systemd-networkd.service\nActiveState=active\nUnitFileState=enabled\n",
    "",
)


RELOAD = (["networkctl", "reload"], 0, "", "")
RECONFIGURE = (["networkctl", "reconfigure", "ens1"], 0, "", "")


def said(**changes: Any) -> tuple[list[str], int, str, str]:
    return (SHOW, 0, json.dumps([shown(**changes)]), "")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(_networkd, "FOLDER", str(tmp_path))
    return tmp_path


def test_the_whole_file() -> None:
    assert render(RAIL) == (
        "# Managed by rdma.cluster: rail0.\n[Match]\nPath=pci-0000:21:00.0\n\n[Link]\nMTUBytes=9000\nRequiredForOnline=no\n\n"
        "[Network]\nDHCP=no\nIPv6AcceptRA=no\nConfigureWithoutCarrier=yes\nAddress=192.168.100.1/24\n"
    )


def test_a_nic_that_hyper_v_has_handed_on_is_matched_behind_its_bus() -> None:
    """Azure: udev's ID_PATH is acpi-VMBUS:00-pci-0101:00:00.0."""
    assert "\nPath=pci-0101:00:00.0 *-pci-0101:00:00.0\n" in render(NetworkRail("rail0", {"pci": "0101:00:00.0"}, "ib0", None, 2044))


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


def test_first_run_writes_reloads_reconfigures_and_reads_back(folder: Path) -> None:
    runner = FakeRunner(
        [
            said(mtu=1500, addr_info=[]),
            SERVES,
            RELOAD,
            RECONFIGURE,
            said(),
        ]
    )
    result = ensure([RAIL], ["rail0"], runner=runner, check_mode=False)
    runner.assert_done()
    assert result.changed
    assert (folder / "60-rdma-rail0.network").read_text() == render(RAIL)
    second = FakeRunner([said(), SERVES])
    assert not ensure([RAIL], ["rail0"], runner=second, check_mode=False).changed
    second.assert_done()


def test_live_drift_touches_only_its_own_link(folder: Path) -> None:
    other = NetworkRail("rail1", {"pci": "0000:41:00.0"}, "ens2", None, 9000)
    for rail in (RAIL, other):
        (folder / f"60-rdma-{rail.name}.network").write_text(render(rail))
        (folder / f"60-rdma-{rail.name}.network").chmod(0o644)
    show_other = (["ip", "-j", "address", "show", "dev", "ens2"], 0, json.dumps([shown(ifname="ens2")]), "")
    runner = FakeRunner([said(mtu=1500), show_other, SERVES, RECONFIGURE, said()])
    assert ensure([RAIL, other], ["rail0", "rail1"], runner=runner, check_mode=False).live == {
        "ens1": [("MTU 1500 bytes", "MTU 9000 bytes")]
    }
    runner.assert_done()


def test_a_file_of_a_rail_that_is_no_longer_planned_goes(folder: Path) -> None:
    (folder / "60-rdma-old.network").write_text("x")
    (folder / "60-rdma-rail1.network").write_text("planned, and its NIC is not there now")
    (folder / "70-other.network").write_text("x")
    runner = FakeRunner([SERVES, RELOAD])
    ensure([], ["rail1"], runner=runner, check_mode=False)
    runner.assert_done()
    assert sorted(path.name for path in folder.iterdir()) == ["60-rdma-rail1.network", "70-other.network"]


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
def test_networkd_that_is_off_is_started_and_enabled(before: str, then: list[Any]) -> None:
    """Where another manager has the other links, no boot waits for one of systemd-networkd's: none of ours is required."""
    start = (["systemctl", "enable", "--now", "systemd-networkd.service"], 0, "", "")
    runner = FakeRunner([unit("systemd-networkd.service", "inactive", before), start, *then])
    assert ensure([], [], runner=runner, check_mode=False).service
    runner.assert_done()


def test_check_mode_reads_and_changes_nothing(folder: Path) -> None:
    runner = FakeRunner([said(mtu=1500), SERVES])
    result = ensure([RAIL], ["rail0"], runner=runner, check_mode=True)
    assert result.changed
    assert (result.diffs[-1]["before"], result.diffs[-1]["after"]) == ("MTU 1500 bytes\n", "MTU 9000 bytes\n")
    runner.assert_done()
    assert list(folder.iterdir()) == []


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
def test_a_link_that_does_not_come_to_the_wished_state_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.setattr(_networkd, "SETTLE_SECONDS", -1.0)
    status = (["networkctl", "status", "ens1"], 0, STATUS.format(file=file.format(folder=folder)), "")
    runner = FakeRunner([said(mtu=1500), SERVES, RELOAD, RECONFIGURE, said(mtu=1500), status])
    with pytest.raises(ApplyError, match=r"ens1.*MTU 1500") as caught:
        ensure([RAIL], ["rail0"], runner=runner, check_mode=False)
    runner.assert_done()
    assert str(caught.value).partition("9000 bytes.")[2] == FILES[file].format(folder=folder)


@pytest.mark.parametrize("text", ["", "n/a\n", "Network File: n/a\n", "no Network File: /etc/x.network\n"])
def test_an_interface_without_a_file(text: str) -> None:
    assert parse_network_file(text) is None
