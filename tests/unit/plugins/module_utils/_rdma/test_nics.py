# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.nics import read_nics
from tests.unit.builders.trees import write_tree

CLASSES = {"01": "0x020000", "02": "0x020700", "03": "0x030200", "04": "0x020000", "05": "0x020000"}


def tree(root: Path) -> SysRoot:
    text = "/sys/devices/pci0000:00/0000:00:05.0/physfn -> ../0000:00:04.0\n"
    for number, kind in CLASSES.items():
        function = f"/sys/devices/pci0000:00/0000:00:{number}.0"
        text += f"{function}/class: {kind}\n{function}/current_link_speed: 16.0 GT/s PCIe\n{function}/current_link_width: 8\n"
        text += f"/sys/bus/pci/devices/0000:00:{number}.0 -> ../../../devices/pci0000:00/0000:00:{number}.0\n"
    return SysRoot(str(write_tree(root, text)))


def test_cards_without_an_rdma_device(tmp_path: Path) -> None:
    sys = tree(tmp_path)

    nics = read_nics(sys, PciReader(sys), {"0000:00:01.0"})

    assert {address: (nic.speed_gtps, nic.width) for address, nic in nics.items()} == {"0000:00:02.0": (16.0, 8), "0000:00:04.0": (16.0, 8)}


def test_a_tree_without_pci_has_none(tmp_path: Path) -> None:
    sys = SysRoot(str(tmp_path))
    assert read_nics(sys, PciReader(sys), ()) == {}
