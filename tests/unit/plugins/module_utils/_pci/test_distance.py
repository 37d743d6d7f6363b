# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.distance import (
    DISTANCES,
    distance,
    parse_node_count,
    read_distances,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciReader
from tests.unit.builders.garbled import read_or_refused
from tests.unit.builders.trees import write_tree


def path(*addresses: str, bridge: str = "pci0000:00") -> str:
    """A path in /sys/devices; an address in short: "01:00.0"."""
    return "/".join(["/sys/devices", bridge, *(f"0000:{address}" for address in addresses)])


# Below the root port a switch, and below that another one with the GPU.
SWITCH = ("00:01.0", "01:00.0")
GPU = path(*SWITCH, "02:00.0", "03:00.0", "04:00.0", "07:00.0")
NEAR = {
    "below the same switch": path(*SWITCH, "02:00.0", "03:00.0", "04:01.0", "0c:00.0"),
    "VF below the same switch": path(*SWITCH, "02:00.0", "03:00.0", "04:01.0", "0c:01.2"),
}
FAR = {
    "below the switch above": path(*SWITCH, "02:01.0", "0f:00.0"),
    "below another switch below the same": path(*SWITCH, "02:02.0", "10:00.0", "11:00.0", "12:00.0"),
}
BEYOND = {
    "below another root port": path("00:02.0", "20:00.0"),
    "on the root bus": path("00:1f.0"),
}


@pytest.mark.parametrize("nic", NEAR.values(), ids=NEAR)
def test_pix(nic: str) -> None:
    assert distance(GPU, nic, 0, 0) == "PIX"


@pytest.mark.parametrize("nic", FAR.values(), ids=FAR)
def test_pxb(nic: str) -> None:
    assert distance(GPU, nic, 0, 0) == "PXB"


@pytest.mark.parametrize("nic", BEYOND.values(), ids=BEYOND)
def test_phb(nic: str) -> None:
    assert distance(GPU, nic, 0, 0) == "PHB"


def test_pix_without_a_switch() -> None:
    assert distance(path("00:01.0", "01:00.0"), path("00:01.0", "01:00.1"), None, None) == "PIX"
    assert distance(path("00:1f.2"), path("00:1f.3"), None, None) == "PIX"
    assert distance(path("00:06.0"), path("00:07.0"), None, None) == "PHB"


def test_pix_by_a_function_of_the_switch_itself() -> None:
    """The switch's management function stands beside its upstream port."""
    assert distance(path("00:01.0", "01:00.0", "02:00.0", "03:00.0"), path("00:01.0", "01:00.1"), 0, 0) == "PIX"


OTHER = path("80:01.0", "81:00.0", bridge="pci0000:80")
NODES = [
    (0, 0, None, "NODE"),
    (0, 1, None, "SYS"),
    (0, 1, 2, "SYS"),
    (None, None, 1, "NODE"),
    (None, None, 2, None),
    (None, None, None, None),
    (0, None, 2, None),
    (0, None, 1, "NODE"),
]


@pytest.mark.parametrize(("numa_a", "numa_b", "nodes", "expected"), NODES)
def test_two_host_bridges(numa_a: int | None, numa_b: int | None, nodes: int | None, expected: str | None) -> None:
    assert distance(GPU, OTHER, numa_a, numa_b, nodes) == expected
    assert distance(OTHER, GPU, numa_b, numa_a, nodes) == expected


def test_a_domain_of_its_own_for_each_device() -> None:
    """As virtual machines of Azure show their GPUs and NICs."""
    gpu = "/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-0001/pci0001:00/0001:00:00.0"
    nic = "/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-0101/pci0101:00/0101:00:00.0"
    assert (distance(gpu, nic, 1, 1), distance(gpu, nic, 1, 2)) == ("NODE", "SYS")


def test_behind_a_volume_management_device() -> None:
    disk = "/sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0/10000:e1:00.0"
    assert distance(GPU, disk, 0, 0) == "PHB"


# A machine of two sockets with four NUMA nodes each: below a root port a switch, below that one for each GPU and its NIC.
MACHINE = {
    "GPU0": ("pci0000:00", ("00:01.1", "01:00.0", "02:00.0", "03:00.0", "04:10.0", "07:00.0")),
    "GPU1": ("pci0000:00", ("00:01.1", "01:00.0", "02:10.0", "0b:00.0", "0c:04.0", "0f:00.0")),
    "mlx5_0": ("pci0000:00", ("00:01.1", "01:00.0", "02:00.0", "03:00.0", "04:00.0", "05:00.0")),
    "mlx5_1": ("pci0000:00", ("00:01.1", "01:00.0", "02:10.0", "0b:00.0", "0c:00.0", "0d:00.0")),
    "mlx5_2": ("pci0000:40", ("40:01.1", "41:00.0", "42:00.0", "43:00.0", "44:00.0", "4b:00.0")),
    "mlx5_6": ("pci0000:80", ("80:01.1", "81:00.0", "82:00.0", "83:00.0", "84:00.0", "8b:00.0")),
}
NODES_OF = {"mlx5_6": 4}
EXPECTED = {
    "GPU0": {"mlx5_0": "PIX", "mlx5_1": "PXB", "mlx5_2": "NODE", "mlx5_6": "SYS"},
    "GPU1": {"mlx5_0": "PXB", "mlx5_1": "PIX", "mlx5_2": "NODE", "mlx5_6": "SYS"},
}


@pytest.fixture
def machine(tmp_path: Path) -> SysRoot:
    text = "/sys/devices/system/node/has_cpu: 0-7\n"
    for name, (bridge, addresses) in MACHINE.items():
        function = path(*addresses, bridge=bridge)
        text += f"{function}/numa_node: {NODES_OF.get(name, 3)}\n/sys/bus/pci/devices/0000:{addresses[-1]} -> {function}\n"
    return SysRoot(str(write_tree(tmp_path, text)))


def test_the_distances_of_a_machine(machine: SysRoot) -> None:
    functions = {name: PciReader(machine).function(path(*addresses, bridge=bridge)) for name, (bridge, addresses) in MACHINE.items()}
    gpus = {name: function for name, function in functions.items() if name.startswith("GPU")}
    devices = {name: function for name, function in functions.items() if name.startswith("mlx5")}
    assert read_distances(machine, gpus, devices) == EXPECTED


def test_what_is_not_on_the_tree(machine: SysRoot) -> None:
    nic = PciReader(machine).function(path(*MACHINE["mlx5_0"][1]))
    assert read_distances(machine, {"GPU9": None}, {"mlx5_0": nic, "rxe0": None}) == {"GPU9": {"mlx5_0": None}}
    assert read_distances(machine, {}, {"mlx5_0": nic}) == {}
    assert read_distances(machine, {"GPU9": None}, {}) == {"GPU9": {}}


@pytest.mark.parametrize(("text", "count"), [("0\n", 1), ("0-1\n", 2), ("0,8", 2), ("0-3,8-11,250", 9)])
def test_node_count(text: str, count: int) -> None:
    assert parse_node_count(text) == count


@pytest.mark.parametrize("text", ["", "0-", "one", "0;1", "²"])
def test_what_is_no_list_of_nodes_is_quoted(text: str) -> None:
    with pytest.raises(ParseError, match="not a list of NUMA nodes") as caught:
        parse_node_count(text)
    assert repr(text) in str(caught.value)


@given(text=st.text() | st.from_regex(r"[0-9,-]*"))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_node_count, text)


PATHS = st.lists(st.from_regex(r"(0000:0[0-3]:0[0-3]\.[0-7]|pci0000:[08]0|virtio1)", fullmatch=True), max_size=8).map(
    lambda parts: "/".join(["/sys/devices", *parts])
)


@given(path_a=PATHS | st.text(), path_b=PATHS | st.text())
def test_a_distance_is_the_same_both_ways(path_a: str, path_b: str) -> None:
    found = distance(path_a, path_b, 0, 1)
    assert found in (None, *DISTANCES)
    assert distance(path_b, path_a, 1, 0) == found
