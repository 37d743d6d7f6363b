# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of an explanation on the planned rails, one block each."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.optics import Optic, out_of_range
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_steps import missing_addresses, mtu_differs
from ansible_collections.rdma.cluster.plugins.module_utils._pci.distance import DISTANCES
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciFunction
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import payload_gbps
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device, Port
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import (
    LINK_LAYERS,
    no_nic_words,
    rail_addresses,
    rail_ip,
    rocev2_gid_index,
)
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.roce_mtu import BEST_MTU_BYTES
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.rate import TOLERANCE
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.pcie import link_words, needed_gbps
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.qos import qos_items
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import NOT_READ, Item, items, listed, text_lines


def rail_block(port: RailPort, intent: Intent | None, facts: Facts) -> list[str]:
    """The lines on one planned rail."""
    rail = port.rail.rail
    kind = "Soft-RoCE" if rail["soft"] else {"roce": "RoCE", "infiniband": "InfiniBand"}[rail["link_layer"]]
    title = f"rail {port.rail.index}: {rail['name']}, {kind}, {rail['role']}, plane {rail['plane']}"
    lines: list[Item | None] = [_device(port, facts)]
    if port.port:
        lines += [_state(port, port.port), _link(port, port.port)]
    if port.port or port.netdev:
        lines += [_mtu(port), _address(port)]
    if port.port:
        lines += [_pcie(port), _place(port, facts)]
        lines += [_settings(port.pci)] if port.pci else []
    lines += [_optic(port.ethtool.optic)] if port.ethtool and port.ethtool.optic else []
    return [*text_lines(title), *items([*lines, *qos_items(port, intent, facts)], indent=4)]


def _device(port: RailPort, facts: Facts) -> Item:
    netdev, device = port.rail.netdev, port.device
    if not device:
        return Item("device", f"no RDMA device on {netdev}" if netdev else no_nic_words(port.rail, facts), marked=True)
    words = [
        f"{port.name} on {netdev or 'no interface'}",
        f"PCI {port.pci.address}" if port.pci else None,
        device.driver,
        f"firmware {device.firmware}" if device.firmware else None,
        f"board {device.board_id}" if device.board_id else None,
        function_words(device),
    ]
    return Item("device", ", ".join(filter(None, words)), device.node_type == "RNIC")


def function_words(device: Device) -> str | None:
    """The kind of a device in words; None for an ordinary one."""
    if device.node_type == "RNIC":
        return "uses iWARP, which RoCE peers do not understand"
    if device.software:
        return "software"
    kinds = {"vf": f"a virtual function of {device.parent_pci or 'an unknown card'}", "sf": "a subfunction"}
    return kinds.get(device.function or "")


def _state(port: RailPort, rdma: Port) -> Item:
    words, netdev = f"{rdma.state or NOT_READ}, {rdma.physical_state or NOT_READ}", port.netdev
    if not port.up and netdev and netdev.admin_up is False:
        words += f"; {port.rail.netdev} is administratively down"
    elif not port.up and netdev and netdev.carrier is False:
        words += f"; {port.rail.netdev} has no carrier"
    return Item("state", words, not port.up)


def _link(port: RailPort, rdma: Port) -> Item:
    layer = rdma.link_layer or "link layer not read"
    words = [f"{layer}, planned {LINK_LAYERS[port.rail.rail['link_layer']]}" if port.wrong_kind else layer]
    rate, planned = port.rate_gbps, port.planned_gbps
    if port.software:
        words.append("a software device has no line rate")
    else:
        words.append(f"{rate:g} Gb/s{_lanes(rdma, rate)}" if rate else "rate not read")
    if planned:
        words.append(f"planned {planned:g} Gb/s")
    slow = bool(planned and rate and not port.software and rate < planned * (1 - TOLERANCE))
    return Item("link", ", ".join(words), port.wrong_kind or slow)


def _lanes(port: Port, rate_gbps: float) -> str:
    """Lanes and speed, if the driver's rate is the interface's: "as 4 lanes of NDR"."""
    if not port.width or port.rate_gbps != rate_gbps:
        return ""
    return f" as {port.width} {'lane' if port.width == 1 else 'lanes'}" + (f" of {port.speed}" if port.speed else "")


def _mtu(port: RailPort) -> Item:
    planned, rdma = port.rail.rail["mtu_bytes"], port.port.active_mtu_bytes if port.port else None
    mtu = port.carries.mtu_bytes if port.carries else None
    words = [] if port.rail.netdev is None else [f"{mtu} bytes" if mtu else NOT_READ]
    differs = bool(mtu) and mtu_differs(planned, mtu)
    if differs:
        words.append(f"planned {planned}")
    words.append(f"RDMA {rdma} bytes" if rdma else "RDMA not read")
    return Item("MTU", ", ".join(words), differs or bool(rdma and rdma < BEST_MTU_BYTES and not port.software))


def _address(port: RailPort) -> Item:
    planned, there = rail_addresses(port.rail.rail), port.carries.addresses if port.carries else None
    words = [" and ".join(planned) or "no address planned"]
    lacking = missing_addresses(planned, there) if there is not None else []
    missing = bool(lacking)
    if missing:
        seen = f"which the interface does not have: {listed(there or [])}"
        words.append(seen if lacking == planned else f"of which the interface does not have {listed(lacking)}")
    if port.rail.rail["link_layer"] != "roce":
        return Item("address", ", ".join([*words, _lids(port.port)]), missing)
    if not port.port:
        return Item("address", ", ".join(words), missing)
    index = rocev2_gid_index(port.port, rail_ip(port.rail.rail))
    words.append("without a RoCE v2 GID" if index is None else f"its RoCE v2 GID has index {index}")
    return Item("address", ", ".join(words), missing or index is None)


def _lids(port: Port | None) -> str:
    lid, sm_lid = (port.lid, port.sm_lid) if port else (None, None)
    return f"{f'LID {lid}' if lid else 'no LID'}, {f'subnet manager at LID {sm_lid}' if sm_lid else 'no subnet manager known'}"


def pcie_words(pci: PciFunction) -> str:
    """The link of a function, its maximum, and the slowest link up to the root."""
    words = link_words(pci.speed_gtps, pci.width) if pci.speed_gtps and pci.width else "its own link is not known"
    if any(slow_and_narrow(pci)) and pci.max_speed_gtps and pci.max_width:
        words += f", at most {link_words(pci.max_speed_gtps, pci.max_width)}"
    narrowest = pci.narrowest
    if narrowest is None:
        return f"{words}, the slowest link up to the root is not known"
    carries = f"{payload_gbps(narrowest.speed_gtps, narrowest.width):.0f} Gb/s of payload"
    if narrowest.address == pci.address:
        return f"{words}, no slower link on the path: {carries}"
    return f"{words}, slowest at {narrowest.address}: {link_words(narrowest.speed_gtps, narrowest.width)} with {carries}"


def slow_and_narrow(pci: PciFunction) -> tuple[bool, bool]:
    """Whether a link is slower, and whether it has fewer lanes, than its function supports; neither if that is not known."""
    if not (pci.speed_gtps and pci.width and pci.max_speed_gtps and pci.max_width):
        return False, False
    return pci.speed_gtps < pci.max_speed_gtps, pci.width < pci.max_width


def _pcie(port: RailPort) -> Item | None:
    """The PCIe line, marked if the card's link is below its maximum or a link limits the port; None for devices not on PCI."""
    if port.software or not port.pci:
        return None
    rate, link = port.rate_gbps or port.planned_gbps, port.pci.narrowest
    caps = bool(rate and link and payload_gbps(link.speed_gtps, link.width) < needed_gbps(rate))
    words = pcie_words(port.pci) + (f", which limits {rate:g} Gb/s" if caps else "")
    return Item("PCIe", words, caps or any(slow_and_narrow(port.pci)))


def _place(port: RailPort, facts: Facts) -> Item | None:
    nodes = (
        port.device.numa_node if port.device else None,
        port.pci.numa_node if port.pci else None,
        port.netdev.numa_node if port.netdev else None,
    )
    node = next((each for each in nodes if each is not None), None)
    words = [f"NUMA node {node}" if node is not None else "NUMA node not known"]
    if near := nearest({gpu: row.get(port.rail.device or "") for gpu, row in (facts.distances or {}).items()}):
        words.append(f"nearest GPU {near}")
    return None if port.software and node is None else Item("place", ", ".join(words))


def nearest(distances: Mapping[str, str | None]) -> str:
    """The nearest of several devices and their distance: "0000:1b:00.0 (PIX)"; "" if no distance is known."""
    known = {name: DISTANCES.index(each) for name, each in sorted(distances.items()) if each in DISTANCES}
    least = min(known.values(), default=None)
    return "" if least is None else f"{listed([name for name, each in known.items() if each == least])} ({DISTANCES[least]})"


def _settings(pci: PciFunction) -> Item | None:
    """The settings in the card's configuration space."""
    words = [f"MRRS {pci.mrrs_bytes} bytes"] if pci.mrrs_bytes else []
    if pci.mps_bytes:
        words.append(f"MPS {pci.mps_bytes} bytes" + (f", at most {pci.mps_max_bytes}" if pci.mps_max_bytes else ""))
    return Item("card", ", ".join(words)) if words else None


def _optic(optic: Optic) -> Item:
    celsius = optic.temperature_celsius
    words = [
        " ".join(filter(None, (optic.vendor, optic.part_number, optic.identifier))),
        f"{optic.length_m:g} m" if optic.length_m else "",
        f"{celsius.value:g} °C" if celsius else "",
    ]
    troubles = [f"{what} {value:g}, {bound}" for what, _grade, value, bound in out_of_range(optic)]
    troubles += [f"{flag!r} is raised" for flag in optic.alarms]
    return Item("optic", ", ".join([*filter(None, words), *troubles]) or NOT_READ, bool(troubles))
