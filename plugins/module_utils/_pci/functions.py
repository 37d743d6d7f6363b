# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI functions and the links on their path to the root, as drivers/pci/pci-sysfs.c of Linux prints them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.config import PciConfig, read_config
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import function_paths, payload_gbps

PCI_DEVICES = "/sys/bus/pci/devices"
_LINK_SPEED = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) GT/s(?: PCIe)?")
_LINK_WIDTH = re.compile(r"[0-9]{1,3}")
_NUMA_NODE = re.compile(r"-?[0-9]{1,6}")
_ID = re.compile(r"0x[0-9a-fA-F]{4}")
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)
#: The last parts of the path of a subfunction's device: mlx5_core.sf.4 below its PCI function.
_SUBFUNCTION = re.compile(r"[A-Za-z0-9_]{1,64}\.sf\.[0-9]{1,10}")
#: Virtual functions of ConnectX and BlueField: in a virtual machine, only their id identifies them.
_VIRTUAL_FUNCTIONS = {
    "0x15b3": ("0x1002", "0x1004", "0x1012", "0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e", "0xa2d3"),
}


@dataclass(frozen=True)
class PciLink:
    """One link, named by the function at its lower end: speed_gtps (GT/s of a lane) and the number of lanes."""

    address: str
    speed_gtps: float
    width: int


@dataclass(frozen=True)
class PciHop:
    """A bridge on the path to the root with its link, as negotiated and at most.

    It is the link above an upstream port of a switch, or below a root port or downstream port. mps_bytes: the
    current payload of a packet, mps_max_bytes: the largest that it supports. acs: the enabled ACS controls, as lspci
    names them; [] if none is, None without that capability or if it may not be read.
    """

    address: str
    speed_gtps: float | None
    width: int | None
    max_speed_gtps: float | None
    max_width: int | None
    mps_bytes: int | None
    mps_max_bytes: int | None
    acs: list[str] | None


@dataclass(frozen=True)
class PciFunction:
    """A PCI function, its own negotiated and greatest link, and the narrowest link up to the root.

    vendor_id and device_id look like "0x15b3". What the kernel does not report is None: a function without a link of
    its own (for example in a virtual machine) has no speed, and numa_node is None if the firmware names none (-1).
    mps and mrrs (payload of a packet, size of a read request) are the effective ones: a virtual function's physical
    function sets them. hops: the bridges above, nearest first.
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
    mps_bytes: int | None = None
    mps_max_bytes: int | None = None
    mrrs_bytes: int | None = None
    hops: list[PciHop] = field(default_factory=list)


def parse_link_speed(text: str) -> float | None:
    """Parse current_link_speed and max_link_speed in GT/s: "16.0 GT/s PCIe" and "8 GT/s"; None for "Unknown"."""
    value = text.strip()
    if value in ("Unknown", "Unknown speed"):
        return None
    match = _LINK_SPEED.fullmatch(value)
    if match is None:
        raise ParseError(f"not a PCI link speed: {quoted(text)}, expected the form '16.0 GT/s PCIe'")
    return float(match.group(1))


def parse_link_width(text: str) -> int | None:
    """Parse current_link_width and max_link_width in lanes.

    None for impossible values: 0 (no link), 255 (unknown), 63 (all bits set: the device fell off the bus).
    """
    if _LINK_WIDTH.fullmatch(text.strip()) is None:
        raise ParseError(f"not a PCI link width: {quoted(text)}, expected the form '16'")
    width = int(text.strip())
    return width if width in _WIDTHS else None


def parse_numa_node(text: str) -> int | None:
    """Parse numa_node; None for -1, which means that the firmware names none."""
    if _NUMA_NODE.fullmatch(text.strip()) is None:
        raise ParseError(f"not a NUMA node: {quoted(text)}, expected the form '1'")
    node = int(text.strip())
    return node if node >= 0 else None


def parse_id(text: str) -> str:
    """Parse vendor and device: "0x15b3", in lower case."""
    if _ID.fullmatch(text.strip()) is None:
        raise ParseError(f"not a PCI id: {quoted(text)}, expected the form '0x15b3'")
    return text.strip().lower()


def find_function(sys: SysRoot, device_link: str) -> str | None:
    """Return the path of the PCI function that a device link ("/sys/class/net/eth0/device") leads to, or None.

    A virtio NIC's device is virtio1, a child of the function; an auxiliary device is a child as well:
    ".../pci0000:00/0000:00:03.0/virtio1" -> ".../pci0000:00/0000:00:03.0".
    """
    return next(iter(function_paths(sys.resolve(device_link) or "")), None)


def address_of(path: str) -> str:
    """Return the address of a function, given its path in /sys."""
    return PurePosixPath(path).name


def read_function_kind(sys: SysRoot, device_link: str) -> tuple[str | None, str | None]:
    """Return the kind of function that a device link ("/sys/class/infiniband/mlx5_0/device") leads to: "pf", "vf" or "sf"; and a VF's PF.

    (None, None) for a device that is not on PCI. In a virtual machine a VF has no PF, and only a VF with a known id
    is distinguished from a PF.
    """
    device = sys.resolve(device_link) or ""
    function = next(iter(function_paths(device)), None)
    if function is None:
        return None, None
    if any(_SUBFUNCTION.fullmatch(part) for part in device[len(function) :].split("/")):
        return "sf", None
    physical = _physical_function(sys, function)
    if physical is not None:
        return "vf", address_of(physical)
    vendor = sys.value(f"{function}/vendor", parse_id) or ""
    virtual = sys.value(f"{function}/device", parse_id) in _VIRTUAL_FUNCTIONS.get(vendor, ())
    return "vf" if virtual else "pf", None


def _physical_function(sys: SysRoot, path: str) -> str | None:
    return sys.resolve(f"{path}/physfn") if sys.link_target(f"{path}/physfn") is not None else None


class PciReader:
    """Reads functions of one tree, and shared parts (mainly bridges) only once."""

    def __init__(self, sys: SysRoot) -> None:
        self._sys = sys
        self._functions: dict[str, PciFunction] = {}
        self._hops: dict[str, PciHop] = {}
        self._configs: dict[str, PciConfig | None] = {}

    def function(self, path: str) -> PciFunction:
        """Return everything about the function at a path of find_function."""
        if path not in self._functions:
            self._functions[path] = self._read(path)
        return self._functions[path]

    def _read(self, path: str) -> PciFunction:
        own, *hops = [self._hop(function) for function in function_paths(path)] or [self._hop(path)]
        physical = _physical_function(self._sys, path)
        config = self._config(physical or path)
        pcie = config.pcie if config is not None else None
        return PciFunction(
            address=own.address,
            vendor_id=self._sys.value(f"{path}/vendor", parse_id),
            device_id=self._sys.value(f"{path}/device", parse_id),
            numa_node=self._sys.value(f"{path}/numa_node", parse_numa_node),
            speed_gtps=own.speed_gtps,
            width=own.width,
            max_speed_gtps=own.max_speed_gtps,
            max_width=own.max_width,
            narrowest=_narrowest([own, *hops]),
            mps_bytes=pcie.mps_bytes if pcie is not None else None,
            mps_max_bytes=pcie.mps_max_bytes if pcie is not None else None,
            mrrs_bytes=pcie.mrrs_bytes if pcie is not None else None,
            hops=hops,
        )

    def _hop(self, path: str) -> PciHop:
        if path not in self._hops:
            config = self._config(path)
            pcie = config.pcie if config is not None else None
            self._hops[path] = PciHop(
                address=address_of(path),
                speed_gtps=self._sys.value(f"{path}/current_link_speed", parse_link_speed),
                width=self._sys.value(f"{path}/current_link_width", parse_link_width),
                max_speed_gtps=self._sys.value(f"{path}/max_link_speed", parse_link_speed),
                max_width=self._sys.value(f"{path}/max_link_width", parse_link_width),
                mps_bytes=pcie.mps_bytes if pcie is not None else None,
                mps_max_bytes=pcie.mps_max_bytes if pcie is not None else None,
                acs=config.acs if config is not None else None,
            )
        return self._hops[path]

    def _config(self, path: str) -> PciConfig | None:
        if path not in self._configs:
            self._configs[path] = read_config(self._sys, path)
        return self._configs[path]


def _narrowest(hops: list[PciHop]) -> PciLink | None:
    """Return the link with the least payload; of equal ones the nearest to the function. Hops without a known link are left out."""
    links = [PciLink(hop.address, hop.speed_gtps, hop.width) for hop in hops if hop.speed_gtps is not None and hop.width is not None]
    return min(links, key=lambda link: payload_gbps(link.speed_gtps, link.width), default=None)


_GROUPS = "/sys/kernel/iommu_groups"
_CLASS = "/sys/class/iommu"
_DMI = "/sys/class/dmi/id"
#: iommu_group_show_type() of drivers/iommu/iommu.c. The rest ("unmanaged", "blocked") belongs to a virtual machine, or to nothing.
_MODES = {"identity": "passthrough", "DMA": "translated", "DMA-FQ": "translated"}
# /proc/cpuinfo repeats itself for each processor, and generating it costs time: the first processor's flags are within this many bytes.
_FIRST_CPU_BYTES = 8192
_FLAGS = re.compile(r"^flags[ \t]*:([^\n]*)\n", re.MULTILINE)
_VIRTUAL = re.compile(
    r"\b(QEMU|KVM|VMware|VirtualBox|Xen|Bochs|Bhyve|Parallels|OpenStack|Virtual Machine|Google Compute Engine|Alibaba Cloud ECS)\b"
    r"|\bAmazon EC2\b(?!.*metal)",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True)
class Iommu:
    """present: whether the kernel uses one. mode: "off", "passthrough" (identity), "translated" or "mixed".

    Both are None for a captured tree without the IOMMU folders; mode is also None if groups do not report their type (before
    Linux 4.11). virtual_machine is None if it is unknown.
    """

    present: bool | None
    mode: str | None
    virtual_machine: bool | None


def read_iommu(sys: SysRoot, *, running: bool = False) -> Iommu:
    """Return what /sys and /proc report about it. running: for the running system, where a missing folder means that there is none."""
    virtual_machine = _read_virtual_machine(sys)
    if not running and not any(sys.exists(path) for path in (_GROUPS, _CLASS)):
        return Iommu(None, None, virtual_machine)
    groups = sys.list_dir(_GROUPS)
    return Iommu(bool(groups or sys.list_dir(_CLASS)), _read_mode(sys, groups) if groups else "off", virtual_machine)


def _read_mode(sys: SysRoot, groups: list[str]) -> str | None:
    modes = set()
    for group in groups:
        mode = _MODES.get(sys.text(f"{_GROUPS}/{group}/type") or "")
        modes |= {mode} if mode is not None else set()
        if len(modes) > 1:
            return "mixed"
    return next(iter(modes), None)


def _read_virtual_machine(sys: SysRoot) -> bool | None:
    """Return whether this is a virtual machine. x86 has a flag that every hypervisor sets; elsewhere, the firmware's vendor and product."""
    flags = _FLAGS.search(_first_cpu(sys))
    if flags is not None:
        return "hypervisor" in flags[1].split()
    names = " ".join(filter(None, (sys.text(f"{_DMI}/{name}") for name in ("sys_vendor", "product_name"))))
    return _VIRTUAL.search(names) is not None if names else None


def _first_cpu(sys: SysRoot) -> str:
    data = sys.use("/proc/cpuinfo", lambda file: os.read(file, _FIRST_CPU_BYTES))
    return (data or b"").decode("utf-8", "replace")
