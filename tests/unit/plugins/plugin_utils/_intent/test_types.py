# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The types of the normalized intent are those of its schema, key by key."""

from __future__ import annotations

import types
import typing
from datetime import date
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import Key
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import SECTIONS


def parts(hint: Any) -> tuple[Any, ...]:
    """The types of a union, one type alone as a tuple."""
    return typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)


def differences(hint: Any, key: Key, path: str) -> list[str]:
    """Where a type says something else than a key."""
    answer = parts(hint)
    is_open = (key.default is None and not key.required and not key.each and (not key.keys or key.one_of)) or key.optional
    kinds = {typing.get_origin(each) or (dict if typing.is_typeddict(each) else each) for each in answer}
    requested = {str if kind is date else kind for kind in key.types} | ({types.NoneType} if is_open else set())
    # An integer is a number, too.
    found = [] if kinds in (requested, requested - {int}) else [f"{path}: {kinds}, not {requested}"]
    for each in answer:
        if typing.is_typeddict(each):
            hints = {name: value for name, value in typing.get_type_hints(each).items() if name in each.__required_keys__}
            if hints.keys() != (key.keys or {}).keys():
                found.append(f"{path}: keys {sorted(hints.keys() ^ (key.keys or {}).keys())}")
                continue
            for name, inner in (key.keys or {}).items():
                found += differences(hints[name], inner, f"{path}.{name}")
        elif typing.get_origin(each) in (list, dict) and key.each is not None and len(key.each.types) == 1:
            element = typing.get_args(each)[-1]
            is_plain = not typing.is_typeddict(element) and key.each.types not in ((dict,), (list,))
            found += differences(element | None if is_plain else element, key.each, f"{path}[]")
    return found


@pytest.mark.parametrize("name", SECTIONS)
def test_each_section_has_the_types_of_its_schema(name: str) -> None:
    hints = typing.get_type_hints(Intent)
    assert differences(hints[name.removeprefix("rdma_")], SECTIONS[name].key, name) == []


def test_there_is_no_other_section() -> None:
    assert {f"rdma_{name}" for name in Intent.__required_keys__} == set(SECTIONS)


def test_another_type_is_seen() -> None:
    hints = typing.get_type_hints(Intent)
    assert differences(hints["pairs"], SECTIONS["rdma_gate"].key, "rdma_gate") != []
    assert differences(int, SECTIONS["rdma_rails"].key.each.keys["name"], "name") != []  # type: ignore[union-attr,index]
