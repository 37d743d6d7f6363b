# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read DKMS's builds for each kernel from its tree, as `dkms status` does.

Sources: dkms 2.8 to 3.2 (dkms.in: module_status, module_status_weak), dkms(8).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import module_name

TREE = "/var/lib/dkms"
MODULES = "/lib/modules"
ADDED, BUILT, INSTALLED, BROKEN = "added", "built", "installed", "broken"

_KERNEL = re.compile(r"[0-9]+\..*")


@dataclass(frozen=True)
class DkmsModule:
    """One version of a DKMS package, for one kernel if it is built.

    state: "added" (its source exists), "broken" (the link to its source is dangling; kernel and arch are None in both), "built" or
    "installed".
    """

    name: str
    version: str
    kernel: str | None
    arch: str | None
    state: str


def read_dkms(sys: SysRoot) -> list[DkmsModule]:
    """Return the content of DKMS's tree, by name and version; no process is started, and no dkms.conf is read.

    Unlike `dkms status`, it does not check whether all modules of a package were built: one is enough.
    """
    built: list[DkmsModule] = []
    for name in sys.list_dir(TREE):
        for version in sys.list_dir(f"{TREE}/{name}"):
            source = f"{TREE}/{name}/{version}/source"
            leads_to = sys.resolve(source)
            if leads_to is not None:
                bare = DkmsModule(name, version, None, None, ADDED if sys.exists(leads_to) else BROKEN)
                built += list(_read_built(sys, name, version)) or [bare]
    return [*built, *_read_weak(sys, built)]


def module_names(sys: SysRoot, dkms: Sequence[DkmsModule], kernel: str) -> frozenset[str]:
    """Return the kernel modules that the packages of read_dkms have installed for a kernel, by their names in the kernel."""
    entries = [entry for entry in dkms if entry.kernel == kernel and entry.state == INSTALLED]
    return frozenset(name for entry in entries for name in _built_names(sys, entry.name, entry.version, kernel, entry.arch))


def _read_built(sys: SysRoot, name: str, version: str) -> Iterator[DkmsModule]:
    """Yield one for each kernel and architecture that has modules in the tree."""
    for kernel in filter(_KERNEL.fullmatch, sys.list_dir(f"{TREE}/{name}/{version}")):
        for arch in sys.list_dir(f"{TREE}/{name}/{version}/{kernel}"):
            if _built_names(sys, name, version, kernel, arch):
                link = f"{TREE}/{name}/kernel-{kernel}-{arch}"
                own = sys.resolve(f"{TREE}/{name}/{version}/{kernel}/{arch}")
                is_installed = sys.link_target(link) is not None and sys.resolve(link) == own
                yield DkmsModule(name, version, kernel, arch, INSTALLED if is_installed else BUILT)


def _built_names(sys: SysRoot, name: str, version: str, kernel: str, arch: str | None) -> frozenset[str]:
    files = sys.list_dir(f"{TREE}/{name}/{version}/{kernel}/{arch}/module")
    return frozenset(module_name(file) for file in files if ".ko" in file)


def _read_weak(sys: SysRoot, built: Sequence[DkmsModule]) -> Iterator[DkmsModule]:
    """Yield modules that are installed for one kernel and linked into the weak-updates of another.

    All modules must be linked, or it does not count.
    """
    installed = [entry for entry in built if entry.state == INSTALLED]
    if not installed:
        return
    for kernel in sys.list_dir(MODULES):
        linked: dict[str, set[str]] = defaultdict(set)
        for file in sys.list_dir(f"{MODULES}/{kernel}/weak-updates"):
            target = (sys.resolve(f"{MODULES}/{kernel}/weak-updates/{file}") or "").partition("/lib/modules/")[2]
            linked[target.partition("/")[0]].add(module_name(file))
        for entry in installed:
            names = _built_names(sys, entry.name, entry.version, str(entry.kernel), entry.arch)
            if entry.kernel != kernel and names <= linked[str(entry.kernel)]:
                yield DkmsModule(entry.name, entry.version, kernel, entry.arch, INSTALLED)


#: The modules of MLNX_OFED and DOCA-OFED themselves, with the names of Debian's and Red Hat's packages.
OFED = ("mlnx-ofed-kernel", "mlnx-ofa_kernel")
#: Modules that are built against them, and cannot be built without them.
ON_OFED = ("fwctl", "iser", "isert", "mlnx-nfsrdma", "mlnx-nvme", "mlnx-rdma-rxe", "srp", "virtiofs")
#: Further ones, by the prefix of their names.
RELEVANT = (
    *("amdgpu", "bnxt", "efa", "gdrdrv", "ice", "irdma", "kernel-mft", "knem", "mlnx-", "nv_peer_mem", "nvidia"),
    *("rshim", "xpmem"),
)


def is_relevant(name: str) -> bool:
    """Return whether RDMA or a GPU needs a DKMS module: others are ignored."""
    return name in OFED or name in ON_OFED or name.startswith(RELEVANT)
