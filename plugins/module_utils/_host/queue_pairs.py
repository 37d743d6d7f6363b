# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse `rdma -j resource show qp` of iproute2."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted

_Entry = Mapping[str, Any]
# JSON; "[root@node1 ~]#" does not match.
_JSON = re.compile(r"\s*(?:\[\s*[\]{]|\{)")
_NUMBER = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True)
class RdmaQp:
    """One queue pair. port: None until the queue pair has one, which means any port of the device.

    pid: the process that has created it; None if the kernel has, or if that process has ended. owner: the name of the process, or of the
    kernel's module ("ib_core"); None if the tool does not know it.
    """

    device: str
    port: int | None
    number: int
    pid: int | None
    owner: str | None


def parse_rdma_qps(text: str) -> list[RdmaQp]:
    """Parse the queue pairs. Raises ParseError, with the text, for anything else and for truncated text."""
    if not _JSON.match(text):
        raise ParseError(f"not the JSON of `rdma resource show qp`: {quoted(text)}")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ParseError(f"not the JSON of `rdma resource show qp`: {text[-200:]!r}") from exc
    entries = entries if isinstance(entries, list) else [entries]
    if not all(isinstance(entry, dict) for entry in entries):
        raise ParseError(f"not the JSON of `rdma resource show qp`: {quoted(text)}")
    # The empty ones stand for entries that iproute2 has filtered out.
    return [_built(entry) for entry in entries if entry]


def _built(entry: _Entry) -> RdmaQp:
    try:
        return _qp(entry)
    except (KeyError, TypeError, ValueError) as exc:
        raise ParseError(f"not an entry of `rdma resource show qp`: {dict(entry)!r:.200}") from exc


def _qp(entry: _Entry) -> RdmaQp:
    device, port = _port(entry)
    number = _number(entry, "lqpn")
    if number is None:
        raise ValueError("a queue pair without a number")
    return RdmaQp(device, port, number, _number(entry, "pid"), _text(entry, "comm"))


def _port(entry: _Entry) -> tuple[str, int | None]:
    """Return "mlx5_0" and 1, of "ifname" and "port" or, before iproute2 4.20, of "mlx5_0/1" alone."""
    name, slash, port = _required(entry, "ifname").partition("/")
    if "port" in entry:
        return name, _number(entry, "port")
    return name, _number({"port": port}, "port") if slash else None


def _required(entry: _Entry, key: str) -> str:
    value = entry[key]
    if not isinstance(value, str) or not value:
        raise ValueError(f"not a {key}: {value!r:.200}")
    return value


def _text(entry: _Entry, key: str) -> str | None:
    return _required(entry, key) if entry.get(key) not in (None, "") else None


def _number(entry: _Entry, key: str) -> int | None:
    value = entry.get(key)
    number = int(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
    if number is None or (isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**64):
        return number
    raise ValueError(f"not a number of {key}: {value!r:.200}")
