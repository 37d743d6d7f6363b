# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""nvidia_peermem: loaded now and at every boot, and rebuilt if it was built without the running RDMA stack."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile, ensure_files, listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import INSTALLED, read_dkms
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import PEERMEM_MODULES
from ansible_collections.rdma.cluster.plugins.module_utils._driver.swap import is_present, kernel_messages
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpus import read_gpu_driver

MODULE = "nvidia_peermem"
#: modules-load.d(5). If a module in it cannot be loaded, systemd-modules-load.service fails, and the host is degraded.
BOOT_FILE = "/etc/modules-load.d/rdma-cluster-gpudirect.conf"
BOOT_TEXT = f"# Managed by rdma.cluster: how NICs reach the memory of GPUs.\n{MODULE}\n"
#: The DKMS names of the driver, as NVIDIA, Debian, Ubuntu and Fedora's packagers use them.
DKMS_NAMES = ("nvidia", "nvidia-open", "nvidia-current", "nvidia-current-open", "nvidia-srv", "nvidia-srv-open")
#: Built without ib_register_peer_memory_client (its init says EINVAL), or against another RDMA stack (symbols, and their CRCs).
_OTHER_STACK = ("Invalid argument", "Unknown symbol", "disagrees about version", "Exec format error")
_DKMS_VERSION = re.compile(r"dkms[-: ]+v?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?")
#: Older versions of dkms keep the existing build on `dkms build --force`.
_BUILDS_AGAIN = (3, 0, 7)


@dataclass(frozen=True)
class PeermemResult:
    """The changes that were made, or would be in check mode. rebuilt: the DKMS module that was built again ("nvidia/550.54.15"), if any.

    withheld: the driver to rebuild and why it is not rebuilt, "" if there is no need; then the module is not loaded.
    """

    loaded: bool
    rebuilt: str | None
    files: list[FileChange]
    withheld: str = ""

    @property
    def changed(self) -> bool:
        return bool(self.loaded or self.rebuilt or self.files)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the form that Ansible's --diff prints."""
        return [
            *listed_diff("DKMS modules built again", [self.rebuilt] if self.rebuilt else []),
            *listed_diff("loaded kernel modules", [MODULE] if self.loaded else []),
            *(file.to_diff() for file in self.files),
        ]


def boot_files(*, at_boot: bool) -> list[ManagedFile]:
    """Return the file that loads the module at boot, or its removal."""
    return [ManagedFile(BOOT_FILE, BOOT_TEXT if at_boot else None)]


def ensure_loaded(*, build_seconds: float, refused: Callable[[], str], runner: Runner, sys: SysRoot, check_mode: bool) -> PeermemResult:
    """Load nvidia_peermem now and at boot; if it does not match the RDMA stack, rebuild the NVIDIA driver once.

    A loaded nv_peer_mem, which has its own service, is enough. Check mode assumes that the module loads as it is.
    refused: called right before a build, returns why it is not allowed now, "" if it is. If refused, nothing is built, and the result
    has what is withheld. Raises ApplyError with the remedy. If the module cannot be loaded, it is not loaded at boot either.
    """
    others = [name for name in PEERMEM_MODULES if name != MODULE and is_present(name, sys)]
    load = not is_present(MODULE, sys) and not others
    rebuilt: str | None = None
    try:
        why = _load_as_it_is(runner, sys) if load and not check_mode else None
        if why is not None:
            version = _dkms_module(why, sys)
            reason = refused()
            if reason:
                files = ensure_files(boot_files(at_boot=False), check_mode=check_mode)
                withheld = f"{'/'.join(version)} has to be built again by DKMS for the loaded RDMA stack: {reason}"
                return PeermemResult(loaded=False, rebuilt=None, files=files, withheld=withheld)
            rebuilt = _load_rebuilt(version, build_seconds, runner, sys)
    except (ApplyError, CommandError):
        ensure_files(boot_files(at_boot=False), check_mode=check_mode)
        raise
    return PeermemResult(load, rebuilt, ensure_files(boot_files(at_boot=not others), check_mode=check_mode))


def ensure_not_at_boot(*, check_mode: bool) -> PeermemResult:
    """Remove the boot file. A loaded module stays, because jobs may use it."""
    return PeermemResult(loaded=False, rebuilt=None, files=ensure_files(boot_files(at_boot=False), check_mode=check_mode))


def _load_as_it_is(runner: Runner, sys: SysRoot) -> str | None:
    """Load it; return None, or the message that it was built for another RDMA stack. Raises ApplyError for any other failure."""
    why = _try(runner, sys)
    if why is not None and not any(sign in why for sign in _OTHER_STACK):
        raise ApplyError(f"Cannot load {MODULE}: {why}. {_advice(why)}")
    return why


def _load_rebuilt(version: tuple[str, str], build_seconds: float, runner: Runner, sys: SysRoot) -> str:
    """Rebuild the NVIDIA driver and load the module; return which driver it was."""
    _rebuild(*version, build_seconds, runner, sys)
    again = _try(runner, sys)
    if again is not None:
        raise ApplyError(
            f"{'/'.join(version)} was built again, and {MODULE} still cannot be loaded: {again}. The headers of the RDMA stack "
            "(/usr/src/ofa_kernel) must be those of the stack that is loaded: install them, or use DMA-BUF (rdma_gpudirect.path: dmabuf)."
        )
    return "/".join(version)


def _try(runner: Runner, sys: SysRoot) -> str | None:
    """Load it; return None, or the errors of modprobe and the kernel."""
    done = runner.run(["modprobe", MODULE], timeout_seconds=120)
    if done.rc == 0 and is_present(MODULE, sys):
        return None
    about = [line for line in kernel_messages(runner, [MODULE]) if MODULE in line.replace("-", "_")]
    return " | ".join([done.stderr.strip() or f"modprobe ended with {done.rc}, and it is not in the kernel", *about])


def _advice(why: str) -> str:
    if "not found" in why:
        return "It comes with NVIDIA's driver since 470: install the driver's modules for this kernel."
    if "Key was rejected" in why or "Required key" in why:
        return "Secure Boot is on, and nobody enrolled has signed it: enroll the key that DKMS signs with, and build it again."
    return "See what dmesg says of it, or use DMA-BUF (rdma_gpudirect.path: dmabuf)."


def _dkms_module(why: str, sys: SysRoot) -> tuple[str, str]:
    """Return name and version of the DKMS driver from which modprobe takes the module. Raises ApplyError if there is none to rebuild."""
    kernel, driver = sys.text("/proc/sys/kernel/osrelease"), read_gpu_driver(sys)
    entries = [entry for entry in read_dkms(sys) if entry.name in DKMS_NAMES and entry.kernel == kernel and entry.state == INSTALLED]
    doubt = f"{MODULE} does not suit the RDMA stack that is loaded ({why})"
    if not entries:
        raise ApplyError(
            f"{doubt}, and DKMS has no NVIDIA driver for {kernel} that could be built again: install the driver's DKMS package, after the "
            "RDMA stack, or use DMA-BUF (rdma_gpudirect.path: dmabuf)."
        )
    entry = entries[-1]
    if driver is not None and driver.version not in (None, entry.version):
        raise ApplyError(f"{doubt}, and NVIDIA driver {driver.version} is loaded while DKMS has {entry.version}: reboot the host first.")
    return entry.name, entry.version


def _rebuild(name: str, version: str, build_seconds: float, runner: Runner, sys: SysRoot) -> None:
    """Build it again and install it. A failed build leaves the installed one in place."""
    module = ["-m", name, "-v", version, "-k", sys.text("/proc/sys/kernel/osrelease") or ""]
    log = f"/var/lib/dkms/{name}/{version}/build/make.log"
    if _dkms_version(runner) >= _BUILDS_AGAIN:
        _dkms(["dkms", "build", *module, "--force"], log, build_seconds, runner)
        _dkms(["dkms", "install", *module, "--force"], log, build_seconds, runner)
        return
    _try_build(module, build_seconds, runner, log=f"{name}/{version}/build/make.log")
    _dkms(["dkms", "unbuild", *module], log, build_seconds, runner)
    _dkms(["dkms", "install", *module], log, build_seconds, runner)


def _try_build(module: Sequence[str], build_seconds: float, runner: Runner, log: str) -> None:
    """Build it in a tree of its own: this dkms removes the installed module before it builds."""
    folder = tempfile.mkdtemp(prefix="rdma-cluster-dkms-", dir="/var/tmp")
    # If it fails, the folder stays, because it has the log.
    _dkms(["dkms", "build", *module, "--dkmstree", folder], f"{folder}/{log}", build_seconds, runner)
    shutil.rmtree(folder)


def _dkms_version(runner: Runner) -> tuple[int, ...]:
    """Return the version of `dkms --version`: "dkms: 2.8.7", "dkms-3.0.11". An unknown version counts as an old one."""
    done = runner.run(["dkms", "--version"])
    match = _DKMS_VERSION.search(f"{done.stdout} {done.stderr}")
    return tuple(int(number or 0) for number in match.groups()) if match is not None else (0,)


def _dkms(argv: list[str], log: str, build_seconds: float, runner: Runner) -> Completed:
    done = runner.run(argv, timeout_seconds=build_seconds)
    if done.rc:
        output = " | ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]) or f"exit status {done.rc}"
        raise ApplyError(f"`{' '.join(argv)}` failed: {output}. Read {log} on the host.")
    return done
