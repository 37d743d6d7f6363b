# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading and writing the configuration space of the kernel's PCI functions: two bytes at a place, as `setpci` does."""

from __future__ import annotations

import errno
import os
from typing import Protocol

from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PCI_DEVICES


class ConfigPort(Protocol):
    """Reads and writes the configuration space of a function. Every method raises OSError, naming the file."""

    def read(self, address: str, offset: int, length: int) -> bytes:
        """Return bytes from an offset on; fewer at the end of the readable part."""
        ...  # pylint: disable=unnecessary-ellipsis

    def write_word(self, address: str, offset: int, value: int) -> None:
        """Write one register of 16 bits and no other."""
        ...  # pylint: disable=unnecessary-ellipsis


class SysfsPort:
    """The ConfigPort of a live host (drivers/pci/pci-sysfs.c), or of a tree with a copy of the files.

    A file is written as one word, so that the kernel makes one transaction of it. In lockdown (Secure Boot) it refuses with EPERM.
    """

    def __init__(self, root: str = "") -> None:
        self._root = root

    def read(self, address: str, offset: int, length: int) -> bytes:
        file = os.open(self._path(address), os.O_RDONLY)
        try:
            return os.pread(file, length, offset)
        finally:
            os.close(file)

    def write_word(self, address: str, offset: int, value: int) -> None:
        file = os.open(self._path(address), os.O_WRONLY)
        try:
            if os.pwrite(file, value.to_bytes(2, "little"), offset) != 2:
                raise OSError(errno.EIO, "a word was written in part", self._path(address))
        finally:
            os.close(file)

    def _path(self, address: str) -> str:
        return f"{self._root}{PCI_DEVICES}/{address}/config"
