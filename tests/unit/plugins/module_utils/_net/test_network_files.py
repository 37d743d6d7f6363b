# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which .network file applies at the next boot, and what it says with its drop-ins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.networkd import render
from ansible_collections.rdma.cluster.plugins.module_utils._net.network_files import (
    BootNetwork,
    BootSetting,
    Setting,
    parse_network_settings,
    read_boot_networks,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail

ETC = "etc/systemd/network"
OURS = f"{ETC}/60-rdma-rail0.network"
RAIL = NetworkRail("rail0", {"pci": "0000:21:00.0"}, "ens1", "192.168.100.1/24", 9000)
PLANNED = BootNetwork(f"/{OURS}", BootSetting("9000", f"/{OURS}:6"), [BootSetting("192.168.100.1/24", f"/{OURS}:14")])


def boot(root: Path, **files: str) -> BootNetwork:
    """Of ens1, a virtio NIC as on a lab machine, with our file and these (path: text)."""
    texts = {
        "sys/class/net/ens1/address": "52:54:00:1a:00:01\n",
        "sys/class/net/ens1/ifindex": "3\n",
        "sys/class/net/ens1/type": "1\n",
        "run/udev/data/n3": "I:1\nE:ID_PATH=pci-0000:21:00.0\nE:ID_NET_DRIVER=virtio_net\n",
        OURS: render(RAIL),
        **files,
    }
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "sys/class/net/ens1/device").mkdir(exist_ok=True)
    (root / "sys/class/net/ens1/device/driver").symlink_to("../../../../../bus/virtio/drivers/virtio_net")
    return read_boot_networks(SysRoot(str(root)), ["ens1"])["ens1"]


def test_our_file_alone(tmp_path: Path) -> None:
    assert boot(tmp_path) == PLANNED


def test_lines_continue_and_comments_do_not_count() -> None:
    text = "# a\n[Match]\nName=ens1 \\\n# in between\n  ens2\n;b\n[Link]\n MTUBytes = 9K \nnothing\n"
    assert parse_network_settings(text, "/f") == [
        Setting("Match", "Name", "ens1    ens2", "/f:3"),
        Setting("Link", "MTUBytes", "9K", "/f:8"),
    ]


@pytest.mark.parametrize("folder", ["etc", "run", "usr/lib", "usr/local/lib"])
def test_a_drop_in_changes_the_mtu_and_is_named_with_its_line(tmp_path: Path, folder: str) -> None:
    path = f"{folder}/systemd/network/60-rdma-rail0.network.d/site.conf"
    assert boot(tmp_path, **{path: "[Link]\nMTUBytes=1500\n"}).mtu == BootSetting("1500", f"/{path}:2")


DROP_IN = f"{ETC}/60-rdma-rail0.network.d"
#: The text of a drop-in → what it changes.
DROP_INS = {
    "[Link]\nMTUBytes=9K\n": {"mtu": BootSetting("9216", f"/{DROP_IN}/a.conf:2")},
    "[Link]\nMTUBytes=1m\n": {"mtu": BootSetting("1048576", f"/{DROP_IN}/a.conf:2")},
    "[Link]\nMTUBytes=\n": {"mtu": None},
    "[Network]\nAddress=10.0.0.1/8\n": {"addresses": [*PLANNED.addresses, BootSetting("10.0.0.1/8", f"/{DROP_IN}/a.conf:2")]},
    "[Network]\nAddress=\n": {"addresses": []},
    "[Address]\nAddress=10.0.0.1/8\n": {"addresses": [*PLANNED.addresses, BootSetting("10.0.0.1/8", f"/{DROP_IN}/a.conf:2")]},
    "[Network]\nDHCP=ipv4\n": {"others": [BootSetting("DHCP=ipv4", f"/{DROP_IN}/a.conf:2")]},
    "[Link]\nUnmanaged=yes\n": {"others": [BootSetting("Unmanaged=yes", f"/{DROP_IN}/a.conf:2")]},
    "[Link]\nActivationPolicy=down\n": {"others": [BootSetting("ActivationPolicy=down", f"/{DROP_IN}/a.conf:2")]},
    "[Link]\nRequiredForOnline=yes\n": {},
}


@pytest.mark.parametrize("text", DROP_INS)
def test_what_drop_ins_change(tmp_path: Path, text: str) -> None:
    assert boot(tmp_path, **{f"{DROP_IN}/a.conf": text}) == BootNetwork(**{**vars(PLANNED), **DROP_INS[text]})


def test_of_several_drop_ins_the_last_name_counts_and_etc_hides_the_others(tmp_path: Path) -> None:
    found = boot(
        tmp_path,
        **{
            f"{DROP_IN}/10-a.conf": "[Link]\nMTUBytes=1500\n",
            f"run/{DROP_IN[4:]}/20-b.conf": "[Link]\nMTUBytes=2000\n",
            f"{DROP_IN}/20-b.conf": "[Link]\nMTUBytes=4000\n",
        },
    )
    assert found.mtu == BootSetting("4000", f"/{DROP_IN}/20-b.conf:2")


#: [Match] of a file before ours → whether it applies; None if that is unknown.
MATCHES = {
    "Name=ens1": True,
    "Name=ens*": True,
    "Name=eth0 ens1": True,
    "Name=eth0\nName=ens1": True,
    "Name=!eth0": True,
    "Name=!ens1": False,
    "Name=eth0": False,
    "MACAddress=52-54-00-1A-00-01": True,
    "MACAddress=52:54:00:1a:00:02": False,
    "Path=pci-0000:21:*": True,
    "Driver=virtio_net": True,
    "Driver=mlx5_core": False,
    "Type=ether": True,
    "Type=infiniband": False,
    "Kind=veth": False,
    "Name=ens1\nKind=bond": False,
    "WLANInterfaceType=ad-hoc": False,
    "Name=ens1\nType=infiniband": False,
    "Host=node1": None,
    "Name=eth0\nHost=node1": False,
    "Name=ens1\nKernelVersion=>=6": None,
    "": False,
}


@pytest.mark.parametrize("match", MATCHES)
def test_a_file_that_comes_before_ours(tmp_path: Path, match: str) -> None:
    path = f"{ETC}/50-site.network"
    found = boot(tmp_path, **{path: f"[Match]\n{match}\n[Network]\nDHCP=yes\n"})
    assert found.file == (f"/{path}" if MATCHES[match] else f"/{OURS}")
    assert [each.where for each in found.undecided] == ([f"/{path}"] if MATCHES[match] is None else [])


def test_a_file_after_ours_does_not_apply(tmp_path: Path) -> None:
    assert boot(tmp_path, **{f"{ETC}/70-site.network": "[Match]\nName=*\n"}) == PLANNED


def test_a_file_of_one_name_hides_the_other_and_an_empty_one_applies_to_nothing(tmp_path: Path) -> None:
    hidden, hiding = "usr/lib/systemd/network/50-a.network", f"{ETC}/50-a.network"
    assert boot(tmp_path, **{hidden: "[Match]\nName=*\n", hiding: ""}) == PLANNED


class Unreadable(SysRoot):
    """A tree in which one file may not be read."""

    def read(self, path: str) -> str | None:
        if path.endswith("/50-a.network"):
            raise PermissionError(13, "Permission denied", path)
        return super().read(path)


def test_a_file_that_cannot_be_read_is_not_skipped(tmp_path: Path) -> None:
    boot(tmp_path, **{f"{ETC}/50-a.network": "[Match]\nName=ens1\n"})
    found = read_boot_networks(Unreadable(str(tmp_path)), ["ens1"])["ens1"]
    assert [each.where for each in found.undecided] == [f"/{ETC}/50-a.network"]


#: [Match] of a file before that of a VLAN → whether it applies to it; None if that is unknown.
VLAN_MATCHES = {
    "Name=ens1.100": True,
    "Name=ens1": False,
    "Path=pci-0000:21:00.0": False,
    "Path=!pci-0000:21:00.0": True,
    "PermanentMACAddress=52:54:00:1a:00:01": False,
    "MACAddress=52:54:00:1a:00:01": True,
    "MACAddress=52:54:00:1a:00:01\nType=ether": False,
    "Type=vlan": True,
    "Kind=vlan": True,
    "Kind=bond": False,
    "Driver=802.1Q": None,
}


@pytest.mark.parametrize("match", VLAN_MATCHES)
def test_files_for_a_vlan(tmp_path: Path, match: str) -> None:
    """It has the MAC of its NIC, but neither a path nor a MAC of its own."""
    for name, text in {
        "sys/class/net/ens1.100/address": "52:54:00:1a:00:01\n",
        "sys/class/net/ens1.100/type": "1\n",
        "sys/class/net/ens1.100/uevent": "DEVTYPE=vlan\nINTERFACE=ens1.100\nIFINDEX=7\n",
        f"{ETC}/50-a.network": f"[Match]\n{match}\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = read_boot_networks(SysRoot(str(tmp_path)), ["ens1.100"])["ens1.100"]
    assert found.file == (f"/{ETC}/50-a.network" if VLAN_MATCHES[match] else None)
    assert bool(found.undecided) == (VLAN_MATCHES[match] is None)
