# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The dynamic symbols of a shared library, read from its bytes. The library is not loaded, so none of its code runs."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted

#: The maximum size of a library, and number of its sections and symbols.
MAX_BYTES, MAX_SECTIONS, MAX_SYMBOLS = 256 << 20, 4096, 200_000
_MAX_NAME = 512
#: e_machine of elf(5) → the name in `uname -m`.
MACHINES = {62: "x86_64", 183: "aarch64"}
_HEADER, _SECTION, _SYMBOL = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
_SHARED_OBJECT, _DYNSYM, _UNDEFINED = 3, 11, 0


@dataclass(frozen=True)
class ElfSymbols:
    """machine: as in `uname -m`, or "machine N"; defined: names that the library exports; undefined: names that it takes from others."""

    machine: str
    defined: frozenset[str]
    undefined: frozenset[str]


def read_elf(data: bytes) -> ElfSymbols:
    """Return the dynamic symbols of a 64-bit little-endian shared library (elf(5)). Raises ParseError for anything else."""
    try:
        return _read(data)
    except (struct.error, OverflowError) as exc:
        raise ParseError(f"the ELF file ends too early, or points outside of itself: {exc}") from exc


def _read(data: bytes) -> ElfSymbols:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ParseError(f"no 64-bit little-endian ELF file: it begins with {quoted(data[:6])}")
    _ident, kind, machine, *_more, offset, _flags, _size, _ph, _phs, entry, count, _names = _HEADER.unpack_from(data)
    if kind != _SHARED_OBJECT or entry != _SECTION.size or count > MAX_SECTIONS:
        raise ParseError(f"no shared library: type {kind}, {count} sections of {entry} bytes")
    sections = [_SECTION.unpack_from(data, offset + number * entry) for number in range(count)]
    defined: set[str] = set()
    undefined: set[str] = set()
    for _name, section_kind, _f, _address, start, size, link, *_rest in sections:
        if section_kind == _DYNSYM:
            if link >= count or size // _SYMBOL.size > MAX_SYMBOLS:
                raise ParseError(f"a symbol table of {size} bytes with the names in section {link} of {count}")
            names = data[sections[link][4] : sections[link][4] + sections[link][5]]
            for name, is_defined in _symbols(data, start, size, names):
                (defined if is_defined else undefined).add(name)
    return ElfSymbols(MACHINES.get(machine, f"machine {machine}"), frozenset(defined), frozenset(undefined))


def _symbols(data: bytes, start: int, size: int, names: bytes) -> Iterator[tuple[str, bool]]:
    for number in range(size // _SYMBOL.size):
        name, _info, _other, section, _value, _size = _SYMBOL.unpack_from(data, start + number * _SYMBOL.size)
        text = names[name : name + _MAX_NAME].partition(b"\0")[0].decode("ascii", "replace")
        if text:
            yield text, section != _UNDEFINED
