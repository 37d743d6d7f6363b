# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the driver stack of a host: the loaded modules, the ones that would be loaded now and their origin, and the kernels for builds."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_report import LastBuild, read_last_build
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import Distribution, read_distribution
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import DkmsModule, module_names, read_dkms
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernels import newest, read_headers, read_kernels
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import (
    Module,
    ModuleFile,
    provenance,
    read_modinfo,
    read_module_files,
)
from ansible_collections.rdma.cluster.plugins.module_utils._driver.secure_boot import (
    Mok,
    read_lockdown,
    read_mok,
    read_secure_boot,
    read_unread,
)
from ansible_collections.rdma.cluster.plugins.module_utils._driver.storage_uses import StorageUse, read_storage_uses
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.nics import DRIVER_MODULES

# mlx_compat is the layer below every module of MLNX_OFED and DOCA-OFED; no kernel has it.
OFED_MODULE = "mlx_compat"
# The modules below those of RDMA: in addition to MODULES, all that hold one of these, and their holders, count as modules for RDMA.
BASES = ("ib_core", "mlx5_core", OFED_MODULE)
MODULES = (
    *DRIVER_MODULES,
    *("gdrdrv", "ib_core", "ib_ipoib", "ib_umad", "ib_uverbs", OFED_MODULE, "nv_peer_mem", "nvidia_peermem", "rdma_cm"),
    *("rdma_rxe", "rdma_ucm", "siw"),
)
#: The module that identifies a stack.
DRIVER = "mlx5_core"
OFED_INFO = "/usr/bin/ofed_info"
_COUNT = re.compile(r"-?[0-9]{1,10}")
# if [ "X$1" == "X-s" ]; then echo MLNX_OFED_LINUX-24.10-1.1.4.0:; exit 0; fi
_SHORT_ANSWER = re.compile(
    r"-s[\"']?[ \t]{0,9}\]{1,2}[ \t]{0,9};[ \t]{0,9}then[ \t]{1,9}echo[ \t]{1,9}[\"']?([A-Za-z][\w.+-]{0,99}?):?[\"']?[ \t]{0,9};",
    re.ASCII,
)
# The heading of the long answer: MLNX_OFED_LINUX-24.10-1.1.4.0 (OFED-24.10-1.1.4):
_HEADING = re.compile(
    r"^([A-Za-z_]{0,20}OFED[A-Za-z_]{0,20}(?:-internal)?-[0-9][\w.-]{0,99})(?:[ \t]{0,9}\([^()\n]{0,99}\))?:?[ \t]{0,9}\r?$",
    re.ASCII | re.MULTILINE,
)


@dataclass(frozen=True)
class Stack:
    """The driver stack: kind is "ofed" if its compatibility layer is loaded, and not guessed otherwise.

    kernel: the running one; kernels: the installed ones, oldest first; newest: of those the newest of the running one's flavor; headers:
    whether modules can be built for a kernel, the running one included. ofed_version: the output of `ofed_info -s`, None if it is not
    installed, or if the script has no version. mok: the key that DKMS signs with, None if Secure Boot is not on, and for a captured tree.
    uses: storage behind RDMA, None if it was not read. driver_files: the file that modprobe would load as mlx5_core, for each kernel that
    depmod knows: "updates/dkms/mlx5_core.ko"; last_build: how the last installation failed, None if it did not. arch: of the machine, from
    uname; None for a captured tree. lockdown: of the kernel, "none", "integrity" or "confidentiality"; None without its file. unread: names
    of fields that are None because they could not be read, of secure_boot and lockdown.
    """

    kind: str | None
    kernel: str | None
    modules: dict[str, Module]
    distribution: Distribution
    kernels: list[str]
    newest: str | None
    headers: dict[str, bool]
    secure_boot: bool | None
    dkms: list[DkmsModule]
    ofed_version: str | None
    mok: Mok | None = None
    uses: list[StorageUse] | None = None
    driver_files: dict[str, str | None] | None = None
    last_build: LastBuild | None = None
    arch: str | None = None
    lockdown: str | None = None
    unread: list[str] = field(default_factory=list)


def parse_refcount(text: str) -> int:
    """Parse /sys/module/NAME/refcnt (kernel/module/main.c): -1 while the module is being removed."""
    if not _COUNT.fullmatch(text):
        raise ParseError(f"not a count of users: {quoted(text)}, expected a number")
    return int(text)


def parse_ofed_script(text: str) -> str:
    """Return the version in the script ofed_info of MLNX_OFED and DOCA-OFED: "MLNX_OFED_LINUX-24.10-1.1.4.0", "OFED-internal-25.10-1.7.1".

    Raises ParseError if it does not have the form of those of 1.5 to 25.10.
    """
    found = _SHORT_ANSWER.search(text) or _HEADING.search(text)
    if found is None:
        raise ParseError(f"no version of OFED: {quoted(text)}, expected a line 'echo MLNX_OFED_LINUX-24.10-1.1.4.0:'")
    return found[1]


def read_ofed_version(sys: SysRoot) -> str | None:
    """Return the installed OFED by its own script, which is read and not run; None without one, and if it has no version."""
    try:
        return sys.value(OFED_INFO, parse_ofed_script)
    except ParseError:
        return None


def read_stack(sys: SysRoot, runner: Runner | None, packages: Sequence[str] = ()) -> Stack:
    """Read everything. packages: names for the distribution's query in addition to its own.

    runner: that of the system that sys is the root of. It is used for the modules' files, in one run of modinfo, for RPM's packages, and
    for the key of DKMS if Secure Boot is on.

    Raises ParseError for another form of file or output, and OSError for a file that cannot be read.
    """
    kernel = sys.text("/proc/sys/kernel/osrelease")
    kernels = read_kernels(sys)
    running = kernels if kernel is None or kernel in kernels else [*kernels, kernel]
    dkms = read_dkms(sys)
    modules = _read_modules(sys, runner, dkms)
    distribution = read_distribution(sys, runner, packages)
    secure_boot, lockdown = read_secure_boot(sys), read_lockdown(sys)
    return Stack(
        kind="ofed" if OFED_MODULE in modules else None,
        kernel=kernel,
        modules=modules,
        distribution=distribution,
        kernels=kernels,
        newest=newest(kernels, kernel),
        headers=read_headers(sys, running),
        secure_boot=secure_boot,
        dkms=dkms,
        ofed_version=read_ofed_version(sys),
        mok=read_mok(sys, runner, distribution, kernel) if secure_boot and runner is not None else None,
        uses=read_storage_uses(sys),
        driver_files=read_module_files(sys, running, DRIVER),
        last_build=read_last_build(sys),
        arch=platform.machine() if runner is not None else None,
        lockdown=lockdown,
        unread=read_unread(sys, secure_boot, lockdown),
    )


def _read_modules(sys: SysRoot, runner: Runner | None, dkms: Sequence[DkmsModule]) -> dict[str, Module]:
    loaded = [name for name in sorted({*MODULES, *_holders(sys)}) if sys.exists(f"/sys/module/{name}")]
    files = read_modinfo(runner, loaded) if runner is not None else {}
    return {name: _read_module(sys, name, files.get(name), dkms) for name in loaded}


def _holders(sys: SysRoot) -> set[str]:
    """Return all modules that hold one of BASES, directly or through another."""
    found: set[str] = set()
    pending = list(BASES)
    while pending:
        new = set(sys.list_dir(f"/sys/module/{pending.pop()}/holders")) - found
        found |= new
        pending += sorted(new)
    return found


def _read_module(sys: SysRoot, name: str, file: ModuleFile | None, dkms: Sequence[DkmsModule]) -> Module:
    base = f"/sys/module/{name}"
    return Module(
        version=sys.text(f"{base}/version"),
        srcversion=sys.text(f"{base}/srcversion"),
        holders=sys.list_dir(f"{base}/holders"),
        file=file.file if file is not None else None,
        file_version=file.version if file is not None else None,
        file_srcversion=file.srcversion if file is not None else None,
        provenance=_provenance(sys, file.file, dkms) if file is not None else None,
        signer=file.signer if file is not None else None,
        refcount=sys.value(f"{base}/refcnt", parse_refcount),
    )


def _provenance(sys: SysRoot, file: str, dkms: Sequence[DkmsModule]) -> str | None:
    """Return the origin of a file; a file in weak-updates is a link to the file of the kernel that it was built for."""
    target = (sys.resolve(file) if file.startswith("/") else None) or file
    kernel = target.partition("/lib/modules/")[2].partition("/")[0]
    return provenance(file, module_names(sys, dkms, kernel))
