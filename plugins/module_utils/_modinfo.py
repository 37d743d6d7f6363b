# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that modprobe would load: what `modinfo NAME …` of kmod says of them, and where they come from (B21)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

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
