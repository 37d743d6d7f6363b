# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an explanation says of the devices that no rail plans, of GPUs and the ways between them and NICs, and of risen counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import Facts, Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.rails import (
    GIDS_READ,
    function_words,
    is_narrow,
    nearest,
    pcie_words,
    rail_block,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import (
    NOT_READ,
    Item,
    Row,
    at,
    duration_words,
    elements,
    items,
    listed,
    part,
    section,
    table,
    text_lines,
)

#: The ACS controls that send what two devices say to each other up to the root, and from there back.
REDIRECTING = ("ReqRedir", "CmpltRedir")
WAYS = {"dmabuf": "by DMA-BUF", "peermem": "by nvidia_peermem"}


def rails(intent: Intent | None, ports: Sequence[RailPort], facts: Facts) -> str:
    """A block for each planned rail."""
    blocks = [line for port in ports for line in rail_block(port, intent, facts)]
    return section("RAILS", blocks or text_lines("No rail is planned."))


def unplanned(ports: Sequence[RailPort], facts: Facts) -> str:
    """The ports of RDMA devices that are no rail."""
    title = "RDMA DEVICES THAT NO RAIL PLANS"
    if at(facts, "devices") is None:
        return section(title, text_lines(NOT_READ))
    planned = {(port.rail.device, port.rail.port) for port in ports}
    lines = [
        Item(f"{name}/{number}", _port_words(part(facts, "devices", name), part(facts, "devices", name, "ports", number)))
        for name in sorted(part(facts, "devices"))
        for number in sorted(part(facts, "devices", name, "ports"))
        if (name, number) not in planned
    ]
    return section(title, items(lines) or text_lines("none"))


def _port_words(device: Facts, port: Facts) -> str:
    words = [
        port.get("state") or "state not read",
        port.get("link_layer"),
        f"{port['rate_gbps']:g} Gb/s" if port.get("rate_gbps") and not device.get("software") else None,
        f"on {port['netdev']}" if port.get("netdev") else None,
        f"PCI {at(device, 'pci', 'address')}" if at(device, "pci", "address") else None,
        device.get("driver"),
        function_words(device),
    ]
    return ", ".join(str(each) for each in words if each)


def gpus(intent: Intent | None, ports: Sequence[RailPort], facts: Facts) -> str:
    """GPUs, and by which way NICs could reach their memory."""
    title = "GPUS AND GPUDIRECT RDMA"
    there = [gpu for gpu in elements(facts, "gpus") if isinstance(gpu, Mapping)]
    if not there:
        return section(title, items([Item("GPUs", NOT_READ if at(facts, "gpus") is None else "none"), _iommu(part(facts, "iommu"))]))
    planned = at(intent, "gpudirect", "path")
    lines = [
        Item("driver", _driver_words(facts)),
        *(_way(label, part(facts, "gpudirect", way), wanted=planned == way) for way, label in WAYS.items()),
        Item("planned", str(planned)) if planned else None,
        _iommu(part(facts, "iommu")),
        _acs(there, ports, needed=at(facts, "iommu", "virtual_machine") is True),
    ]
    return section(title, _gpu_table(there, facts), items(lines))


def _gpu_table(there: Sequence[Facts], facts: Facts) -> list[str]:
    """Marked where lanes are missing; an idle GPU may slow its link down, so that its speed says nothing."""
    rows = []
    for gpu in there:
        address, node, pci = gpu.get("address") or "not told", gpu.get("numa_node"), part(gpu, "pci")
        near = nearest(part(facts, "distances", address)) or "not known"
        link = pcie_words(pci) if pci else "not told"
        rows.append(Row((address, gpu.get("model") or "not told", "-" if node is None else str(node), near, link), is_narrow(pci)))
    return table(("GPU", "model", "NUMA", "nearest RDMA devices", "PCIe"), rows, (14, 24, 4, 28))


def _driver_words(facts: Facts) -> str:
    driver = part(facts, "gpu_driver")
    if not driver:
        return "not loaded" if "gpu_driver" in facts else NOT_READ
    kind = {True: "the open kernel modules", False: "the closed kernel modules"}.get(driver.get("open"))  # type: ignore[arg-type]
    return f"{driver.get('version') or 'version not told'}, {kind or 'whether the open kernel modules is not told'}"


def _way(label: str, way: Facts, *, wanted: bool) -> Item:
    if not way:
        return Item(label, NOT_READ)
    verdict = {True: "possible", False: "not possible"}.get(way.get("possible"), "not known whether it is possible")  # type: ignore[arg-type]
    reasons = "; ".join(str(each) for each in elements(way, "why_not"))
    return Item(label, verdict + (f": {reasons}" if reasons else ""), wanted and way.get("possible") is False)


def _iommu(iommu: Facts) -> Item:
    """Marked where it stands between GPU and NIC: on bare metal, unless it passes everything through."""
    if not iommu:
        return Item("IOMMU", NOT_READ)
    virtual = iommu.get("virtual_machine")
    place = {True: "; a virtual machine", False: "; bare metal"}.get(virtual, "")  # type: ignore[arg-type]
    mode = iommu.get("mode") or "mode not told"
    return Item("IOMMU", f"{mode}{place}", virtual is False and mode in ("translated", "mixed"))


def _acs(there: Sequence[Facts], ports: Sequence[RailPort], *, needed: bool) -> Item | None:
    """The bridges above GPUs and rails that send what they say to each other over the root; needed: as a virtual machine does."""
    above = [part(gpu, "pci") for gpu in there] + [port.pci for port in ports]
    told = [hop for pci in above for hop in elements(pci, "hops") if at(hop, "acs") is not None]
    redirecting = sorted({hop.get("address") or "a bridge" for hop in told if set(REDIRECTING) & set(elements(hop, "acs"))})
    if not told:
        return None
    return Item(
        "ACS",
        f"redirects at {listed(redirecting)}" if redirecting else "redirects at no bridge above them",
        bool(redirecting) and not needed,
    )


def errors(facts: Facts) -> str:
    """What counters of errors did since an earlier run."""
    title, since = "ERRORS SINCE THE LAST RUN", part(facts, "since")
    if not since:
        return section(title, text_lines("Not known: there is no earlier reading of this boot to compare with."))
    devices = part(since, "devices")
    ports = {f"{device}/{number}": each for device in devices for number, each in part(devices, device).items()}
    lines = [*_counters(ports), *_counters(part(since, "netdevs"))]
    seconds = since.get("seconds")
    when = f"{duration_words(seconds)} before this reading" if seconds is not None else "earlier in this boot"
    head = f"Since run {since.get('run') or 'without a name'}, {when}:"
    return section(title, text_lines(head), items(lines) or text_lines("none"))


def _counters(risen: Facts) -> list[Item]:
    return [Item(name, _risen(part(risen, name)), marked=True) for name in sorted(risen) if part(risen, name)]


def _risen(counters: Facts) -> str:
    return ", ".join(f"{name} +{rise}" for name, rise in sorted(counters.items()) if rise is not None) or NOT_READ


def complete(facts: Facts | None) -> dict[str, Any]:
    """The facts with what finding rails takes for granted: dictionaries of devices, ports and interfaces."""
    tree = {name: value for name, value in (facts or {}).items() if name != "devices"}
    tree["netdevs"] = {name: part(facts, "netdevs", name) for name in part(facts, "netdevs")}
    if at(facts, "devices") is not None:
        tree["devices"] = {name: _complete_device(part(facts, "devices", name)) for name in part(facts, "devices")}
    return tree


def _complete_device(device: Facts) -> dict[str, Any]:
    return {**device, "ports": {number: _complete_port(part(device, "ports", number)) for number in part(device, "ports")}}


def _complete_port(port: Facts) -> dict[str, Any]:
    return {"netdev": None, **port, "rocev2": part(port, "rocev2"), GIDS_READ: at(port, "rocev2") is not None}
