# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpudirect import (
    GpuDirect,
    PeerMemory,
    Possibility,
    possible_paths,
    read_peer_memory,
    read_rdma_core_version,
)
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpus import Gpu, GpuDriver
from tests.unit.builders.trees import write_tree

OPEN = GpuDriver("580.159.04", open=True)
GPU = Gpu("0000:1b:00.0", "NVIDIA H200", None, 0, None)
POSSIBLE = Possibility(possible=True, why_not=[])
# A host for which all is there.
HOST: dict[str, Any] = {
    "kernel": "6.8.0-51-generic",
    "modules": ["ib_core", "mlx5_core", "nvidia", "nvidia_peermem"],
    "gpu_driver": OPEN,
    "gpus": [GPU],
    "rdma_core_version": "50.0",
    "peer_symbol": True,
    "memory_peers": ["nv_mem", "nv_mem_nc"],
}
NO_PEER: dict[str, Any] = {"modules": ["ib_core", "nvidia"], "memory_peers": []}


def test_both_ways() -> None:
    assert possible_paths(**HOST) == GpuDirect(POSSIBLE, POSSIBLE)


def test_no_gpu() -> None:
    none = Possibility(possible=False, why_not=["no NVIDIA GPU"])
    assert possible_paths(**{**HOST, "gpus": [], "kernel": None}) == GpuDirect(none, none)


DMABUF = {
    "the first kernel": ({"kernel": "5.12.0"}, True, []),
    "kernel too old": ({"kernel": "5.4.0-150-generic"}, False, ["kernel 5.4.0-150-generic: DMA-BUF needs 5.12"]),
    "RHEL 8": ({"kernel": "4.18.0-553.el8_10.x86_64"}, False, ["kernel 4.18.0-553.el8_10.x86_64: DMA-BUF needs 5.12"]),
    "kernel not known": ({"kernel": None}, None, ["the version of kernel is not known: DMA-BUF needs 5.12"]),
    "kernel garbled": ({"kernel": "6"}, None, ["the version of kernel is not known: DMA-BUF needs 5.12"]),
    "the first rdma-core": ({"rdma_core_version": "34.0"}, True, []),
    "rdma-core of MLNX_OFED": ({"rdma_core_version": "2410mlnx54-1.2410068"}, True, []),
    "rdma-core too old": ({"rdma_core_version": "28.0"}, False, ["rdma-core 28.0: DMA-BUF needs 34"]),
    "rdma-core not known": ({"rdma_core_version": None}, None, ["the version of rdma-core is not known: DMA-BUF needs 34"]),
    "no driver": ({"gpu_driver": None}, False, ["the NVIDIA driver is not loaded"]),
    "proprietary driver": (
        {"gpu_driver": GpuDriver("580.159.04", open=False)},
        False,
        ["NVIDIA driver 580.159.04 is not the open one, which alone exports DMA-BUFs"],
    ),
    "driver of unknown kind": (
        {"gpu_driver": GpuDriver("580.159.04", open=None)},
        None,
        ["whether the NVIDIA driver is the open one is not known"],
    ),
    "driver too old": ({"gpu_driver": GpuDriver("510.47.03", open=True)}, False, ["NVIDIA driver 510.47.03: DMA-BUF needs 515"]),
    "the first driver": ({"gpu_driver": GpuDriver("515.43.04", open=True)}, True, []),
    "certain and unknown reasons": (
        {"kernel": "5.4.0", "rdma_core_version": None},
        False,
        ["kernel 5.4.0: DMA-BUF needs 5.12", "the version of rdma-core is not known: DMA-BUF needs 34"],
    ),
}


@pytest.mark.parametrize(("change", "possible", "why_not"), DMABUF.values(), ids=DMABUF)
def test_dmabuf(change: dict[str, Any], possible: bool | None, why_not: list[str]) -> None:
    assert possible_paths(**{**HOST, **change}).dmabuf == Possibility(possible, why_not)


SYMBOL = "ib_register_peer_memory_client"
PEERMEM = {
    "loaded": ({"memory_peers": [], "peer_symbol": None}, True, []),
    "the older module": ({"modules": ["nv_peer_mem"], "memory_peers": [], "peer_symbol": None}, True, []),
    "a client without a module of its own": ({"modules": [], "peer_symbol": None}, True, []),
    "could be loaded": (NO_PEER, True, []),
    "no interface": (
        {**NO_PEER, "peer_symbol": False},
        False,
        [f"nvidia_peermem is not loaded, and the RDMA stack has no {SYMBOL}: use DMA-BUF, or MLNX_OFED or DOCA-OFED"],
    ),
    "interface not known": (
        {**NO_PEER, "peer_symbol": None},
        None,
        [f"nvidia_peermem is not loaded, and whether the RDMA stack has {SYMBOL} is not known"],
    ),
    "no driver": ({**NO_PEER, "gpu_driver": None}, False, ["the NVIDIA driver is not loaded"]),
    "proprietary driver": ({"gpu_driver": GpuDriver("535.129.03", open=False)}, True, []),
}


@pytest.mark.parametrize(("change", "possible", "why_not"), PEERMEM.values(), ids=PEERMEM)
def test_peermem(change: dict[str, Any], possible: bool | None, why_not: list[str]) -> None:
    assert possible_paths(**{**HOST, **change}).peermem == Possibility(possible, why_not)


@given(kernel=st.text() | st.none(), rdma_core=st.text() | st.none(), driver=st.text())
def test_odd_versions_are_unknown_or_compared(kernel: str | None, rdma_core: str | None, driver: str) -> None:
    host = {**HOST, "kernel": kernel, "rdma_core_version": rdma_core, "gpu_driver": GpuDriver(driver, open=True)}
    found = possible_paths(**host).dmabuf
    assert (found.possible is True) == (found.why_not == [])


RELEASE = "/proc/sys/kernel/osrelease: 6.8.0-51-generic\n"
CORE = "/sys/module/ib_core/srcversion: A\n"
OFED = "/sys/module/mlx_compat/srcversion: B\n"
ON_DISK = "/lib/modules/6.8.0-51-generic/modules.symbols: alias symbol:ib_register_client ib_core\\n"
ON_DISK_PEER = f"{ON_DISK}alias symbol:{SYMBOL} ib_uverbs\\n\n"
LOADED = "/proc/kallsyms: ffffffffc09b0000 T ib_register_client\t[ib_core]\\n"
LOADED_PEER = f"{LOADED}ffffffffc09b9620 T {SYMBOL}\t[ib_core]\\n\n"
LOADED_OTHER = f"{LOADED}ffffffffc09b9620 r __ksymtab_{SYMBOL}_old\t[ib_core]\\n\n"
SYMBOLS = {
    "module loaded": ("/sys/module/nvidia_peermem/version: 580.159.04\n", True),
    "older module loaded": ("/sys/module/nv_peer_mem/version: 1.3\n", True),
    "inbox, none on disk": (RELEASE + CORE + ON_DISK + "\n" + LOADED_PEER, False),
    "inbox, on disk and loaded": (RELEASE + CORE + ON_DISK_PEER + LOADED_PEER, True),
    "inbox, on disk and not loaded": (RELEASE + CORE + ON_DISK_PEER + LOADED + "\n", False),
    "OFED loaded, inbox on disk": (RELEASE + CORE + OFED + ON_DISK + "\n" + LOADED_PEER, True),
    "OFED without": (RELEASE + CORE + OFED + ON_DISK + "\n" + LOADED_OTHER, False),
    "only the list of the kernel": (CORE + LOADED_PEER, True),
    "only the list of the kernel, without": (CORE + LOADED_OTHER, False),
    "no RDMA stack loaded": (RELEASE + ON_DISK_PEER + LOADED + "\n", True),
    "no list at all": (CORE, None),
    "nothing": ("", None),
}


@pytest.mark.parametrize(("text", "symbol"), SYMBOLS.values(), ids=SYMBOLS)
def test_whether_the_stack_takes_clients(tmp_path: Path, text: str, symbol: bool | None) -> None:
    assert read_peer_memory(SysRoot(str(write_tree(tmp_path, text)))) == PeerMemory(symbol, [])


def test_the_clients_that_are_there(tmp_path: Path) -> None:
    text = "/sys/kernel/mm/memory_peers/nv_mem/version: 580\n/sys/kernel/mm/memory_peers/nv_mem_nc/version: 580"
    assert read_peer_memory(SysRoot(str(write_tree(tmp_path, text)))) == PeerMemory(symbol=True, peers=["nv_mem", "nv_mem_nc"])


def test_the_list_of_the_kernel_is_not_read_without_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_bytes = SysRoot.read_bytes

    def recorded(self: SysRoot, path: str) -> bytes | None:
        read.append(path)
        return read_bytes(self, path)

    monkeypatch.setattr(SysRoot, "read_bytes", recorded)
    read_peer_memory(SysRoot(str(write_tree(tmp_path, RELEASE + CORE + ON_DISK + "\n" + LOADED_PEER))))
    assert read == ["/proc/sys/kernel/osrelease", "/lib/modules/6.8.0-51-generic/modules.symbols"]


LIBRARIES = [
    ("/usr/lib/x86_64-linux-gnu/libibverbs.so.1 -> libibverbs.so.1.14.50.0", "50.0"),
    ("/usr/lib/aarch64-linux-gnu/libibverbs.so.1 -> libibverbs.so.1.14.39.0", "39.0"),
    ("/usr/lib64/libibverbs.so.1 -> libibverbs.so.1.14.56.2", "56.2"),
    ("/usr/lib64/libibverbs.so.1 -> /opt/ofed/libibverbs.so.1.14.2410.0", "2410.0"),
    ("/usr/lib64/libibverbs.so.1 -> libibverbs.so.1.0.0", None),
    ("/usr/lib64/libibverbs.so.1: a file, no link", None),
    ("", None),
]


@pytest.mark.parametrize(("line", "version"), LIBRARIES)
def test_rdma_core_version(tmp_path: Path, line: str, version: str | None) -> None:
    assert read_rdma_core_version(SysRoot(str(write_tree(tmp_path, line)))) == version
