# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of the two paths of GPUDirect RDMA could work on a host, and if none could, why.

DMA-BUF: the GPU's driver exports its memory as a buffer of the kernel, and uverbs registers that. Peer memory: nvidia_peermem
passes the GPU's pages to the RDMA stack, if that stack has the interface for it (MLNX_OFED, DOCA-OFED and Ubuntu's kernels).
Only NCCL's log proves that it uses one of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.kernel_modules import PEERMEM_MODULES
from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import OFED_MODULE
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpus import Gpu, GpuDriver
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.support import LIBRARY_FOLDERS

PEER_SYMBOL = "ib_register_peer_memory_client"
#: uverbs registers DMA-BUFs; the libraries pass them on; the open GPU driver exports them.
DMABUF_KERNEL, DMABUF_RDMA_CORE, DMABUF_GPU_DRIVER = (5, 12), (34,), (515,)
_MEMORY_PEERS = "/sys/kernel/mm/memory_peers"
#: The library's number of two parts, then rdma-core's version: libibverbs.so.1.14.50.0.
_LIBRARY = re.compile(r"libibverbs\.so\.1\.[0-9]{1,3}\.([0-9]{1,4}\.[0-9]{1,3})")
_NUMBER = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True)
class Possibility:
    """possible: None if unknown; why_not: each reason against it, or why it is unknown."""

    possible: bool | None
    why_not: list[str]


@dataclass(frozen=True)
class GpuDirect:
    """The two paths."""

    dmabuf: Possibility
    peermem: Possibility


@dataclass(frozen=True)
class PeerMemory:
    """symbol: whether the RDMA stack accepts clients for peer memory, None if unknown; peers: its current clients ("nv_mem")."""

    symbol: bool | None
    peers: list[str]


def possible_paths(
    *,
    kernel: str | None,
    modules: Collection[str],
    gpu_driver: GpuDriver | None,
    gpus: Sequence[Gpu],
    rdma_core_version: str | None,
    peer_symbol: bool | None,
    memory_peers: Sequence[str],
) -> GpuDirect:
    """Return what is possible with a kernel ("6.8.0-51-generic"), the loaded modules, and so on.

    A certain reason makes it False; uncertain reasons alone make it None.
    """
    if not gpus:
        none = Possibility(possible=False, why_not=["no NVIDIA GPU"])
        return GpuDirect(none, none)
    return GpuDirect(
        dmabuf=_judge(
            [
                _at_least("kernel", kernel, DMABUF_KERNEL),
                _at_least("rdma-core", rdma_core_version, DMABUF_RDMA_CORE),
                *_driver_for_dmabuf(gpu_driver),
            ]
        ),
        peermem=_judge([] if memory_peers or set(PEERMEM_MODULES) & set(modules) else _peermem_loadable(gpu_driver, peer_symbol)),
    )


#: False with a certain reason, None with an uncertain one, True without a reason.
_Reason = tuple["bool | None", str]


def _judge(reasons: Sequence[_Reason]) -> Possibility:
    verdicts = [verdict for verdict, _reason in reasons]
    possible = False if False in verdicts else None if None in verdicts else True
    return Possibility(possible, [reason for verdict, reason in reasons if verdict is not True])


def _at_least(what: str, version: str | None, least: tuple[int, ...]) -> _Reason:
    numbers = tuple(int(number) for number in _NUMBER.findall(version or "")[: len(least)])
    wanted = ".".join(map(str, least))
    if len(numbers) < len(least):
        return None, f"the version of {what} is not known: DMA-BUF needs {wanted}"
    return numbers >= least, f"{what} {version}: DMA-BUF needs {wanted}"


def _driver_for_dmabuf(driver: GpuDriver | None) -> list[_Reason]:
    if driver is None:
        return [(False, "the NVIDIA driver is not loaded")]
    if driver.open is None:
        return [(None, "whether the NVIDIA driver is the open one is not known")]
    if not driver.open:
        return [(False, f"NVIDIA driver {driver.version} is not the open one, which alone exports DMA-BUFs")]
    return [_at_least("NVIDIA driver", driver.version, DMABUF_GPU_DRIVER)]


def _peermem_loadable(driver: GpuDriver | None, symbol: bool | None) -> list[_Reason]:
    if driver is None:
        return [(False, "the NVIDIA driver is not loaded")]
    if symbol is None:
        return [(None, f"nvidia_peermem is not loaded, and whether the RDMA stack has {PEER_SYMBOL} is not known")]
    return [(symbol, f"nvidia_peermem is not loaded, and the RDMA stack has no {PEER_SYMBOL}: use DMA-BUF, or MLNX_OFED or DOCA-OFED")]


def read_peer_memory(sys: SysRoot) -> PeerMemory:
    """Return what the loaded RDMA stack reports about peer memory.

    Looking for the symbol costs 60 ms if only /proc/kallsyms has the answer. So that file is not read if a client
    exists already, or if the kernel's own modules are loaded and depmod(8) has not found the symbol in any of them.
    """
    peers = sys.list_dir(_MEMORY_PEERS)
    if peers or any(sys.exists(f"/sys/module/{name}") for name in PEERMEM_MODULES):
        return PeerMemory(symbol=True, peers=peers)
    on_disk = _on_disk(sys)
    if on_disk is False and not sys.exists(f"/sys/module/{OFED_MODULE}"):
        return PeerMemory(symbol=False, peers=peers)
    loaded = _loaded(sys)
    return PeerMemory(symbol=loaded if loaded is not None else on_disk, peers=peers)


def _on_disk(sys: SysRoot) -> bool | None:
    """Return whether a module that modprobe would load exports the symbol."""
    release = sys.text("/proc/sys/kernel/osrelease")
    symbols = sys.read_bytes(f"/lib/modules/{release}/modules.symbols") if release is not None else None
    return f" symbol:{PEER_SYMBOL} ".encode() in symbols if symbols else None


def _loaded(sys: SysRoot) -> bool | None:
    """Return whether the kernel has the symbol now; None without a loaded RDMA stack, or without a list of symbols."""
    if not sys.exists("/sys/module/ib_core"):
        return None
    symbols = sys.read_bytes("/proc/kallsyms")
    return re.search(rb" %b[ \t\r\n]" % PEER_SYMBOL.encode(), symbols) is not None if symbols else None


def read_rdma_core_version(sys: SysRoot) -> str | None:
    """Return rdma-core's version ("50.0"), with which the file name of libibverbs ends; None if there is no such library."""
    targets = (sys.link_target(f"{folder}/libibverbs.so.1") for folder in LIBRARY_FOLDERS)
    matches = (_LIBRARY.fullmatch(target.rsplit("/", 1)[-1]) for target in targets if target is not None)
    return next((match[1] for match in matches if match is not None), None)
