# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Distances on the PCI trees of real machines, read where they lie.

No capture has both a machine's tree and what `nvidia-smi topo -m` says of it, so the expected words were derived from the trees
by the legend that it prints.
"""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.distance import distance, read_distances
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciFunction, PciHop, PciReader

FIXTURES = Path(__file__).parents[2].parent / "shared" / "fixtures"
TREES, LSTOPO, NCCL, LSPCI = (FIXTURES / name for name in ("sysfs", "lstopo", "nccl-topo-xml", "lspci"))
#: What the trees hold of PCI; the rest is large.
PART = re.compile(r"/bus/pci/devices/[^/]+$|pci.*/(config|device|numa_node|vendor|[a-z]+_link_[a-z]+)$|/node/has_cpu$")

Pairs = dict[tuple[str, str], "str | None"]

#: Captured /sys: pairs of functions and their distance.
SYSFS: dict[str, Pairs] = {
    "hwloc-2pa-pcidomain32bits.tar.bz2": {
        ("0000:00:01.2", "0000:00:01.3"): "PIX",
        ("0000:00:02.0", "0000:00:03.0"): "PHB",
        # Two domains and no NUMA node named, but the machine has only one.
        ("0000:00:03.0", "10000:00:04.0"): "NODE",
    },
    "hwloc-32em64t-mlx4-mic-nvme-dax.tar.bz2": {
        ("0000:02:00.0", "0000:02:00.3"): "PIX",
        ("0000:02:00.0", "0000:05:00.0"): "PHB",
        ("0000:82:00.0", "0000:83:00.0"): "PHB",
        ("0000:82:00.0", "0000:02:00.0"): "SYS",
        ("0000:82:00.0", "0000:05:00.0"): "SYS",
        ("0000:82:00.0", "0000:7f:08.0"): None,
    },
    "hwloc-40intel64-qib-pcilocality.tar.bz2": {
        ("0000:03:00.0", "0000:03:00.1"): "PIX",
        ("0000:03:00.0", "0000:01:00.0"): "PHB",
        ("0000:43:00.0", "0000:40:14.0"): "PHB",
        # The firmware names a NUMA node for one of the two only.
        ("0000:43:00.0", "0000:03:00.0"): None,
    },
    # The capture has no tree, only the functions' names.
    "hwloc-nvidiagpunumanodes.tar.bz2": {("0004:05:00.0", "0004:06:00.0"): None},
}


def unpacked(name: str, folder: Path) -> SysRoot:
    with tarfile.open(TREES / name) as archive:
        top = archive.getnames()[0]
        members = [member for member in archive if PART.search(member.name)]
        archive.extractall(folder, members, filter="data")
    return SysRoot(str(folder / top))


def test_every_tree_is_known() -> None:
    assert {path.name for path in TREES.glob("*.tar.bz2")} == set(SYSFS)


@pytest.mark.parametrize("name", SYSFS)
def test_captured_trees(name: str, tmp_path: Path) -> None:
    sys = unpacked(name, tmp_path)
    reader = PciReader(sys)
    for pair, expected in SYSFS[name].items():
        one, other = (reader.function(sys.resolve(f"/sys/bus/pci/devices/{address}") or "") for address in pair)
        assert (pair, read_distances(sys, {"one": one}, {"other": other})) == (pair, {"one": {"other": expected}})


def test_a_network_card_and_the_bridge_above_it(tmp_path: Path) -> None:
    sys = unpacked("hwloc-32em64t-mlx4-mic-nvme-dax.tar.bz2", tmp_path)
    hop = PciHop("0000:80:02.2", None, None, None, None, None, None, None)
    assert PciReader(sys).function("/sys/devices/pci0000:80/0000:80:02.2/0000:82:00.0") == PciFunction(
        "0000:82:00.0", "0x15b3", "0x1003", 1, None, None, None, None, None, None, None, None, [hop]
    )


#: lstopo's XML: pairs of functions by their place in the file, since one capture has been edited and has an address twice.
XML: dict[str, dict[tuple[str, str], str]] = {
    "hwloc-16intel64-manyVFs": {
        ("eth0", "eth1"): "PIX",
        ("eth4", "eth5"): "PIX",
        ("eth4", "0000:0b:00.3"): "PIX",
        ("eth5", "0000:0b:00.3"): "PIX",
        ("eth0", "eth4"): "PHB",
        ("eth4", "eth6"): "SYS",
        ("eth6", "eth7"): "PIX",
    },
    "hwloc-192em64t-24n8c2t": {
        ("eth0", "eth1"): "PIX",
        ("eth2", "eth3"): "PIX",
        ("eth2", "eth4"): "PIX",
        ("eth0", "0000:05:00.0"): "PHB",
        ("0000:05:00.0", "0000:0a:00.0"): "PHB",
        ("eth0", "mlx4_0"): "SYS",
        ("mlx4_0", "eth2"): "SYS",
    },
    "hwloc-32em64t-2n8c2t-pci-normalio": {
        ("0000:03:00.0", "mlx5_0"): "SYS",
        ("0000:83:00.0", "mlx5_0"): "PHB",
        ("cuda0", "mlx5_0"): "PIX",
        ("0000:83:00.0", "cuda0"): "PHB",
    },
    "hwloc-96em64t-4n4d3ca2co-pci": {
        ("eth0", "eth1"): "PIX",
        ("eth0", "card0"): "PHB",
        # Two host bridges of one NUMA node.
        ("eth0", "sda"): "NODE",
        ("eth2", "sdb"): "SYS",
        ("eth4", "sdb"): "PHB",
    },
}


def lstopo_paths(name: str) -> dict[str, tuple[str, int]]:
    """The path in /sys/devices of each function of an XML of lstopo, by address and by the names of its devices, and its NUMA node."""
    found: dict[str, tuple[str, int]] = {}

    def walk(element: ElementTree.Element, path: str, node: int) -> None:
        for item in element.findall("object"):
            kind, address = item.get("type"), item.get("pci_busid")
            below, domain = path, (item.get("bridge_pci") or "").partition("-")[0].replace("[", "")
            if kind == "Bridge":
                below = f"{path}/{address}" if address else f"/sys/devices/pci{domain}"
            elif kind == "PCIDev":
                names = [str(device.get("name")) for device in item.findall("object")]
                found.update(dict.fromkeys([str(address), *names], (f"{path}/{address}", node)))
            elif kind == "NUMANode":
                node = int(item.get("os_index") or 0)
            walk(item, below, node)

    walk(ElementTree.parse(LSTOPO / f"{name}.xml").getroot(), "", 0)  # noqa: S314
    return found


def test_every_xml_of_lstopo_is_known() -> None:
    assert {path.stem for path in LSTOPO.iterdir()} == set(XML)


@pytest.mark.parametrize("name", XML)
def test_trees_of_lstopo(name: str) -> None:
    functions = lstopo_paths(name)
    for (one, other), expected in XML[name].items():
        (path_a, node_a), (path_b, node_b) = functions[one], functions[other]
        assert (one, other, distance(path_a, path_b, node_a, node_b)) == (one, other, expected)


#: NCCL's XML: how many pairs of a GPU and a NIC are how far from each other. It has no host bridges, so PHB is NODE there.
COUNTS: dict[str, dict[str, int]] = {
    "aws-g5.48xl-topo": {},
    "aws-p4d-24xl-topo": {"PIX": 8, "NODE": 8, "SYS": 16},
    "aws-p5.48xl-topo": {"PIX": 32, "NODE": 224},
    "azhpc-ncv4-graph": {},
    "azhpc-ncv4-topo": {},
    "azhpc-ndv4-topo": {"PIX": 16, "SYS": 48},
    "azhpc-ndv5-topo": {"PIX": 8, "NODE": 24, "SYS": 32},
    "rccl-topo_4p_940": {"NODE": 4, "SYS": 12},
    "rccl-topo_8p1h_5": {"PXB": 16, "NODE": 16, "SYS": 32},
    "rccl-topo_8p6l_6nic": {"NODE": 24, "SYS": 24},
    "rccl-topo_8p_90a": {"NODE": 8},
    "rccl-topo_8p_940": {"PXB": 8, "NODE": 24, "SYS": 32},
    "rccl-topo_8p_rome_4nics": {"PXB": 8, "SYS": 24},
    "rccl-topo_8p_ts1_n4": {"SYS": 16},
    "rccl-topo_collnet_n1": {"NODE": 2, "SYS": 6},
    "sb-dtk26.04-topo-mapping": {},
    "sb-ndv4-topo": {"PIX": 16, "SYS": 48},
    "sb-ndv5-topo": {"PIX": 8, "NODE": 24, "SYS": 32},
}


def nccl_functions(name: str) -> Iterator[tuple[str, str, str, int]]:
    """Class, address, path in /sys/devices and NUMA node of each function of an XML of NCCL that is no bridge.

    NCCL names a switch by its upstream port and leaves out the root port and the downstream ports, which are made up here.
    """

    def walk(element: ElementTree.Element, path: str, node: int) -> Iterator[tuple[str, str, str, int]]:
        for number, item in enumerate(element.findall("pci")):
            below = f"{path}/fffe:{number:02x}:00.0/{item.get('busid')}" if path else f"/sys/devices/pci{number:04x}:{node:02x}"
            below = below if path else f"{below}/ffff:00:00.0/{item.get('busid')}"
            kind = item.get("class") or ""
            if kind and not kind.startswith("0x0604"):
                yield kind, str(item.get("busid")), below, node
            yield from walk(item, below, node)

    for cpu in ElementTree.parse(NCCL / f"{name}.xml").getroot().findall("cpu"):  # noqa: S314
        yield from walk(cpu, "", int(cpu.get("numaid") or 0))


def test_every_xml_of_nccl_is_known() -> None:
    assert {path.stem for path in NCCL.iterdir()} == set(COUNTS)


@pytest.mark.parametrize("name", COUNTS)
def test_trees_of_nccl(name: str) -> None:
    functions = list(nccl_functions(name))
    gpus = [function for function in functions if function[0].startswith(("0x03", "0x12"))]
    nics = [function for function in functions if function[0].startswith("0x02")]
    found = Counter(distance(gpu[2], nic[2], gpu[3], nic[3]) for gpu in gpus for nic in nics)
    assert found == COUNTS[name]


def test_each_gpu_of_an_h100_machine_has_its_nic() -> None:
    functions = {address: (path, node) for _kind, address, path, node in nccl_functions("azhpc-ndv5-topo")}
    gpus = ["0001", "0002", "0003", "0008", "0009", "000a", "000b", "000c"]
    for number, gpu in enumerate(gpus):
        near = [nic for nic in range(1, 9) if distance(*words(functions, f"{gpu}:00:00.0", f"010{nic}:00:00.0")) == "PIX"]
        assert near == [number + 1]


def words(functions: dict[str, tuple[str, int]], one: str, other: str) -> tuple[str, str, int, int]:
    return functions[one][0], functions[other][0], functions[one][1], functions[other][1]


ASUS = {
    ("06:00.0", "06:00.1"): "PIX",
    ("04:00.0", "06:00.0"): "PHB",
    ("06:00.0", "07:00.0"): "PHB",
    ("00:1f.2", "00:1f.3"): "PIX",
    ("00:1f.2", "00:1a.0"): "PHB",
    ("06:00.0", "ff:02.0"): "NODE",
}


def asus_paths() -> dict[str, str]:
    """The path of each function, by the bus numbers (0x18 to 0x1a) in the bytes that lspci has dumped of its bridges."""
    text = (LSPCI / "pciutils-tree-asus-p6t6.txt").read_text(encoding="utf-8")
    rows = re.findall(r"^([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) .*\n00: (.*)\n10: (.*)\n", text, re.MULTILINE)
    above = {row[2].split()[9]: row[0] for row in rows if row[1].split()[14] in ("01", "81")}

    def path(address: str) -> str:
        bus = address[:2]
        return f"{path(above[bus])}/0000:{address}" if bus in above else f"/sys/devices/pci0000:{bus}/0000:{address}"

    return {row[0]: path(row[0]) for row in rows}


def test_a_board_with_a_switch() -> None:
    paths = asus_paths()
    assert paths["04:00.0"] == "/sys/devices/pci0000:00/0000:00:03.0/0000:02:00.0/0000:03:00.0/0000:04:00.0"
    assert {pair: distance(paths[pair[0]], paths[pair[1]], None, None, node_count=1) for pair in ASUS} == ASUS
    # Had the second slot of the switch a card as well:
    assert distance(paths["04:00.0"], f"{paths['03:02.0']}/0000:05:00.0", None, None) == "PIX"


def test_physical_and_virtual_functions_of_a_card() -> None:
    """The functions on buses b1 and b2 below root port b0:04.0."""
    assert r"\-04.0-[b1-b2]--+-00.0" in (LSPCI / "ml-cx7-tree.txt").read_text(encoding="utf-8")
    physical, virtual = (f"/sys/devices/pci0000:b0/0000:b0:04.0/0000:b1:{number}" for number in ("00.0", "01.1"))
    assert distance(physical, virtual, 1, 1) == "PIX"
