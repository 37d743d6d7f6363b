# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Load kernel modules, now, in order, and at every boot; and set their options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile, ensure_files, listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

# prof_sel=2 debug_mask, name="a b"
_OPTION = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)(?:=(\"[^\"]*\"|[^\s\"]*))?(?:[ ]+|$)")
_READABLE = 0o444
# The first characters that kstrtobool() of Linux checks; "on" and "off" by their second.
_TRUE, _FALSE = re.compile(r"[yYtT1]|[oO][nN]"), re.compile(r"[nNfF0]|[oO][fF]")
_NUMBER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]{1,16})|([0-9]{1,20}))")


def parse_options(text: str) -> dict[str, str | None]:
    """Parse "prof_sel=2 name="a b" quiet" → {"prof_sel": "2", "name": "a b", "quiet": None}; of a repeated option the last value counts.

    Raises ParseError for text that the kernel would not accept as options.
    """
    found: dict[str, str | None] = {}
    position, stripped = 0, text.strip(" ")
    while position < len(stripped):
        match = _OPTION.match(stripped, position)
        if match is None:
            raise ParseError(f"no option of a kernel module: {quoted(stripped[position:])}, expected the form 'name=value other=1'")
        found[match[1].replace("-", "_")] = match[2].strip('"') if match[2] is not None else None
        position = match.end()
    return found


def read_parameters(sys: SysRoot, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the parameters of each loaded module, by name, as the kernel shows them ("Y", "2", "a,b"), without the line break.

    Unreadable ones are omitted, as the kernel omits those that a module does not show.
    """
    return {name: _read(sys, f"/sys/module/{name}/parameters") for name in names if sys.exists(f"/sys/module/{name}")}


def _read(sys: SysRoot, folder: str) -> dict[str, str]:
    paths = {name: f"{folder}/{name}" for name in sys.list_dir(folder)}
    texts = {name: sys.read(path) for name, path in paths.items() if (sys.mode(path) or 0) & _READABLE}
    return {name: text.rstrip("\n") for name, text in texts.items() if text is not None}


def same_value(requested: str | None, shown: str) -> bool:
    """Return whether a value for the kernel equals the one that it shows: 1 and Y of a switch, 0x10 and 16 of a number.

    An option without a value switches something on.
    """
    if shown in ("Y", "N"):
        return (_TRUE if shown == "Y" else _FALSE).match("Y" if requested is None else requested) is not None
    numbers = _number(requested), _number(shown)
    return requested == shown or (numbers[0] is not None and numbers[0] == numbers[1])


def _number(text: str | None) -> int | None:
    """Return the number, as kstrtoll(text, 0, …) reads it: a leading 0 is octal."""
    match = _NUMBER.fullmatch(text or "")
    if match is None:
        return None
    sign, hexadecimal, digits = match.groups()
    try:
        size = int(hexadecimal, 16) if hexadecimal else int(digits, 8 if digits.startswith("0") else 10)
    except ValueError:
        return None
    return -size if sign == "-" else size


#: The RDMA core's modules.
CORE = ("ib_cm", "ib_core", "ib_ipoib", "ib_umad", "ib_uverbs", "iw_cm", "rdma_cm", "rdma_ucm")
#: nv_peer_mem is the older one, from a separate package.
PEERMEM_MODULES = ("nvidia_peermem", "nv_peer_mem")
#: modules-load.d(5)
LOAD_FILE = "/etc/modules-load.d/rdma-cluster.conf"
HEADER = "# Managed by rdma.cluster: what nothing else loads at boot.\n"
#: modprobe.d(5)
OPTIONS_FILE = "/etc/modprobe.d/rdma-cluster.conf"
OPTIONS_HEADER = "# Managed by rdma.cluster: rdma_driver.module_options. A module that is loaded keeps what it was loaded with.\n"


@dataclass(frozen=True)
class ModulesResult:
    """The changes, or in check mode the planned ones."""

    loaded: list[str]
    files: list[FileChange]

    @property
    def changed(self) -> bool:
        return bool(self.loaded or self.files)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the format of Ansible's --diff."""
        return [*(file.to_diff() for file in self.files), *listed_diff("loaded kernel modules", self.loaded)]


def boot_files(at_boot: Sequence[str]) -> list[ManagedFile]:
    """Return the file that loads these modules at boot; without modules, its removal."""
    return [ManagedFile(LOAD_FILE, HEADER + "".join(f"{name}\n" for name in at_boot) if at_boot else None)]


def option_files(options: Mapping[str, str]) -> list[ManagedFile]:
    """Return the file with the options of modules: name → "prof_sel=2 debug_mask=1". Without options, its removal.

    Raises ParseError for text that the kernel would not accept as options.
    """
    for text in options.values():
        parse_options(text)
    lines = "".join(f"options {name} {text.strip()}\n" for name, text in sorted(options.items()) if text.strip())
    return [ManagedFile(OPTIONS_FILE, OPTIONS_HEADER + lines if lines else None)]


def module_files(at_boot: Sequence[str], options: Mapping[str, str]) -> list[ManagedFile]:
    """Return both files."""
    return [*option_files(options), *boot_files(at_boot)]


def ensure_modules(
    wanted: Sequence[str], at_boot: Sequence[str], options: Mapping[str, str], *, runner: Runner, sys: SysRoot, check_mode: bool
) -> ModulesResult:
    """Write the files for the boot and for the options, then load missing modules in the given order.

    wanted: all modules that must be in the kernel; at_boot: those of them that nothing else loads at boot (B23: udev and rdma-core load the
    rest); options: name → "prof_sel=2 debug_mask=1", for the next time that each is loaded. Raises ApplyError for a module that is still
    missing after modprobe, and ParseError for invalid options.
    """
    files = ensure_files(module_files(at_boot, options), check_mode=check_mode)
    missing = [name for name in wanted if not is_loaded(name, sys)]
    if not check_mode:
        for name in missing:
            _load(name, runner, sys)
    return ModulesResult(missing, files)


def is_loaded(name: str, sys: SysRoot) -> bool:
    """Return True if the module is in the running kernel, loaded or built in."""
    if sys.exists(f"/sys/module/{name}"):
        return True
    kernel = (sys.read("/proc/sys/kernel/osrelease") or "").strip()
    builtin = sys.read(f"/lib/modules/{kernel}/modules.builtin") or ""
    return any(line.rsplit("/", 1)[-1].split(".")[0].replace("-", "_") == name for line in builtin.splitlines())


def _load(name: str, runner: Runner, sys: SysRoot) -> None:
    if is_loaded(name, sys):
        # The previous one may have loaded it.
        return
    done = runner.run(["modprobe", name], timeout_seconds=60)
    if done.rc or not is_loaded(name, sys):
        reason = done.stderr.strip() or f"exit status {done.rc}, and it is not in the kernel"
        raise ApplyError(f"Cannot load kernel module {name}: {reason}")
