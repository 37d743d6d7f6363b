# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's facts as the dataclasses of its readers, for checks, plans and comparisons on the control node."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._driver.stack import Stack
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import Time
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.entry import FactsError, fields_of

_Maker = Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class RunTime(Time):
    """between_seconds: the control node's clock before and after the host's was read."""

    between_seconds: list[float] | None = None


@dataclasses.dataclass(frozen=True)
class RunFacts(Facts):
    """Facts in the run folder, with the additions of the control node.

    since: the increase of counters since an earlier run. reached_at: the name or address that reaches the host.
    """

    time: RunTime | None = None
    since: dict[str, Any] | None = None
    reached_at: str | None = None


def from_dict(tree: Mapping[str, Any] | None) -> RunFacts:
    """Return the facts in a tree of the run folder, or in a part of one.

    Missing values are None; a missing list or dictionary is empty, unless its type allows None. A tree from a host goes through `admitted`
    first, which rejects values of other types.
    """
    facts: RunFacts = _maker(RunFacts)(tree)
    return facts


def stack_of(facts: Facts) -> Stack:
    """Return the driver stack of a host. Raises FactsError if it was not read, because nothing is then known of its driver."""
    if facts.stack is None:
        raise FactsError("stack: not read")
    return facts.stack


@cache
def _maker(hint: Any) -> _Maker:
    """Return a function that makes a value of a type from JSON; _same for JSON's own types."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _dataclass_maker(hint)
    if origin in (types.UnionType, typing.Union):
        known = _maker(next(each for each in arguments if each is not types.NoneType))
        return _same if known is _same else lambda value: None if value is None else known(value)
    if origin is list:
        item = _maker(arguments[0])
        return (lambda value: value or []) if item is _same else lambda value: [item(each) for each in value or ()]
    if origin is dict:
        key, item = (int if arguments[0] is int else _same), _maker(arguments[1])
        if item is not _same:
            return lambda value: {key(name): item(each) for name, each in (value or {}).items()}
        return (lambda value: value or {}) if key is _same else lambda value: {key(name): each for name, each in (value or {}).items()}
    return _same


def _same(value: Any) -> Any:
    return value


def _dataclass_maker(cls: Any) -> _Maker:
    makers = [(name, _maker(hint)) for name, hint in fields_of(cls)]

    def make(value: Any) -> Any:
        given, made = value or {}, object.__new__(cls)
        # The __init__ of a frozen dataclass takes three times as long, and a fleet has a thousand hosts.
        fields = made.__dict__
        for name, maker in makers:
            found = given.get(name)
            fields[name] = found if maker is _same else maker(found)
        return made

    return make
