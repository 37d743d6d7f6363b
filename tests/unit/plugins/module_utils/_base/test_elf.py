# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The symbols of libraries: real ones of this machine, stand-ins from bytes, and damaged files."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.elf import MACHINES, read_elf
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from tests.unit.builders.net_plugin import elf

LIBM = [path for path in Path("/").glob("lib*/**/libm.so.6") if path.is_file()]


@pytest.mark.skipif(not LIBM, reason="no libm.so.6 here")
def test_a_real_library() -> None:
    symbols = read_elf(LIBM[0].read_bytes())
    assert symbols.machine in MACHINES.values()
    assert {"cos", "sqrt"} <= symbols.defined
    assert "__stack_chk_fail" in symbols.undefined or any(name.startswith("__") for name in symbols.undefined)
    assert not symbols.defined & {"ibv_open_device"}


def test_defined_and_undefined_names() -> None:
    symbols = read_elf(elf(["ncclNetPlugin_v9"], ["ibv_open_device", "malloc"], 183))
    assert (symbols.machine, symbols.defined, symbols.undefined) == ("aarch64", {"ncclNetPlugin_v9"}, {"ibv_open_device", "malloc"})
    assert read_elf(elf(machine=8)).machine == "machine 8"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no 64-bit little-endian ELF file"),
        (b"#!/bin/sh\n", "no 64-bit little-endian ELF file"),
        (b"\x7fELF\x01\x01" + bytes(80), "no 64-bit little-endian ELF file"),
        (b"\x7fELF\x02\x01", "ends too early"),
        (elf()[:100], "ends too early"),
        (elf()[:16] + struct.pack("<H", 1) + elf()[18:], "no shared library: type 1"),
    ],
    ids=["empty", "script", "32 bit", "header", "cut", "object"],
)
def test_what_is_no_library_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        read_elf(data)


def test_damaged_libraries_are_read_or_refused() -> None:
    whole, chance = elf(["a", "b"], ["c"]), random.Random(int(os.environ.get("RDMA_TEST_SEED", "1")))
    refused = 0
    for _round in range(500):
        data = bytearray(whole)
        for _byte in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            read_elf(bytes(data[: chance.randrange(1, len(data) + 1)]))
        except ParseError:
            refused += 1
    assert refused > 100


def test_a_table_with_too_many_symbols_is_refused() -> None:
    data = bytearray(elf(["a"]))
    offset = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<Q", data, offset + 64 + 32, 24 * 10_000_000)
    with pytest.raises(ParseError, match="a symbol table of 240000000 bytes"):
        read_elf(bytes(data))
