# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of likely causes of each kind of error line, the most likely first: kinds of meanings.py → causes of causes.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.rdma.cluster.plugins.plugin_utils._diagnose.classes.kinds import CLASS_LIKELY

_LOST = ("earlier", "ended")
_REACH = (
    "earlier",
    "port.down",
    "gid.index",
    "ib.sm",
    "gid.subnet",
    "mtu",
    "port.planned",
    "mtu.planned",
    "gid.planned",
    "port.flaps",
    "arp",
    "qos",
    "ib.pkey",
    "loss",
)
_REGISTER = ("gpu.path", "gpu.dmabuf_off", "gpu.intent", "iommu", "memlock", "memlock.container")
_HANG = ("earlier", "hang.program", "hang.rank", "port.down", "port.flaps", "iommu", "acs", "hang.slow")
_ALLOWED = ("ib.disabled", "hca.none", "hca.list", "port.down", "ib.node", "ib.container")
_SOCKETS = ("earlier", "socket.address", "socket.name", "socket.firewall")
_SPACE = ("shm.container", "shm.full")
_NIC = ("firmware", "driver.fit", "pcie.link")
_CONTAINER = ("ib.node", "ib.container")
_LOCKED = ("memlock", "memlock.container")
_CONNECT = (
    "gid.index",
    "gid.differs",
    "gid.none",
    "gid.planned",
    "gid.subnet",
    "mtu",
    "hca.differs",
    "port.down",
    "ib.layers",
    "ib.pkey",
    "driver.fit",
)
_NVLINK = ("gpu.fabric_manager", "gpu.nvlink", "gpu.lost")
_GPU = ("gpu.lost", "gpu.broken", "program")

#: Causes that show only in the past, and the kinds of lines that a network's failure can cause: those with one of these causes.
_PAST, _PAST_NETWORK = ("past.host", "past.journal"), ("past.port", "past.gid", "past.counters")
_NETWORK = frozenset({"port.down", "port.flaps", "loss", "gid.index", "gid.none", "hang.rank", "socket.address", "earlier", "ended"})
_NOW: dict[str, tuple[str, ...]] = {
    **CLASS_LIKELY,
    "ib.no_device": _ALLOWED,
    "ib.no_address": ("socket.name",),
    "ib.open": ("ofi.choice", "ib.node", "ib.container", "memlock", "firmware"),
    "ib.nodes": ("ib.node", "mad.node", "driver.fit"),
    "ib.query": ("ib.container", "driver.fit", "verbs.version", "firmware", "port.down"),
    "ib.library": ("ib.container",),
    "ib.layers": ("ib.layers", "hca.list"),
    "ib.fatal": ("port.down", "gpu.lost", "iommu", "firmware"),
    "ib.gids_changed": ("gid.none", "gid.planned"),
    "ib.managed": ("port.flaps", "ib.pkey"),
    "ib.event": ("port.down", "port.flaps"),
    "memory.dmabuf": _REGISTER,
    "memory.locked": ("memlock", "memlock.container"),
    "memory.gpu": _REGISTER,
    "memory.refused": ("gpu.path", "memlock", "gpu.dmabuf_off", "gpu.intent", "iommu", "memlock.container", "limits.nic", "driver.fit"),
    "memory.gin": _REGISTER,
    "gdr.disabled": ("gpu.path", "gpu.dmabuf_off", "gpu.intent"),
    "ib.retry": _REACH,
    "ib.receiver_not_ready": ("earlier", "hang.rank", "qos", "loss"),
    "ib.remote_access": ("earlier", "hca.differs", "iommu", "version", "gpu.path", "acs", "ib.container"),
    "ib.remote_operation": ("earlier", "gpu.path", "iommu", "gpu.lost", "firmware"),
    "ib.remote_request": ("earlier", "version", "firmware"),
    "ib.local_protection": ("iommu", "acs", "gpu.path", "gpu.lost"),
    "ib.local_length": ("earlier", "mtu", "hang.program", "version"),
    "ib.completion": _REACH,
    "ib.local_operation": ("earlier", "firmware", "version"),
    "ib.local_access": ("earlier", "iommu", "gpu.path", "program"),
    "ib.bad_response": ("earlier", "version", "firmware"),
    "ib.aborted": _LOST,
    "ib.broken": ("earlier", "firmware", "port.down"),
    "ib.port_down": ("port.down", "ib.sm", "port.planned", "port.flaps", "cable"),
    "ib.create": (*_LOCKED, *_CONTAINER, "limits.nic", "firmware", "driver.fit", "verbs.version"),
    "ib.post": ("earlier", "port.down", "firmware"),
    "ib.failover": ("earlier", "port.down", "port.flaps", "debug"),
    "memory.registration": (*_LOCKED, "gpu.path", "gpu.intent", "ib.container"),
    "memory.gdrcopy": ("gdrcopy", "gpu.driver"),
    "qp.connect": (*_CONNECT, "ib.container", "loss"),
    "qp.gid_missing": ("gid.index", "gid.none", "gid.differs", "gid.planned", "device.name", "ib.container"),
    "qp.retrying": ("gid.subnet", "port.down", "loss"),
    "qp.timeout": ("gid.subnet", "port.down", "gid.index", "gid.differs", "arp", "ib.pkey", "hca.differs", "loss"),
    "qp.invalid": (*_CONNECT, "ib.container"),
    "qp.unreachable": ("gid.subnet", "gid.index", "gid.differs", "gid.none", "hca.differs"),
    "qp.refused": ("gid.index", "gid.none", "gid.differs", "port.down", "hca.differs", *_LOCKED, *_CONTAINER, "firmware"),
    "net.none": (*_ALLOWED, "plugin", "socket.name"),
    "net.network": ("plugin", *_ALLOWED),
    "net.plugin": ("plugin", "plugin.version"),
    "net.plugin_old": ("plugin.version", "plugin"),
    "net.plugin_version": ("plugin.version",),
    "net.counts": ("hca.differs", "port.down", "hca.list", "ib.container"),
    "net.differs": ("net.differs",),
    "net.socket": ("ib.net", *_ALLOWED),
    "socket.stranger": ("version", "socket.job", "store.alone", "net.differs"),
    "socket.local": ("cma.ptrace", "shm.apart"),
    "cm.address": ("gid.none", "gid.subnet", "port.down", "gid.planned", "test.server", "socket.firewall", "loss"),
    "test.no_device": ("device.name", "hca.none", "ib.container", "verbs.package", "ib.node"),
    "test.connect": ("test.server", "socket.address", "socket.firewall"),
    "test.differs": ("test.version",),
    "test.mtu": ("mtu", "mtu.planned"),
    "test.options": ("test.options",),
    "test.gpu": ("gpu.path", "gpu.intent", "gpu.driver", "test.build"),
    "test.missing": ("test.build",),
    "ofi.none": ("ofi.efa", *_CONTAINER, "hca.none", "plugin.version", "device.name"),
    "ofi.provider": ("ofi.address", "hca.none", *_CONTAINER, "device.name", "ofi.efa", "plugin.version"),
    "ofi.peer": ("earlier", "ofi.group", "ofi.zone"),
    "ofi.open": ("plugin.version", "ofi.choice", "ofi.cxi", *_CONTAINER, *_LOCKED, "limits.nic"),
    "ofi.memory": ("gpu.path", "gpu.intent", *_LOCKED, "ib.container"),
    "ofi.transfer": ("earlier", "ofi.group", "plugin.version", "hang.rank", "port.down"),
    "ofi.failed": ("earlier", "plugin.version", "debug"),
    "nvshmem.device": ("device.kind", "ib.container"),
    "nvshmem.peermem": ("gpu.path", "gpu.intent"),
    "nvshmem.transport": ("earlier", "nvshmem.ibgda", "hca.none", *_CONTAINER, "port.down"),
    "nvshmem.ibgda": ("nvshmem.ibgda", "nvshmem.setting", "ib.container", *_LOCKED),
    "nvshmem.failed": ("earlier", "debug.nvshmem", "version"),
    "deepep.timeout": ("earlier", "hang.rank", "nvshmem.ibgda", "port.down", "loss", "version"),
    "mooncake.handshake": ("earlier", "ended", "socket.firewall", "program"),
    "nixl.failed": ("earlier", "ucx.two", "port.down", "debug.ucx"),
    "nixl.lost": ("earlier", "ended", "port.flaps", "loss"),
    "verbs.abi": ("verbs.version", "ib.container"),
    "verbs.driver": ("verbs.package", "verbs.version"),
    "verbs.unloaded": ("verbs.package", "verbs.version"),
    "verbs.memlock": _LOCKED,
    "cm.channel": (*_CONTAINER, "driver.fit", "hca.none"),
    "mad.open": ("mad.ethernet", "mad.node", "driver.fit"),
    "mad.timeout": ("mad.route", "port.down", "cable"),
    "opensm.bind": ("sm.second", "mad.ethernet", "mad.node", "driver.fit"),
    "opensm.failed": ("earlier", "mad.route", "port.down"),
    "fm.version": ("fm.version",),
    "fm.no_switch": ("fm.absent",),
    "fm.failed": ("earlier", "fm.version", "fm.absent"),
    "gpu.start": ("gpu.lost", "gpu.driver", "pcie.broken", "gpu.broken"),
    "ucx.failed": ("earlier", "port.down", "plugin.version", *_LOCKED),
    "ucx.device": ("device.name", "port.down", "ib.container", "ucx.choice"),
    "sharp.unavailable": ("sharp",),
    "sharp.failed": ("earlier", "sharp", "port.down"),
    "socket.no_interface": ("socket.name", "socket.container"),
    "socket.refused": (*_SOCKETS, "store.stale"),
    "socket.unreachable": _SOCKETS,
    "version.differs": ("version",),
    "gpu.shared": ("gpu.visible",),
    "shm.space": _SPACE,
    "shm.loader": _SPACE,
    "shm.failed": (*_SPACE, "shm.ipc"),
    "shm.gone": ("earlier", "shm.ipc", "shm.apart", "cumem.host"),
    "shm.cuda": ("cumem.host", "gpu.driver", "gpu.container", *_SPACE),
    "topo.file": ("topo.variable",),
    "topo.graph": ("graph.variable",),
    "topo.version": ("topo.stale",),
    "topo.broken": ("topo.stale",),
    "p2p.refused": ("acs", "iommu"),
    "p2p.failed": ("gpu.visible", "gpu.no_p2p", "shm.apart", "gpu.container", "acs", "iommu"),
    "gpu.nvls": ("gpu.fabric_manager", "fm.restarted", "gpu.nvlink", "gpu.imex"),
    "gpu.imex": ("gpu.imex", "gpu.fabric_manager"),
    "topo.rsmi": ("gpu.container", "gpu.driver"),
    "topo.order": ("gpu.container", "nccl.old", "hca.differs", "topo.stale"),
    "nccl.algorithm": ("nccl.algorithm", "version"),
    "topo.path": ("earlier", "gpu.container", "nccl.old", "hca.differs", "gpu.driver"),
    "gpu.nvml": ("gpu.driver", "gpu.lost", "gpu.container"),
    "nccl.truncated": ("earlier", "hang.program", "version", "socket.job"),
    "nccl.ranks": ("launch.ranks", "store.alone", "socket.job", "version"),
    "nccl.call": ("program", "version"),
    "nccl.proxy": ("earlier", "debug", *_LOCKED, "shm.full"),
    "nccl.system": ("earlier", "debug", "memlock", "socket.name", "shm.full"),
    "nccl.cuda": ("earlier", "gpu.driver", "gpu.fabric_manager", "gpu.lost", "nccl.old", "debug"),
    "nccl.internal": ("earlier", "version", "debug"),
    "nccl.usage": ("earlier", "gpu.visible", "version", "debug"),
    "nccl.argument": ("earlier", "program", "debug"),
    "cuda.old_driver": ("gpu.driver",),
    "cuda.mismatch": ("gpu.driver",),
    "cuda.not_ready": ("gpu.fabric_manager", "gpu.driver"),
    "cuda.no_device": ("gpu.driver", "gpu.lost", "gpu.visible", "gpu.container"),
    "cuda.ordinal": ("gpu.visible", "gpu.lost"),
    "cuda.architecture": ("program",),
    "cuda.ecc": ("gpu.broken",),
    "cuda.nvlink": _NVLINK,
    "cuda.unsupported": ("gpu.virtual", "gpu.driver", "gpu.container"),
    "cuda.busy": ("gpu.load", "gpu.mode", "gpu.visible"),
    "cuda.symbol": ("gpu.driver",),
    "cuda.memory": ("gpu.load", "gpu.batch"),
    "cuda.access": ("program", "gpu.broken"),
    "cuda.launch": _GPU,
    "cuda.failed": ("earlier", "gpu.fabric_manager", "gpu.driver", *_GPU, "gpu.container", "nccl.old"),
    "torch.timeout": _HANG,
    "torch.watchdog": _HANG,
    "torch.stuck": _HANG,
    "torch.desync": _HANG,
    "torch.mismatch": ("earlier", "hang.program", "version"),
    "torch.init": ("earlier", "socket.name", "hang.rank", "hang.slow"),
    "store.clients": ("store.alone", "socket.firewall", "dns", "hang.slow"),
    "store.connect": ("earlier", "socket.address", "socket.firewall", "store.alone", "dns"),
    "store.retrying": ("socket.address", "store.alone"),
    "store.port": ("port.taken",),
    "store.wait": ("earlier", "hang.slow"),
    "gloo.connect": ("gloo.loopback", "socket.firewall", "ended"),
    "mpi.absent": ("mpi.build",),
    "mpi.slots": ("mpi.hosts",),
    "mpi.daemon": ("mpi.launcher",),
    "mpi.runtime": ("earlier", "mpi.launcher", "mpi.build"),
    "mpi.lost": _LOST,
    "launch.ssh": ("launch.ssh",),
    "mpi.pmi": ("mpi.pmi",),
    "mpi.no_nic": ("hca.none", *_CONTAINER, "ucx.mpi"),
    "mpi.openib": ("ucx.mpi",),
    "mpi.no_port": ("port.down", "ib.sm", "ib.container"),
    "mpi.event": ("port.down", "port.flaps"),
    "mpi.registerable": ("limits.nic",),
    "mpi.unreachable": ("port.down", *_CONTAINER, "ucx.choice"),
    "mpi.pml": ("ucx.choice", "mpi.build"),
    "mpi.tcp": ("socket.address", "socket.firewall", "mpi.interface"),
    "mpi.signal": ("earlier", "oom.host", "program"),
    "ucx.transport": ("ucx.gpu", "ucx.choice", "hca.none", "port.down", "device.name", *_CONTAINER, *_LOCKED),
    "tests.timeout": _HANG,
    "host.memory": ("oom.host",),
    "host.files": ("files",),
    "host.numa": ("host.settings",),
    "iommu.setting": ("iommu",),
    "program.exception": ("earlier", "program.trace"),
    "process.killed": ("earlier", "oom.host", "time"),
    "process.bus": ("earlier", *_SPACE, "program"),
    "process.crashed": ("earlier", "program", "version"),
    "ucx.version": ("ucx.two",),
    "slurm.launch": ("slurm.network", "socket.firewall", "ended"),
    "slurm.pmix": ("slurm.network", "socket.firewall", "hang.slow"),
    "slurm.node": _LOST,
    "slurm.time": ("time", "hang.rank"),
    "slurm.task": ("earlier", "oom.host", "program"),
    "gpu.xid": _GPU,
    "gpu.nvlink": _NVLINK,
    "gpu.nvswitch": _NVLINK,
    "gpu.off_bus": ("gpu.lost", "pcie.broken"),
    "gpu.firmware": ("gpu.driver", "gpu.broken"),
    "gpu.program": ("program", "gpu.broken"),
    "gpu.remapped": ("gpu.broken",),
    "kernel.temperature": ("cooling",),
    "kernel.timeout": ("earlier", *_NIC, "pcie.broken"),
    "kernel.command": ("earlier", *_NIC),
    "kernel.dump": ("firmware",),
    "kernel.resources": ("limits.nic", "firmware"),
    "kernel.probe": ("earlier", *_NIC, "pcie.broken", "sriov"),
    "kernel.interrupts": ("interrupts", "driver.fit"),
    "kernel.gid": ("gid.none", "gid.planned", "firmware", "sriov"),
    "kernel.queue": ("earlier", "firmware", "driver.fit"),
    "kernel.cable": ("cable",),
    "kernel.unplugged": ("cable", "port.down"),
    "kernel.power": ("power",),
    "kernel.qos": ("qos",),
    "kernel.pcie": ("pcie.broken", "pcie.link", "firmware"),
    "kernel.pcie_corrected": ("pcie.link", "pcie.broken"),
    "kernel.pcie_slow": ("pcie.link", "pcie.broken"),
    "kernel.vpd": ("firmware",),
    "kernel.firmware_old": ("firmware",),
    "kernel.build": ("build.headers", "build.release"),
    "kernel.modules": ("driver.fit",),
    "kernel.peermem": ("earlier", "gpu.path", "gpu.driver", "driver.fit"),
    "kernel.oops": ("earlier", "driver.fit", "firmware"),
    "kernel.segfault": ("earlier", "program", "version"),
    "kernel.stuck": ("earlier", *_NIC),
    "kernel.health": ("earlier", "firmware", "pcie.link", "pcie.broken"),
    "kernel.completion": ("earlier", "iommu", "firmware"),
    "kernel.link": ("port.flaps", "port.down"),
    "iommu.fault": ("iommu", "firmware"),
    "nccl.unknown": ("unknown",),
    "log.unknown": ("unknown.line",),
}


class _Errors(NamedTuple):
    """Errors of a call: how their texts begin, and their numbers."""

    texts: tuple[str, ...]
    numbers: tuple[str, ...]

    def has(self, error: str) -> bool:
        return error.startswith(self.texts) or error in self.numbers


#: The errors of a call by which the limit of locked memory shows, and those of a NIC that does not answer.
_OF_LIMIT = _Errors(("Cannot allocate memory", "Resource temporarily unavailable", "Operation not permitted"), ("12", "11", "1"))
_UNANSWERED = _Errors(("Connection timed out", "Operation canceled", "Input/output error", "Remote I/O error"), ("110", "125", "5", "121"))
#: Errors of a call that the kernel or the device does not have: its node is there, and no limit is reached.
_UNSUPPORTED = _Errors(
    ("Operation not supported", "Protocol not supported", "Inappropriate ioctl", "Function not implemented"), ("95", "93", "25", "38")
)
#: Errors of a call on a file in /dev/shm that do not come from its size.
_NOT_OF_SPACE = ("Permission denied", "Invalid argument", "No such file or directory", "File exists", "Operation not permitted")
_OF_GPUS = ("gpu.path", "gpu.dmabuf_off", "gpu.intent", "iommu")


def contradiction(cause: str, errors: Sequence[str]) -> str | None:
    """The error that excludes a cause. errors: those of the lines, as words or numbers; None if there are none, or one fits."""
    if not errors:
        return None
    if cause in _LOCKED and not any(map(_OF_LIMIT.has, errors)):
        return errors[0]
    if cause in _SPACE and all(error.startswith(_NOT_OF_SPACE) for error in errors):
        return errors[0]
    if cause in _OF_GPUS and errors[0].startswith(_UNANSWERED.texts):
        return errors[0]
    if cause in (*_CONTAINER, "limits.nic", "port.down") and all(map(_UNSUPPORTED.has, errors)):
        return errors[0]
    unanswered = list(filter(_UNANSWERED.has, errors))
    return unanswered[0] if cause in (*_CONTAINER, "limits.nic") and len(unanswered) == len(errors) else None


#: Ends of source files of NCCL → the causes that come first if a failed call of NCCL is there, and no line names the reason.
_BY_TRACE: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("misc/socket.cc", "include/socket.h", "bootstrap.cc", "net_socket.cc"), ("socket.name", "socket.container", *_SOCKETS[1:])),
    (("misc/shmutils.cc", "include/shm.h", "transport/shm.cc"), (*_SPACE, "shm.apart", "cumem.host")),
    (("misc/ibvwrap.cc", "transport/net_ib.cc", "transport/net_ib/connect.cc"), ("memlock", "gid.index", "ib.container", "port.down")),
    (("transport/nvls.cc",), ("gpu.fabric_manager", "fm.restarted")),
    (("transport/p2p.cc",), ("gpu.visible", "gpu.no_p2p", "shm.apart")),
)
_TRACED = frozenset({"nccl.system", "nccl.internal", "nccl.cuda"})


def likely(kind: str, trace: str) -> tuple[str, ...]:
    """The causes of a kind of line, the most likely first. trace: the source file of NCCL's first failed call, "" if it is not known."""
    causes = LIKELY.get(kind, ())
    if kind not in _TRACED or not trace:
        return causes
    first = next((names for files, names in _BY_TRACE if trace.endswith(files)), ())
    rest = [name for name in _NOW[kind] if name not in (*first, "earlier")]
    return _with_past(("earlier", *first, *rest)) if first else causes


def _with_past(causes: tuple[str, ...]) -> tuple[str, ...]:
    """What the hosts have recorded comes first: it was true when the job failed."""
    return (*(_PAST_NETWORK if _NETWORK.intersection(causes) else ()), *_PAST, *causes)


#: Kind of line → its causes, the most likely first.
LIKELY: dict[str, tuple[str, ...]] = {kind: _with_past(causes) for kind, causes in _NOW.items()}
