# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUs, IOMMU and virtual machines of real systems whose /sys and /proc others have captured."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpudirect import PeerMemory, read_peer_memory, read_rdma_core_version
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpus import Gpu, GpuDriver, read_gpus
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import Iommu, PciFunction, read_iommu
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import parse_address

FIXTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"
TREES, H200 = FIXTURES / "sysfs", FIXTURES / "h200"
#: What is asked of the trees; the rest is large.
PART = re.compile(
    r"/bus/pci/devices/[^/]+$|pci.*/(class|config|device|modalias|numa_node|vendor)$|/class/dmi/|/kernel/iommu|/proc/(cpuinfo$|driver/)"
)


def unnamed(address: str) -> Gpu:
    """One of the POWER9 machine: of its files, the capture has a few that show nothing of it."""
    return Gpu(address, None, None, None, PciFunction(address, *[None] * 8))


POWER9 = ["0004:05:00.0", "0004:06:00.0", "0006:00:00.0", "0007:00:00.0", "0035:04:00.0", "0035:05:00.0"]
#: GPUs, and whether it is a virtual machine; none has its IOMMU captured.
MACHINES: dict[str, tuple[list[Gpu], bool | None]] = {
    "hwloc-2pa-pcidomain32bits.tar.bz2": ([], True),
    "hwloc-32em64t-mlx4-mic-nvme-dax.tar.bz2": ([], False),
    "hwloc-40intel64-qib-pcilocality.tar.bz2": ([], False),
    "hwloc-nvidiagpunumanodes.tar.bz2": ([unnamed(address) for address in POWER9], None),
}


def test_every_tree_is_known() -> None:
    assert {path.name for path in TREES.glob("*.tar.bz2")} == set(MACHINES)


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine(name: str, tmp_path: Path) -> None:
    with tarfile.open(TREES / name) as archive:
        top = archive.getnames()[0]
        members = [member for member in archive if PART.search(member.name)]
        archive.extractall(tmp_path, members, filter="data")
    sys = SysRoot(str(tmp_path / top))
    gpus, virtual_machine = MACHINES[name]
    driver = GpuDriver(None, None) if "nvidia" in name else None
    assert read_gpus(sys) == (gpus, driver)
    assert read_iommu(sys) == Iommu(present=None, mode=None, virtual_machine=virtual_machine)
    assert read_iommu(sys, running=True) == Iommu(present=False, mode="off", virtual_machine=virtual_machine)
    assert read_peer_memory(sys) == PeerMemory(symbol=None, peers=[])
    assert read_rdma_core_version(sys) is None


def test_the_addresses_that_nvidia_smi_prints() -> None:
    text = (H200 / "nvidia-smi-q.txt").read_text(encoding="utf-8")
    assert [parse_address(line) for line in re.findall(r"^GPU (\S+)$", text, re.MULTILINE)] == ["0000:00:06.0", "0000:00:07.0"]
