# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The three forms in which others have captured /sys, unpacked to a tree, and what the facts of these trees have in common."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import gather, to_dict

CAPTURES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "sysfs"
#: More than half of all files, and nothing that facts are read from: processors, disks, USB.
UNREAD = re.compile(
    r"/(ata[0-9]+|block|cpuset|host[0-9]+|msi_irqs|power|proc/self|queues|statistics|usb[0-9]+|LNXSYSTM:00|sys/fs"
    r"|devices/system/cpu|devices/system/node/node[0-9]+)(/|$)"
)
#: The folder of a bridge has those of the functions behind it.
BEHIND_A_BRIDGE = re.compile(r"^/sys/class/pci_bus/[^/]+/device/(?=[^/]+/)")
CLASS_MEMBER = re.compile(r"^/sys/bus/pci/devices/([^/]+)/(infiniband|net)/([^/]+)/")

# The standard counters of every port with performance management, in words of four bytes or packets or events.
QUIET = dict.fromkeys(
    [
        "VL15_dropped",
        "excessive_buffer_overrun_errors",
        "link_downed",
        "link_error_recovery",
        "local_link_integrity_errors",
        "port_rcv_constraint_errors",
        "port_rcv_data",
        "port_rcv_errors",
        "port_rcv_packets",
        "port_rcv_remote_physical_errors",
        "port_rcv_switch_relay_errors",
        "port_xmit_constraint_errors",
        "port_xmit_data",
        "port_xmit_discards",
        "port_xmit_packets",
        "port_xmit_wait",
        "symbol_error",
    ],
    0,
)
# What the ports of these captures have in common: no capture has LIDs, GIDs and interfaces unless it says so.
PORT: dict[str, Any] = {
    "state": "ACTIVE",
    "physical_state": "LinkUp",
    "link_layer": "InfiniBand",
    "rate_gbps": None,
    "width": 4,
    "speed": None,
    "lid": None,
    "sm_lid": None,
    "netdev": None,
    "gids": [],
    "rocev2": {},
    "counters": QUIET,
    "hw_counters": {},
    "active_mtu_bytes": None,
    "active_mtu_error": None,
    "optic": None,
    "optic_unread": None,
    "pkeys": None,
}
DEVICE: dict[str, Any] = {
    "driver": None,
    "software": None,
    "firmware": None,
    "board_id": None,
    "hca_type": None,
    "node_guid": None,
    "sys_image_guid": None,
    "node_type": None,
    "numa_node": None,
    "function": None,
    "parent_pci": None,
    "uverbs": None,
    "pci": None,
    "ports": {},
}
LINK: dict[str, Any] = {"speed_gtps": None, "width": None, "max_speed_gtps": None, "max_width": None}
# Of configuration spaces, the captures have the first 64 bytes, which anybody may read, or text that has lost bytes.
HOP: dict[str, Any] = {**LINK, "mps_bytes": None, "mps_max_bytes": None, "acs": None}
FUNCTION: dict[str, Any] = {
    **LINK,
    "vendor_id": None,
    "device_id": None,
    "numa_node": None,
    "narrowest": None,
    "mps_bytes": None,
    "mps_max_bytes": None,
    "mrrs_bytes": None,
    "hops": [],
}
# What the kernels of these captures do not report: dev_port and carrier_down_count are younger than most of them.
ETHERNET: dict[str, Any] = {
    "mac": None,
    "mtu_bytes": 1500,
    "operstate": "up",
    "carrier": True,
    "admin_up": True,
    "type": 1,
    "dev_port": None,
    "driver": None,
    "pci": None,
    "numa_node": None,
    "ifindex": None,
    "function": "pf",
    "master": None,
    "carrier_downs": None,
    "max_mtu_bytes": None,
    "ipv4": None,
    "ipv6": None,
    "dad_failed": None,
    "managers": None,
    "boot": None,
    "profile": None,
    "ethtool": None,
}
DOWN = {"operstate": "down", "carrier": None, "admin_up": False}
NO_GPU: dict[str, Any] = {
    "gpus": [],
    "gpu_driver": None,
    "distances": {},
    "gpudirect": {way: {"possible": False, "why_not": ["no NVIDIA GPU"]} for way in ("dmabuf", "peermem")},
}
#: Why tests of what the trees leave open fail.
NO_STACK: dict[str, Any] = {
    "kind": None,
    "kernel": None,
    "modules": {},
    "distribution": {
        "id": None,
        "version_id": None,
        "like": [],
        "packages": None,
        "vendor": None,
        "held": None,
        "family": None,
        "kernels": None,
        "asked": None,
    },
    "kernels": [],
    "newest": None,
    "headers": {},
    "secure_boot": None,
    "lockdown": None,
    "unread": [],
    "dkms": [],
    "ofed_version": None,
    "mok": None,
    "driver_files": {},
    "last_build": None,
    "arch": None,
    "uses": None,
}


def facts_of(root: Path) -> dict[str, Any]:
    return to_dict(gather(SysRoot(str(root))))


def iommu_mode(facts: Mapping[str, Any]) -> str | None:
    return (facts["iommu"] or {}).get("mode")


def part_of(facts: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of like."""
    return {key: facts[key] for key in like}


def capture(name: str) -> Path:
    path = CAPTURES / name
    assert path.exists(), f"the capture {name} is missing from {CAPTURES}"
    return path


def unpack_tar(name: str, folder: Path) -> Path:
    with tarfile.open(capture(name)) as archive:
        top = archive.getnames()[0]
        archive.extractall(folder, [member for member in archive if not UNREAD.search(f"/{member.name}")], filter="data")
    return folder / top


def unpack_ttar(path: Path, folder: Path) -> Path:
    """Unpack Prometheus' text archive: "Path: ", then "SymlinkTo: " or "Lines: N" and so many lines of content.

    EOF at the end of the content stands for a missing line break, NULLBYTE for a NUL; a backslash takes that meaning away.
    """
    lines = iter(path.read_text(encoding="utf-8").split("\n"))
    for line in lines:
        key, _colon, value = line.partition(": ")
        if key == "Directory":
            (folder / value).mkdir(parents=True, exist_ok=True)
        elif key == "Path":
            _unpack_entry(folder, value, next(lines), lines)
    return folder


def _unpack_entry(folder: Path, name: str, header: str, lines: Iterator[str]) -> None:
    key, _colon, value = header.partition(": ")
    content = "".join(next(lines) + "\n" for _number in range(int(value))) if key == "Lines" else ""
    if UNREAD.search(f"/{name}"):
        return
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if key == "SymlinkTo":
        target.symlink_to(value)
    else:
        content = re.sub(r"(?<!\\)EOF\n\Z", "", content)
        content = re.sub(r"(?<!\\)NULLBYTE", "\0", content)
        target.write_text(re.sub(r"\\(EOF|NULLBYTE)", r"\1", content), encoding="utf-8")


def load_map(name: str) -> dict[str, str]:
    files: dict[str, str] = json.loads(capture(name).read_text(encoding="utf-8"))
    assert all(path.startswith("/sys/") for path in files)
    return files


def write_map(files: Mapping[str, str], folder: Path) -> Path:
    """Write a map of paths to contents, with the links that the kernel has besides: a class to its members, these to their function."""
    for path, content in files.items():
        target = folder / BEHIND_A_BRIDGE.sub("/sys/bus/pci/devices/", path).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    for function, kind, name in sorted({match.groups() for match in map(CLASS_MEMBER.match, files) if match is not None}):
        (folder / "sys/class" / kind).mkdir(parents=True, exist_ok=True)
        (folder / "sys/class" / kind / name).symlink_to(f"../../bus/pci/devices/{function}/{kind}/{name}")
        (folder / f"sys/bus/pci/devices/{function}/{kind}/{name}/device").symlink_to(f"../../../{function}")
    return folder


def test_a_text_archive(tmp_path: Path) -> None:
    archive = tmp_path / "a.ttar"
    archive.write_text(
        "# A comment\nDirectory: sys\nMode: 755\n# ttar - - -\nPath: sys/a\nLines: 2\none\ntwo\nMode: 644\n"
        "Path: sys/b/c\nLines: 1\n1NULLBYTE\\NULLBYTEEOF\nMode: 644\nPath: sys/none\nLines: 0\nMode: 644\n"
        "Path: sys/block/a\nLines: 1\nPath: sys/trap\nMode: 644\nPath: sys/link\nSymlinkTo: a\n"
    )

    root = unpack_ttar(archive, tmp_path / "root")

    assert (root / "sys/a").read_text() == (root / "sys/link").read_text() == "one\ntwo\n"
    assert (root / "sys/b/c").read_text() == "1\0NULLBYTE"
    assert (root / "sys/none").read_text() == ""
    assert not (root / "sys/block").exists()
    assert not (root / "sys/trap").exists()


def test_a_map(tmp_path: Path) -> None:
    function = "/sys/bus/pci/devices/0000:0c:00.0"
    files = {
        f"{function}/net/ib0/mtu": "2044\n",
        f"{function}/net/ib0/type": "32\n",
        "/sys/class/pci_bus/0000:0c/device/0000:0c:00.0/vendor": "0x15b3\n",
    }

    root = write_map(files, tmp_path)

    assert (root / "sys/class/net/ib0/mtu").read_text() == "2044\n"
    assert (root / "sys/class/net/ib0/device/vendor").read_text() == "0x15b3\n"
