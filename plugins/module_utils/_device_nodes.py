# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes that programs open for RDMA, and who may open them (B24): the kernel gives them 0666, unless a rule of udev says otherwise."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot

FOLDER = "/dev/infiniband"
#: What RDMA-CM is used through, one for the whole host.
RDMA_CM = f"{FOLDER}/rdma_cm"
#: By the beginning of their names; umad and issm are root's alone.
_OPEN_TO_ALL = ("rdma_cm", "uverbs")


def read_nodes(sys: SysRoot) -> dict[str, int]:
    """The permission bits of each node that is open to all as the kernel makes it: "/dev/infiniband/uverbs0" → 0o666."""
    paths = [f"{FOLDER}/{name}" for name in sys.list_dir(FOLDER) if name.startswith(_OPEN_TO_ALL)]
    modes = {path: sys.mode(path) for path in paths}
    return {path: mode for path, mode in modes.items() if mode is not None}
