# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse `modinfo NAME …` of kmod: the files that modprobe would load, and their origin."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot, named

BUILT_IN = "(builtin)"
#: The signer of a signed module without a signer's name.
UNKNOWN_SIGNER = "unknown"
KERNEL, DKMS, EXTRA = "kernel", "dkms", "extra"
# kmod before 27 does not know modules in the kernel itself, and prints a null pointer.
_BUILT_IN = (BUILT_IN, "(null)")
_SIGNATURE = ("sig_id", "sig_key", "sig_hashalgo", "signature", "signat")
_KEYS = ("name", "version", "srcversion", "signer", "vermagic", *_SIGNATURE)
# Values start in the 17th column. A mail or a page may have indented the lines, or have removed blanks.
_FILENAME = re.compile(r"([ \t>]*)filename:([ \t]*)(.*)")
_FIELD = re.compile(r"([a-z_]{3,15}):(.*)")
_COLUMN = 16
_FILE = re.compile(r".*\.ko(\.(gz|xz|zst|bz2))?")
_INSTALLED = re.compile(r"/lib/modules/[^/]+/([^/]+)/(.+)")


@dataclass(frozen=True)
class ModuleFile:
    """One module on disk.

    file: its path, or "(builtin)"; signer: the common name of its signer, "unknown" for a signature that modinfo cannot name, None for an
    unsigned module; vermagic: the kernel that it was built for.
    """

    file: str
    version: str | None
    srcversion: str | None
    signer: str | None
    vermagic: str | None


@dataclass(frozen=True)
class Module:
    """A loaded kernel module. version and srcversion: of the loaded one; the kernel's own modules often declare neither.

    holders: the modules that depend on it; refcount: the number of its users, with holders, open files, mounts and sockets, None for a part
    of the kernel itself. file, file_version, file_srcversion: of the file that modprobe would load now ("(builtin)" for a part of the
    kernel itself), and signer its signer, as in ModuleFile. provenance: "kernel", "dkms" or "extra", as the function returns it. These five
    are None for a captured tree, and without such a file.
    """

    version: str | None
    srcversion: str | None
    holders: list[str]
    file: str | None = None
    file_version: str | None = None
    file_srcversion: str | None = None
    provenance: str | None = None
    signer: str | None = None
    refcount: int | None = None


def parse_modinfo(text: str) -> dict[str, ModuleFile]:
    """Return each module by its name in the kernel (kmod 25 to 34), from one run over several; the first of two with one name counts.

    Descriptions of modules and parameters contain line breaks: lines that do not start as a field are skipped. Raises ParseError for a text
    without a module, or with a truncated path of its file.
    """
    lines = [line.rstrip("\r") for line in text.split("\n")]
    found: dict[str, ModuleFile] = {}
    for name, module in map(_module, _blocks(lines)):
        if name is not None:
            found.setdefault(name, module)
    if not found:
        raise ParseError(f"not the output of modinfo: {quoted(text)}, expected a line 'filename: …'")
    if lines[-1] and any(key.startswith(lines[-1]) for key in ("filename", *_KEYS)):
        raise ParseError(f"the output of modinfo is cut off: {lines[-1]!r}")
    return found


def read_modinfo(runner: Runner, names: Sequence[str]) -> dict[str, ModuleFile]:
    """Query the running system, once for all; names without a file are omitted, and all of them without modinfo."""
    if not names:
        return {}
    try:
        done = runner.run(["modinfo", *names])
    except CommandError:
        return {}
    # It prints missing modules on standard error, and exits with 1.
    return parse_modinfo(done.stdout) if done.stdout.strip() else {}


def module_name(file: str) -> str:
    """Return the name in the kernel of a module's file: "…/nvidia-peermem.ko.zst" → "nvidia_peermem"."""
    return file.rpartition("/")[2].partition(".ko")[0].replace("-", "_")


def provenance(file: str, dkms: Collection[str] = ()) -> str | None:
    """Return the origin of a file below /lib/modules: "kernel": of the distribution's kernel; "dkms"; "extra": an add-on from elsewhere.

    dkms: the names of the modules that DKMS has installed for the kernel. DKMS puts them into updates/dkms on Debian's family, and into
    extra or updates, as packages with ready-made modules do, on others. None for a path of another form.
    """
    if file == BUILT_IN:
        return KERNEL
    match = _INSTALLED.search(file)
    if match is None:
        return None
    if match[1] == "kernel":
        return KERNEL
    return DKMS if f"{match[1]}/{match[2]}".startswith("updates/dkms/") or module_name(file) in dkms else EXTRA


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of each module, its file's first, without the indentation of that line."""
    all_starts = [(number, match) for number, line in enumerate(lines) if (match := _FILENAME.match(line))]
    # A description may have a line of that form, but not in those columns.
    starts = [start for start in all_starts if _is_aligned(start[1][0].lstrip(" \t>"))] or all_starts
    begins = [_begin(lines, number, match) for number, match in starts]
    for (number, match), begin, end in zip(starts, begins, [*begins[1:], len(lines)]):
        indent, gap, value = match.groups()
        wrapped = next((line.strip() for line in lines[number + 1 : number + 3] if line.strip()), "")
        file = value.strip() or (wrapped if wrapped.startswith("/") else "")
        others = [*lines[begin:number], *lines[number + 1 : end]]
        yield [f"filename:{gap}{file}", *(line[len(indent) :] for line in others if line.startswith(indent))]


def _begin(lines: Sequence[str], number: int, match: re.Match[str]) -> int:
    """Return the start of the module whose file is in a line: its name, if it is one in the kernel itself."""
    if match[3].strip() not in _BUILT_IN:
        return number
    above = next((line for line in range(number - 1, -1, -1) if lines[line].strip()), number)
    return above if lines[above].startswith(f"{match[1]}name:") else number


def _is_aligned(line: str) -> bool:
    """Return whether a field has its value in modinfo's column, the 17th."""
    return line[:_COLUMN] == f"{line.partition(':')[0]}:".ljust(_COLUMN)[: len(line)]


def _module(block: Sequence[str]) -> tuple[str | None, ModuleFile]:
    file = block[0].partition(":")[2].strip()
    is_built_in = file in _BUILT_IN
    if not is_built_in and not _FILE.fullmatch(file):
        raise ParseError(f"not the path of a module: {quoted(block[0])}, expected one that ends in '.ko'")
    fields = _fields(block[1:], is_aligned=_is_aligned(block[0]))
    is_signed = any(key in fields for key in _SIGNATURE) or fields.get("signer")
    module = ModuleFile(
        file=BUILT_IN if is_built_in else file,
        version=fields.get("version") or None,
        srcversion=fields.get("srcversion") or None,
        signer=(fields.get("signer") or UNKNOWN_SIGNER) if is_signed else None,
        vermagic=fields.get("vermagic") or None,
    )
    # The line of the name is younger than kmod 20; for a module in the kernel it is the only source of the name.
    name = fields.get("name", "").replace("-", "_") or (module_name(file) if not is_built_in else None)
    return name, module


def _fields(lines: Sequence[str], *, is_aligned: bool) -> dict[str, str]:
    """Return the values of the required keys, the first of each: the kernel uses that one as well."""
    fields: dict[str, str] = {}
    for line in lines:
        match = _FIELD.match(line)
        if match is not None and match[1] in _KEYS and (_is_aligned(line) or not is_aligned):
            fields.setdefault(match[1], match[2].strip())
    return fields


#: modinfo's word for a module that is part of the kernel's image: there is no file that could differ. The origins of a module
#: (stack.modules.NAME.provenance): the kernel of the distribution, or another one.
KERNELS_OWN = "kernel"
ADD_ONS = frozenset({"dkms", "extra"})


def compare(module: Module) -> str:
    """Return whether a loaded module is the one on disk: OK; ERROR for another; UNKNOWN.

    The kernel's own modules often declare neither version nor srcversion, loaded or on disk.
    """
    if module.file == BUILT_IN:
        return OK
    loaded, on_disk = (module.version, module.srcversion), (module.file_version, module.file_srcversion)
    if module.file is None and not any(on_disk):
        return UNKNOWN
    if loaded != on_disk:
        return ERROR
    return OK if any(loaded) or module.provenance == KERNELS_OWN else UNKNOWN


FILE = "/lib/modules/{release}/modules.dep"
_ENTRY = re.compile(r"^[^\s:]{1,4000}\.ko(?:\.(?:gz|xz|zst))?:", re.MULTILINE)
#: The folder of the kernel's own modules, at the start of their paths.
_KERNELS_OWN = "kernel/"


def parse_modules_dep(text: str, module: str) -> str | None:
    """Return the path of a module, relative to the kernel's folder or absolute: "updates/dkms/mlx5_core.ko"; None if it is not in the file.

    module: the kernel's name; its file may have hyphens instead of underscores, and be compressed. Raises ParseError for a text that lists
    no module.
    """
    if text.strip() and _ENTRY.search(text) is None:
        raise ParseError(f"not a list of modules: {quoted(text)}, expected lines of the form 'kernel/drivers/net/mlx5_core.ko: …'")
    name = re.escape(module).replace("_", "[_-]")
    found = re.search(rf"^((?:[^\s:]{{1,4000}}/)?{name}\.ko(?:\.(?:gz|xz|zst))?):", text, re.MULTILINE)
    return found[1] if found is not None else None


def is_stock(path: str) -> bool:
    """Return whether a path of parse_modules_dep is that of a module of the kernel itself."""
    return path.startswith(_KERNELS_OWN)


def read_module_files(sys: SysRoot, releases: Sequence[str], module: str) -> dict[str, str | None]:
    """Return the path of a module for each of these kernels; a kernel without modules.dep is omitted."""
    files = {release: FILE.format(release=release) for release in releases}
    texts = {release: sys.read(file) for release, file in files.items()}
    return {
        release: named(files[release], lambda content: parse_modules_dep(content, module), text)
        for release, text in texts.items()
        if text is not None
    }
