# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse `mlnx_qos -i INTERFACE` (mlnx-tools and MLNX_OFED, 2017 to 2026): trust, DSCP, receive buffers, PFC and ETS."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted

_DCBX = re.compile(r"DCBX mode:\s*(.+)")
# "mode" before 2018.
_TRUST = re.compile(r"Priority trust (?:state|mode):\s*(\w+)")
_DSCP = re.compile(r"prio:\s*([0-7])\s+dscp:\s*([0-9, ]*)")
_CODE = re.compile(r"[0-9]{1,2}")
_BUFFERS = re.compile(r"Receive buffer size \(bytes\):(.*)")
_SIZES = re.compile(r"((?:[0-9]{1,10}\s*,\s*){8})(?:(max_buffer_size|total_size)=([0-9]{1,10}))?")
_CABLE = re.compile(r"Cable len:\s*([0-9]{1,6})")
_ROW = re.compile(r"(enabled|buffer)\s+(.*)")
_CELL = {"enabled": re.compile("[01]"), "buffer": re.compile("[0-7]")}
_TC = re.compile(r"tc:\s*([0-7])\s+ratelimit:\s*(unlimited|([0-9]{1,8}(?:\.[0-9]{1,3})?) Gbps),\s*tsa:\s*(.*)")
_TSA = re.compile(r"(strict|vendor|unknown|ets,\s*bw:\s*([0-9]{1,3})%)")
_PRIORITY = re.compile(r"priority:\s*([0-7])")
_PRIORITIES = 8


@dataclass(frozen=True)
class TrafficClass:
    """ratelimit_gbps: None if unlimited. tsa: "ets" | "strict" | "vendor" | "unknown"; bandwidth_percent with ets alone."""

    ratelimit_gbps: float | None
    tsa: str
    bandwidth_percent: int | None
    priorities: list[int]


@dataclass(frozen=True)
class MlnxQos:
    """The settings of one interface; None for values that the driver does not support or the version does not print.

    dcbx_mode: "OS controlled" | "Firmware controlled". trust: "pcp" | "dscp" (2017 also "both"). dscp_to_priority is printed only with
    trust "dscp". The lists are by priority, buffer_sizes_bytes by buffer. max_buffer_bytes is the maximum for all buffers together;
    "total_size" of versions before 2023 was different, and is omitted. cable_length_m: the driver computes the headroom of lossless buffers
    from it (PFC delay of the kernel). warnings: lines of the tool about lldpad, or about missing support of the system.
    """

    dcbx_mode: str | None
    trust: str | None
    dscp_to_priority: dict[int, int] | None
    buffer_sizes_bytes: list[int] | None
    max_buffer_bytes: int | None
    cable_length_m: int | None
    pfc_enabled: list[bool] | None
    pfc_buffer: list[int] | None
    traffic_classes: dict[int, TrafficClass] | None
    warnings: list[str]


@dataclass
class _Class:
    """A traffic class so far; number is None where the tool did not print one."""

    number: int | None
    ratelimit_gbps: float | None
    tsa: str
    bandwidth_percent: int | None
    priorities: list[int] = field(default_factory=list)


@dataclass
class _Reading:
    """The state of parsing after the previous lines."""

    texts: dict[str, str] = field(default_factory=dict)
    dscp_to_priority: dict[int, int] | None = None
    sizes: list[int] | None = None
    max_buffer_bytes: int | None = None
    rows: dict[str, list[int]] = field(default_factory=dict)
    classes: list[_Class] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    sizes_wrapped: bool = False


def parse_mlnx_qos(text: str) -> MlnxQos:
    """Parse the output for one interface. Raises ParseError, with the line, for other text, several outputs in one, and truncated text.

    It is complete if its traffic classes have all eight priorities: each is printed with its class.
    """
    reading = _Reading()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        _read(reading, line)
    refused = any("ETS features are not supported" in warning for warning in reading.warnings)
    if not refused:
        _check_whole(reading, lines[-1] if lines else "")
    return _result(reading)


def _read(reading: _Reading, line: str) -> None:
    if "WARNING" in line or "not supported on your system" in line:
        reading.warnings.append(line.strip("* "))
    elif reading.sizes_wrapped or _BUFFERS.match(line):
        _read_sizes(reading, line)
    elif line.startswith("dscp2prio mapping"):
        reading.dscp_to_priority = {}
    else:
        # Each reads lines of its own form, and no line has two forms.
        for read in (_read_text, _read_dscp, _read_row, _read_class):
            read(reading, line)


def _read_text(reading: _Reading, line: str) -> None:
    for name, pattern in (("dcbx", _DCBX), ("trust", _TRUST), ("cable", _CABLE)):
        match = pattern.fullmatch(line)
        if match:
            _once(reading.texts, name, line)
            reading.texts[name] = match.group(1)


def _once(seen: dict[str, str] | dict[str, list[int]], name: str, line: str) -> None:
    if name in seen:
        raise ParseError(f"two outputs of mlnx_qos in one, the second has {quoted(line)}")


def _read_dscp(reading: _Reading, line: str) -> None:
    match = _DSCP.fullmatch(line)
    if match is None:
        return
    listed = match.group(2).rstrip(", ")
    codes = [code.strip() for code in listed.split(",")] if listed else []
    if not all(_CODE.fullmatch(code) and int(code) < 64 for code in codes):
        raise ParseError(f"not DSCPs of a priority: {quoted(line)}")
    reading.dscp_to_priority = {**(reading.dscp_to_priority or {}), **{int(code): int(match.group(1)) for code in codes}}


def _read_sizes(reading: _Reading, line: str) -> None:
    """Read the sizes of the eight buffers; a mail client may have put them on a separate line."""
    match = _BUFFERS.match(line)
    values = match.group(1).strip() if match else line
    reading.sizes_wrapped = match is not None and not values
    if reading.sizes_wrapped:
        return
    sizes = _SIZES.fullmatch(values)
    if sizes is None or reading.sizes is not None:
        raise ParseError(f"not the sizes of eight buffers, once: {quoted(line)}")
    reading.sizes = [int(size) for size in sizes.group(1).split(",")[:_PRIORITIES]]
    reading.max_buffer_bytes = int(sizes.group(3)) if sizes.group(2) == "max_buffer_size" else None


def _read_row(reading: _Reading, line: str) -> None:
    match = _ROW.fullmatch(line)
    if match is None:
        return
    cells = match.group(2).split()
    if len(cells) != _PRIORITIES or not all(_CELL[match.group(1)].fullmatch(cell) for cell in cells):
        raise ParseError(f"not a row of eight priorities: {quoted(line)}")
    _once(reading.rows, match.group(1), line)
    reading.rows[match.group(1)] = [int(cell) for cell in cells]


def _read_class(reading: _Reading, line: str) -> None:
    """Read a traffic class, one without number and rate if the driver does not support rate limits, or a priority of the last one."""
    named = _TC.fullmatch(line)
    tsa = _TSA.fullmatch(named.group(4) if named else line)
    priority = _PRIORITY.fullmatch(line)
    if tsa:
        reading.classes.append(
            _Class(
                number=int(named.group(1)) if named else None,
                ratelimit_gbps=float(named.group(3)) if named and named.group(3) else None,
                tsa=tsa.group(1).split(",")[0],
                bandwidth_percent=int(tsa.group(2)) if tsa.group(2) else None,
            )
        )
    elif priority and reading.classes:
        reading.classes[-1].priorities.append(int(priority.group(1)))
    elif line.startswith(("tc:", "priority:")):
        raise ParseError(f"not a traffic class: {quoted(line)}")


def _check_whole(reading: _Reading, last: str) -> None:
    if "enabled" not in reading.rows:
        raise ParseError(f"no PFC in the output of mlnx_qos, which ends {quoted(last)}")
    priorities = sorted(priority for tc in reading.classes for priority in tc.priorities)
    if priorities != list(range(_PRIORITIES)):
        raise ParseError(f"mlnx_qos names a traffic class for the priorities {priorities}, and ends {quoted(last)}")
    numbers = [tc.number for tc in reading.classes if tc.number is not None]
    if len(set(numbers)) != len(numbers):
        raise ParseError(f"mlnx_qos names a traffic class twice, and ends {quoted(last)}")


def _result(reading: _Reading) -> MlnxQos:
    trust = reading.texts.get("trust")
    enabled = reading.rows.get("enabled")
    classes = {
        tc.number: TrafficClass(tc.ratelimit_gbps, tc.tsa, tc.bandwidth_percent, tc.priorities)
        for tc in reading.classes
        if tc.number is not None
    }
    return MlnxQos(
        dcbx_mode=reading.texts.get("dcbx"),
        trust=trust if trust != "none" else None,
        dscp_to_priority=reading.dscp_to_priority,
        buffer_sizes_bytes=reading.sizes,
        max_buffer_bytes=reading.max_buffer_bytes,
        cable_length_m=int(reading.texts["cable"]) if "cable" in reading.texts else None,
        pfc_enabled=[bool(cell) for cell in enabled] if enabled else None,
        pfc_buffer=reading.rows.get("buffer"),
        traffic_classes=classes if reading.classes and len(classes) == len(reading.classes) else None,
        warnings=reading.warnings,
    )
