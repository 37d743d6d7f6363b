# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI functions and the links on their way to the root, as drivers/pci/pci-sysfs.c of Linux prints them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

# A domain has more than four digits behind a VMD controller: 10000:e1:00.0.
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_LINK_SPEED = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) GT/s(?: PCIe)?")
_LINK_WIDTH = re.compile(r"[0-9]{1,3}")
_NUMA_NODE = re.compile(r"-?[0-9]{1,6}")
_ID = re.compile(r"0x[0-9a-fA-F]{4}")
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)


@dataclass(frozen=True)
class PciLink:
    """One link, named by the function at its lower end: speed_gtps (GT/s of a lane) and the number of lanes."""

    address: str
    speed_gtps: float
    width: int


@dataclass(frozen=True)
class PciFunction:
    """A PCI function, the negotiated and the greatest link of its own, and the narrowest link up to the root.

    vendor_id and device_id look like "0x15b3". What the kernel does not tell is None: a function without a link of
    its own (in a virtual machine, say) has no speed, and numa_node is None where the firmware names none (-1).
    """

    address: str
    vendor_id: str | None
    device_id: str | None
    numa_node: int | None
    speed_gtps: float | None
    width: int | None
    max_speed_gtps: float | None
    max_width: int | None
    narrowest: PciLink | None


def parse_link_speed(text: str) -> float | None:
    """current_link_speed and max_link_speed in GT/s: "16.0 GT/s PCIe" and "8 GT/s"; None for "Unknown"."""
    value = text.strip()
    if value in ("Unknown", "Unknown speed"):
        return None
    match = _LINK_SPEED.fullmatch(value)
    if match is None:
        raise ParseError(f"not a PCI link speed: {text[:200]!r}, expected the form '16.0 GT/s PCIe'")
    return float(match.group(1))


def parse_link_width(text: str) -> int | None:
    """current_link_width and max_link_width in lanes.

    None for what no link can have: 0 (no link), 255 (unknown), 63 (all bits set: the device fell off the bus).
    """
    if _LINK_WIDTH.fullmatch(text.strip()) is None:
        raise ParseError(f"not a PCI link width: {text[:200]!r}, expected the form '16'")
    width = int(text.strip())
    return width if width in _WIDTHS else None


def parse_numa_node(text: str) -> int | None:
    """numa_node; None for -1, which means that the firmware names none."""
    if _NUMA_NODE.fullmatch(text.strip()) is None:
        raise ParseError(f"not a NUMA node: {text[:200]!r}, expected the form '1'")
    node = int(text.strip())
    return node if node >= 0 else None


def parse_id(text: str) -> str:
    """vendor and device: "0x15b3", in lower case."""
    if _ID.fullmatch(text.strip()) is None:
        raise ParseError(f"not a PCI id: {text[:200]!r}, expected the form '0x15b3'")
    return text.strip().lower()


def find_function(sys: SysRoot, device_link: str) -> str | None:
    """The path of the PCI function that a device link ("/sys/class/net/eth0/device") leads to, or None.

    A virtio NIC's device is virtio1, a child of the function; an auxiliary device is a child as well:
    ".../pci0000:00/0000:00:03.0/virtio1" -> ".../pci0000:00/0000:00:03.0".
    """
    path = sys.resolve(device_link)
    while path is not None and _ADDRESS.fullmatch(address_of(path)) is None:
        path = str(PurePosixPath(path).parent) if path != "/" else None
    return path


def address_of(path: str) -> str:
    """The address of a function, given its path in /sys."""
    return PurePosixPath(path).name


def read_function(sys: SysRoot, path: str) -> PciFunction:
    """Everything about the function at a path of find_function."""
    return PciFunction(
        address=address_of(path),
        vendor_id=sys.value(f"{path}/vendor", parse_id),
        device_id=sys.value(f"{path}/device", parse_id),
        numa_node=sys.value(f"{path}/numa_node", parse_numa_node),
        speed_gtps=sys.value(f"{path}/current_link_speed", parse_link_speed),
        width=sys.value(f"{path}/current_link_width", parse_link_width),
        max_speed_gtps=sys.value(f"{path}/max_link_speed", parse_link_speed),
        max_width=sys.value(f"{path}/max_link_width", parse_link_width),
        narrowest=_narrowest(sys, path),
    )


def _narrowest(sys: SysRoot, path: str) -> PciLink | None:
    """The link of least bandwidth; of equal ones the nearest to the function. Hops that tell nothing are left out."""
    links = []
    while path != "/":
        if _ADDRESS.fullmatch(address_of(path)):
            speed_gtps = sys.value(f"{path}/current_link_speed", parse_link_speed)
            width = sys.value(f"{path}/current_link_width", parse_link_width)
            if speed_gtps is not None and width is not None:
                links.append(PciLink(address_of(path), speed_gtps, width))
        path = str(PurePosixPath(path).parent)
    # Line coding (8b/10b below 8 GT/s) takes at most a fifth, and so never changes the order of speeds times widths.
    return min(links, key=lambda link: link.speed_gtps * link.width, default=None)
