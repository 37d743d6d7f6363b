# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel modules: loaded now, in order, and at every boot; and with which options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._files import FileChange, ManagedFile, ensure_files, listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._module_parameters import parse_options
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

#: The RDMA core's modules.
CORE = ("ib_cm", "ib_core", "ib_ipoib", "ib_umad", "ib_uverbs", "iw_cm", "rdma_cm", "rdma_ucm")
#: nv_peer_mem is the older one, of a package of its own.
PEERMEM_MODULES = ("nvidia_peermem", "nv_peer_mem")
#: modules-load.d(5)
LOAD_FILE = "/etc/modules-load.d/rdma-cluster.conf"
HEADER = "# Managed by rdma.cluster: what nothing else loads at boot.\n"
#: modprobe.d(5)
OPTIONS_FILE = "/etc/modprobe.d/rdma-cluster.conf"
OPTIONS_HEADER = "# Managed by rdma.cluster: rdma_driver.module_options. A module that is loaded keeps what it was loaded with.\n"


@dataclass(frozen=True)
class ModulesResult:
    """What was done, or would be in check mode."""

    loaded: list[str]
    files: list[FileChange]

    @property
    def changed(self) -> bool:
        return bool(self.loaded or self.files)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """In the shape that Ansible's --diff prints."""
        return [*(file.to_diff() for file in self.files), *listed_diff("loaded kernel modules", self.loaded)]


def boot_files(at_boot: Sequence[str]) -> list[ManagedFile]:
    """The file that loads these modules at boot; it shall not be there for none."""
    return [ManagedFile(LOAD_FILE, HEADER + "".join(f"{name}\n" for name in at_boot) if at_boot else None)]


def option_files(options: Mapping[str, str]) -> list[ManagedFile]:
    """The file with the options of modules: name → "prof_sel=2 debug_mask=1". It shall not be there for none.

    Raises ParseError for what the kernel would not take as options.
    """
    for text in options.values():
        parse_options(text)
    lines = "".join(f"options {name} {text.strip()}\n" for name, text in sorted(options.items()) if text.strip())
    return [ManagedFile(OPTIONS_FILE, OPTIONS_HEADER + lines if lines else None)]


def module_files(at_boot: Sequence[str], options: Mapping[str, str]) -> list[ManagedFile]:
    """Both files."""
    return [*option_files(options), *boot_files(at_boot)]


def ensure_modules(
    wanted: Sequence[str], at_boot: Sequence[str], options: Mapping[str, str], *, runner: Runner, sys: SysRoot, check_mode: bool
) -> ModulesResult:
    """Load what is not loaded, in the order given, and write the files for the boot and for the options, before that.

    wanted: all modules that must be in the kernel; at_boot: those of them that nothing else loads at boot (B23: udev and
    rdma-core load the rest); options: name → "prof_sel=2 debug_mask=1", for the next time that each is loaded.
    Raises ApplyError for a module that is still not there after modprobe, and ParseError for options that are none.
    """
    files = ensure_files(module_files(at_boot, options), check_mode=check_mode)
    missing = [name for name in wanted if not is_loaded(name, sys)]
    if not check_mode:
        for name in missing:
            _load(name, runner, sys)
    return ModulesResult(missing, files)


def is_loaded(name: str, sys: SysRoot) -> bool:
    """True if the module is in the running kernel, loaded or built in."""
    if sys.exists(f"/sys/module/{name}"):
        return True
    kernel = (sys.read("/proc/sys/kernel/osrelease") or "").strip()
    builtin = sys.read(f"/lib/modules/{kernel}/modules.builtin") or ""
    return any(line.rsplit("/", 1)[-1].split(".")[0].replace("-", "_") == name for line in builtin.splitlines())


def _load(name: str, runner: Runner, sys: SysRoot) -> None:
    if is_loaded(name, sys):
        # The one before it may have brought it along.
        return
    done = runner.run(["modprobe", name], timeout_seconds=60)
    if done.rc or not is_loaded(name, sys):
        said = done.stderr.strip() or f"exit status {done.rc}, and it is not in the kernel"
        raise ApplyError(f"Cannot load kernel module {name}: {said}")
