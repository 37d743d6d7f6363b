# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's network plugins: their names, their place on a host, and the versions of the interface that NCCL reads."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import is_older

#: The kinds of rdma_nccl.plugin: none, nccl-mesh-plugin, and the library of any other plugin.
NONE, MESH, FILE = "none", "mesh", "file"
#: Each plugin has a folder below this one.
FOLDER = "/opt/rdma-cluster/nccl"
#: The first NCCL that accepts a path in NCCL_NET_PLUGIN. Older versions only open "libnccl-net-VALUE.so" (src/net.cc of v2.20.5-1 and
#: v2.21.5-1).
PATH_SINCE = "2.21.5"
#: The version of NCCL → the versions N of the symbol ncclNetPlugin_vN that it and later ones look for, from the newest on: the names in
#: src/net.cc and src/plugin/net/ of every tag from v2.13.4-1 to v2.30.7-1.
INTERFACES = (
    ("2.30.3", (12, 11, 10, 9, 8, 7, 6)),
    ("2.28.3", (11, 10, 9, 8, 7, 6)),
    ("2.26.2", (10, 9, 8, 7, 6)),
    ("2.24.3", (9, 8, 7, 6, 5)),
    ("2.20.3", (8, 7, 6, 5)),
    ("2.19.1", (7, 6, 5)),
    ("2.13.4", (6, 5, 4)),
)


def interfaces(version: str | None) -> tuple[int, ...]:
    """Return the interface versions that an NCCL ("2.30.7") reads, the preferred one first; None means a recent NCCL, () is unknown."""
    return next((numbers for since, numbers in INTERFACES if not is_older(version, since)), ())


def library_path(name: str) -> str:
    """Return the path of a plugin's library on a host; name: "mesh"."""
    return f"{FOLDER}/{name}/libnccl-net-{name}.so"
