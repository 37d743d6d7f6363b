# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import Iommu, read_iommu
from tests.unit.builders.trees import write_tree

UNIT = "/sys/class/iommu/dmar0 -> ../../devices/virtual/iommu/dmar0\n/sys/devices/virtual/iommu/dmar0/uevent: \n"


def groups(*types: str) -> str:
    return "".join(f"/sys/kernel/iommu_groups/{number}/type: {kind}\n" for number, kind in enumerate(types))


MODES = {
    "folders that were not captured": ("/sys/kernel/uevent_seqnum: 1", None, None),
    "there, and not used": (UNIT, True, "off"),
    "passthrough": (UNIT + groups("identity", "identity"), True, "passthrough"),
    "translated": (UNIT + groups("DMA", "DMA"), True, "translated"),
    "translated, flushed late": (UNIT + groups("DMA-FQ", "DMA-FQ"), True, "translated"),
    "translated in both ways": (UNIT + groups("DMA-FQ", "DMA"), True, "translated"),
    "mixed": (UNIT + groups("DMA", "identity", "DMA"), True, "mixed"),
    "groups of virtual machines aside": (UNIT + groups("identity", "unmanaged", "blocked"), True, "passthrough"),
    "nothing but virtual machines'": (groups("unmanaged", "unknown"), True, None),
    "kernel that does not report": ("/sys/kernel/iommu_groups/0/devices/x: \n", True, None),
}


@pytest.mark.parametrize(("text", "present", "mode"), MODES.values(), ids=MODES)
def test_the_iommu(tmp_path: Path, text: str, present: bool | None, mode: str | None) -> None:
    assert read_iommu(SysRoot(str(write_tree(tmp_path, text)))) == Iommu(present, mode, None)


def test_a_running_system_without_its_folders_has_none(tmp_path: Path) -> None:
    assert read_iommu(SysRoot(str(tmp_path)), running=True) == Iommu(present=False, mode="off", virtual_machine=None)


def test_folders_without_entries_are_no_iommu(tmp_path: Path) -> None:
    (tmp_path / "sys/class/iommu").mkdir(parents=True)
    assert read_iommu(SysRoot(str(tmp_path))) == Iommu(present=False, mode="off", virtual_machine=None)


def dmi(vendor: str, product: str) -> str:
    return f"/sys/class/dmi/id/sys_vendor: {vendor}\n/sys/class/dmi/id/product_name: {product}\n"


CPU = "/proc/cpuinfo: processor\t: 0\\nflags\t\t: fpu vme {}\\nbugs\t\t:\\n\\nprocessor\t: 1\\n"
ARM = "/proc/cpuinfo: processor\t: 0\\nFeatures\t: fp asimd evtstrm hypervisor\\n\n"
MACHINES = {
    "x86 virtual": (CPU.format("hypervisor lahf_lm"), True),
    "x86 physical": (CPU.format("vmx lahf_lm"), False),
    "x86 physical of a cloud": (CPU.format("vmx") + "\n" + dmi("Amazon EC2", "p5.48xlarge"), False),
    "x86 flag at the end": (CPU.format("hypervisor"), True),
    "x86 other word": (CPU.format("nohypervisor2"), False),
    "ARM virtual": (ARM + dmi("QEMU", "KVM Virtual Machine"), True),
    "ARM physical": (ARM + dmi("Supermicro", "ARS-111GL-NHR"), False),
    "ARM virtual of a cloud": (ARM + dmi("Amazon EC2", "g5g.16xlarge"), True),
    "ARM physical of a cloud": (ARM + dmi("Amazon EC2", "g5g.metal"), False),
    "ARM virtual of another cloud": (ARM + dmi("Microsoft Corporation", "Virtual Machine"), True),
    "ARM without firmware's names": (ARM, None),
    "only the firmware's names": (dmi("NVIDIA", "DGXH100"), False),
    "flags that were cut off": ("/proc/cpuinfo: flags\t\t: fpu " + "x" * 9000, None),
}


@pytest.mark.parametrize(("text", "virtual"), MACHINES.values(), ids=MACHINES)
def test_virtual_machines(tmp_path: Path, text: str, virtual: bool | None) -> None:
    assert read_iommu(SysRoot(str(write_tree(tmp_path, text)))).virtual_machine is virtual


def test_one_processor_is_read_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    read = os.read

    def counted(file: int, length: int) -> bytes:
        data = read(file, length)
        lengths.append(len(data))
        return data

    monkeypatch.setattr(os, "read", counted)
    tree = write_tree(tmp_path, CPU.format("hypervisor " + "x " * 500) * 200)
    assert read_iommu(SysRoot(str(tree))).virtual_machine is True
    assert sum(lengths) == 8192
