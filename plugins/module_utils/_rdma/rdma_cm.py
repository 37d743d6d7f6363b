# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA-CM's defaults for a connection that does not set them: the GID type, and the byte that becomes traffic class and DSCP.

Both belong to one port of one device, and are read and written in configfs (drivers/infiniband/core/cma_configfs.c of Linux). The folder
of a device appears when someone creates it. Its values are the kernel's own and remain when the folder is removed. They are lost
with the device, so a driver reload or a reboot restores the kernel's defaults. So boot and module both call apply_rdma_cm.
NCCL, and perftest without -R, do not use RDMA-CM.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

CONFIGFS, RDMA_CM = "/sys/kernel/config", "/sys/kernel/config/rdma_cm"
MODULE = "/sys/module/rdma_cm"
#: As the kernel spells them (cache.c, gid_type_str).
MODES = ("IB/RoCE v1", "RoCE v2")
NOT_ASKED = "not asked"
MAX_TOS = 255


@dataclass(frozen=True)
class RdmaCm:
    """mode: one of MODES; tos: 0 to 255, the DSCP in its upper six bits, None before Linux 4.11."""

    mode: str | None
    tos: int | None

    @property
    def words(self) -> str:
        return f"mode {self.mode}, ToS {self.tos}"


class Configfs:
    """Creates folders and writes files below one root, where a SysRoot reads; on the running system by default."""

    def __init__(self, root: str = "") -> None:
        self._root = root

    def make(self, path: str) -> None:
        """Create a folder, which the kernel fills. An existing one is not an error. Raises OSError."""
        os.makedirs(self._root + path, exist_ok=True)

    def write(self, path: str, text: str) -> None:
        """Write a value into a file. Raises OSError if the kernel refuses it."""
        Path(self._root + path).write_text(text, encoding="ascii")


def parse_mode(text: str) -> str:
    """Parse default_roce_mode. Raises ParseError."""
    if text.strip() not in MODES:
        raise ParseError(f"not a mode of RDMA-CM: {quoted(text)}, expected one of {', '.join(MODES)}")
    return text.strip()


def parse_tos(text: str) -> int:
    """Parse default_roce_tos. Raises ParseError."""
    if not re.fullmatch(r"\s*[0-9]{1,3}\s*", text, re.ASCII) or int(text) > MAX_TOS:
        raise ParseError(f"not a type of service: {quoted(text)}, expected 0 to 255")
    return int(text)


def read_rdma_cm(device: str, port: int, sys: SysRoot) -> RdmaCm | None:
    """Return the current values of a port; None if the device's folder does not exist. Reading does not create it. Raises ParseError."""
    base = rdma_cm_folder(device, port)
    mode, tos = sys.value(f"{base}/default_roce_mode", parse_mode), sys.value(f"{base}/default_roce_tos", parse_tos)
    return None if mode is None or tos is None else RdmaCm(mode, tos)


def apply_rdma_cm(
    device: str, port: int, requested: RdmaCm, *, sys: SysRoot, configfs: Configfs, check_mode: bool
) -> tuple[str, str] | None:
    """Set a port's values as requested, and read back: (seen, planned) in words, None if nothing differed.

    Check mode creates no folder. Without it the values are invisible, and then count as differing ("not asked").
    Raises ApplyError with the reason if they cannot be read, are refused, or do not take effect.
    """
    if not check_mode:
        _open(device, sys, configfs)
    seen = read_rdma_cm(device, port, sys)
    if seen == requested:
        return None
    if not check_mode:
        if seen is None:
            raise ApplyError(f"{device} has no port {port} in {RDMA_CM}/{device}/ports.")
        _write(device, port, seen, requested, configfs)
        after = read_rdma_cm(device, port, sys)
        if after != requested:
            raise ApplyError(f"RDMA-CM of {device}/{port} was set to {requested.words}, but after writing it has {_words(after)}.")
    return _words(seen), requested.words


def rdma_cm_folder(device: str, port: int | str) -> str:
    """Return the folder with the values of a port, which exists once the device's folder was created."""
    return f"{RDMA_CM}/{device}/ports/{port}"


def _words(seen: RdmaCm | None) -> str:
    return NOT_ASKED if seen is None else seen.words


def _open(device: str, sys: SysRoot, configfs: Configfs) -> None:
    """Make the kernel show a device's values."""
    if not sys.exists(RDMA_CM):
        raise ApplyError(f"There is no {RDMA_CM}: {_why(sys)}.")
    try:
        configfs.make(f"{RDMA_CM}/{device}")
    except OSError as exc:
        raise ApplyError(f"RDMA-CM does not show {device}: {exc.strerror}. See `rdma link` for the devices that there are.") from exc


def _why(sys: SysRoot) -> str:
    if not sys.exists(MODULE):
        return "the module rdma_cm is not loaded: `modprobe rdma_cm`"
    if not sys.list_dir(CONFIGFS):
        return f"configfs is not mounted: `mount -t configfs none {CONFIGFS}`"
    return "this kernel was built without CONFIG_INFINIBAND_ADDR_TRANS_CONFIGFS"


def _write(device: str, port: int, seen: RdmaCm, requested: RdmaCm, configfs: Configfs) -> None:
    base = rdma_cm_folder(device, port)
    for name, now, value in (("default_roce_mode", seen.mode, requested.mode), ("default_roce_tos", str(seen.tos), str(requested.tos))):
        if now == value:
            continue
        try:
            configfs.write(f"{base}/{name}", f"{value}\n")
        except OSError as exc:
            raise ApplyError(f"{base}/{name} does not take {value!r}: {exc.strerror}.") from exc
