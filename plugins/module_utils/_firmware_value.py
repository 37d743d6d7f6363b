# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One value of a firmware setting: as mlxconfig prints it, as a person wishes it, and as `mlxconfig set` takes it.

Source: mstflint 4.36, mlxconfig/mlxcfg_param.cpp (how each type of setting is parsed and printed).
"""

from __future__ import annotations

import re
from typing import Union

from ansible_collections.rdma.cluster.plugins.module_utils._mlxconfig import Value

#: True and False are 1 and 0; a text is a name ("ETH"), a number ("2", "0xff") or both ("ETH(2)").
Wish = Union[str, int, bool]

_NUMBERED = re.compile(r"(.+)\(([0-9]{1,20})\)")
_DECIMAL = re.compile(r"[0-9]{1,20}")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_BOOLEANS = {"true": 1, "false": 0}


def spelled(value: Value | None) -> str | None:
    """A value as the tool prints it, "ETH(2)" or "8"; None where it is not told."""
    if value is None:
        return None
    return value.text if value.number is None or value.text == str(value.number) else f"{value.text}({value.number})"


def read_value(text: str) -> Value:
    """The inverse of spelled."""
    numbered = _NUMBERED.fullmatch(text)
    if numbered:
        return Value(numbered[1], int(numbered[2]))
    return Value(text, int(text) if _DECIMAL.fullmatch(text) else None)


def is_array(value: Value | None) -> bool:
    """Whether it stands for several values, which a query of all settings does not tell: "Array[0..7]"."""
    return value is not None and value.text.startswith("Array[")


def number_of(wish: Wish) -> int | None:
    """The number that is wished; None for a name that only the adapter can turn into one."""
    if isinstance(wish, int):
        return int(wish)
    text = wish.strip()
    numbered = _NUMBERED.fullmatch(text)
    if numbered:
        return int(numbered[2])
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    return int(text) if _DECIMAL.fullmatch(text) else _BOOLEANS.get(text.casefold())


def is_wished(value: Value, wish: Wish) -> bool:
    """Whether a value is the wished one, by number, or by name in any case where the wish is a name."""
    number = number_of(wish)
    if number is not None and value.number is not None:
        return value.number == number
    return str(wish).strip().casefold() == value.text.casefold()


def argument(wish: Wish, value: Value) -> str:
    """What to write behind "NAME=", for a setting that has this value.

    A setting that the tool prints in hexadecimal is binary, and there it takes every number as hexadecimal: 255 would be 0x255.
    """
    number = number_of(wish)
    if number is None:
        return str(wish).strip()
    return f"{number:#x}" if _HEXADECIMAL.fullmatch(value.text) else str(number)
