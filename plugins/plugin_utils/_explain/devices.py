# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of an explanation on unplanned RDMA devices, GPUs and their paths to NICs, and increased error counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpudirect import Possibility
from ansible_collections.rdma.cluster.plugins.module_utils._gpu.gpus import Gpu, GpuDriver
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import Iommu
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.rails import (
    function_words,
    nearest,
    pcie_words,
    rail_block,
    slow_and_narrow,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import (
    NOT_READ,
    Item,
    Row,
    duration_words,
    items,
    listed,
    section,
    table,
    text_lines,
)

#: The ACS controls that redirect traffic between two devices to the root and back.
REDIRECTING = frozenset({"ReqRedir", "CmpltRedir"})


def rails(intent: Intent | None, ports: Sequence[RailPort], facts: Facts) -> str:
    """One block for each planned rail."""
    blocks = [line for port in ports for line in rail_block(port, intent, facts)]
    return section("RAILS", blocks or text_lines("No rail is planned."))


def unplanned(ports: Sequence[RailPort], devices: Mapping[str, Device] | None) -> str:
    """The ports of RDMA devices that are not rails."""
    title = "RDMA DEVICES THAT ARE NOT RAILS"
    if devices is None:
        return section(title, text_lines(NOT_READ))
    planned = {(port.rail.device, port.rail.port) for port in ports}
    lines = [
        Item(f"{name}/{number}", _port_words(device, port))
        for name, device in sorted(devices.items())
        for number, port in sorted(device.ports.items())
        if (name, number) not in planned
    ]
    return section(title, items(lines) or text_lines("none"))


def _port_words(device: Device, port: Port) -> str:
    words = [
        port.state or "state not read",
        port.link_layer,
        f"{port.rate_gbps:g} Gb/s" if port.rate_gbps and not device.software else None,
        f"on {port.netdev}" if port.netdev else None,
        f"PCI {device.pci.address}" if device.pci else None,
        device.driver,
        function_words(device),
    ]
    return ", ".join(filter(None, words))


def gpus(intent: Intent | None, ports: Sequence[RailPort], facts: Facts) -> str:
    """GPUs, and the paths by which NICs could access their memory."""
    title, iommu, ways = "GPUS AND GPUDIRECT RDMA", facts.iommu, facts.gpudirect
    if not facts.gpus:
        return section(title, items([Item("GPUs", NOT_READ if facts.gpus is None else "none"), _iommu(iommu)]))
    planned = intent["gpudirect"]["path"] if intent else None
    lines = [
        Item("driver", _driver_words(facts.gpu_driver)),
        _way("by DMA-BUF", ways.dmabuf if ways else None, wanted=planned == "dmabuf"),
        _way("by nvidia_peermem", ways.peermem if ways else None, wanted=planned == "peermem"),
        Item("planned", str(planned)) if planned else None,
        _iommu(iommu),
        _acs(facts.gpus, ports, needed=iommu is not None and iommu.virtual_machine is True),
    ]
    return section(title, _gpu_table(facts.gpus, facts.distances or {}), items(lines))


def _gpu_table(there: Iterable[Gpu], distances: Mapping[str, Mapping[str, str | None]]) -> list[str]:
    """The table of GPUs, marked if lanes are missing; the speed is not marked, because an idle GPU may slow its link down."""
    rows = []
    for gpu in there:
        near = nearest(distances.get(gpu.address) or {}) or "not known"
        link, is_narrow = (pcie_words(gpu.pci), slow_and_narrow(gpu.pci)[1]) if gpu.pci else ("not reported", False)
        node = "-" if gpu.numa_node is None else str(gpu.numa_node)
        rows.append(Row((gpu.address, gpu.model or "not reported", node, near, link), is_narrow))
    return table(("GPU", "model", "NUMA", "nearest RDMA devices", "PCIe"), rows, (14, 24, 4, 28))


def _driver_words(driver: GpuDriver | None) -> str:
    if driver is None:
        return "not loaded"
    kinds = {True: "the open kernel modules", False: "the closed kernel modules", None: "open or closed kernel modules not known"}
    return f"{driver.version or 'version not reported'}, {kinds[driver.open]}"


def _way(label: str, way: Possibility | None, *, wanted: bool) -> Item:
    if way is None:
        return Item(label, NOT_READ)
    verdict = {True: "possible", False: "not possible", None: "not known whether possible"}[way.possible]
    return Item(label, ": ".join(filter(None, [verdict, "; ".join(way.why_not)])), wanted and way.possible is False)


def _iommu(iommu: Iommu | None) -> Item:
    """The IOMMU, marked if it is between GPU and NIC: on bare metal, unless in passthrough mode."""
    if iommu is None:
        return Item("IOMMU", NOT_READ)
    place = {True: "; a virtual machine", False: "; bare metal", None: ""}[iommu.virtual_machine]
    is_between = iommu.virtual_machine is False and iommu.mode in ("translated", "mixed")
    return Item("IOMMU", f"{iommu.mode or 'mode not reported'}{place}", is_between)


def _acs(there: Iterable[Gpu], ports: Sequence[RailPort], *, needed: bool) -> Item | None:
    """The bridges above GPUs and rails that redirect their traffic to the root. needed: whether ACS is needed, as for virtual machines."""
    above = [gpu.pci for gpu in there] + [port.pci for port in ports]
    known = {hop.address: hop.acs for pci in above if pci for hop in pci.hops if hop.acs is not None}
    redirecting = sorted(address for address, acs in known.items() if REDIRECTING & set(acs))
    if not known:
        return None
    words = f"redirects at {listed(redirecting)}" if redirecting else "redirects at no bridge above them"
    return Item("ACS", words, bool(redirecting) and not needed)


def errors(since: Mapping[str, Any] | None) -> str:
    """The increase of error counters since an earlier run, which the control node adds to the facts."""
    title = "ERRORS SINCE THE LAST RUN"
    if not since:
        return section(title, text_lines("Not known: no earlier reading of this boot to compare with."))
    ports = {f"{device}/{number}": each for device, of_ports in since["devices"].items() for number, each in of_ports.items()}
    head = f"Since run {since['run']}, {duration_words(since['seconds'])} before this reading:"
    return section(title, text_lines(head), items([*_counters(ports), *_counters(since["netdevs"])]) or text_lines("none"))


def _counters(risen: Mapping[str, Mapping[str, int]]) -> list[Item]:
    return [Item(name, _risen(counters), marked=True) for name, counters in sorted(risen.items()) if counters]


def _risen(counters: Mapping[str, int]) -> str:
    return ", ".join(f"{name} +{rise}" for name, rise in sorted(counters.items()))
