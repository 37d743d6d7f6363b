# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the installed kernels, in the order of their releases, and those with headers to build modules."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

FOLDERS = ("/lib/modules", "/usr/lib/modules")

VersionKey = tuple[tuple[tuple[int, ...], int, str], ...]

_RUNS = re.compile(r"([^0-9]*)([0-9]*)")
# The sort order of other parts than numbers: an end before all except "~", letters before numbers, everything else after them.
_TILDE, _END, _LETTER, _NUMBER, _OTHER = -2, -1, 0, 0x110000, 0x110001
_VERSION = re.compile(r"[0-9][0-9.]*")
_SEPARATORS = re.compile(r"[-+._~]")
# Version parts without a meaning as a name: ABI numbers ("51"), release candidates, and the distribution's own release (deb13, el9, fc39).
_COUNTED = re.compile(r"[0-9]+(rc[0-9]+)?|rc[0-9]*|(deb|el|fc|azl|amzn)[0-9]+|bpo[0-9]*")
_REAL_TIME = re.compile(r"rt[0-9]+")


def version_key(release: str) -> VersionKey:
    """Return the sort key of a release: 6.1.0-9-amd64, 6.1.0-10-amd64; 5.14.0-70.el9.x86_64, 5.14.0-70.13.1.el9_0.x86_64.

    As `sort -V`, except that a number is newer than letters in its place, as in RPM and as release candidates require.
    """
    return tuple(((*map(_rank, text), _NUMBER if number else _END), *_size(number)) for text, number in _RUNS.findall(release))


def flavor(release: str) -> tuple[str, ...]:
    """Return a release without its version: "6.1.0-9-cloud-amd64" → cloud, amd64; "5.14.0-427.13.1.el9_4.x86_64+rt" → x86, rt.

    Updates follow each other within one flavor; kernels of another (cloud, rt, 64k, aws) are installed next to them.
    """
    found = _VERSION.match(release)
    words = _SEPARATORS.split(release[found.end() if found else 0 :])
    return tuple(_REAL_TIME.sub("rt", word) for word in words if word and not _COUNTED.fullmatch(word))


def newest(kernels: Sequence[str], running: str | None) -> str | None:
    """Return the newest of the kernels with the running one's flavor, None if there is none."""
    if running is None:
        return None
    return max((release for release in kernels if flavor(release) == flavor(running)), key=version_key, default=None)


def read_kernels(sys: SysRoot) -> list[str]:
    """Return the releases of the installed kernels, oldest first: those with modules, and not only headers or DKMS leftovers.

    The lists of modules do not prove a kernel: dpkg leaves them after the removal of a kernel.
    """
    names = {name for folder in FOLDERS for name in sys.list_dir(folder) if _is_kernel(sys, f"{folder}/{name}")}
    return sorted(names, key=version_key)


def read_headers(sys: SysRoot, kernels: Sequence[str]) -> dict[str, bool]:
    """Return whether modules can be built for each of the kernels: the link "build" leads to a tree of headers."""
    needed = ("build/Makefile", "build/include/generated/autoconf.h")
    return {
        release: any(sys.exists(f"{folder}/{release}/{file}") for folder in FOLDERS for file in needed)
        for release in kernels
    }  # fmt: skip


def _is_kernel(sys: SysRoot, folder: str) -> bool:
    return sys.exists(f"{folder}/kernel")


def _rank(character: str) -> int:
    if character == "~":
        return _TILDE
    return (_LETTER if character.isalpha() else _OTHER) + ord(character)


def _size(number: str) -> tuple[int, str]:
    """Return a sort key for a number of any length."""
    digits = number.lstrip("0")
    return len(digits), digits
