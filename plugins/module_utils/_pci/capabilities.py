# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the capabilities of a PCI function are in its configuration space (include/uapi/linux/pci_regs.h)."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError

#: The bytes that a user without CAP_SYS_ADMIN may read.
HEADER_BYTES = 64
PCIE, ACS = 0x10, 0x0D
_STATUS, _CAPABILITIES = 0x06, 0x34
_STATUS_CAPABILITIES = 0x10
_FIRST_EXTENDED, _END = 0x100, 0x1000

#: Reads (offset, number of bytes); returns fewer bytes at the end of the readable part.
Read = Callable[[int, int], bytes]


def checked_header(data: bytes) -> bytes:
    if len(data) < HEADER_BYTES:
        raise ParseError(f"not a configuration space: {len(data)} bytes {data[:16].hex(' ')!r}, expected 64 or more")
    return data


def is_gone(header: bytes) -> bool:
    """Return whether nothing answers: all bits are set."""
    return header == b"\xff" * HEADER_BYTES


def find_capability(read: Read, header: bytes, wanted: int) -> int | None:
    """Return where a capability begins; None if it is not in the list, or the list cannot be followed to it."""
    if not word(header, _STATUS) & _STATUS_CAPABILITIES:
        return None
    offset = header[_CAPABILITIES] & 0xFC
    seen: set[int] = set()
    while offset >= HEADER_BYTES and offset not in seen:
        seen.add(offset)
        entry = read(offset, 2)
        if len(entry) < 2 or entry[0] == 0xFF:
            return None
        if entry[0] == wanted:
            return offset
        offset = entry[1] & 0xFC
    return None


def extended_capabilities(read: Read) -> list[tuple[int, int]] | None:
    """Return id and offset of each; None if they may not be read. The list is empty if the first entry is 0, or all bits are set."""
    found: list[tuple[int, int]] = []
    seen: set[int] = set()
    offset = _FIRST_EXTENDED
    while _FIRST_EXTENDED <= offset < _END and offset not in seen:
        seen.add(offset)
        entry = read(offset, 4)
        if len(entry) < 4:
            return found or None
        number = word(entry, 0)
        if number == 0xFFFF or not any(entry):
            break
        found.append((number, offset))
        offset = word(entry, 2) >> 4 & 0xFFC
    return found


def acs_offset(extended: list[tuple[int, int]]) -> int | None:
    return next((offset for number, offset in extended if number == ACS), None)


def word(data: bytes, offset: int = 0) -> int:
    """Return the register of 16 bits at an offset."""
    return int.from_bytes(data[offset : offset + 2], "little")
