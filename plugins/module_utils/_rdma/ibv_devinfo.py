# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of `ibv_devinfo` of libibverbs (rdma-core), plain and with -v, about devices, in sysfs spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.sysfs import parse_gid, parse_guid, parse_lid

T = TypeVar("T")

_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9_ ]{0,40}): ?(.*)")
_NUMBER = re.compile(r"-?[0-9]{1,10}|0x(?:[0-9a-fA-F]{2}){1,4}")


class Fields:
    """The `key: value` lines of one device or port, for known keys; other lines are ignored."""

    def __init__(self, title: str, keys: Sequence[str]) -> None:
        self.last_line = title
        self._keys = keys
        self._values: dict[str, str] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def add(self, line: str) -> None:
        """Add a line. Raises ParseError for a repeated key: the title of another section was lost."""
        match = _FIELD.fullmatch(line)
        if match is None or match.group(1) not in self._keys:
            return
        key, value = match.groups()
        if key in self._values:
            raise ParseError(f"a second {key!r} in one section: {line!r}")
        self._values[key] = value
        self.last_line = line

    def text(self, key: str) -> str | None:
        """Return the value as printed; None if it is empty or "unknown", or the line is missing."""
        value = self._values.get(key, "")
        return None if value in ("", "unknown") else value

    def read(self, key: str, parse: Callable[[str], T]) -> T | None:
        """Return the value as parse reads it; None if the line is missing or has "unknown". A ParseError quotes the line."""
        value = self._values.get(key, "unknown")
        if value == "unknown":
            return None
        try:
            return parse(value)
        except (ParseError, KeyError) as exc:
            raise ParseError(f"{exc}, in the line {f'{key}: {value}'!r}") from exc

    def word(self, key: str, words: Mapping[str, str | None]) -> str | None:
        """Return the entry of words for the value, as read returns it."""
        return self.read(key, words.__getitem__)


def squeezed_lines(text: str) -> Iterator[str]:
    """Yield the lines that are not blank, without the quotation marks of mails, and with every run of white space as one space."""
    return (line for line in (" ".join(raw.lstrip("> \t\u00a0").split()) for raw in text.splitlines()) if line)


def parse_number(text: str) -> int:
    """Return a decimal number, or a hexadecimal one of two to eight digits after 0x: an odd number of digits means that it is cut off."""
    if _NUMBER.fullmatch(text) is None:
        raise ParseError(f"not a number: {quoted(text)}")
    return int(text, 0) if text.startswith("0x") else int(text)


def check_ends(tool: str, ports: Sequence[Fields], last_keys: tuple[str, str]) -> None:
    """Raise ParseError for a port that is cut off. The last two lines of a port have these keys; old versions lack the last one."""
    has_last = any(last_keys[1] in port for port in ports)
    for port in ports:
        if last_keys[1] not in port and (has_last or last_keys[0] not in port):
            raise ParseError(f"the output of {tool} is cut off behind the line {port.last_line!r}")


_DEVICE = re.compile(r"hca_id: ?(\S{1,64})")
_PORT = re.compile(r"port: ?([0-9]{1,3})")
_GID = re.compile(r"GID\[ ?([0-9]{1,5})\]: ?(.*)")
_GID_VALUE = re.compile(r"([^ ,]{1,64})(?:, ?(.+))?")
# Authors of mails put dots where they omit lines.
_ELISION = re.compile(r"[.…][.… ]*")
# Lines that a mail program has broken in two.
_ENUMS = "transport|state|max_mtu|active_mtu|active_width|active_speed|phys_state"
_BROKEN = re.compile(rf"GID\[ ?[0-9]{{1,5}}\]:(?:.*,|.* (?:IB/)?RoCE)?|(?:{_ENUMS}):(?:.*[^)])?")
_ENUM = re.compile(r"(.{1,100}) \((-?[0-9]{1,10})\)")
_QUANTITY = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(?:X| Gbps)?")

_DEVICE_KEYS = (
    "transport", "fw_ver", "node_guid", "sys_image_guid", "vendor_id", "vendor_part_id", "hw_ver", "board_id", "phys_port_cnt",
)  # fmt: skip
_VERBOSE_KEYS = ("max_msg_sz", "active_width", "active_speed", "phys_state")
_PORT_KEYS = ("state", "max_mtu", "active_mtu", "sm_lid", "port_lid", "port_lmc", "link_layer", *_VERBOSE_KEYS)
#: Each of these is followed by another line, in every version.
_NEVER_LAST = (
    "port", "state", "max_mtu", "active_mtu", "sm_lid", "port_lid", "max_msg_sz", "port_cap_flags", "port_cap_flags2", "max_vl_num",
    "bad_pkey_cntr", "qkey_viol_cntr", "sm_sl", "pkey_tbl_len", "gid_tbl_len", "subnet_timeout", "init_type_reply", "active_width",
)  # fmt: skip
_KEY = re.compile(f"({'|'.join(('hca_id', *_DEVICE_KEYS, *_PORT_KEYS, *_NEVER_LAST))}):")

#: The kernel's words for the numbers of enum ib_port_state and enum ib_port_phys_state.
_STATES = {0: "NOP", 1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE", 5: "ACTIVE_DEFER"}
_PHYSICAL_STATES = {
    1: "Sleep", 2: "Polling", 3: "Disabled", 4: "PortConfigurationTraining", 5: "LinkUp", 6: "LinkErrorRecovery", 7: "Phy Test",
}  # fmt: skip
_LINK_LAYERS = {"InfiniBand": "InfiniBand", "Ethernet": "Ethernet", "Unspecified": None, "Unknown": None}
_GID_TYPES = {"IB/RoCE v1": "IB/RoCE v1", "RoCE v1": "IB/RoCE v1", "RoCE v2": "RoCE v2", "": None}


@dataclass(frozen=True)
class DevinfoGid:
    """An entry of a port's GID table, the gid in sysfs form; type "IB/RoCE v1" or "RoCE v2", None on InfiniBand."""

    index: int
    gid: str
    type: str | None


@dataclass(frozen=True)
class DevinfoPort:
    """A port in sysfs spelling: state "ACTIVE", physical_state "LinkUp", link_layer "InfiniBand" or "Ethernet".

    The LIDs are None while none is assigned. Only -v shows active_width (lanes), active_speed_gbps (10^9 bit/s of a lane),
    physical_state and gids; without it they are None. Values that the tool calls invalid (a port that is down) are None as well.
    """

    state: str | None
    max_mtu_bytes: int | None
    active_mtu_bytes: int | None
    sm_lid: int | None
    port_lid: int | None
    port_lmc: int | None
    link_layer: str | None
    active_width: int | None
    active_speed_gbps: float | None
    physical_state: str | None
    gids: list[DevinfoGid] | None


@dataclass(frozen=True)
class Devinfo:
    """A device and its ports by their number ("1"); with -i there are fewer than phys_port_cnt.

    transport is "InfiniBand" (RoCE too), "iWARP", "unspecified"…; vendor_id is an OUI ("0x02c9"), not that of PCI.
    unnumbered_port holds the lines of a port whose number is missing in the text.
    """

    transport: str | None
    fw_ver: str | None
    node_guid: str | None
    sys_image_guid: str | None
    vendor_id: str | None
    vendor_part_id: int | None
    hw_ver: str | None
    board_id: str | None
    phys_port_cnt: int | None
    ports: dict[str, DevinfoPort]
    unnumbered_port: DevinfoPort | None


@dataclass
class _Port:
    """The lines of a port while they are read."""

    fields: Fields
    last_line: str
    gids: list[DevinfoGid] = field(default_factory=list)
    empty_entries: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        gid = _GID.fullmatch(line)
        if gid is not None and not gid.group(2):
            self.empty_entries.append(line)
        elif gid is not None:
            self._add_gid(int(gid.group(1)), gid.group(2), line)
        self.fields.add(line)
        if gid is not None or _KEY.match(line):
            self.last_line = line

    def _add_gid(self, index: int, value: str, line: str) -> None:
        match = _GID_VALUE.fullmatch(value)
        kind = _GID_TYPES.get(match.group(2) or "", "") if match is not None else ""
        # Either all entries have a type or none. Without one, all eight groups of the GID have four digits.
        other = bool(self.gids) and (self.gids[-1].type is None) != (kind is None)
        if match is None or kind == "" or other or (kind is None and len(value) != 39):
            raise ParseError(f"not a whole entry of a GID table: {line!r}")
        self.gids.append(DevinfoGid(index, parse_gid(match.group(1)).gid, kind))


@dataclass
class _Device:
    """The lines of a device while they are read; the port None is one without a line that names it."""

    fields: Fields
    ports: dict[int | None, _Port] = field(default_factory=dict)
    elided: bool = False

    def add(self, line: str) -> None:
        key, port = _KEY.match(line), _PORT.fullmatch(line)
        if _ELISION.fullmatch(line):
            self.elided = True
        elif port is not None:
            if int(port.group(1)) in self.ports:
                raise ParseError(f"a second port of one number in one device: {line!r}")
            self.ports[int(port.group(1))] = _Port(Fields(line, _PORT_KEYS), line)
        elif self.ports:
            self.ports[next(reversed(self.ports))].add(line)
        elif _GID.fullmatch(line) or (key is not None and key.group(1) in _PORT_KEYS):
            self.ports[None] = _Port(Fields(line, _PORT_KEYS), line)
            self.ports[None].add(line)
        else:
            self.fields.add(line)


def parse_ibv_devinfo(text: str) -> dict[str, Devinfo]:
    """Parse `ibv_devinfo`, plain or with -v, into devices by name. Raises ParseError, also for text that is visibly cut off."""
    devices: dict[str, _Device] = {}
    for line in _whole_lines(text):
        title = _DEVICE.fullmatch(line)
        if title is not None:
            if title.group(1) in devices:
                raise ParseError(f"a second device of one name: {line!r}")
            devices[title.group(1)] = _Device(Fields(line, _DEVICE_KEYS))
        elif devices:
            devices[next(reversed(devices))].add(line)
    if not devices:
        raise ParseError(f"not the output of ibv_devinfo: {quoted(text)}")
    _check_ends(list(devices.values()))
    return {name: _devinfo(device) for name, device in devices.items()}


def _whole_lines(text: str) -> Iterator[str]:
    whole = ""
    for line in squeezed_lines(text):
        if len(whole) < 200 and _BROKEN.fullmatch(whole) and not any(form.match(line) for form in (_KEY, _GID, _ELISION)):
            whole = f"{whole} {line}"
        else:
            yield whole
            whole = line
    yield whole


def _check_ends(devices: list[_Device]) -> None:
    """Reject text that is cut off, unless its author marks it with dots as an excerpt."""
    ports = [(number, port) for device in devices if not device.elided for number, port in device.ports.items()]
    for _number, port in ports:
        key = _KEY.match(port.last_line)
        if port.empty_entries or (key is not None and key.group(1) in _NEVER_LAST):
            raise ParseError(f"the output of ibv_devinfo is cut off behind the line {[*port.empty_entries, port.last_line][0]!r}")
    check_ends("ibv_devinfo", [port.fields for number, port in ports if number is not None], ("port_lmc", "link_layer"))


def _devinfo(device: _Device) -> Devinfo:
    fields, ports = device.fields, device.ports
    count = fields.read("phys_port_cnt", parse_number)
    if not ports and count != 0:
        raise ParseError(f"the output of ibv_devinfo is cut off behind the line {fields.last_line!r}")
    vendor_id = fields.text("vendor_id")
    return Devinfo(
        transport=fields.read("transport", lambda text: _enum(text)[0]),
        fw_ver=fields.text("fw_ver"),
        node_guid=fields.read("node_guid", parse_guid),
        sys_image_guid=fields.read("sys_image_guid", parse_guid),
        vendor_id=vendor_id.lower() if vendor_id is not None else None,
        vendor_part_id=fields.read("vendor_part_id", parse_number),
        hw_ver=fields.text("hw_ver"),
        board_id=fields.text("board_id"),
        phys_port_cnt=count,
        ports={str(number): _devinfo_port(port) for number, port in ports.items() if number is not None},
        unnumbered_port=_devinfo_port(ports[None]) if None in ports else None,
    )


def _devinfo_port(port: _Port) -> DevinfoPort:
    fields = port.fields
    verbose = bool(port.gids) or any(key in fields for key in _VERBOSE_KEYS)
    return DevinfoPort(
        state=fields.read("state", lambda text: _STATES.get(_enum(text)[1])),
        max_mtu_bytes=fields.read("max_mtu", _parse_count),
        active_mtu_bytes=fields.read("active_mtu", _parse_count),
        sm_lid=fields.read("sm_lid", parse_lid),
        port_lid=fields.read("port_lid", parse_lid),
        port_lmc=fields.read("port_lmc", parse_number),
        link_layer=fields.word("link_layer", _LINK_LAYERS),
        active_width=fields.read("active_width", _parse_count),
        active_speed_gbps=fields.read("active_speed", _parse_quantity),
        physical_state=fields.read("phys_state", lambda text: _PHYSICAL_STATES.get(_enum(text)[1])),
        gids=port.gids if verbose else None,
    )


def _enum(text: str) -> tuple[str | None, int]:
    """Return the word and the number of "PORT_ACTIVE (4)"; None for "invalid MTU", "invalid widthX" and the like."""
    match = _ENUM.fullmatch(text)
    if match is None:
        raise ParseError(f"not a value and its number: {quoted(text)}, expected the form 'PORT_ACTIVE (4)'")
    return (None if match.group(1).startswith("invalid") else match.group(1)), int(match.group(2))


def _parse_quantity(text: str) -> float | None:
    word = _enum(text)[0]
    match = _QUANTITY.fullmatch(word or "0")
    if match is None:
        raise ParseError(f"not a quantity: {quoted(text)}, expected the form '4096 (5)', '4X (2)' or '25.0 Gbps (32)'")
    return float(match.group(1)) if word is not None else None


def _parse_count(text: str) -> int | None:
    quantity = _parse_quantity(text)
    return int(quantity) if quantity is not None else None
