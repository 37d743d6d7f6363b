# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Firmware settings of adapters, read with mstconfig (mstflint) or mlxconfig (MFT).

Both accept a PCI address as the device. Each function of a card answers for the whole card, with the settings of all its ports.
A query of all settings takes a second or more, so it runs only if a setting is requested.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.mlxconfig import Mlxconfig, Setting, Value, parse_mlxconfig
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Device

#: True and False are 1 and 0; a text is a name ("ETH"), a number ("2", "0xff") or both ("ETH(2)").
RequestedValue = Union[str, int, bool]

_NUMBERED = re.compile(r"(.+)\(([0-9]{1,20})\)")
_DECIMAL = re.compile(r"[0-9]{1,20}")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_BOOLEANS = {"true": 1, "false": 0}


def spelled(value: Value | None) -> str | None:
    """Return a value as the tool prints it, "ETH(2)" or "8"; None if it is unknown."""
    if value is None:
        return None
    return value.text if value.number is None or value.text == str(value.number) else f"{value.text}({value.number})"


def read_value(text: str) -> Value:
    """Return the value of a text: the inverse of spelled."""
    numbered = _NUMBERED.fullmatch(text)
    if numbered:
        return Value(numbered[1], int(numbered[2]))
    return Value(text, int(text) if _DECIMAL.fullmatch(text) else None)


def is_array(value: Value | None) -> bool:
    """Return whether it stands for several values, which a query of all settings omits: "Array[0..7]"."""
    return value is not None and value.text.startswith("Array[")


def number_of(request: RequestedValue) -> int | None:
    """Return the requested number; None for a name that only the adapter can convert into a number."""
    if isinstance(request, int):
        return int(request)
    text = request.strip()
    numbered = _NUMBERED.fullmatch(text)
    if numbered:
        return int(numbered[2])
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    return int(text) if _DECIMAL.fullmatch(text) else _BOOLEANS.get(text.casefold())


def is_requested(value: Value, request: RequestedValue) -> bool:
    """Return whether a value is the requested one: by number, or by name in any case if a name is requested."""
    number = number_of(request)
    if number is not None and value.number is not None:
        return value.number == number
    return str(request).strip().casefold() == value.text.casefold()


def argument(request: RequestedValue, value: Value) -> str:
    """Return the text after "NAME=" for a setting that has this value.

    A setting that the tool prints in hexadecimal is binary. For it, the tool reads every number as hexadecimal: 255 would be 0x255.
    """
    number = number_of(request)
    if number is None:
        return str(request).strip()
    return f"{number:#x}" if _HEXADECIMAL.fullmatch(value.text) else str(number)


#: The drivers of adapters that have such settings.
DRIVERS = ("mlx4_core", "mlx5_core")
TOOLS = ("mstconfig", "mlxconfig")
NO_TOOL = "neither mstconfig nor mlxconfig is installed"
#: mstconfig needs ten to twenty seconds for all settings of a new card.
QUERY_SECONDS = 120.0


@dataclass(frozen=True)
class Answer:
    """The answer of a device.

    tool: the tool that answered or failed; None if none is installed. error: may also be set with an adapter, if some of its settings
    could not be read.
    """

    tool: str | None
    adapter: Mlxconfig | None
    error: str | None


def card_of(address: str) -> str:
    """Return function 0 of a card, given the address of any of its functions."""
    return f"{address.rpartition('.')[0]}.0"


def card_port(address: str, port: int) -> tuple[str, int]:
    """Return the card of a PCI function, and which of the card's ports, from 1, is RDMA port `port` of that function."""
    return card_of(address), int(address.rpartition(".")[2], 16) + port


def cards_of(devices: Mapping[str, Device]) -> list[str]:
    """Return the cards of a host's RDMA devices that have such settings, each by its function 0."""
    own = [device for device in devices.values() if device.driver in DRIVERS and not device.software and device.function != "vf"]
    return sorted({card_of(device.pci.address) for device in own if device.pci is not None})


def read_firmware(runner: Runner, devices: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the settings with these names of each device (PCI address), read with `mstconfig -d DEVICE -e q`, else with mlxconfig.

    {device: {"tool", "settings": {NAME: {"current", "next_boot", "default", "read_only"} or None}, "error"}}. Values are as the tool
    prints them ("ETH(2)", "8"), None if it omits them. A name that the device lacks is None. A name that is not a key could not
    be read, and error has the reason.
    """
    return {device: _entry(query(runner, device), names) for device in devices}


def query(runner: Runner, device: str) -> Answer:
    """Return all settings of one device, from the first tool that answers."""
    failed = Answer(None, None, NO_TOOL)
    for tool in TOOLS:
        answer = _ask(runner, tool, device)
        if answer.adapter is not None:
            return answer
        if failed.tool is None:
            failed = answer
    return failed


def find(adapter: Mlxconfig, name: str) -> Setting | None:
    """Return a setting by its name; for an element of an array ("NAME[0]") the row of the array, because only that is listed."""
    return adapter.settings.get(name) or adapter.settings.get(name.partition("[")[0])


def _ask(runner: Runner, tool: str, device: str) -> Answer:
    try:
        done = runner.run((tool, "-d", device, "-e", "q"), timeout_seconds=QUERY_SECONDS)
    except CommandError as error:
        missing = str(error).startswith("command not found")
        return Answer(None, None, NO_TOOL) if missing else Answer(tool, None, str(error))
    try:
        adapter = next(iter(parse_mlxconfig(done.stdout).values()))
    except ParseError as error:
        complaint = done.stderr.strip()
        return Answer(tool, None, f"{error} (`{' '.join(done.argv)}`{f': {complaint[-200:]}' if complaint else ''})")
    failed = " ".join(adapter.failed_tlvs)
    return Answer(tool, adapter, f"{tool} could not read all settings of {device}: {failed[:200]}" if failed else None)


def _entry(answer: Answer, names: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Mapping[str, Any] | None] = {}
    for name in names if answer.adapter is not None else ():
        setting = find(answer.adapter, name) if answer.adapter is not None else None
        if setting is not None or answer.error is None:
            settings[name] = _setting_entry(setting)
    return {"tool": answer.tool, "settings": settings, "error": answer.error}


def _setting_entry(setting: Setting | None) -> dict[str, Any] | None:
    if setting is None:
        return None
    return {
        "current": spelled(setting.current),
        "next_boot": spelled(setting.next_boot),
        "default": spelled(setting.default),
        "read_only": setting.read_only,
    }
