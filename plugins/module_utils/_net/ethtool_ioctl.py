# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Querying the driver of an interface through SIOCETHTOOL: the structures of include/uapi/linux/ethtool.h of Linux 6.18.

Only the module (ETHTOOL_GMODULEINFO) requires root.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._net.ethtool import DriverInfo, LinkSettings, Pause, Rings, Timestamping

SIOCETHTOOL = 0x8946
GDRVINFO, GRINGPARAM, GPAUSEPARAM, GSTRINGS, GSTATS = 0x03, 0x10, 0x12, 0x1B, 0x1D
GSSET_INFO, GET_TS_INFO, GMODULEINFO, GLINKSETTINGS = 0x37, 0x41, 0x42, 0x4C
SS_STATS = 1
#: The request that each command makes, as EthtoolPort names it.
_REQUESTS = {
    GDRVINFO: "drvinfo",
    GRINGPARAM: "rings",
    GPAUSEPARAM: "pause",
    GMODULEINFO: "module",
    GLINKSETTINGS: "link",
    GET_TS_INFO: "timestamping",
    **dict.fromkeys((GSTRINGS, GSTATS, GSSET_INFO), "statistics"),
}
#: The driver does not support it, or the interface does not exist (net/ethtool/ioctl.c of Linux, and drivers that answer EINVAL).
_ANSWERS = (errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL)
#: Sends a message, which begins with the command, to the driver, which writes its answer into it. Raises OSError.
Exchange = Callable[[str, bytearray], None]

_NAME_BYTES = 15
_IFREQ = struct.Struct("@16sP16x")
_STRING_BYTES = 32
_MAX_COUNTERS = 100_000
# Drivers answer with all counters that they have by then, which may be more than when they were counted.
_SPARE_COUNTERS = 1024
_DRVINFO = struct.Struct("=I32s32s32s32s32s12s5I")
_LINK = struct.Struct("=2I7Bb4B28s")
_RINGS = struct.Struct("=9I")
_PAUSE = struct.Struct("=4I")
_SSET = struct.Struct("=2IQI")
_MODULE = struct.Struct("=11I")
_TS_INFO = struct.Struct("=2Ii8I")
# SOF_TIMESTAMPING_ of include/uapi/linux/net_tstamp.h: what sends, receives and reports a stamp of a kind.
_TS_HARDWARE, _TS_SOFTWARE = 1 << 0 | 1 << 2 | 1 << 6, 1 << 1 | 1 << 3 | 1 << 4
_STRINGS = struct.Struct("=3I")
_STATISTICS = struct.Struct("=2I")
_SUPPORTS = ("priv-flags", "statistics", "test", "eeprom-access", "register-dump")
_SPEED_UNKNOWN = (0, 0xFFFF, 0xFFFFFFFF)
_DUPLEX = {0: "half", 1: "full"}
_PORTS = {0: "Twisted Pair", 1: "AUI", 2: "MII", 3: "FIBRE", 4: "BNC", 5: "Direct Attach Copper", 0xEF: "None", 0xFF: "Other"}
#: enum ethtool_link_mode_bit_indices: the bits of each speed, first and last of each range.
LINK_MODES_MBPS = {
    10: ((0, 1), (92, 92), (99, 102)),
    100: ((2, 3), (67, 67), (90, 91)),
    1000: ((4, 5), (17, 17), (41, 41), (68, 68)),
    2500: ((15, 15), (47, 47)),
    5000: ((48, 48),),
    10000: ((12, 12), (18, 20), (42, 46)),
    20000: ((21, 22),),
    25000: ((31, 33),),
    40000: ((23, 26),),
    50000: ((34, 35), (40, 40), (52, 56)),
    56000: ((27, 30),),
    100000: ((36, 39), (57, 61), (75, 79)),
    200000: ((62, 66), (80, 84), (103, 108)),
    400000: ((69, 73), (85, 89), (109, 114)),
    800000: ((93, 98), (115, 120)),
    1600000: ((121, 124),),
}


def decode_driver(data: bytes) -> DriverInfo:
    """Decode struct ethtool_drvinfo. Raises ParseError if it is too short, as all decoders do."""
    fields = _unpack(_DRVINFO, data)
    driver, version, firmware, bus_info, expansion_rom = (_string(field) for field in fields[1:6])
    supports = {name: bool(number) for name, number in zip(_SUPPORTS, fields[7:])}
    return DriverInfo(driver, version, firmware, bus_info, expansion_rom, supports)


def decode_link(data: bytes) -> LinkSettings:
    """Decode struct ethtool_link_settings with its link mode masks; the first mask is that of the supported modes."""
    fields = _unpack(_LINK, data)
    speed_mbps, duplex, port, autoneg, words = fields[1], fields[2], fields[3], fields[5], fields[9]
    masks = data[_LINK.size :]
    if words < 0 or len(masks) < 4 * words:
        raise ParseError(f"not the link modes of an interface: {words} words in {len(masks)} bytes")
    supported = sum(word << 32 * index for index, word in enumerate(struct.unpack_from(f"={words}I", masks)))
    return LinkSettings(
        speed_mbps=None if speed_mbps in _SPEED_UNKNOWN else speed_mbps,
        duplex=_DUPLEX.get(duplex),
        autoneg={0: False, 1: True}.get(autoneg),
        port=_PORTS.get(port),
        supported_speeds_mbps=_speeds(supported),
    )


def decode_rings(data: bytes) -> Rings:
    """Decode struct ethtool_ringparam; a ring with a maximum of 0 descriptors does not exist."""
    fields = _unpack(_RINGS, data)
    rx_max, tx_max, rx, tx = fields[1], fields[4], fields[5], fields[8]
    return Rings(rx if rx_max else None, tx if tx_max else None, rx_max or None, tx_max or None)


def decode_pause(data: bytes) -> Pause:
    """Decode struct ethtool_pauseparam."""
    return Pause(*(bool(field) for field in _unpack(_PAUSE, data)[1:]))


def decode_timestamping(data: bytes) -> Timestamping:
    """Decode struct ethtool_ts_info; the number of a missing clock is -1."""
    flags, clock = _unpack(_TS_INFO, data)[1:3]
    hardware, software = (flags & kind == kind for kind in (_TS_HARDWARE, _TS_SOFTWARE))
    return Timestamping(hardware, software, clock if clock >= 0 else None)


def decode_statistics(strings: bytes, statistics: bytes) -> dict[str, int] | None:
    """Decode struct ethtool_gstrings and ethtool_stats; None if their lengths differ, because the driver changed in between."""
    names, values = _unpack(_STRINGS, strings)[2], _unpack(_STATISTICS, statistics)[1]
    if names != values:
        return None
    if len(strings) < _STRINGS.size + _STRING_BYTES * names or len(statistics) < _STATISTICS.size + 8 * values:
        raise ParseError(f"not the counters of an interface: {names} in {len(strings)} and {len(statistics)} bytes")
    found = {}
    for index, value in enumerate(struct.unpack_from(f"={values}Q", statistics, _STATISTICS.size)):
        start = _STRINGS.size + _STRING_BYTES * index
        name = _string(strings[start : start + _STRING_BYTES])
        if name is not None:
            found[name] = value
    return found


def _speeds(modes: int) -> list[int]:
    return [
        speed_mbps
        for speed_mbps, runs in LINK_MODES_MBPS.items()
        if any((modes >> first) & ((1 << (last - first + 1)) - 1) for first, last in runs)
    ]


def _string(field: bytes) -> str | None:
    """Return the text up to the first NUL; None for what drivers write if they have no value."""
    text = field.split(b"\0", 1)[0].decode("utf-8", "replace").strip()
    return None if text.upper() in ("", "N/A") else text


def _unpack(layout: struct.Struct, data: bytes) -> tuple[Any, ...]:
    if len(data) < layout.size:
        raise ParseError(f"not an answer of SIOCETHTOOL: {data.hex()!r}, expected {layout.size} bytes")
    return layout.unpack_from(data)


def _ask_kernel(name: str, message: bytearray) -> None:
    encoded = os.fsencode(name)
    if not 0 < len(encoded) <= _NAME_BYTES or b"\0" in encoded:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), name)
    address = ctypes.addressof((ctypes.c_char * len(message)).from_buffer(message))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        fcntl.ioctl(opened, SIOCETHTOOL, _IFREQ.pack(encoded, address))


class IoctlPort:
    """The EthtoolPort of a live host. If a driver does not answer, the result is None, whatever the reason; failed has the reason."""

    def __init__(self, exchange: Exchange | None = None) -> None:
        self._exchange = exchange or _ask_kernel
        self._failures: dict[str, dict[str, str]] = {}

    def failed(self, name: str) -> dict[str, str]:
        """Return the failed requests with the kernel's reason: "statistics" → "Input/output error".

        A feature that the driver lacks, and a missing interface, are not failures.
        """
        return dict(self._failures.get(name, {}))

    def drvinfo(self, name: str) -> DriverInfo | None:
        """Return the driver."""
        answer = self._ask(name, GDRVINFO, _DRVINFO.size)
        return decode_driver(answer) if answer is not None else None

    def link(self, name: str) -> LinkSettings | None:
        """Return the current link and what it supports. The kernel first answers the length of its masks, as a negative number."""
        sizes = self._ask(name, GLINKSETTINGS, _LINK.size)
        words = -_LINK.unpack_from(sizes)[9] if sizes is not None else 0
        if words <= 0:
            return None
        request = bytearray(_LINK.pack(GLINKSETTINGS, *(0,) * 8, words, *(0,) * 4, b"")) + bytes(3 * 4 * words)
        answer = self._send(name, request)
        return decode_link(answer) if answer is not None else None

    def rings(self, name: str) -> Rings | None:
        """Return the lengths of its rings."""
        answer = self._ask(name, GRINGPARAM, _RINGS.size)
        return decode_rings(answer) if answer is not None else None

    def pause(self, name: str) -> Pause | None:
        """Return whether it sends and obeys global pause."""
        answer = self._ask(name, GPAUSEPARAM, _PAUSE.size)
        return decode_pause(answer) if answer is not None else None

    def timestamping(self, name: str) -> Timestamping | None:
        """Return the time stamps that it supports."""
        answer = self._ask(name, GET_TS_INFO, _TS_INFO.size)
        return decode_timestamping(answer) if answer is not None else None

    def statistics(self, name: str) -> dict[str, int] | None:
        """Return all of its counters, including those of single queues."""
        sizes = self._send(name, bytearray(_SSET.pack(GSSET_INFO, 0, 1 << SS_STATS, 0)))
        mask, count = _SSET.unpack_from(sizes)[2:] if sizes is not None else (0, 0)
        if not mask or not 0 < count <= _MAX_COUNTERS:
            return None
        room = count + _SPARE_COUNTERS
        strings = self._send(name, bytearray(_STRINGS.pack(GSTRINGS, SS_STATS, count)) + bytes(_STRING_BYTES * room))
        statistics = self._send(name, bytearray(_STATISTICS.pack(GSTATS, count)) + bytes(8 * room))
        return decode_statistics(strings, statistics) if strings is not None and statistics is not None else None

    def has_module(self, name: str) -> bool:
        """Return whether there is a module. EINVAL means one that mlx5_core and ice cannot read this way: OSFP, QSFP-DD."""
        try:
            self._exchange(name, bytearray(_MODULE.pack(GMODULEINFO, *(0,) * 10)))
        except OSError as exc:
            self._note(name, GMODULEINFO, exc)
            return exc.errno == errno.EINVAL
        return True

    def _ask(self, name: str, command: int, size_bytes: int) -> bytes | None:
        return self._send(name, bytearray(command.to_bytes(4, sys.byteorder) + bytes(size_bytes - 4)))

    def _send(self, name: str, message: bytearray) -> bytes | None:
        try:
            self._exchange(name, message)
        except OSError as exc:
            self._note(name, int.from_bytes(message[:4], sys.byteorder), exc)
            return None
        return bytes(message)

    def _note(self, name: str, command: int, exc: OSError) -> None:
        if exc.errno not in _ANSWERS and command in _REQUESTS:
            self._failures.setdefault(name, {})[_REQUESTS[command]] = exc.strerror or str(exc)
