# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host with a card of two functions and a GPU below one PCIe switch, as a tree of /sys with configuration spaces that can be written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pci.port import SysfsPort
from tests.unit.builders.config_space import config_space
from tests.unit.builders.trees import write_tree

ROOT_PORT, UPSTREAM, ABOVE_NIC, ABOVE_GPU = "0000:3a:01.0", "0000:3b:00.0", "0000:3c:00.0", "0000:3c:01.0"
NIC, SECOND, VIRTUAL, GPU, OTHER = "0000:3d:00.0", "0000:3d:00.1", "0000:3d:00.2", "0000:3f:00.0", "0000:5e:00.0"
_ROOT = f"/sys/devices/pci0000:3a/{ROOT_PORT}"
_SWITCH = f"{_ROOT}/{UPSTREAM}"
PATHS = {
    ROOT_PORT: _ROOT,
    UPSTREAM: _SWITCH,
    ABOVE_NIC: f"{_SWITCH}/{ABOVE_NIC}",
    ABOVE_GPU: f"{_SWITCH}/{ABOVE_GPU}",
    NIC: f"{_SWITCH}/{ABOVE_NIC}/{NIC}",
    SECOND: f"{_SWITCH}/{ABOVE_NIC}/{SECOND}",
    VIRTUAL: f"{_SWITCH}/{ABOVE_NIC}/{VIRTUAL}",
    GPU: f"{_SWITCH}/{ABOVE_GPU}/{GPU}",
    OTHER: f"/sys/devices/pci0000:5d/{OTHER}",
}
#: What the kernel sets on a port where it finds an IOMMU: SrcValid, ReqRedir, CmpltRedir and UpstreamFwd; here with TransBlk.
GUARDED = 0x1F
#: Device Control as a driver leaves it: payload 256, read requests of 512, no snoop, extended tags, error reports.
CONTROL = 0x293F
SPACES: dict[str, dict[str, Any]] = {
    ROOT_PORT: {"header_type": 1, "port_type": 4, "acs": GUARDED},
    UPSTREAM: {"header_type": 1, "port_type": 5, "acs": None},
    ABOVE_NIC: {"header_type": 1, "port_type": 6, "acs": GUARDED},
    ABOVE_GPU: {"header_type": 1, "port_type": 6, "acs": GUARDED},
    NIC: {"control": CONTROL, "acs": None},
    SECOND: {"control": CONTROL, "acs": None},
    VIRTUAL: {"control": 0, "acs": None},
    GPU: {"control": CONTROL, "acs": None},
    OTHER: {"control": CONTROL, "acs": None},
}


def pcie_host(root: Path, *, device: str = "0x1021", model: str = "NVIDIA H100 80GB HBM3", virtual: bool = False) -> Path:
    """Write the tree: a ConnectX of this device id, a GPU of this model ("" for no driver), on bare metal or in a virtual machine."""
    shutil.rmtree(root, ignore_errors=True)
    text = "".join(f"/sys/bus/pci/devices/{address} -> ../../../{path[len('/sys/') :]}\n" for address, path in PATHS.items())
    for address in (NIC, SECOND, VIRTUAL, OTHER):
        text += f"{PATHS[address]}/class: 0x020000\n{PATHS[address]}/vendor: 0x15b3\n{PATHS[address]}/device: {device}\n"
    text += f"{PATHS[VIRTUAL]}/physfn -> ../{NIC}\n{PATHS[GPU]}/class: 0x030200\n{PATHS[GPU]}/vendor: 0x10de\n"
    text += f"/proc/cpuinfo: processor : 0\\nflags\t\t: fpu {'hypervisor ' if virtual else ''}vme\\n\n"
    if model:
        text += f"/proc/driver/nvidia/gpus/{GPU}/information: Model: \t\t {model}\\nBus Location: \t {GPU}\\n\n"
    # Process 1 is there on a running host: without it, a job could be out of sight.
    write_tree(root, f"{text}/proc/1/comm: systemd\n")
    for address, space in SPACES.items():
        (root / PATHS[address][1:] / "config").write_bytes(config_space(**space))
    return root


def config_of(root: Path, address: str) -> bytes:
    return (root / PATHS[address][1:] / "config").read_bytes()


class DeafPort(SysfsPort):
    """A host whose devices ignore what is written, as the NICs that QEMU makes up do."""

    def write_word(self, address: str, offset: int, value: int) -> None:
        self.read(address, offset, 2)


class LockedPort(SysfsPort):
    """A host whose kernel is locked down."""

    def write_word(self, address: str, offset: int, value: int) -> None:
        raise PermissionError(1, "Operation not permitted", address)
