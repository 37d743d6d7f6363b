# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration space of a PCI function for tests, laid out as a ConnectX-7 lays out its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.config import PciConfig, read_config

PCIE, ACS = 0x60, 0x230


def decoded_config(data: bytes) -> PciConfig:
    """What read_config makes of a file of these bytes."""
    with tempfile.TemporaryDirectory() as root:
        Path(root, "config").write_bytes(data)
        config = read_config(SysRoot(root), "")
    assert config is not None
    return config


def config_space(
    *,
    size: int = 4096,
    header_type: int = 0,
    port_type: int = 0,
    capability: int = 0,
    control: int = 0x5020,
    link_capability: int = 0x105,
    link_status: int = 0x105,
    acs: int | None = 0,
) -> bytes:
    """The first size bytes; registers as they stand there, Device Control 0x5020 for payload 256 and read requests of 4096.

    acs: the control register, None for no such capability.
    """
    data = bytearray(4096)
    put(data, 0x00, 0x15B3, 0x1021, 0x0006, 0x0010)
    data[0x0E], data[0x34] = header_type, 0x40
    put(data, 0x40, 0x0001 | PCIE << 8)
    put(data, PCIE, 0x0010 | 0x9C << 8, 0x0002 | port_type << 4, capability, 0, control)
    put(data, PCIE + 12, link_capability, 0, 0, link_status)
    put(data, 0x9C, 0x0011)
    put(data, 0x100, 0x0001, 0x0001 | (0x150 << 4))
    put(data, 0x150, 0x000E, 0x0001 | (0 if acs is None else ACS << 4))
    if acs is not None:
        put(data, ACS, 0x000D, 0x0001, 0x007F, acs)
    return bytes(data[:size])


def put(data: bytearray, offset: int, *words: int) -> None:
    """Write words of 16 bits, little-endian, from offset on."""
    for index, word in enumerate(words):
        data[offset + 2 * index : offset + 2 * index + 2] = word.to_bytes(2, "little")
