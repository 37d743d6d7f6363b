# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `rdma dev`, `rdma link`, `rdma statistic` and `rdma resource show qp` of iproute2 (4.14 to 6.15) print.

The first three as JSON with -j and as text, the last as JSON alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

_Item = TypeVar("_Item")
_Entry = Mapping[str, Any]
# What is JSON; "[root@node1 ~]#" is none.
_JSON = re.compile(r"\s*(?:\[\s*[\]{]|\{)")
_DEVICE = re.compile(r"\s*(?P<ifindex>[0-9]{1,10}): (?P<ifname>[^\s:/]+):(?:\s(?P<rest>.*))?")
# "link mlx5_0/1 state …", and before iproute2 4.20 "1/1: mlx5_0/1: state …".
_LINK = re.compile(r"\s*(?:link\s+|(?P<ifindex>[0-9]{1,10})/[0-9]{1,10}: )(?P<ifname>[^\s:/]+/[0-9]{1,10}):?(?:\s(?P<rest>.*))?")
_NUMBER = re.compile(r"[0-9]{1,20}")
_GUID = re.compile(r"[0-9a-f]{4}(?::[0-9a-f]{4}){3}")
_STATE = re.compile(r"[A-Z_]+")
_DEVICE_KEYS = frozenset({"node_type", "protocol", "fw", "node_guid", "sys_image_guid", "type", "parent", "adaptive-moderation"})
_LINK_KEYS = frozenset({"subnet_prefix", "lid", "sm_lid", "lmc", "state", "physical_state", "netdev", "netdev_index"})
_NO_COUNTERS = frozenset({"ifindex", "ifname", "port"})


@dataclass(frozen=True)
class RdmaDevice:
    """One device. node_type: "ca" | "rnic" | …; GUIDs as sysfs has them ("1c34:da03:0007:7950").

    type and parent are those of a device made by `rdma dev add` ("smi" of "mlx5_0").
    """

    name: str
    ifindex: int | None
    node_type: str | None
    protocol: str | None
    firmware: str | None
    node_guid: str | None
    sys_image_guid: str | None
    type: str | None
    parent: str | None


@dataclass(frozen=True)
class RdmaLink:
    """One port. state: "ACTIVE" | "INIT" | "DOWN" | …; physical_state: "LINK_UP" | "DISABLED" | "POLLING" | …

    ifindex is the number of the device, netdev_index that of the interface netdev. subnet_prefix and LIDs: InfiniBand alone.
    """

    device: str
    port: int
    ifindex: int | None
    state: str | None
    physical_state: str | None
    netdev: str | None
    netdev_index: int | None
    subnet_prefix: str | None
    lid: int | None
    sm_lid: int | None
    lmc: int | None


@dataclass(frozen=True)
class RdmaStatistic:
    """The hardware counters of one port, by the names of its driver."""

    device: str
    port: int
    counters: dict[str, int]


@dataclass(frozen=True)
class RdmaQp:
    """One queue pair. port: None until the queue pair has one, which means any port of the device.

    pid: the process that has made it; None if the kernel has, or if that process has ended. owner: the name of the process, or of
    the kernel's module ("ib_core"); None if the tool does not know it.
    """

    device: str
    port: int | None
    number: int
    pid: int | None
    owner: str | None


def parse_rdma_dev(text: str) -> list[RdmaDevice]:
    """`rdma [-j] dev`. Raises ParseError, quoting the text, for anything else and for what was cut off."""
    entries = _entries("rdma dev", text, _DEVICE, lambda words: words[0] in _DEVICE_KEYS)
    return _each("rdma dev", [_built("rdma dev", entry, _device) for entry in entries], lambda item: item.name)


def parse_rdma_link(text: str) -> list[RdmaLink]:
    """`rdma [-j] link`. Raises ParseError, quoting the text, for anything else and for what was cut off."""
    entries = _entries("rdma link", text, _LINK, lambda words: words[0] in _LINK_KEYS)
    return _each("rdma link", [_built("rdma link", entry, _link) for entry in entries], lambda item: (item.device, item.port))


def parse_rdma_statistic(text: str) -> list[RdmaStatistic]:
    """`rdma [-j] statistic`. Raises ParseError, quoting the text, for anything else and for what was cut off."""
    entries = _entries("rdma statistic", text, _LINK, lambda words: len(words) > 1 and _NUMBER.fullmatch(words[1]) is not None)
    items = [_built("rdma statistic", entry, _statistic) for entry in entries]
    return _each("rdma statistic", items, lambda item: (item.device, item.port))


def parse_rdma_qps(text: str) -> list[RdmaQp]:
    """`rdma -j resource show qp`. Raises ParseError, quoting the text, for anything else and for what was cut off."""
    command = "rdma resource show qp"
    if not _JSON.match(text) and text.split() not in (["[]"], ["[", "]"]):
        raise ParseError(f"not the JSON of `{command}`: {text[:200]!r}")
    return [_built(command, entry, _qp) for entry in _json_entries(command, text)]


def _each(command: str, items: list[_Item], key: Callable[[_Item], object]) -> list[_Item]:
    """Each item once: a text of several runs may have one again."""
    unique: dict[object, _Item] = {}
    for item in items:
        if unique.setdefault(key(item), item) != item:
            raise ParseError(f"`{command}` says two different things of {key(item)!r}")
    return list(unique.values())


def _built(command: str, entry: _Entry, build: Callable[[_Entry], _Item]) -> _Item:
    try:
        return build(entry)
    except (KeyError, TypeError, ValueError) as exc:
        raise ParseError(f"not an entry of `{command}`: {dict(entry)!r:.200}") from exc


def _entries(command: str, text: str, start: re.Pattern[str], goes_on: Callable[[list[str]], bool]) -> list[_Entry]:
    """What the tool says of each device or port, as a mapping of its words."""
    if _JSON.match(text):
        return _json_entries(command, text)
    entries: list[tuple[_Entry, list[str]]] = []
    is_open = False
    for line in text.splitlines():
        match, words = start.fullmatch(line.rstrip()), line.split()
        if match:
            entries.append(({"ifname": match["ifname"], "ifindex": match["ifindex"]}, (match["rest"] or "").split()))
            is_open = True
        elif is_open and words and (len(entries[-1][1]) % 2 or goes_on(words)):
            entries[-1][1].extend(words)
        else:
            # A blank line may stand between a word and its value, where a mail client has wrapped the line.
            is_open = is_open and not words and len(entries[-1][1]) % 2 == 1
    if not entries:
        raise ParseError(f"not the output of `{command}`: {text[:200]!r}")
    for entry, words in entries:
        if len(words) % 2:
            raise ParseError(f"`{command}` was cut off: {entry['ifname']} {' '.join(words)[-200:]}")
    return [{**dict(zip(words[::2], words[1::2])), **entry} for entry, words in entries]


def _json_entries(command: str, text: str) -> list[_Entry]:
    """The objects of the list; the empty ones stand for what iproute2 has filtered out."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ParseError(f"not the JSON of `{command}`: {text[-200:]!r}") from exc
    entries = entries if isinstance(entries, list) else [entries]
    if not all(isinstance(entry, dict) for entry in entries):
        raise ParseError(f"not the JSON of `{command}`: {text[:200]!r}")
    return [entry for entry in entries if entry]


def _device(entry: _Entry) -> RdmaDevice:
    return RdmaDevice(
        name=_port(entry)[0],
        ifindex=_number(entry, "ifindex"),
        node_type=_text(entry, "node_type"),
        protocol=_text(entry, "protocol"),
        firmware=_text(entry, "fw"),
        node_guid=_required(entry, "node_guid", _GUID),
        sys_image_guid=_required(entry, "sys_image_guid", _GUID) if "sys_image_guid" in entry else None,
        type=_text(entry, "type"),
        parent=_text(entry, "parent"),
    )


def _link(entry: _Entry) -> RdmaLink:
    device, port = _port(entry)
    if port is None:
        raise ValueError("a link without a port")
    return RdmaLink(
        device=device,
        port=port,
        ifindex=_number(entry, "ifindex"),
        state=_required(entry, "state", _STATE),
        physical_state=_text(entry, "physical_state"),
        netdev=_text(entry, "netdev"),
        netdev_index=_number(entry, "netdev_index"),
        subnet_prefix=_text(entry, "subnet_prefix"),
        lid=_number(entry, "lid"),
        sm_lid=_number(entry, "sm_lid"),
        lmc=_number(entry, "lmc"),
    )


def _statistic(entry: _Entry) -> RdmaStatistic:
    device, port = _port(entry)
    if port is None:
        raise ValueError("counters without a port")
    counters = {name: _number(entry, name) for name in entry if name not in _NO_COUNTERS}
    return RdmaStatistic(device, port, {name: value for name, value in counters.items() if value is not None})


def _qp(entry: _Entry) -> RdmaQp:
    device, port = _port(entry)
    number = _number(entry, "lqpn")
    if number is None:
        raise ValueError("a queue pair without a number")
    return RdmaQp(device, port, number, _number(entry, "pid"), _text(entry, "comm"))


def _port(entry: _Entry) -> tuple[str, int | None]:
    """ "mlx5_0" and 1, of "ifname" and "port" or, before iproute2 4.20 and as text, of "mlx5_0/1" alone."""
    name, slash, port = _required(entry, "ifname", None).partition("/")
    if "port" in entry:
        return name, _number(entry, "port")
    return name, _number({"port": port}, "port") if slash else None


def _required(entry: _Entry, key: str, form: re.Pattern[str] | None) -> str:
    value = entry[key]
    if not isinstance(value, str) or not value or (form is not None and form.fullmatch(value) is None):
        raise ValueError(f"not a {key}: {value!r:.200}")
    return value


def _text(entry: _Entry, key: str) -> str | None:
    return _required(entry, key, None) if entry.get(key) not in (None, "") else None


def _number(entry: _Entry, key: str) -> int | None:
    value = entry.get(key)
    number = int(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
    if number is None or (isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**64):
        return number
    raise ValueError(f"not a number of {key}: {value!r:.200}")
