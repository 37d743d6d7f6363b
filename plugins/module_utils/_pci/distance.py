# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a GPU and a NIC are from each other on the PCI tree, as `nvidia-smi topo -m` names it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PCI_DEVICES, PciFunction
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import function_paths, host_bridge

#: From near to far.
DISTANCES = ("PIX", "PXB", "PHB", "NODE", "SYS")
_NODES_WITH_CPUS = "/sys/devices/system/node/has_cpu"
_NODE_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


def distance(path_a: str, path_b: str, numa_a: int | None, numa_b: int | None, node_count: int | None = None) -> str | None:
    """Return the distance between two functions, given their paths in /sys/devices and their NUMA nodes.

    PIX: at most one PCIe switch between them (also two functions of a device); PXB: several switches; PHB: the host
    bridge; NODE: two host bridges of one NUMA node; SYS: two NUMA nodes. None if a NUMA node decides and is
    unknown, unless the system has only one node (node_count). NCCL uses the same rules, but counts NODE as PHB.
    """
    way_a, way_b = function_paths(path_a)[::-1], function_paths(path_b)[::-1]
    root_a, root_b = host_bridge(path_a), host_bridge(path_b)
    if not way_a or not way_b or root_a is None or root_b is None:
        return None
    if root_a != root_b:
        return _between_host_bridges(numa_a, numa_b, node_count)
    if way_a[0] != way_b[0] and _device(way_a[-1]) != _device(way_b[-1]):
        return "PHB"
    switches = _switches(way_a[:-1], way_b) | _switches(way_b[:-1], way_a)
    return "PIX" if len(switches) <= 1 else "PXB"


def _between_host_bridges(numa_a: int | None, numa_b: int | None, node_count: int | None) -> str | None:
    if node_count == 1:
        return "NODE"
    if numa_a is None or numa_b is None:
        return None
    return "NODE" if numa_a == numa_b else "SYS"


def _device(path: str) -> str:
    """Return the path of a function without the function's number."""
    return path.rsplit(".", 1)[0]


def _switches(bridges: list[str], other: list[str]) -> set[str]:
    """Return the switches of one side's bridges (from the root port down) on the path to the other, by their upstream ports.

    Below a root port the bridges alternate: upstream port, downstream port, upstream port of the next switch.
    """
    return {bridges[index - 1 + index % 2] for index in range(1, len(bridges)) if bridges[index] not in other}


def parse_node_count(text: str) -> int:
    """Return how many NUMA nodes a list of the kernel names: "0-1,8" -> 3. Raises ParseError."""
    ranges = [_NODE_RANGE.fullmatch(part) for part in text.strip().split(",")]
    if not all(ranges):
        raise ParseError(f"not a list of NUMA nodes: {quoted(text)}, expected the form '0-1'")
    return sum(int(match[2] or match[1]) - int(match[1]) + 1 for match in ranges if match is not None)


def read_distances(
    sys: SysRoot, gpus: Mapping[str, PciFunction | None], devices: Mapping[str, PciFunction | None]
) -> dict[str, dict[str, str | None]]:
    """Return the distance of each GPU, by its name, to each device that is on the PCI tree, by its name."""
    if not gpus or not devices:
        return {name: {} for name in gpus}
    nodes = sys.value(_NODES_WITH_CPUS, parse_node_count)
    paths = {function.address: _path(sys, function) for function in (*gpus.values(), *devices.values()) if function is not None}
    return {
        name: {
            device: distance(paths[gpu.address], paths[nic.address], gpu.numa_node, nic.numa_node, nodes) if gpu is not None else None
            for device, nic in devices.items()
            if nic is not None
        }
        for name, gpu in gpus.items()
    }


def _path(sys: SysRoot, function: PciFunction) -> str:
    return sys.resolve(f"{PCI_DEVICES}/{function.address}") or ""
