# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration space of a PCI function (/sys/bus/pci/devices/*/config), for values without a file in sysfs.

Registers as in include/uapi/linux/pci_regs.h; the names of ACS controls are those of lspci.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.capabilities import (
    HEADER_BYTES,
    PCIE,
    Read,
    acs_offset,
    checked_header,
    extended_capabilities,
    find_capability,
    is_gone,
    word,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pci.control import (
    ACS_CONTROL,
    DEVICE_CONTROL,
    decode_acs,
    decode_mps,
    decode_mrrs,
    size_of,
)

_HEADER_TYPE = 0x0E
_SPEEDS_GTPS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0, 7: 128.0}
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)
_PORT_TYPES = {
    0: "endpoint",
    1: "legacy endpoint",
    4: "root port",
    5: "upstream port",
    6: "downstream port",
    7: "bridge to PCI",
    8: "bridge from PCI",
    9: "integrated endpoint",
    10: "event collector",
}
#: Functions on the root complex itself have no link, whatever their registers hold.
_WITHOUT_LINK = (9, 10)


@dataclass(frozen=True)
class PcieCapability:
    """The PCI Express capability: sizes in bytes, speeds in GT/s of a lane, widths in lanes.

    mps, mrrs: the current maximum payload and maximum read request; mps_max: the largest payload that it supports.
    A virtual function has no settings of its own: it uses those of its physical function, and shows 128 here.
    """

    port_type: str | None
    mps_max_bytes: int | None
    mps_bytes: int | None
    mrrs_bytes: int | None
    max_speed_gtps: float | None
    max_width: int | None
    speed_gtps: float | None
    width: int | None


@dataclass(frozen=True)
class PciConfig:
    """One function. gone: only set bits are read, as after it fell off the bus; then all else is None.

    header_type: 0 for an endpoint, 1 for a bridge. pcie is None without that capability, and if it may not be read.
    extended: the ids of the extended capabilities, None if they may not be read. acs: the controls that are
    enabled, [] if none is, None without that capability or if it may not be read.
    """

    gone: bool
    header_type: int | None
    pcie: PcieCapability | None
    extended: list[int] | None
    acs: list[str] | None


def read_config(sys: SysRoot, path: str) -> PciConfig | None:
    """Return the configuration of the function at a path in /sys; None if the tree has no such file, or an empty one.

    Only the needed words are read: each word is a transaction on the bus, and 4096 bytes cost milliseconds.
    """
    try:
        return sys.use(f"{path}/config", _decode_file)
    except ParseError as exc:
        raise ParseError(f"{path}/config: {exc}") from exc


def _decode_file(file: int) -> PciConfig | None:
    header = os.pread(file, HEADER_BYTES, 0)
    return _decode(header, lambda offset, length: os.pread(file, length, offset)) if header else None


def _decode(header: bytes, read: Read) -> PciConfig:
    if is_gone(checked_header(header)):
        return PciConfig(gone=True, header_type=None, pcie=None, extended=None, acs=None)
    pcie = find_capability(read, header, PCIE)
    extended = extended_capabilities(read)
    return PciConfig(
        gone=False,
        header_type=header[_HEADER_TYPE] & 0x7F,
        pcie=_decode_pcie(read(pcie, 20)) if pcie is not None else None,
        extended=[number for number, _offset in extended] if extended is not None else None,
        acs=_decode_acs(read, extended or []),
    )


def _decode_pcie(data: bytes) -> PcieCapability | None:
    """Decode the first 20 bytes of the capability, up to Link Status; None if they are cut off."""
    if len(data) < 20:
        return None
    kind = word(data, 2) >> 4 & 0xF
    control = word(data, DEVICE_CONTROL)
    linked = kind not in _WITHOUT_LINK
    return PcieCapability(
        port_type=_PORT_TYPES.get(kind),
        mps_max_bytes=size_of(word(data, 4)),
        mps_bytes=decode_mps(control),
        mrrs_bytes=decode_mrrs(control),
        max_speed_gtps=_speed(word(data, 12)) if linked else None,
        max_width=_width(word(data, 12)) if linked else None,
        speed_gtps=_speed(word(data, 18)) if linked else None,
        width=_width(word(data, 18)) if linked else None,
    )


def _decode_acs(read: Read, extended: list[tuple[int, int]]) -> list[str] | None:
    offset = acs_offset(extended)
    data = read(offset, 8) if offset is not None else b""
    return decode_acs(word(data, ACS_CONTROL)) if len(data) >= 8 else None


def _speed(register: int) -> float | None:
    return _SPEEDS_GTPS.get(register & 0xF)


def _width(register: int) -> int | None:
    width = register >> 4 & 0x3F
    return width if width in _WIDTHS else None
