# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVIDIA GPUs and their kernel driver, from /sys and /proc/driver/nvidia (kernel-open/nvidia/nv-procfs.c, seen: 580.159).

nvidia-smi is not used: it takes seconds, and hangs if a GPU hangs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PCI_DEVICES, PciFunction, PciReader
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import ADDRESS, parse_address

_DRIVER = "/proc/driver/nvidia"
# Vendor 0x10de; class 0x03 (display), subclass 0x00 (VGA) or 0x02 (3D).
_MODALIAS = re.compile(r"pci:v000010DEd[0-9A-F]{8}sv[0-9A-F]{8}sd[0-9A-F]{8}bc03sc0[02]i[0-9A-F]{2}")
_NVRM = re.compile(
    r"[ \t]*NVRM version:(?P<before>.*?)Kernel Module[ \t]+(?:for[ \t]+\S+[ \t]+)?(?P<version>[0-9]{1,4}(?:\.[0-9]{1,4}){1,3})(?![0-9.])"
)
_FIELD = re.compile(r"[ \t]*(?P<name>[A-Za-z][A-Za-z ]{0,40}?)[ \t]*:[ \t]*(?P<value>[^\r\n]*)")
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True)
class GpuDriver:
    """The loaded driver; open: whether it is the open one of NVIDIA's two drivers. Both are None if the driver does not report them."""

    version: str | None
    open: bool | None


@dataclass(frozen=True)
class GpuInformation:
    """The driver's report on one GPU; None for what it does not know (yet)."""

    model: str | None
    uuid: str | None
    address: str | None


@dataclass(frozen=True)
class Gpu:
    """One GPU that is on the bus, or that the driver still lists: then pci is None. model, uuid: None without a driver."""

    address: str
    model: str | None
    uuid: str | None
    numa_node: int | None
    pci: PciFunction | None


def parse_nvrm_version(text: str) -> GpuDriver:
    """Parse /proc/driver/nvidia/version. Raises ParseError.

    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (…)" of the open driver,
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023" of the other.
    """
    match = next(filter(None, map(_NVRM.match, text.splitlines())), None)
    if match is None:
        raise ParseError(f"not a version of NVIDIA's driver: {quoted(text)}, expected a line 'NVRM version: … Kernel Module  580.159.04 …'")
    return GpuDriver(match["version"], match["before"].split()[-1:] == ["Open"])


def parse_gpu_information(text: str) -> GpuInformation:
    """Parse /proc/driver/nvidia/gpus/*/information: lines "Model: \\t\\t NVIDIA H200". Raises ParseError.

    A GPU that the driver has not set up has no line with its UUID, or a UUID of question marks.
    """
    fields = {match["name"]: match["value"] for match in map(_FIELD.match, text.splitlines()) if match is not None}
    if "Model" not in fields and "Bus Location" not in fields:
        raise ParseError(f"not the driver's information on a GPU: {quoted(text)}, expected the lines Model and Bus Location")
    uuid, address = _known(fields.get("GPU UUID")), _known(fields.get("Bus Location"))
    return GpuInformation(
        model=_known(fields.get("Model")),
        uuid=uuid if uuid is not None and _UUID.fullmatch(uuid) else None,
        address=parse_address(address) if address is not None else None,
    )


def _known(value: str | None) -> str | None:
    value = (value or "").strip(" \t\0")
    return value if value not in ("", "N/A", "Unknown") and "??" not in value else None


def read_gpus(sys: SysRoot, pci: PciReader | None = None) -> tuple[list[Gpu], GpuDriver | None]:
    """Return the GPUs by address, and the driver, None if it is not loaded. pci: a reader of the same tree, to reuse its data.

    The list has the GPUs on the bus and those that only the driver knows, but no virtual functions of a GPU.
    """
    reader = pci or PciReader(sys)
    known = {information.address or name: information for name, information in _read_informations(sys)}
    present = set(gpu_addresses(sys))
    return [_read_gpu(sys, reader, name, known.get(name)) for name in sorted(present | known.keys())], read_gpu_driver(sys)


def gpu_addresses(sys: SysRoot) -> list[str]:
    """Return the GPUs on the bus, sorted, without virtual functions of a GPU."""
    return [name for name in sys.list_dir(PCI_DEVICES) if _is_gpu(sys, name)]


def read_gpu_driver(sys: SysRoot) -> GpuDriver | None:
    """Return the loaded NVIDIA driver, or None."""
    driver = sys.value(f"{_DRIVER}/version", parse_nvrm_version)
    return GpuDriver(None, None) if driver is None and sys.exists(_DRIVER) else driver


def _read_informations(sys: SysRoot) -> Iterable[tuple[str, GpuInformation]]:
    for name in sys.list_dir(f"{_DRIVER}/gpus"):
        # The file is empty if the driver cannot wake the GPU.
        information = sys.value(f"{_DRIVER}/gpus/{name}/information", parse_gpu_information)
        yield name, information or GpuInformation(None, None, None)


def _is_gpu(sys: SysRoot, name: str) -> bool:
    alias = sys.text(f"{PCI_DEVICES}/{name}/modalias")
    if alias is not None:
        found = _MODALIAS.fullmatch(alias) is not None
    else:
        kind = sys.text(f"{PCI_DEVICES}/{name}/class") or ""
        found = kind.startswith(("0x0300", "0x0302")) and sys.text(f"{PCI_DEVICES}/{name}/vendor") == "0x10de"
    return found and sys.link_target(f"{PCI_DEVICES}/{name}/physfn") is None


def _read_gpu(sys: SysRoot, reader: PciReader, address: str, information: GpuInformation | None) -> Gpu:
    path = sys.resolve(f"{PCI_DEVICES}/{address}") if ADDRESS.fullmatch(address) else None
    function = reader.function(path) if path is not None and sys.exists(path) else None
    return Gpu(
        address=address,
        model=information.model if information is not None else None,
        uuid=information.uuid if information is not None else None,
        numa_node=function.numa_node if function is not None else None,
        pci=function,
    )
