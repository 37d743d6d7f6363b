# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which file modprobe would load for a kernel, also for one that does not run: modules.dep of depmod(8) has one line for each module.

depmod has searched by depmod.d(5) already: updates/, extra/ and weak-updates/ come before kernel/.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot, named

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
