# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that modprobe would load: what `modinfo NAME …` of kmod says of them, and where they come from."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot, named

BUILT_IN = "(builtin)"
#: Who signed a module whose signature is there, and told by no name.
UNKNOWN_SIGNER = "unknown"
KERNEL, DKMS, EXTRA = "kernel", "dkms", "extra"
# kmod before 27 knows nothing of modules in the kernel itself, and prints a null pointer.
_BUILT_IN = (BUILT_IN, "(null)")
_SIGNATURE = ("sig_id", "sig_key", "sig_hashalgo", "signature", "signat")
_KEYS = ("name", "version", "srcversion", "signer", "vermagic", *_SIGNATURE)
# Values begin in the 17th column. A mail or a page may have indented the lines, or have taken blanks out.
_FILENAME = re.compile(r"([ \t>]*)filename:([ \t]*)(.*)")
_FIELD = re.compile(r"([a-z_]{3,15}):(.*)")
_COLUMN = 16
_FILE = re.compile(r".*\.ko(\.(gz|xz|zst|bz2))?")
_INSTALLED = re.compile(r"/lib/modules/[^/]+/([^/]+)/(.+)")


@dataclass(frozen=True)
class ModuleFile:
    """One module on disk. file: its path, or "(builtin)"; signer: the common name of who signed it, "unknown" where there is a
    signature that modinfo cannot tell it of, None for a module that is not signed; vermagic: the kernel that it was built for."""

    file: str
    version: str | None
    srcversion: str | None
    signer: str | None
    vermagic: str | None


@dataclass(frozen=True)
class Module:
    """A loaded kernel module. version and srcversion: of what is loaded; modules of the kernel often declare neither.

    holders: the modules that stand on it; refcount: how many use it, the holders, open files, mounts and sockets among them, None for
    a part of the kernel itself.
    file, file_version, file_srcversion: of what modprobe would load now ("(builtin)" for a part of the kernel itself), and signer who
    signed that, as in ModuleFile. provenance: "kernel", "dkms" or "extra", as the function has it. These five are None for a tree
    that was captured, and where there is no such file.
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
    """Each module by its name in the kernel (kmod 25 to 34), from one run over several; the first of two with one name counts.

    Descriptions of modules and parameters have line breaks of their own: what does not begin as a field is passed over.
    Raises ParseError if there is no module in the text, or if the path of its file is cut off.
    """
    lines = [line.rstrip("\r") for line in text.split("\n")]
    found: dict[str, ModuleFile] = {}
    for name, module in map(_module, _blocks(lines)):
        if name is not None:
            found.setdefault(name, module)
    if not found:
        raise ParseError(f"not the output of modinfo: {text[:200]!r}, expected a line 'filename: …'")
    if lines[-1] and any(key.startswith(lines[-1]) for key in ("filename", *_KEYS)):
        raise ParseError(f"the output of modinfo is cut off: {lines[-1]!r}")
    return found


def read_modinfo(runner: Runner, names: Sequence[str]) -> dict[str, ModuleFile]:
    """Ask the running system, once for all; names that it has no file of are left out, all of them where there is no modinfo."""
    if not names:
        return {}
    try:
        done = runner.run(["modinfo", *names])
    except CommandError:
        return {}
    # It says on standard error which modules it has not found, and ends with 1.
    return parse_modinfo(done.stdout) if done.stdout.strip() else {}


def module_name(file: str) -> str:
    """The name in the kernel of a module's file: "…/nvidia-peermem.ko.zst" → "nvidia_peermem"."""
    return file.rpartition("/")[2].partition(".ko")[0].replace("-", "_")


def provenance(file: str, dkms: Collection[str] = ()) -> str | None:
    """Where a file below /lib/modules comes from: "kernel": of the distribution's kernel; "dkms"; "extra": an add-on from elsewhere.

    dkms: the names of the modules that DKMS has installed for the kernel. It puts them into updates/dkms on Debian's family, and
    into extra or updates, as packages with ready-made modules do, on others. None for a path of another form.
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
    """The lines of each module, its file's first, without the indentation of that line."""
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
    """Where the module begins whose file is in a line: with its name, if it is one in the kernel itself."""
    if match[3].strip() not in _BUILT_IN:
        return number
    above = next((line for line in range(number - 1, -1, -1) if lines[line].strip()), number)
    return above if lines[above].startswith(f"{match[1]}name:") else number


def _is_aligned(line: str) -> bool:
    """Whether a field has its value where modinfo puts it, in the 17th column."""
    return line[:_COLUMN] == f"{line.partition(':')[0]}:".ljust(_COLUMN)[: len(line)]


def _module(block: Sequence[str]) -> tuple[str | None, ModuleFile]:
    file = block[0].partition(":")[2].strip()
    is_built_in = file in _BUILT_IN
    if not is_built_in and not _FILE.fullmatch(file):
        raise ParseError(f"not the path of a module: {block[0][:200]!r}, expected one that ends in '.ko'")
    fields = _fields(block[1:], is_aligned=_is_aligned(block[0]))
    is_signed = any(key in fields for key in _SIGNATURE) or fields.get("signer")
    module = ModuleFile(
        file=BUILT_IN if is_built_in else file,
        version=fields.get("version") or None,
        srcversion=fields.get("srcversion") or None,
        signer=(fields.get("signer") or UNKNOWN_SIGNER) if is_signed else None,
        vermagic=fields.get("vermagic") or None,
    )
    # The line of the name is younger than kmod 20, and that of a module in the kernel is all that tells it.
    name = fields.get("name", "").replace("-", "_") or (module_name(file) if not is_built_in else None)
    return name, module


def _fields(lines: Sequence[str], *, is_aligned: bool) -> dict[str, str]:
    """What the keys say that are looked at, the first of each: the kernel takes that one as well."""
    fields: dict[str, str] = {}
    for line in lines:
        match = _FIELD.match(line)
        if match is not None and match[1] in _KEYS and (_is_aligned(line) or not is_aligned):
            fields.setdefault(match[1], match[2].strip())
    return fields


#: What modinfo says of a module that is part of the kernel's image: there is no file that could differ.
#: Where a module can come from (stack.modules.NAME.provenance): the kernel of the distribution, or beside it.
KERNELS_OWN = "kernel"
ADD_ONS = frozenset({"dkms", "extra"})


def compare(module: Module) -> str:
    """Whether a loaded module is the one on disk: OK; ERROR for another; UNKNOWN.

    Modules of the kernel often declare neither version nor srcversion, loaded or on disk.
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
#: The folder of the kernel's own modules, at the beginning of their paths.
_KERNELS_OWN = "kernel/"


def parse_modules_dep(text: str, module: str) -> str | None:
    """The path of a module, relative to the kernel's folder or absolute: "updates/dkms/mlx5_core.ko"; None if it is not in the file.

    module: as the kernel names it; its file may have hyphens in the place of underscores, and be compressed. Raises ParseError for a text
    that lists no module.
    """
    if text.strip() and _ENTRY.search(text) is None:
        raise ParseError(f"not a list of modules: {text[:200]!r}, expected lines of the form 'kernel/drivers/net/mlx5_core.ko: …'")
    name = re.escape(module).replace("_", "[_-]")
    found = re.search(rf"^((?:[^\s:]{{1,4000}}/)?{name}\.ko(?:\.(?:gz|xz|zst))?):", text, re.MULTILINE)
    return found[1] if found is not None else None


def is_stock(path: str) -> bool:
    """Whether a path of parse_modules_dep is that of a module of the kernel itself."""
    return path.startswith(_KERNELS_OWN)


def read_module_files(sys: SysRoot, releases: Sequence[str], module: str) -> dict[str, str | None]:
    """The path of a module for each of these kernels; a kernel without modules.dep is left out."""
    files = {release: FILE.format(release=release) for release in releases}
    texts = {release: sys.read(file) for release, file in files.items()}
    return {
        release: named(files[release], lambda told: parse_modules_dep(told, module), text)
        for release, text in texts.items()
        if text is not None
    }
