# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Validate a host's facts where they enter the control node: every value must have its type and bounds, else the facts are rejected."""

from __future__ import annotations

import dataclasses
import ipaddress
import math
import re
import traceback
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import SCHEMA, Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.firewall import Firewall
from ansible_collections.rdma.cluster.plugins.module_utils._net.managers import BACKENDS
from ansible_collections.rdma.cluster.plugins.module_utils._net.netdev import Interface, Netdev
from ansible_collections.rdma.cluster.plugins.module_utils._net.planes import RoutedNetwork
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciFunction, PciHop, PciLink
from ansible_collections.rdma.cluster.plugins.module_utils._qos.state import QosState
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Gid
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare

declare(
    {
        "host.facts": Check(
            "every",
            "a host's facts: schema, types and bounds, and that they do not set variables of this collection",
            "the host's facts",
            "find the program that answers on the host",
            fixed=True,
            sources=(reads.RUN,),
        ),
    }
)

CHECK = "host.facts"
EXPECTED = "facts in the form that this collection's reader produces"
#: The kernel's largest counters have 64 bits.
LARGEST_INTEGER = 2**64
LONGEST_TEXT, LONGEST_NAME = 2**20, 4096
#: Larger lists and dictionaries are rejected, and so is a tree with more values.
MOST_ENTRIES, MOST_VALUES = 50_000, 500_000
SHOWN = 60


class FactsError(ValueError):
    """Facts were rejected. The message has the place, the expected and the actual value."""


def _ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Interface(text)
    except ValueError:
        return False
    return True


def _ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Interface(text)
    except ValueError:
        return False
    return True


def _gid(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


_PCI = (_matches(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"), "a PCI address")
_IPV4 = (_ipv4, "an IPv4 address")
_IPV6 = (_ipv6, "an IPv6 address")
#: Texts that the fleet's comparisons parse: (class, field) → whether a text has the form, and the form in words.
FORMS: dict[tuple[type, str], tuple[Callable[[str], bool], str]] = {
    (PciFunction, "address"): _PCI,
    (PciHop, "address"): _PCI,
    (PciLink, "address"): _PCI,
    (Netdev, "ipv4"): _IPV4,
    (Netdev, "ipv6"): _IPV6,
    (Netdev, "dad_failed"): _IPV6,
    (Interface, "ipv4"): _IPV4,
    (Interface, "ipv6"): _IPV6,
    (RoutedNetwork, "network"): _IPV4,
    (Gid, "gid"): (_gid, "a GID"),
    (Gid, "ipv4"): _IPV4,
    (Session, "address"): (_address, "an IP address"),
    (Firewall, "opened"): (_matches(r"\*[46]?|[!-~]{1,64} [0-9a-f.:/]{1,48} (tcp|udp|icmp)"), "a rule of ours"),
    (Facts, "network_backend"): (_matches("|".join(BACKENDS)), f"one of {', '.join(BACKENDS)}"),
}


@dataclasses.dataclass(frozen=True)
class _Shape:
    """A dictionary without a dataclass: its keys and their types. optional: keys that may be missing."""

    keys: Mapping[str, Any]
    optional: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class _Names:
    """A dictionary with free names: the shape of each value, which may be None."""

    each: _Shape


_HINTS = typing.get_type_hints(QosState)
_FILE = _Shape(
    {"sha256": str, "mode": int | None, "owner": str | None, "block": str | None, "others": dict[str, str] | None},
    frozenset({"block", "others"}),
)
_SETTING = _Shape({"current": str | None, "next_boot": str | None, "default": str | None, "read_only": bool | None})
_CARD = _Shape({"tool": str | None, "settings": _Names(_SETTING), "error": str | None})
_QOS = _Shape({**_HINTS, "pause": dict[str, bool | None] | None}, frozenset({"pause"}))
#: Parts that Facts declares as dict[str, dict[str, Any]]: the shape of each value.
PARTS: Mapping[str, _Shape] = {"qos": _QOS, "files": _FILE, "firmware": _CARD}


@cache
def fields_of(cls: type) -> tuple[tuple[str, Any], ...]:
    """Return the names of a dataclass's fields and their types."""
    hints = typing.get_type_hints(cls)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(cls))


def admitted(tree: Any) -> dict[str, Any]:
    """Return a copy of a host's tree of to_dict, without keys that no reader produces.

    Raises FactsError for another schema, and for the first value that is missing, of another type or out of bounds.
    """
    _sized(tree, Mapping, "a dictionary", "")
    schema = tree.get("schema")
    if isinstance(schema, bool) or schema != SCHEMA:
        raise FactsError(f"schema: expected {SCHEMA}, got {_shown(schema)}")
    return dict(_Door().value(tree, Facts, ""))


def facts_finding(stage: str, host: str, problem: str) -> Finding:
    """Return the finding on a host whose facts are rejected or cannot be used. problem: the place and the fault."""
    remedy = (
        f"1. Check {host}: a hardware fault, another Python, or a changed file can produce such facts. "
        f"2. Fix {host}, or exclude it with `--limit '!{host}'`. 3. Run the stage again."
    )
    return Finding(stage, CHECK, host, "facts", UNKNOWN, problem, EXPECTED, remedy)


def place_of(error: BaseException) -> str:
    """Return an exception in words: its type, its message, and the file and line of this collection that raised it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/plugins/" in frame.filename]
    where = f" at {frames[-1].filename.rpartition('/plugins/')[2]}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}: {_shown(str(error))}"


class _Door:
    """Compares a tree with type hints and copies it."""

    def __init__(self) -> None:
        self._values = 0

    def value(self, value: Any, hint: Any, where: str) -> Any:
        """Return the value if it has this type. Raises FactsError."""
        self._values += 1
        if self._values > MOST_VALUES:
            raise FactsError(f"more than {MOST_VALUES} values")
        if isinstance(hint, _Shape):
            return self._keys(value, hint.keys.items(), where, hint.optional)
        if isinstance(hint, _Names):
            return self._entries(value, str, hint.each, where, nullable=True)
        if dataclasses.is_dataclass(hint):
            return self._dataclass(value, hint, where)
        return self._typed(value, hint, where)

    def _typed(self, value: Any, hint: Any, where: str) -> Any:
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (types.UnionType, typing.Union):
            known = next(each for each in arguments if each is not types.NoneType)
            return None if value is None else self.value(value, known, where)
        if origin is list:
            _sized(value, list, "a list", where)
            return [self.value(each, arguments[0], f"{where}[{index}]") for index, each in enumerate(value)]
        if origin is dict:
            return self._entries(value, arguments[0], PARTS.get(where.removeprefix("."), arguments[1]), where)
        _scalar(value, hint, where)
        return value

    def _entries(self, value: Any, of_names: type, each: Any, where: str, *, nullable: bool = False) -> dict[Any, Any]:
        _sized(value, Mapping, "a dictionary", where)
        return {
            _name(name, of_names, where): None if nullable and item is None else self.value(item, each, f"{where}.{name}")
            for name, item in value.items()
        }

    def _dataclass(self, value: Any, cls: Any, where: str) -> dict[str, Any]:
        kept = self._keys(value, fields_of(cls), where)
        for name in kept:
            form = FORMS.get((cls, name))
            if form is not None:
                _form(kept[name], form, f"{where}.{name}")
        return kept

    def _keys(self, value: Any, keys: Iterable[tuple[str, Any]], where: str, optional: Collection[str] = ()) -> dict[str, Any]:
        _sized(value, Mapping, "a dictionary", where)
        kept = {}
        for name, hint in keys:
            if name in value:
                kept[name] = self.value(value[name], hint, f"{where}.{name}")
            elif name not in optional:
                raise FactsError(f"{_place(f'{where}.{name}')}: missing")
        return kept


WORDS = {str: "text", int: "an integer", float: "a number", bool: "true or false"}


def _scalar(value: Any, hint: Any, where: str) -> None:
    types_of = (int, float) if hint is float else (hint,)
    if not isinstance(value, types_of) or (isinstance(value, bool) and hint is not bool):
        raise FactsError(f"{_place(where)}: expected {WORDS[hint]}, got {_shown(value)}")
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise FactsError(f"{_place(where)}: expected at most {LONGEST_TEXT} characters, got {len(value)}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise FactsError(f"{_place(where)}: expected a finite number, got {value}")
    elif not -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        raise FactsError(f"{_place(where)}: expected a number of 64 bits")


def _form(value: Any, form: tuple[Callable[[str], bool], str], where: str) -> None:
    has_form, words = form
    for each in value if isinstance(value, list) else [value]:
        if each is not None and not has_form(each):
            raise FactsError(f"{_place(where)}: expected {words}, got {_shown(each)}")


def _sized(value: Any, kind: Any, words: str, where: str) -> None:
    if not isinstance(value, kind):
        raise FactsError(f"{_place(where)}: expected {words}, got {_shown(value)}")
    if len(value) > MOST_ENTRIES:
        raise FactsError(f"{_place(where)}: expected at most {MOST_ENTRIES} entries, got {len(value)}")


def _name(name: Any, of_names: type, where: str) -> Any:
    """Return the name of an entry. JSON converts integers to text, and they stay text."""
    if not isinstance(name, of_names if isinstance(name, int) else str) or (isinstance(name, str) and len(name) > LONGEST_NAME):
        raise FactsError(f"{_place(where)}: expected names of at most {LONGEST_NAME} characters, got {_shown(name)}")
    if of_names is int and isinstance(name, str) and not re.fullmatch(r"[0-9]{1,9}", name):
        raise FactsError(f"{_place(where)}: expected integers as names, got {_shown(name)}")
    return name


def _place(where: str) -> str:
    """Return a path in the tree, printable and short."""
    text = where.removeprefix(".") or "facts"
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= 2 * SHOWN else f"{text[:SHOWN]}…{text[-SHOWN:]}"


def _shown(value: Any) -> str:
    if isinstance(value, (Mapping, list, tuple)):
        return f"a {'dictionary' if isinstance(value, Mapping) else 'list'} of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST_INTEGER:
        return "an integer of more than 64 bits"
    text = ascii(value[: 2 * SHOWN] if isinstance(value, str) else value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
