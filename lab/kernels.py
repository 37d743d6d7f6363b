# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernels apt offers: the image has the newest but one, so that a machine has an update to go to."""

from __future__ import annotations

import re

from lab.errors import LabError
from lab.shell import run

#: The packages that always depend on the newest kernel and on its headers.
META_PACKAGES = {"debian": ("linux-image-amd64", "linux-headers-amd64"), "ubuntu": ("linux-image-generic", "linux-headers-generic")}

#: Kernels that no machine shall run. 6.1.192-1 follows a null pointer in ext4_mb_load_buddy_gfp once a machine is short of memory, after
#: which whoever writes waits for ever; 6.1.190-1 and 6.1.192-2 do not.
BROKEN = frozenset({"linux-image-6.1.0-55-amd64"})


def image_package(distribution_name: str) -> str:
    """The package of the newest kernel but one ("linux-image-6.1.0-54-amd64"), or of the only one that there is."""
    meta = META_PACKAGES[distribution_name][0]
    newest = _newest(run(["apt-cache", "depends", "--important", meta]), meta)
    stem, _abi, flavour = abi_parts(newest)
    return second_newest(newest, run(["apt-cache", "search", "--names-only", f"^{re.escape(stem)}[0-9]+{re.escape(flavour)}$"]))


def second_newest(newest: str, found: str) -> str:
    """Of the kernel packages that `apt-cache search` lists ("NAME - summary", a line each), the one before `newest`.

    Kernels differ in the number of their ABI alone: 6.1.0-9 comes before 6.1.0-10. One that is known to be broken does not count.
    """
    stem, abi, flavour = abi_parts(newest)
    names = [line.split(" - ", 1)[0].strip() for line in found.splitlines() if line.startswith("linux-image-")]
    parts = [abi_parts(name) for name in names if name not in BROKEN]
    older = [number for other_stem, number, other_flavour in parts if (other_stem, other_flavour) == (stem, flavour) and number < abi]
    return f"{stem}{max(older)}{flavour}" if older else newest


def abi_parts(package: str) -> tuple[str, int, str]:
    """("linux-image-6.1.0-", 55, "-amd64") of "linux-image-6.1.0-55-amd64"; LabError for any other form."""
    found = re.fullmatch(r"(linux-image-[0-9.]+-)([0-9]+)(-[a-z0-9]+)", package)
    if not found:
        raise LabError(f"'{package}' is not the name of a kernel's package (linux-image-6.1.0-55-amd64).")
    return found.group(1), int(found.group(2)), found.group(3)


def _newest(depends: str, meta: str) -> str:
    """What the meta-package depends on, from `apt-cache depends` (apt 2.6: "  Depends: NAME")."""
    names = re.findall(r"^\s*Depends: (linux-image-\S+)$", depends, re.MULTILINE)
    if not names:
        raise LabError(f"apt does not say which kernel {meta} stands for: run `apt-get update` first.")
    return str(names[0])
