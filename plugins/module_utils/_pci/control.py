# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two words of a PCI function's configuration that are tuned: Device Control and ACS Control.

Registers as in include/uapi/linux/pci_regs.h; the names of ACS controls are those of lspci.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._pci.capabilities import (
    HEADER_BYTES,
    PCIE,
    Read,
    acs_offset,
    checked_header,
    extended_capabilities,
    find_capability,
    is_gone,
)

#: Offsets from the beginning of the capability.
DEVICE_CONTROL, ACS_CONTROL = 0x08, 0x06
#: The possible sizes of a read request: code 0 to 5 in bits 14:12 of Device Control.
MRRS_BYTES = (128, 256, 512, 1024, 2048, 4096)
_MRRS_SHIFT, _MPS_SHIFT = 12, 5
MRRS_MASK = 7 << _MRRS_SHIFT
_ACS_CONTROLS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")


@dataclass(frozen=True)
class ControlWords:
    """The offsets of a function's Device Control and ACS Control, each a word of 16 bits; None if it lacks the word."""

    device: int | None
    acs: int | None


def find_control_words(read: Read) -> ControlWords | None:
    """Return the offsets of the words that may be written; None for a function that is gone. Raises ParseError as read_config does."""
    header = checked_header(read(0, HEADER_BYTES))
    if is_gone(header):
        return None
    pcie = find_capability(read, header, PCIE)
    acs = acs_offset(extended_capabilities(read) or [])
    return ControlWords(
        device=pcie + DEVICE_CONTROL if pcie is not None else None,
        acs=acs + ACS_CONTROL if acs is not None else None,
    )


def decode_mrrs(device_control: int) -> int | None:
    """Return the size of a read request in bytes, bits 14:12 of Device Control; None for a reserved code."""
    return size_of(device_control >> _MRRS_SHIFT)


def decode_mps(device_control: int) -> int | None:
    """Return the payload of a packet in bytes, bits 7:5 of Device Control; None for a reserved code."""
    return size_of(device_control >> _MPS_SHIFT)


def encode_mrrs(size_bytes: int) -> int:
    """Return the bits of Device Control for a size of a read request. Raises ParseError for an invalid size."""
    if size_bytes not in MRRS_BYTES:
        raise ParseError(f"no size of a read request: {size_bytes!r}, expected one of {', '.join(map(str, MRRS_BYTES))}")
    return MRRS_BYTES.index(size_bytes) << _MRRS_SHIFT


def decode_acs(acs_control: int) -> list[str]:
    """Return the names of the enabled controls, as lspci prints them."""
    return [name for bit, name in enumerate(_ACS_CONTROLS) if acs_control >> bit & 1]


def encode_acs(names: Iterable[str]) -> int:
    """Return the bits of controls."""
    return sum(1 << _ACS_CONTROLS.index(name) for name in names)


def size_of(register: int) -> int | None:
    """Return bits 2:0 of a register as a size in bytes; 6 and 7 are reserved."""
    code = register & 7
    return 128 << code if code < 6 else None
