# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the program ethtool prints of one interface (4.x to 6.15, over ioctl and over netlink), but for modules (_optics.py).

Each parser raises ParseError, with the line that it stumbles over, for an error message, for an output that is cut short
where its form shows that, and for anything else. Prompts before the output and messages in between are passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Union

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._ethtool import DriverInfo, LinkSettings, Pause, Rings

#: A number, on or off; None for "n/a".
Setting = Union[int, bool, None]

_COMPLAINT = re.compile(
    r"cannot|bad command|no such device|no data available|not supported|not permitted|no stats|no private flags|netlink error|not found",
    re.IGNORECASE,
)
_ON_OFF = {"on": True, "off": False}
_YES_NO = {"yes": True, "no": False}
_NUMBER = re.compile(r"[0-9]{1,20}")
# Of the rows that are on or off.
_HALF_A_ROW = re.compile(r"[\w.-]+(?: *: *\S{0,2})?", re.ASCII)
_TWO_SETTINGS = re.compile(r"(adaptive|cqe mode) rx: *(\S+) +tx: *(\S+)", re.IGNORECASE)
_SPEED = re.compile(r"([0-9]{1,8})Mb/s")
_MODE_SPEED = re.compile(r"([0-9]{1,8})base", re.IGNORECASE)
_KNOWN_SETTINGS = {"supported ports", "supported link modes", "supported pause frame use", "speed", "port", "link detected"}
_LINK_DETECTED = re.compile(r"(yes|no)(?: *\((.*)\))?")


@dataclass(frozen=True)
class RingParameters:
    """`ethtool -g`: maximum and current by the words of ethtool in lower case ("rx", "rx mini", "tx push")."""

    interface: str
    maximum: dict[str, Setting]
    current: dict[str, Setting]

    @property
    def rings(self) -> Rings:
        """The two that every driver with rings has."""
        settings = [section[name] for section in (self.current, self.maximum) for name in ("rx", "tx")]
        return Rings(*(None if isinstance(setting, bool) else setting for setting in settings))


@dataclass(frozen=True)
class Modes:
    """One side of a link; [] for "Not reported". pause: ethtool's words ("Symmetric Receive-only")."""

    link_modes: list[str] | None
    pause: str | None
    autoneg: bool | None
    fec: list[str] | None


@dataclass(frozen=True)
class Settings:
    """`ethtool IF`. link_reason: why there is no link ("No cable"), where the driver says so."""

    interface: str
    link: LinkSettings
    ports: list[str] | None
    supported: Modes
    advertised: Modes
    partner: Modes
    link_detected: bool | None
    link_reason: str | None


@dataclass(frozen=True)
class Feature:
    """One offload. fixed: it cannot be changed; requested: what was asked for, where it is not what is."""

    on: bool
    fixed: bool
    requested: bool | None


def parse_ethtool_driver(text: str) -> DriverInfo:
    """`ethtool -i`."""
    rows = dict(reversed([row for row in map(_row, _lines(text)) if row is not None]))
    told = {key: value for key, value in rows.items() if value.upper() not in ("", "N/A")}
    if "driver" not in rows:
        raise _refusal("-i", text)
    return DriverInfo(
        driver=told.get("driver"),
        version=told.get("version"),
        firmware=told.get("firmware-version"),
        bus_info=told.get("bus-info"),
        expansion_rom=told.get("expansion-rom-version"),
        supports={key[9:]: _YES_NO[value] for key, value in rows.items() if key.startswith("supports-") and value in _YES_NO},
    )


def parse_ethtool_rings(text: str) -> RingParameters:
    """`ethtool -g`."""
    interface, lines = _output("-g", text, "Ring parameters for ")
    middle = next((index for index, line in enumerate(lines) if line.startswith("Current hardware settings")), len(lines))
    maximum, current = _settings(lines[:middle]), _settings(lines[middle:])
    if not {"rx", "tx"} <= set(maximum) & set(current):
        raise _refusal("-g", text)
    return RingParameters(interface, maximum, current)


def parse_ethtool_pause(text: str) -> Pause:
    """`ethtool -a`."""
    rows = _settings(_output("-a", text, "Pause parameters for ")[1])
    if not {"autonegotiate", "rx", "tx"} <= set(rows):
        raise _refusal("-a", text)
    return Pause(*(None if rows[key] is None else bool(rows[key]) for key in ("autonegotiate", "rx", "tx")))


def parse_ethtool_statistics(text: str) -> dict[str, int]:
    """`ethtool -S`: every counter, those of single queues included; the last of those that share a name."""
    lines = _output("-S", text, "NIC statistics:", "PHY statistics:")[1]
    # A name may have colons of its own.
    rows = [(name.strip(), value.strip()) for name, colon, value in (line.rpartition(":") for line in lines)]
    # Rows are indented, and a prompt behind them is not.
    cut_short = text.rstrip().splitlines()[-1][:1].isspace() and not _NUMBER.fullmatch(rows[-1][1] if rows else "")
    found = {name: int(value) for name, value in rows if name and _NUMBER.fullmatch(value)}
    if not found or cut_short:
        raise _refusal("-S", text)
    return found


def parse_ethtool_features(text: str) -> dict[str, Feature]:
    """`ethtool -k`: groups ("tx-checksumming") and single offloads alike."""
    return {
        name: Feature(_ON_OFF[state], note == "fixed", _ON_OFF.get(note.replace("requested ", "")))
        for name, state, note in _switches("-k", text, "Features for ", "Offload parameters for ")
    }


def parse_ethtool_private_flags(text: str) -> dict[str, bool]:
    """`ethtool --show-priv-flags`."""
    return {name: _ON_OFF[state] for name, state, note in _switches("--show-priv-flags", text, "Private flags for ")}


def parse_ethtool_coalesce(text: str) -> dict[str, Setting]:
    """`ethtool -c`, by the names that ethtool gives its options: "adaptive-rx", "cqe-mode-tx", "rx-usecs"."""
    lines = _output("-c", text, "Coalesce parameters for ")[1]
    rows = _settings(_TWO_SETTINGS.sub(r"\1-rx: \2\n\1-tx: \3", "\n".join(lines)).splitlines())
    if not {"rx-usecs", "tx-usecs-high"} <= set(rows):
        raise _refusal("-c", text)
    return {key.replace(" ", "-"): value for key, value in rows.items()}


def parse_ethtool_settings(text: str) -> Settings:
    """`ethtool IF`; rows that ethtool left out are None, and [] for speeds."""
    interface, lines = _output("IF", text, "Settings for ")
    rows: dict[str, str] = {}
    key = ""
    for line in lines:
        row = _row(line)
        if row is None and not key:
            raise _refusal("IF", text, line)
        if row is not None:
            key, rows[row[0]] = row
        elif key.endswith("link modes"):
            rows[key] += f" {line}"
    if not _KNOWN_SETTINGS & set(rows):
        raise _refusal("IF", text)
    supported = _modes(rows, "supported", "supports")
    detected = _LINK_DETECTED.fullmatch(rows.get("link detected", ""))
    return Settings(
        interface=interface,
        link=_link(rows, supported),
        ports=_words(rows.get("supported ports")),
        supported=supported,
        advertised=_modes(rows, "advertised"),
        partner=_modes(rows, "link partner advertised"),
        link_detected=_YES_NO[detected[1]] if detected else None,
        link_reason=detected[2] if detected else None,
    )


def _link(rows: dict[str, str], supported: Modes) -> LinkSettings:
    speed = _SPEED.fullmatch(rows.get("speed", ""))
    speeds = {int(match[1]) for match in map(_MODE_SPEED.match, supported.link_modes or []) if match is not None}
    duplex, port = rows.get("duplex", "").lower(), rows.get("port", "")
    return LinkSettings(
        speed_mbps=int(speed[1]) if speed else None,
        duplex=duplex if duplex in ("half", "full") else None,
        autoneg=_ON_OFF.get(rows.get("auto-negotiation", "")),
        port=port if port and not port.startswith("Unknown!") else None,
        supported_speeds_mbps=sorted(speeds),
    )


def _modes(rows: dict[str, str], side: str, verb: str = "") -> Modes:
    return Modes(
        link_modes=_words(rows.get(f"{side} link modes")),
        pause=rows.get(f"{side} pause frame use"),
        autoneg=_YES_NO.get(rows.get(f"{verb or side} auto-negotiation", "").lower()),
        fec=_words(rows.get(f"{side} fec modes")),
    )


def _words(value: str | None) -> list[str] | None:
    if value is None:
        return None
    return [] if value.lower() == "not reported" else value.replace("[", " ").replace("]", " ").split()


def _switches(command: str, text: str, *headers: str) -> list[tuple[str, str, str]]:
    """The rows that are on or off: name, state, and what stands in brackets behind it."""
    lines = _output(command, text, *headers)[1]
    rows = [(name.strip(), *value.strip().partition(" [")) for name, colon, value in (line.rpartition(":") for line in lines)]
    found = [(name, state, note.rstrip("]")) for name, state, bracket, note in rows if name and state in _ON_OFF]
    if not found or (rows[-1][1] not in _ON_OFF and _HALF_A_ROW.fullmatch(lines[-1])):
        raise _refusal(command, text)
    return found


def _settings(lines: list[str]) -> dict[str, Setting]:
    """The rows with a value of a Setting, by their keys in lower case."""
    found: dict[str, Setting] = {}
    for key, value in filter(None, map(_row, lines)):
        if value == "n/a" or value in _ON_OFF or _NUMBER.fullmatch(value):
            found.setdefault(key, None if value == "n/a" else _ON_OFF[value] if value in _ON_OFF else int(value))
    return found


def _row(line: str) -> tuple[str, str] | None:
    """The key in lower case and the value of a line "key: value"."""
    key, colon, value = line.partition(":")
    return (" ".join(key.split()).lower(), " ".join(value.split())) if colon and key.strip() else None


def _lines(text: str) -> list[str]:
    """What is not blank, without the marks of a quoting mail."""
    return [line for line in (line.strip().lstrip("> \t") for line in text.splitlines()) if line]


def _output(command: str, text: str, *headers: str) -> tuple[str, list[str]]:
    """The last word of the header, which is the interface where it names one, and the lines below it."""
    lines = _lines(text)
    starts = [index for index, line in enumerate(lines) if line.startswith(headers) and line.endswith(":")]
    if len(starts) != 1:
        raise _refusal(command, text, lines[starts[1]] if starts else "")
    return lines[starts[0]][:-1].rpartition(" ")[2], lines[starts[0] + 1 :]


def _refusal(command: str, text: str, line: str = "") -> ParseError:
    """The error for a text, with the line that shows it: the given one, else a complaint of ethtool, else the last one."""
    lines = _lines(text)
    shown = line or next(filter(_COMPLAINT.search, lines), lines[-1] if lines else "")
    return ParseError(f"not the whole output of `ethtool {command}`: {shown[:200]!r}")
