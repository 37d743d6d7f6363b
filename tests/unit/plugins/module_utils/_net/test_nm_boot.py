# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which profile NetworkManager would activate on an interface at the next boot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.nm_boot import read_boot_profiles
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.nm_profiles import render_conf, render_profile, render_release
from ansible_collections.rdma.cluster.plugins.module_utils._net.network_files import BootNetwork, BootSetting
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_links import make_rails
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail

RAIL = NetworkRail("rail0", {"pci": "0000:21:00.0"}, "ens1", "192.168.100.1/24", 9000, mac="52:54:00:1a:00:01")
VLAN = {"interface": "ens1.100", "id": 100, "pcp": None}
FOLDER = "etc/NetworkManager/system-connections"
OURS, CONF = f"{FOLDER}/60-rdma-rail0.nmconnection", "etc/NetworkManager/conf.d/60-rdma-rail0.conf"
#: As `nmcli connection add type ethernet con-name lan` of NetworkManager 1.42 writes it.
LAN = "[connection]\nid=lan\nuuid=3a1c2a4e-53b8-4a9b-9f39-a8b4b7d4a001\ntype=ethernet\n{more}\n[ethernet]\n{nic}\n[ipv4]\nmethod=auto\n"


def boot(root: Path, files: Mapping[str, str], *, path: str = "pci-0000:21:00.0") -> BootNetwork:
    """What is read of ens1 on a host with these files. path: udev's ID_PATH of it."""
    for name, text in {
        "sys/class/net/ens1/address": "52:54:00:1a:00:01\n",
        "sys/class/net/ens1/type": "1\n",
        "sys/class/net/ens1/ifindex": "3\n",
        "run/udev/data/n3": f"E:ID_PATH={path}\n" if path else "",
        **files,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return read_boot_profiles(SysRoot(str(root)), ["ens1"])["ens1"]


def test_our_profile(tmp_path: Path) -> None:
    found = boot(tmp_path, {OURS: render_profile(RAIL), CONF: render_conf(RAIL)})
    assert found == BootNetwork(f"/{OURS}", BootSetting("9000", f"/{OURS}:12"), [BootSetting("192.168.100.1/24", f"/{OURS}:16")], [], [])


def test_no_profile(tmp_path: Path) -> None:
    assert boot(tmp_path, {}) == BootNetwork()


OTHERS = {
    "the same priority": (LAN.format(more="autoconnect-priority=100\n", nic=""), None, "autoconnect-priority=100, like"),
    "a lower priority": (LAN.format(more="", nic="mac-address=52:54:00:1A:00:01\n"), OURS, ""),
    "a higher priority": (LAN.format(more="autoconnect-priority=200\n", nic=""), f"{FOLDER}/lan.nmconnection", ""),
    "another interface": (LAN.format(more="autoconnect-priority=200\ninterface-name=eth9\n", nic=""), OURS, ""),
    "another MAC": (LAN.format(more="autoconnect-priority=200\n", nic="mac-address=52:54:00:00:00:99\n"), OURS, ""),
    "not by itself": (LAN.format(more="autoconnect-priority=200\nautoconnect=false\n", nic=""), OURS, ""),
    "another type": (LAN.format(more="autoconnect-priority=200\n", nic="").replace("type=ethernet", "type=wifi"), OURS, ""),
}


@pytest.mark.parametrize("case", OTHERS)
def test_the_profile_of_others_counts_by_its_priority(tmp_path: Path, case: str) -> None:
    text, file, why = OTHERS[case]
    found = boot(tmp_path, {OURS: render_profile(RAIL), f"{FOLDER}/lan.nmconnection": text})
    if why:
        assert [why in each.value for each in found.undecided] == [True]
    else:
        assert (found.file, found.undecided) == (f"/{file}", [])
    assert ("method=auto" in [each.value for each in found.others]) == (file == f"{FOLDER}/lan.nmconnection")


def test_a_path_that_udev_does_not_say_leaves_the_profile_undecided(tmp_path: Path) -> None:
    found = boot(tmp_path, {OURS: render_profile(RAIL)}, path="")
    assert (found.file, found.undecided) == (None, [BootSetting("match.path cannot be compared", f"/{OURS}")])


def test_another_path_does_not_fit(tmp_path: Path) -> None:
    assert boot(tmp_path, {OURS: render_profile(RAIL)}, path="pci-0000:41:00.0") == BootNetwork()


def test_a_profile_that_cannot_be_read_leaves_it_undecided(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "broken.nmconnection").symlink_to("broken.nmconnection")
    found = boot(tmp_path, {OURS: render_profile(RAIL)})
    assert [each.where for each in found.undecided] == [f"/{FOLDER}/broken.nmconnection"]


SCRIPT = "etc/sysconfig/network-scripts/ifcfg-ens1"


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ('DEVICE="ens1"\nONBOOT=yes\nAUTOCONNECT_PRIORITY=200\nTYPE=Ethernet\n', SCRIPT),
        ("HWADDR=52:54:00:1A:00:01\nAUTOCONNECT_PRIORITY=200\n", SCRIPT),
        ('DEVICE="ens1"\nONBOOT="no"\nAUTOCONNECT_PRIORITY=200\n', OURS),
        ("DEVICE=ens9\nAUTOCONNECT_PRIORITY=200\n", OURS),
        ("DEVICE=ens1\nTYPE=InfiniBand\nAUTOCONNECT_PRIORITY=200\n", OURS),
    ],
)
def test_a_network_script_of_rhel_is_a_claim(tmp_path: Path, text: str, file: str) -> None:
    assert boot(tmp_path, {OURS: render_profile(RAIL), SCRIPT: text}).file == f"/{file}"


LISTS = "etc/NetworkManager/conf.d/9.conf"
UNMANAGED = {
    "our own release": ({CONF: render_release(RAIL)}, f"managed=0 (/{CONF}:4)"),
    "a list by name": ({LISTS: "[keyfile]\nunmanaged-devices=interface-name:en*;mac:aa\n"}, "unmanaged-devices="),
    "a list that an exception ends": ({LISTS: "[keyfile]\nunmanaged-devices=*,except:interface-name:ens1\n"}, ""),
    "a later list replaces it": (
        {
            "etc/NetworkManager/conf.d/1.conf": "[keyfile]\nunmanaged-devices=interface-name:ens1\n",
            "etc/NetworkManager/conf.d/2.conf": "[keyfile]\nunmanaged-devices=interface-name:eth9\n",
        },
        "",
    ),
    "a later list adds to it": (
        {
            "etc/NetworkManager/conf.d/1.conf": "[keyfile]\nunmanaged-devices=interface-name:ens1\n",
            "etc/NetworkManager/conf.d/2.conf": "[keyfile]\nunmanaged-devices+=interface-name:eth9\n",
        },
        "unmanaged-devices=interface-name:ens1",
    ),
    "a section for another interface": ({CONF: "[device-x]\nmatch-device=interface-name:eth9\nmanaged=0\n"}, ""),
    "a section for all": ({CONF: "[device]\nmanaged=false\n"}, "managed=false"),
    "a vendor's file that is hidden": (
        {"usr/lib/NetworkManager/conf.d/10.conf": "[device]\nmanaged=0\n", "etc/NetworkManager/conf.d/10.conf": ""},
        "",
    ),
}


@pytest.mark.parametrize("case", UNMANAGED)
def test_what_makes_networkmanager_leave_an_interface_alone(tmp_path: Path, case: str) -> None:
    files, words = UNMANAGED[case]
    found = boot(tmp_path, {OURS: render_profile(RAIL), **files})
    if words:
        assert found.file is None
        assert words in f"{found.others[0].value} ({found.others[0].where})"
    else:
        assert (found.file, found.others) == (f"/{OURS}", [])


def test_a_vlan_takes_profiles_of_vlans_only(tmp_path: Path) -> None:
    """An Ethernet profile without a name would fit the ARPHRD number of a VLAN."""
    nic, vlan = make_rails([{"name": "rail0", "nic": RAIL.nic, "netdev": "ens1", "address": RAIL.address, "mtu_bytes": 9000, "vlan": VLAN}])
    ours = f"{FOLDER}/60-rdma-rail0@vlan.nmconnection"
    files = {
        "sys/class/net/ens1.100/address": "52:54:00:1a:00:01\n",
        "sys/class/net/ens1.100/type": "1\n",
        "sys/class/net/ens1.100/uevent": "DEVTYPE=vlan\n",
        OURS: render_profile(nic),
        ours: render_profile(vlan),
        f"{FOLDER}/lan.nmconnection": LAN.format(more="autoconnect-priority=200\n", nic=""),
    }
    boot(tmp_path, files)
    found = read_boot_profiles(SysRoot(str(tmp_path)), ["ens1.100"])["ens1.100"]
    assert (found.file, [each.value for each in found.addresses], found.undecided) == (f"/{ours}", ["192.168.100.1/24"], [])
    assert found.mtu is not None
    assert found.mtu.value == "9000"
