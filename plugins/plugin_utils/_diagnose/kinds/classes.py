# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The meanings of the classes of failures, and their likely causes."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.signature import CONSEQUENCE, ERROR, REMARK, SYMPTOM, Meaning

CLASS_MEANINGS: dict[str, Meaning] = {
    "cuda.ending": Meaning(CONSEQUENCE, "a process that ends calls CUDA"),
    "library.version": Meaning(ERROR, "a library is of another version than the program needs"),
    "library.missing": Meaning(ERROR, "a library of the program is not found"),
    "nccl.library": Meaning(ERROR, "the loaded NCCL is of another version than the program needs"),
    "nccl.kernels": Meaning(REMARK, "NCCL's kernels need more shared memory than the GPU has"),
    "nccl.address": Meaning(ERROR, "the address of the first rank is invalid or does not resolve"),
    "nccl.transport": Meaning(ERROR, "NCCL finds no transport between two ranks"),
    "nccl.hosts": Meaning(ERROR, "NCCL cannot find which ranks are on one host"),
    "nccl.setting": Meaning(REMARK, "NCCL ignores or changes a setting"),
    "nccl.forced": Meaning(ERROR, "a setting of NCCL requests what the hosts do not support"),
    "net.merge": Meaning(ERROR, "NICs cannot be merged into one device"),
    "socket.broken": Meaning(ERROR, "the connection to a rank broke"),
    "socket.failed": Meaning(ERROR, "a socket of NCCL cannot be set up"),
    "gpu.symmetric": Meaning(ERROR, "GPUs cannot share symmetric memory"),
    "gin.unavailable": Meaning(ERROR, "GPUs cannot start transfers of NICs (GIN)"),
    "gloo.interface": Meaning(ERROR, "Gloo finds no interface of the requested name"),
    "gloo.fallback": Meaning(REMARK, "Gloo uses the loopback address, as the host's name does not resolve"),
    "gid.filter": Meaning(ERROR, "a port has no address (GID) that the settings allow"),
    "ib.pkey_missing": Meaning(ERROR, "a port does not have the requested P_Key"),
    "storage.lost": Meaning(ERROR, "storage over RDMA lost its connection"),
    "engine.ended": Meaning(CONSEQUENCE, "a server ends, as a process of it failed"),
    "ray.ended": Meaning(SYMPTOM, "a worker of Ray ended"),
    "host.processes": Meaning(ERROR, "the limit of processes and threads is reached"),
    "host.disk": Meaning(ERROR, "a file system is full"),
    "slurm.request": Meaning(ERROR, "Slurm does not accept the request"),
    "kube.resources": Meaning(ERROR, "no node has the requested devices free"),
    "kube.network": Meaning(ERROR, "the network of a pod cannot be set up"),
}

CLASS_LIKELY: dict[str, tuple[str, ...]] = {
    "library.version": ("library.path", "version"),
    "library.missing": ("library.path", "gpu.container"),
    "nccl.library": ("nccl.two", "library.path"),
    "nccl.kernels": ("nccl.old",),
    "nccl.address": ("dns", "socket.address", "store.alone"),
    "nccl.transport": ("nccl.transport", "gpu.container", "shm.apart", "hca.none"),
    "nccl.hosts": ("nccl.hosts", "launch.ranks"),
    "nccl.setting": ("nccl.setting",),
    "nccl.forced": ("nccl.setting", "gpu.driver"),
    "net.merge": ("nccl.setting", "hca.list", "hca.differs"),
    "socket.broken": ("earlier", "ended", "port.flaps", "loss", "socket.firewall"),
    "socket.failed": ("files", "socket.name", "socket.address", "socket.firewall"),
    "gpu.symmetric": ("gpu.imex", "gpu.no_p2p", "gpu.fabric_manager"),
    "gin.unavailable": ("gin", "gpu.path", "device.kind"),
    "gloo.interface": ("gloo.interface", "gloo.loopback"),
    "gloo.fallback": ("gloo.loopback",),
    "gid.filter": ("ib.filter", "gid.none", "gid.index"),
    "ib.pkey_missing": ("ib.pkey", "ib.filter"),
    "storage.lost": ("earlier", "ended", "port.down", "port.flaps", "loss"),
    "ray.ended": ("earlier", "oom.host", "program.trace"),
    "host.processes": ("limits.processes",),
    "host.disk": ("disk.full", "shm.full"),
    "slurm.request": ("slurm.request",),
    "kube.resources": ("kube.plugin", "hca.none"),
    "kube.network": ("kube.network", "kube.plugin"),
}
