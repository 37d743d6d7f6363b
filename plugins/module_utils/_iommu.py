# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The IOMMU, and whether the host is a virtual machine: what decides whether GPU and NIC reach each other directly."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

_GROUPS = "/sys/kernel/iommu_groups"
_CLASS = "/sys/class/iommu"
_DMI = "/sys/class/dmi/id"
#: iommu_group_show_type() of drivers/iommu/iommu.c. The rest ("unmanaged", "blocked") belongs to a virtual machine, or to none.
_MODES = {"identity": "passthrough", "DMA": "translated", "DMA-FQ": "translated"}
# /proc/cpuinfo repeats itself for each processor, and the kernel works for each: the first one's flags stand in this much.
_FIRST_CPU_BYTES = 8192
_FLAGS = re.compile(r"^flags[ \t]*:([^\n]*)\n", re.MULTILINE)
_VIRTUAL = re.compile(
    r"\b(QEMU|KVM|VMware|VirtualBox|Xen|Bochs|Bhyve|Parallels|OpenStack|Virtual Machine|Google Compute Engine|Alibaba Cloud ECS)\b"
    r"|\bAmazon EC2\b(?!.*metal)",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True)
class Iommu:
    """present: whether the kernel uses one. mode: "off", "passthrough" (identity), "translated" or "mixed".

    Both are None for a captured tree without the folders that tell; mode also where there are groups that do not tell (before
    Linux 4.11). virtual_machine is None where nothing tells.
    """

    present: bool | None
    mode: str | None
    virtual_machine: bool | None


def read_iommu(sys: SysRoot, *, running: bool = False) -> Iommu:
    """What /sys and /proc say of it. running: of the running system, where a folder that is not there says that there is none."""
    virtual_machine = _read_virtual_machine(sys)
    if not running and not any(sys.exists(path) for path in (_GROUPS, _CLASS)):
        return Iommu(None, None, virtual_machine)
    groups = sys.list_dir(_GROUPS)
    return Iommu(bool(groups or sys.list_dir(_CLASS)), _read_mode(sys, groups) if groups else "off", virtual_machine)


def _read_mode(sys: SysRoot, groups: list[str]) -> str | None:
    modes = set()
    for group in groups:
        mode = _MODES.get(sys.text(f"{_GROUPS}/{group}/type") or "")
        modes |= {mode} if mode is not None else set()
        if len(modes) > 1:
            return "mixed"
    return next(iter(modes), None)


def _read_virtual_machine(sys: SysRoot) -> bool | None:
    """x86 has a flag that every hypervisor sets; elsewhere the firmware's names of maker and product tell."""
    flags = _FLAGS.search(_first_cpu(sys))
    if flags is not None:
        return "hypervisor" in flags[1].split()
    names = " ".join(filter(None, (sys.text(f"{_DMI}/{name}") for name in ("sys_vendor", "product_name"))))
    return _VIRTUAL.search(names) is not None if names else None


def _first_cpu(sys: SysRoot) -> str:
    data = sys.use("/proc/cpuinfo", lambda file: os.read(file, _FIRST_CPU_BYTES))
    return (data or b"").decode("utf-8", "replace")
