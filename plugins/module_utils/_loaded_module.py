# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a module in the kernel is the one that modprobe would load now (B21), from stack.modules.NAME of the facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN

#: What modinfo says of a module that is part of the kernel's image: there is no file that could differ.
BUILT_IN = "(builtin)"
#: Where a module can come from (stack.modules.NAME.provenance): the kernel of the distribution, or beside it.
KERNELS_OWN = "kernel"
ADD_ONS = frozenset({"dkms", "extra"})


def compare(module: Mapping[str, Any]) -> str:
    """Whether a loaded module is the one on disk: OK; ERROR for another; UNKNOWN; NOT_APPLICABLE where the facts do not tell the file's.

    Modules of the kernel often declare neither version nor srcversion, loaded or on disk.
    """
    if not {"file", "file_version", "file_srcversion"} & set(module):
        return NOT_APPLICABLE
    if module.get("file") == BUILT_IN:
        return OK
    loaded, on_disk = (module.get("version"), module.get("srcversion")), (module.get("file_version"), module.get("file_srcversion"))
    if module.get("file", "") is None and not any(on_disk):
        return UNKNOWN
    if loaded != on_disk:
        return ERROR
    return OK if any(loaded) or module.get("provenance") == KERNELS_OWN else UNKNOWN
