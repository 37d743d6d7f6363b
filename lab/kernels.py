# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernels apt offers: the image has the newest but one, so that a machine has an update to go to."""

from __future__ import annotations

import re

from lab.errors import LabError
from lab.shell import run

#: The packages that always depend on the newest kernel and on its headers.
META_PACKAGES = {"debian": ("linux-image-amd64", "linux-headers-amd64"), "ubuntu": ("linux-image-generic", "linux-headers-generic")}

#: Kernels that no machine may run. 6.1.192-1 follows a null pointer in ext4_mb_load_buddy_gfp once a machine is short of memory, after
#: which every write waits forever; 6.1.190-1 and 6.1.192-2 do not.
BROKEN = frozenset({"linux-image-6.1.0-55-amd64"})
#: "linux-image-6.1.0-55-amd64" (Debian 12), "linux-image-6.12.115+deb13.1-amd64" (Debian 13), "linux-image-6.8.0-90-generic" (Ubuntu).
_NAME = re.compile(
    r"linux-image-(?P<version>(?P<series>[0-9]+\.[0-9]+\.)[0-9]+(-[0-9]+)?(?P<origin>\+[a-z]+)?[0-9.]*)-(?P<flavor>[a-z][a-z0-9]*)"
)


def image_packages(distribution_name: str) -> list[str]:
    """The packages of the newest kernel but one (["linux-image-6.1.0-54-amd64"]), or of the only one that there is."""
    meta = META_PACKAGES[distribution_name][0]
    newest = _newest(run(["apt-cache", "depends", "--important", meta]), meta)
    name = _parsed(newest)
    pattern = f"^linux-image-{re.escape(name['series'])}[0-9].*-{re.escape(name['flavor'])}$"
    chosen = second_newest(newest, run(["apt-cache", "search", "--names-only", pattern]))
    # Ubuntu keeps most modules in a second package, rdma_rxe among them.
    return [chosen, chosen.replace("-image-", "-modules-extra-")] if distribution_name == "ubuntu" else [chosen]


def second_newest(newest: str, found: str) -> str:
    """Of the kernel packages that `apt-cache search` lists ("NAME - summary", a line each), the one before `newest`.

    Only kernels of the same series ("6.1."), origin ("+deb") and flavor count, and numbers are compared as numbers: 6.1.0-9 comes before
    6.1.0-10. One that is known to be broken does not count.
    """
    limit = _parsed(newest)
    names = [line.split(" - ", 1)[0].strip() for line in found.splitlines()]
    others = [match for name in names if name not in BROKEN and (match := _NAME.fullmatch(name))]
    older = [other for other in others if _kind(other) == _kind(limit) and _numbers(other) < _numbers(limit)]
    return max(older, key=_numbers).group() if older else newest


def _parsed(package: str) -> re.Match[str]:
    match = _NAME.fullmatch(package)
    if match is None:
        raise LabError(f"'{package}' is not the name of a kernel's package (linux-image-6.1.0-55-amd64).")
    return match


def _kind(name: re.Match[str]) -> tuple[str, str | None, str]:
    """What kernels share that differ in their age only: ("6.12.", "+deb", "amd64")."""
    return name["series"], name["origin"], name["flavor"]


def _numbers(name: re.Match[str]) -> list[int]:
    """[6, 12, 115, 13, 1] of "6.12.115+deb13.1"."""
    return [int(digits) for digits in re.findall("[0-9]+", name["version"])]


def _newest(depends: str, meta: str) -> str:
    """What the meta-package depends on, from `apt-cache depends` (apt 2.6: "  Depends: NAME")."""
    names = re.findall(r"^\s*Depends: (linux-image-\S+)$", depends, re.MULTILINE)
    if not names:
        raise LabError(f"apt does not say which kernel {meta} stands for: run `apt-get update` first.")
    return str(names[0])
