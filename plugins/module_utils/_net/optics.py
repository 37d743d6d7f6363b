# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pluggable modules and cables as `ethtool -m` (4.x to 6.15, after SFF-8472, SFF-8636 and CMIS) and `mlxlink -m` print them."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._net.optics_model import Found, Lane, Optic, Reading, build_optic, out_of_range

__all__ = ["Lane", "Optic", "Reading", "out_of_range", "parse_ethtool_module", "parse_mlxlink_module"]

# What the rows of ethtool are called, and the keys of its JSON with blanks for underscores.
_NAMES = {
    "module temperature": "temperature_celsius",
    "module voltage": "voltage_volt",
    "rcvr signal avg optical power": "rx_power_mw",
    "receiver signal average optical power": "rx_power_mw",
    "receiver signal oma": "rx_power_mw",
    "laser rx power": "rx_power_mw",
    "rx power": "rx_power_mw",
    "transmit avg optical power": "tx_power_mw",
    "laser output power": "tx_power_mw",
    "laser tx power": "tx_power_mw",
    "laser tx bias current": "tx_bias_ma",
    "laser bias current": "tx_bias_ma",
}
_KEY = re.compile(
    rf"(?P<name>{'|'.join(_NAMES)})(?: measurement)?"
    r"(?P<limit> (?:high|low) (?:alarm|warning))?(?P<threshold> threshold)? ?(?:\((?:channel|chan) (?P<lane>[1-9][0-9]?)\))?"
)
_VALUE = re.compile(r"(-?[0-9]{1,9}(?:\.[0-9]{1,9})?(?:e-[0-9]{1,2})?)(?![\w.,])", re.ASCII)
_NOTHING = ("", "N/A", "n/a")
_LENGTHS = ("length (copper or active cable)", "length (copper)", "cable assembly length")
_LENGTH = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,4})?) ?m?")
# For a module with a socket, the same byte of the EEPROM is the reach in fibre.
_FIXED_ENDS = ("No separable connector", "Copper pigtail", "Optical pigtail")
# How mails mark rows that they leave out.
_LEFT_OUT = re.compile(r"^[ \t>]{0,40}\.\.\.", re.MULTILINE)
_LAST_THRESHOLD = "laser rx power low warning threshold"

_ANSI = re.compile(r"\x1b\[[0-9;]{0,9}m")
_MLXLINK = {
    "temperature [c]": "temperature_celsius",
    "voltage [mv]": "voltage_volt",
    "bias current [ma]": "tx_bias_ma",
    "rx power current [dbm]": "rx_power_mw",
    "tx power current [dbm]": "tx_power_mw",
}
_MLXLINK_VALUE = re.compile(r"([^\[\]]*)(?:\[([^\[\]]*)\])?")
_MLXLINK_NUMBER = re.compile(r"(-?[0-9]{1,5}(?:\.[0-9]{1,9})?)C?")
_HALF_A_KEY = re.compile(r"[\w \[\](),/]+", re.ASCII)
_MAX_DBM = 100.0


def parse_ethtool_module(text: str) -> Optic:
    """Parse `ethtool -m IF` and `ethtool --json -m IF` (from 6.14). Raises ParseError, also for a hex dump: a module of no standard."""
    rows = _ethtool_rows(text)
    fields: dict[str, str] = {}
    found = Found()
    for key, value in rows:
        fields.setdefault(key, value)
        _collect(found, key, value)
    if not found.values and not {"identifier", "vendor name"} & set(fields):
        raise _refusal("ethtool -m", text)
    with_thresholds = fields.get("alarm/warning flags implemented") in ("Yes", "On")
    if with_thresholds and _LAST_THRESHOLD not in fields and not _LEFT_OUT.search(text):
        raise _refusal("ethtool -m", text)
    return build_optic(
        found,
        identifier=_described(fields, "identifier"),
        vendor=fields.get("vendor name"),
        part_number=fields.get("vendor pn"),
        serial=fields.get("vendor sn"),
        length_m=_length(next((fields[name] for name in _LENGTHS if name in fields), "")) if _has_fixed_ends(fields) else None,
        copper=_described(fields, "transmitter technology").startswith("Copper") or "passive cu cmplnce." in fields,
    )


def parse_mlxlink_module(text: str) -> Optic:
    """Parse the section "Module Info" of `mlxlink -m` (MFT 4.x). Raises ParseError."""
    fields = _mlxlink_fields(text)
    found = Found()
    for key, quantity in _MLXLINK.items():
        _collect_mlxlink(found, key, quantity, fields.get(key, ""))
    # "Passive copper cable", "Active cable (active copper / optics)", "Optical Module (separated)"
    kind = fields.get("cable type", "").lower()
    return build_optic(
        found,
        identifier=fields.get("identifier"),
        vendor=fields.get("vendor name"),
        part_number=fields.get("vendor part number"),
        serial=fields.get("vendor serial number"),
        length_m=_length(fields.get("transfer distance [m]", "")) if "cable" in kind else None,
        copper="passive copper" in kind or fields.get("cable technology", "").startswith("Copper"),
    )


def _collect(found: Found, key: str, value: str) -> None:
    """Store one row of ethtool, if it is a reading, a threshold or a flag."""
    match = _KEY.fullmatch(key)
    if match is None:
        return
    quantity, limit = _NAMES[match["name"]], (match["limit"] or "").strip()
    if limit and not match["threshold"]:
        if value in ("On", "Yes"):
            found.alarms.append(f"{match['name'].capitalize()} {limit}" + (f" (Chan {match['lane']})" if match["lane"] else ""))
    elif value not in _NOTHING:
        number = _VALUE.match(value)
        if number is None:
            raise ParseError(f"not a value of a module: {quoted(f'{key}: {value}')}")
        if limit:
            found.limits.setdefault(quantity, {}).setdefault(limit.replace(" ", "_"), float(number[1]))
        else:
            found.values.setdefault((quantity, int(match["lane"] or 1)), float(number[1]))


def _ethtool_rows(text: str) -> list[tuple[str, str]]:
    """Return keys in lower case, and values. ethtool 6.14 and 6.15 print an SFP's measurements as text after its JSON."""
    rows, behind = [], text.lstrip()
    # A prompt may also begin with a bracket; and a mail breaks strings over lines, which strict would refuse.
    with contextlib.suppress(ValueError, RecursionError):
        data, end = json.JSONDecoder(object_pairs_hook=_merge, strict=False).raw_decode(behind)
        rows = list(_json_rows(data[0] if isinstance(data, list) and data else data, ""))
        behind = behind[end:]
    return [*rows, *_text_rows(behind)]


def _text_rows(text: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip()]
    for line in lines:
        key, colon, value = line.strip().lstrip("> \t").partition(":")
        if colon:
            yield " ".join(key.lower().split()), " ".join(value.split())
        elif line is lines[-1] and line[0].isspace() and line.strip() != "...":
            raise _refusal("ethtool -m", text)


def _merge(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Merge an object in which ethtool repeats a key: for each bank of eight lanes, and up to 6.15 for a reading and its thresholds."""
    merged: dict[str, Any] = {}
    for key, value in pairs:
        before = merged.get(key)
        if isinstance(before, list) and isinstance(value, list):
            merged[key] = before + value
        elif isinstance(before, dict) and isinstance(value, dict):
            merged[key] = _merge([*before.items(), *value.items()])
        else:
            if isinstance(before, (int, float)) and isinstance(value, dict):
                merged[f"{key}_measurement"] = before
            merged[key] = value
    return merged


def _json_rows(data: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yield the JSON as the rows of the text output: an array has an element for each lane."""
    if isinstance(data, dict):
        for name, value in data.items():
            inner = "" if name in ("value", "values") else name.replace("_", " ").lower()
            yield from _json_rows(value, f"{key} {inner}".strip())
    elif isinstance(data, list):
        for lane, value in enumerate(data, 1):
            yield from _json_rows(value, f"{key} (channel {lane})")
    elif isinstance(data, bool):
        yield key, "On" if data else "Off"
    elif data is not None:
        yield key, " ".join(str(data).split())


def _described(fields: dict[str, str], name: str) -> str:
    """Return the meaning of a code: "0x11 (QSFP28)" -> "QSFP28"; the code itself if ethtool does not know it."""
    code = fields.get(name, "")
    return fields.get(f"{name} description") or (code.partition(" (")[2][:-1] if code.endswith(")") else code)


def _has_fixed_ends(fields: dict[str, str]) -> bool:
    return "connector" not in fields or _described(fields, "connector") in _FIXED_ENDS


def _length(value: str) -> float | None:
    match = _LENGTH.fullmatch(value)
    return float(match[1]) if match else None


def _mlxlink_fields(text: str) -> dict[str, str]:
    """Return the rows of the only section "Module Info"; keys in lower case."""
    lines = [line for line in (_ANSI.sub("", line).strip() for line in text.splitlines()) if line]
    starts = [index for index, line in enumerate(lines) if line == "Module Info"]
    fields: dict[str, str] = {}
    for line in lines[starts[0] + 1 :] if len(starts) == 1 else ():
        if fields and not line.strip("-"):
            break
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(" ".join(key.lower().split()), value.strip())
        elif line is lines[-1] and _HALF_A_KEY.fullmatch(line):
            raise _refusal("mlxlink -m", text)
    if not {"identifier", "vendor name", *_MLXLINK} & set(fields):
        raise _refusal("mlxlink -m", text)
    return fields


def _collect_mlxlink(found: Found, key: str, quantity: str, value: str) -> None:
    """Store the values of all lanes and the limits in a row: "1.886,1.989 [-10.41..6]"."""
    match = _MLXLINK_VALUE.fullmatch(value)
    if match is None:
        raise ParseError(f"not a value of a module: {quoted(f'{key}: {value}')}")
    for lane, word in enumerate(match[1].split(","), 1):
        number = _mlxlink_number(quantity, key, word.strip())
        if number is not None:
            found.values[quantity, lane] = number
    for name, word in zip(("low_alarm", "high_alarm"), (match[2] or "").split("..", 1)):
        number = _mlxlink_number(quantity, key, word.strip())
        if number is not None:
            found.limits.setdefault(quantity, {})[name] = number


def _mlxlink_number(quantity: str, key: str, word: str) -> float | None:
    """Return a number in the unit of its quantity, to four places as in ethtool; mlxlink prints mV and dBm (-inf: no light)."""
    if word in _NOTHING:
        return None
    match = _MLXLINK_NUMBER.fullmatch(word)
    if word == "-inf" and quantity.endswith("_mw"):
        return 0.0
    if match is None or (quantity.endswith("_mw") and abs(float(match[1])) > _MAX_DBM):
        raise ParseError(f"not a value of a module: {quoted(f'{key}: {word}')}")
    number = float(match[1])
    if quantity == "voltage_volt":
        return round(number / 1000, 4)
    return round(10 ** (number / 10), 4) if quantity.endswith("_mw") else number


def _refusal(command: str, text: str) -> ParseError:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ParseError(f"not the whole output of `{command}`: {quoted(lines[-1] if lines else '')}")
