# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse iproute2's `dcb -j OBJECT show dev INTERFACE` (dcb/dcb_*.c of iproute2 5.11 to 7.1): PFC, ETS, APP entries, DCBX, buffers.

All lists are by priority, traffic class or buffer, from 0 to 7 (IEEE_8021QAZ_MAX_TCS of linux/dcbnl.h).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted

#: The number of priorities, of traffic classes and of buffers.
PRIORITIES = 8
_CODES = 64
#: tsa_names of dcb_ets.c; "???" for an unknown number.
_TSA = ("strict", "cbs", "ets", "vendor", "???")
_FLAGS = ("host", "lld_managed", "cee", "ieee", "static")
# The kernel's EOPNOTSUPP; an attribute that the driver omits from its answer; an object that this version of dcb does not have.
_UNSUPPORTED = re.compile(r"Operation not supported|^Attribute not found|^Object \"\w+\" is unknown", re.MULTILINE)


@dataclass(frozen=True)
class DcbPfc:
    """enabled: the priorities that are lossless. delay: bit times by the standard, meters of cable in mlx5 (en_dcbnl.c)."""

    enabled: list[bool]
    delay: int


@dataclass(frozen=True)
class DcbEts:
    """tsa: how a class is selected to send next ("strict", "ets", "vendor" …); bandwidth_percent: its share among those with "ets"."""

    priority_to_tc: list[int]
    tsa: list[str]
    bandwidth_percent: list[int]


@dataclass(frozen=True)
class DcbBuffer:
    """The receive buffers: the buffer of each priority, and the size of each buffer."""

    priority_to_buffer: list[int]
    sizes_bytes: list[int]


def is_unsupported(stderr: str) -> bool:
    """Return whether dcb failed because the driver or the version does not support the query, not for another reason."""
    return _UNSUPPORTED.search(stderr) is not None


def parse_dcb_pfc(text: str) -> DcbPfc:
    """Parse `dcb -j pfc show dev IF`. Raises ParseError, as all of these do, for text of another form."""
    answer = _object("pfc", text)
    enabled = _list("pfc", answer, "prio_pfc")
    if not all(isinstance(value, bool) for value in enabled):
        raise _refusal("pfc", answer)
    return DcbPfc(enabled, _number("pfc", answer.get("delay"), 0xFFFF))


def parse_dcb_ets(text: str) -> DcbEts:
    """Parse `dcb -j ets show dev IF`."""
    answer = _object("ets", text)
    tsa = _list("ets", answer, "tc_tsa")
    if not all(value in _TSA for value in tsa):
        raise _refusal("ets", answer)
    return DcbEts(
        priority_to_tc=_numbers("ets", answer, "prio_tc", PRIORITIES - 1),
        tsa=tsa,
        bandwidth_percent=_numbers("ets", answer, "tc_bw", 100),
    )


def parse_dcb_app(text: str) -> dict[int, int]:
    """Parse `dcb -N -j app show dev IF dscp-prio`: DSCP → priority, the highest if a code has several; empty without entries.

    An entry has a third element, a blank, since iproute2 6.5.
    """
    entries = _object("app", text).get("dscp_prio", [])
    found: dict[int, int] = {}
    if not isinstance(entries, list):
        raise _refusal("app", entries)
    for entry in entries:
        if not isinstance(entry, list) or len(entry) not in (2, 3):
            raise _refusal("app", entry)
        code, priority = _number("app", entry[0], _CODES - 1), _number("app", entry[1], PRIORITIES - 1)
        found[code] = max(priority, found.get(code, 0))
    return found


def parse_dcb_dcbx(text: str) -> list[str]:
    """Parse `dcb -j dcbx show dev IF`: which of host, lld_managed, cee, ieee, static are set."""
    answer = _object("dcbx", text)
    if not all(key in _FLAGS and value is True for key, value in answer.items()):
        raise _refusal("dcbx", answer)
    return [flag for flag in _FLAGS if flag in answer]


def parse_dcb_buffer(text: str) -> DcbBuffer:
    """Parse `dcb -j buffer show dev IF`."""
    answer = _object("buffer", text)
    return DcbBuffer(_numbers("buffer", answer, "prio_buffer", PRIORITIES - 1), _numbers("buffer", answer, "buffer_size", 0xFFFFFFFF))


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise _refusal(name, text) from exc
    if not isinstance(answer, dict):
        raise _refusal(name, text)
    return answer


def _list(name: str, answer: dict[str, Any], key: str) -> list[Any]:
    values = answer.get(key)
    if not isinstance(values, list) or len(values) != PRIORITIES:
        raise _refusal(name, answer)
    return values


def _numbers(name: str, answer: dict[str, Any], key: str, most: int) -> list[int]:
    return [_number(name, value, most) for value in _list(name, answer, key)]


def _number(name: str, value: Any, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise _refusal(name, value)
    return value


def _refusal(name: str, found: Any) -> ParseError:
    return ParseError(f"not the output of `dcb -j {name} show`: {quoted(found)}")
