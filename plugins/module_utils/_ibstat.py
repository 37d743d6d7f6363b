# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `ibstat` and `ibstatus` of infiniband-diags (rdma-core) say of devices and their ports, in the words of sysfs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._infiniband import (
    Rate,
    parse_gid,
    parse_guid,
    parse_lid,
    parse_physical_state,
    parse_rate,
    parse_state,
)

K = TypeVar("K")
T = TypeVar("T")

# `ibstat DEVICE PORT` puts a colon behind the node type.
_DEVICE = re.compile(r"(?:CA|Switch|Router|iWARP RNIC|\?\?\?):? '([^'\s]{1,64})'")
_PORT = re.compile(r"Port ([0-9]{1,3}):")
_STATUS = re.compile(r"Infiniband device '([^'\s]{1,64})' port ([0-9]{1,3}) status:")
_FIELD = re.compile(r"(?:(?:CA|Switch|Router|iWARP RNIC|\?\?\?) (?=type:))?([A-Za-z][A-Za-z0-9_ ]{0,40}): ?(.*)")
_NUMBER = re.compile(r"-?[0-9]{1,10}|0x(?:[0-9a-fA-F]{2}){1,4}")

_DEVICE_KEYS = ("type", "Number of ports", "Firmware version", "Hardware version", "Node GUID", "System image GUID")
_PORT_KEYS = ("State", "Physical state", "Rate", "Base lid", "LMC", "SM lid", "Capability mask", "Port GUID", "Link layer")
_STATUS_KEYS = ("default gid", "base lid", "sm lid", "state", "phys state", "rate", "link_layer")

#: The words of ibstat for those of the kernel. It has none for state 0 (NOP) and for numbers above its own.
_STATES = {"???": None, "Down": "DOWN", "Initializing": "INIT", "Armed": "ARMED", "Active": "ACTIVE"}
_PHYSICAL_STATES = {
    "???": None, "No state change": None, "Sleep": "Sleep", "Polling": "Polling", "Disabled": "Disabled", "PhyTest": "Phy Test",
    "PortConfigurationTraining": "PortConfigurationTraining", "LinkUp": "LinkUp", "LinkErrorRecovery": "LinkErrorRecovery",
}  # fmt: skip
#: Both tools say IB where the kernel has no file link_layer.
_LINK_LAYERS = {"InfiniBand": "InfiniBand", "IB": "InfiniBand", "Ethernet": "Ethernet", "Unknown": None}


@dataclass(frozen=True)
class IbstatPort:
    """A port in the words of sysfs: state "ACTIVE", physical_state "LinkUp", link_layer "InfiniBand" or "Ethernet".

    base_lid and sm_lid are None while none is assigned; port_guid is the interface id of GID 0, None while that is zero.
    rate_gbps is what the kernel prints, rounded down to a whole number (except 2.5).
    """

    state: str | None
    physical_state: str | None
    rate_gbps: float | None
    base_lid: int | None
    lmc: int | None
    sm_lid: int | None
    capability_mask: int | None
    port_guid: str | None
    link_layer: str | None


@dataclass(frozen=True)
class IbstatDevice:
    """A device and its ports by their number ("1"); number_of_ports is the greatest of them, and some below may be missing.

    Software devices have neither hca_type nor firmware nor hardware_version.
    """

    hca_type: str | None
    number_of_ports: int | None
    firmware: str | None
    hardware_version: str | None
    node_guid: str | None
    sys_image_guid: str | None
    ports: dict[str, IbstatPort]


@dataclass(frozen=True)
class IbstatusPort:
    """A port as ibstatus copies it from sysfs. What could not be read is None, and so is a LID that is not assigned."""

    default_gid: str | None
    base_lid: int | None
    sm_lid: int | None
    state: str | None
    physical_state: str | None
    rate: Rate | None
    link_layer: str | None


class Fields:
    """The `key: value` lines of one device or port, of the keys that are known; other lines are none of its business."""

    def __init__(self, title: str, keys: Sequence[str]) -> None:
        self.last_line = title
        self._keys = keys
        self._values: dict[str, str] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def add(self, line: str) -> None:
        """Take a line. Raises ParseError for a key that is there already: the title of another section was lost."""
        match = _FIELD.fullmatch(line)
        if match is None or match.group(1) not in self._keys:
            return
        key, value = match.groups()
        if key in self._values:
            raise ParseError(f"a second {key!r} in one section: {line!r}")
        self._values[key] = value
        self.last_line = line

    def text(self, key: str) -> str | None:
        """The value as it stands; None where it is empty or "unknown", or the line is not there."""
        value = self._values.get(key, "")
        return None if value in ("", "unknown") else value

    def read(self, key: str, parse: Callable[[str], T]) -> T | None:
        """The value as parse reads it; None if the line is not there or says "unknown". A ParseError quotes the line."""
        value = self._values.get(key, "unknown")
        if value == "unknown":
            return None
        try:
            return parse(value)
        except (ParseError, KeyError) as exc:
            raise ParseError(f"{exc}, in the line {f'{key}: {value}'!r}") from exc

    def word(self, key: str, words: Mapping[str, str | None]) -> str | None:
        """What stands in words for the value, as read gives it."""
        return self.read(key, words.__getitem__)


def squeezed_lines(text: str) -> Iterator[str]:
    """The lines that are not blank, without marks of quotation in mails, and every run of white space as one space."""
    return (line for line in (" ".join(raw.lstrip("> \t\u00a0").split()) for raw in text.splitlines()) if line)


def parse_number(text: str) -> int:
    """A decimal number, or a hexadecimal one of two to eight digits after 0x: an odd one out is cut off."""
    if _NUMBER.fullmatch(text) is None:
        raise ParseError(f"not a number: {text[:200]!r}")
    return int(text, 0) if text.startswith("0x") else int(text)


def check_ends(tool: str, ports: Sequence[Fields], last_keys: tuple[str, str]) -> None:
    """Raise ParseError for a port that is cut off. The last two lines of a port have these keys; old versions lack the very last."""
    told = any(last_keys[1] in port for port in ports)
    for port in ports:
        if last_keys[1] not in port and (told or last_keys[0] not in port):
            raise ParseError(f"the output of {tool} is cut off behind the line {port.last_line!r}")


def parse_ibstat(text: str) -> dict[str, IbstatDevice]:
    """`ibstat` (also `ibstat DEVICE PORT`), each device by its name. Raises ParseError, also for what is seen to be cut off."""
    sections: dict[str, tuple[Fields, dict[str, Fields]]] = {}
    section = None
    for line in squeezed_lines(text):
        device, port = _DEVICE.fullmatch(line), _PORT.fullmatch(line)
        if device is not None:
            section = Fields(line, _DEVICE_KEYS)
            _put(sections, device.group(1), (section, {}), line)
        elif port is not None and sections:
            section = Fields(line, _PORT_KEYS)
            _put(sections[next(reversed(sections))][1], str(int(port.group(1))), section, line)
        elif section is not None:
            section.add(line)
    if not sections:
        raise ParseError(f"not the output of ibstat: {text[:200]!r}")
    check_ends("ibstat", [port for device, ports in sections.values() for port in ports.values()], ("Port GUID", "Link layer"))
    return {name: _device(device, ports) for name, (device, ports) in sections.items()}


def parse_ibstatus(text: str) -> dict[str, dict[str, IbstatusPort]]:
    """`ibstatus`, the ports of each device by their number ("1"). Raises ParseError, also for a port that is cut off."""
    sections: dict[tuple[str, str], Fields] = {}
    section = None
    for line in squeezed_lines(text):
        title = _STATUS.fullmatch(line)
        if title is not None:
            section = Fields(line, _STATUS_KEYS)
            _put(sections, (title.group(1), str(int(title.group(2)))), section, line)
        elif section is not None:
            section.add(line)
    if not sections:
        raise ParseError(f"not the output of ibstatus: {text[:200]!r}")
    check_ends("ibstatus", list(sections.values()), ("rate", "link_layer"))
    devices: dict[str, dict[str, IbstatusPort]] = {}
    for (name, number), port in sections.items():
        devices.setdefault(name, {})[number] = _status(port)
    return devices


def _put(sections: dict[K, T], key: K, section: T, line: str) -> None:
    if key in sections:
        raise ParseError(f"a second section of one name: {line!r}")
    sections[key] = section


def _device(device: Fields, ports: Mapping[str, Fields]) -> IbstatDevice:
    count = device.read("Number of ports", parse_number)
    # libibumad counts up to the greatest port number, so the port of that number is always shown.
    if not ports if count is None else max(map(int, ports), default=0) < count:
        last_line = list(ports.values())[-1].last_line if ports else device.last_line
        raise ParseError(f"the output of ibstat is cut off behind the line {last_line!r}: the last port of the device is not there")
    return IbstatDevice(
        hca_type=device.text("type"),
        number_of_ports=count,
        firmware=device.text("Firmware version"),
        hardware_version=device.text("Hardware version"),
        node_guid=device.read("Node GUID", parse_guid),
        sys_image_guid=device.read("System image GUID", parse_guid),
        ports={number: _port(port) for number, port in ports.items()},
    )


def _port(port: Fields) -> IbstatPort:
    return IbstatPort(
        state=port.word("State", _STATES),
        physical_state=port.word("Physical state", _PHYSICAL_STATES),
        rate_gbps=port.read("Rate", _parse_rate_gbps),
        base_lid=port.read("Base lid", parse_lid),
        lmc=port.read("LMC", parse_number),
        sm_lid=port.read("SM lid", parse_lid),
        capability_mask=port.read("Capability mask", parse_number),
        port_guid=port.read("Port GUID", parse_guid),
        link_layer=port.word("Link layer", _LINK_LAYERS),
    )


def _status(port: Fields) -> IbstatusPort:
    gid = port.read("default gid", parse_gid)
    return IbstatusPort(
        default_gid=gid.gid if gid is not None else None,
        base_lid=port.read("base lid", parse_lid),
        sm_lid=port.read("sm lid", parse_lid),
        state=port.read("state", parse_state),
        physical_state=port.read("phys state", parse_physical_state),
        rate=port.read("rate", parse_rate),
        link_layer=port.word("link_layer", _LINK_LAYERS),
    )


def _parse_rate_gbps(text: str) -> float:
    return parse_rate(f"{text.removesuffix(' (FDR10)')} Gb/sec").gbps
