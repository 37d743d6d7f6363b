# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an explanation says of the planned rails, one block each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._net.optics import out_of_range
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import address_misses, mtu_differs
from ansible_collections.rdma.cluster.plugins.module_utils._pci.distance import DISTANCES
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import payload_gbps
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import LINK_LAYERS, Facts, no_nic_words, rocev2_gid_index
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.rate import TOLERANCE
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.pcie import link_words, needed_gbps
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.qos import qos_items
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import (
    NOT_READ,
    Item,
    at,
    elements,
    items,
    listed,
    part,
    text_lines,
)

BEST_RDMA_MTU_BYTES = 4096
#: What `complete` adds to a port of the facts: whether they tell its GIDs.
GIDS_READ = "gids_read"


def rail_block(port: RailPort, intent: Mapping[str, Any] | None, facts: Facts) -> list[str]:
    """Everything that is known of one planned rail."""
    rail = port.rail.rail
    kind = "Soft-RoCE" if rail["soft"] else {"roce": "RoCE", "infiniband": "InfiniBand"}[rail["link_layer"]]
    title = f"rail {port.rail.index}: {rail['name']}, {kind}, {rail['role']}, plane {rail['plane']}"
    lines: list[Item | None] = [_device(port, facts)]
    if port.port:
        lines += [_state(port), _link(port)]
    if port.port or port.netdev:
        lines += [_mtu(port), _address(port)]
    if port.port:
        lines += [_pcie(port), _place(port, facts), _settings(port)]
    return [*text_lines(title), *items([*lines, _optic(port), *qos_items(port, intent, facts)], indent=4)]


def _device(port: RailPort, facts: Facts) -> Item:
    netdev = port.rail.netdev
    if not port.port:
        return Item("device", f"no RDMA device on {netdev}" if netdev else no_nic_words(port.rail, facts), marked=True)
    words = [
        f"{port.name} on {netdev or 'no interface'}",
        f"PCI {port.pci['address']}" if port.pci.get("address") else None,
        port.device.get("driver"),
        f"firmware {port.device['firmware']}" if port.device.get("firmware") else None,
        f"board {port.device['board_id']}" if port.device.get("board_id") else None,
        function_words(port.device),
    ]
    return Item("device", ", ".join(str(each) for each in words if each), port.device.get("node_type") == "RNIC")


def function_words(device: Facts) -> str | None:
    """What is worth knowing of a device's kind; None for an ordinary one."""
    if device.get("node_type") == "RNIC":
        return "speaks iWARP, which no RoCE peer understands"
    if device.get("software"):
        return "software"
    kinds = {"vf": f"a virtual function of {device.get('parent_pci') or 'a card that is not told'}", "sf": "a subfunction"}
    return kinds.get(device.get("function") or "")


def _state(port: RailPort) -> Item:
    words = f"{port.port.get('state') or NOT_READ}, {port.port.get('physical_state') or NOT_READ}"
    if not port.up and port.netdev.get("admin_up") is False:
        words += f"; {port.rail.netdev} is administratively down"
    elif not port.up and port.netdev.get("carrier") is False:
        words += f"; {port.rail.netdev} has no carrier"
    return Item("state", words, not port.up)


def _link(port: RailPort) -> Item:
    layer = port.port.get("link_layer") or "link layer not read"
    words = [f"{layer}, planned {LINK_LAYERS[port.rail.rail['link_layer']]}" if port.wrong_kind else layer]
    rate, planned = port.rate_gbps, port.planned_gbps
    if port.software:
        words.append("a software device has no line rate")
    else:
        words.append(f"{rate:g} Gb/s{_lanes(port.port, rate)}" if rate else "rate not read")
    if planned:
        words.append(f"planned {planned:g} Gb/s")
    slow = bool(planned and rate and not port.software and rate < planned * (1 - TOLERANCE))
    return Item("link", ", ".join(words), port.wrong_kind or slow)


def _lanes(port: Facts, rate_gbps: float) -> str:
    """Lanes and speed, where the driver's rate is the interface's: "as 4 lanes of NDR"."""
    if not port.get("width") or port.get("rate_gbps") != rate_gbps:
        return ""
    return f" as {port['width']} {'lane' if port['width'] == 1 else 'lanes'}" + (f" of {port['speed']}" if port.get("speed") else "")


def _mtu(port: RailPort) -> Item:
    mtu, planned, rdma = port.netdev.get("mtu_bytes"), port.rail.rail["mtu_bytes"], port.port.get("active_mtu_bytes")
    words = [] if port.rail.netdev is None else [f"{mtu} bytes" if mtu else NOT_READ]
    differs = bool(mtu) and mtu_differs(planned, mtu)
    if differs:
        words.append(f"planned {planned}")
    words.append(f"RDMA {rdma} bytes" if rdma else "RDMA not read")
    return Item("MTU", ", ".join(words), differs or bool(rdma and rdma < BEST_RDMA_MTU_BYTES and not port.software))


def _address(port: RailPort) -> Item:
    planned, there = port.rail.rail["address"], at(port.netdev, "ipv4")
    words = [str(planned) if planned else "no address planned"]
    missing = there is not None and address_misses(planned, there)
    if missing:
        words.append(f"which the interface does not have: {listed(elements(port.netdev, 'ipv4'))}")
    if port.rail.rail["link_layer"] != "roce":
        return Item("address", ", ".join([*words, _lids(port.port)]), missing)
    if not port.port:
        return Item("address", ", ".join(words), missing)
    index = rocev2_gid_index(port.port, str(planned).split("/", maxsplit=1)[0])
    lacking = index is None and bool(port.port.get(GIDS_READ))
    words.append(f"its RoCE v2 GID has index {index}" if index is not None else "no RoCE v2 GID of it" if lacking else "GIDs not read")
    return Item("address", ", ".join(words), missing or lacking)


def _lids(port: Facts) -> str:
    manager = f"subnet manager at LID {port['sm_lid']}" if port.get("sm_lid") else "no subnet manager told"
    return f"LID {port['lid']}, {manager}" if port.get("lid") else f"no LID, {manager}"


def pcie_words(pci: Facts) -> str:
    """The link of a function, what it could be, and the narrowest up to the root."""
    speed, width, narrowest = pci.get("speed_gtps"), pci.get("width"), part(pci, "narrowest")
    words = link_words(speed, width) if speed and width else "its own link is not told"
    if _is_slow(pci) or is_narrow(pci):
        words += f", it could be {link_words(pci['max_speed_gtps'], pci['max_width'])}"
    carries = _carries_gbps(pci)
    if carries is None:
        return f"{words}, the narrowest link up to the root is not known"
    if narrowest.get("address") in (pci.get("address"), None):
        return f"{words}, nothing narrower on the way: {carries:.0f} Gb/s of payload"
    link = link_words(narrowest["speed_gtps"], narrowest["width"])
    return f"{words}, narrowest at {narrowest['address']}: {link} with {carries:.0f} Gb/s of payload"


def _carries_gbps(pci: Facts) -> float | None:
    """What the narrowest link carries of payload."""
    speed, width = at(pci, "narrowest", "speed_gtps"), at(pci, "narrowest", "width")
    return payload_gbps(speed, width) if speed and width else None


def is_narrow(pci: Facts) -> bool:
    """Whether a link has fewer lanes than its function could use."""
    return _is_told(pci) and bool(pci["width"] < pci["max_width"])


def _is_slow(pci: Facts) -> bool:
    return _is_told(pci) and bool(pci["speed_gtps"] < pci["max_speed_gtps"])


def _is_told(pci: Facts) -> bool:
    return all(pci.get(name) for name in ("speed_gtps", "width", "max_speed_gtps", "max_width"))


def _pcie(port: RailPort) -> Item | None:
    """Marked if the card's link is less than it could be, or a link on the way caps the port; None for what is not on PCI."""
    if port.software or not port.pci:
        return None
    rate, carries = port.rate_gbps or port.planned_gbps, _carries_gbps(port.pci)
    caps = rate is not None and carries is not None and carries < needed_gbps(rate)
    words = pcie_words(port.pci) + (f", which caps {rate:g} Gb/s" if caps else "")
    return Item("PCIe", words, caps or _is_slow(port.pci) or is_narrow(port.pci))


def _place(port: RailPort, facts: Facts) -> Item | None:
    nodes = (port.device.get("numa_node"), port.pci.get("numa_node"), port.netdev.get("numa_node"))
    node = next((each for each in nodes if each is not None), None)
    words = [f"NUMA node {node}" if node is not None else "NUMA node not told"]
    by_gpu = {gpu: at(row, port.rail.device or "") for gpu, row in part(facts, "distances").items()}
    if near := nearest(by_gpu):
        words.append(f"nearest GPU {near}")
    return None if port.software and node is None else Item("place", ", ".join(words))


def nearest(distances: Mapping[str, str | None]) -> str:
    """The nearest of several and how far they are: "0000:1b:00.0 (PIX)"; "" where no distance is known."""
    known = {name: DISTANCES.index(each) for name, each in sorted(distances.items()) if each in DISTANCES}
    least = min(known.values(), default=None)
    return "" if least is None else f"{listed([name for name, each in known.items() if each == least])} ({DISTANCES[least]})"


def _settings(port: RailPort) -> Item | None:
    """What is set in the card's configuration space."""
    mrrs, mps, most = (port.pci.get(name) for name in ("mrrs_bytes", "mps_bytes", "mps_max_bytes"))
    words = [
        f"read requests of {mrrs} bytes (MRRS)" if mrrs else None,
        f"payloads of {mps} bytes (MPS)" + (f", at most {most}" if most else "") if mps else None,
    ]
    told = [each for each in words if each]
    return Item("card", ", ".join(told)) if told else None


def _optic(port: RailPort) -> Item | None:
    optic = part(port.ethtool, "optic")
    if not optic:
        return None
    celsius = at(optic, "temperature_celsius", "value")
    names = " ".join(str(optic[name]) for name in ("vendor", "part_number", "identifier") if optic.get(name))
    words = [names, f"{optic['length_m']:g} m" if optic.get("length_m") else "", f"{celsius:g} °C" if celsius is not None else ""]
    troubles = [f"{what} {value:g}, {bound}" for what, _grade, value, bound in out_of_range(_readable(optic))]
    troubles += [f"it raises {flag!r}" for flag in elements(optic, "alarms")]
    return Item("optic", ", ".join([*(each for each in words if each), *troubles]) or NOT_READ, bool(troubles))


def _readable(optic: Facts) -> Facts:
    """An optic with the readings alone that have a value."""
    lanes = [{name: each for name, each in lane.items() if at(each, "value") is not None} for lane in elements(optic, "lanes")]
    module = {name: optic.get(name) for name in ("temperature_celsius", "voltage_volt") if at(optic, name, "value") is not None}
    return {**module, "lanes": lanes}
