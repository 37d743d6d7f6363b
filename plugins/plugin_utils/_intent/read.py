# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the intent from the inventory, by the closed schema of `schema/table.py`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import SHOWN, hint, without_passwords
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import Form, Key
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import KEY, TYPE, VALUE, IntentError, IntentProblem, where_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.common import Rules
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import OURS, OURS_PREFIX, RUN, SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._machines.presets import with_preset

TYPE_WORDS = {str: "a string", int: "an integer", float: "a number", bool: "true or false", dict: "a dictionary", list: "a list"}
#: The texts for truth values in `-e name=value`, as Ansible reads them.
TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def normalize(variables: Mapping[str, Any]) -> Intent:
    """Return the normalized intent of one host, complete with defaults: {"rails": [...], "fabric": {...}, "driver": {...}, ...}.

    variables: the host's variables whose names begin with rdma_, templated. The result has a key for each section of the schema. Raises
    IntentError with every problem found.
    """
    variables = with_preset(variables)
    reader = _Reader()
    reader.top_level(variables)
    reader.run(variables)
    result: Any = {name.removeprefix("rdma_"): reader.value(name, variables, name, section.key) for name, section in SECTIONS.items()}
    intent: Intent = result
    Rules(intent, variables, reader.problems).check()
    if reader.problems:
        raise IntentError(reader.problems)
    return intent


def read_sections(variables: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return sections of the intent by the schema alone, by their variables: {"rdma_fabric": {...}, "rdma_rails": [...]}.

    The rules between values are not checked, and rails may be missing: a plan is made before the intent is complete. Raises IntentError
    with every problem found.
    """
    variables = with_preset(variables)
    reader = _Reader()
    found = {
        name: [] if name == "rdma_rails" and variables.get(name) is None else reader.value(name, variables, name, SECTIONS[name].key)
        for name in names
    }
    if reader.problems:
        raise IntentError(reader.problems)
    return found


def read_variable(variables: Mapping[str, Any], name: str, key: Key) -> Any:
    """Return the value of a variable that is not part of the intent, by its key and complete with defaults.

    Raises IntentError with every problem found.
    """
    reader = _Reader()
    found = reader.value(name, variables, name, key)
    if reader.problems:
        raise IntentError(reader.problems, f"{name} cannot be used")
    return found


class _Reader:
    """Reads values by the keys of the schema, and collects problems."""

    def __init__(self) -> None:
        self.problems: list[IntentProblem] = []

    def wrong(self, where: str, expected: str, value: Any, check: str, origin: str) -> None:
        seen = _shown(value)
        self.problems.append(IntentProblem(where, f"must be {expected}; got {seen}", check, expected, seen, origin))

    def top_level(self, variables: Mapping[str, Any]) -> None:
        """Report unknown names that begin with rdma_."""
        known = (*SECTIONS, *RUN)
        for name in variables:
            text = str(name)
            if text.startswith("rdma_") and text not in (*known, *OURS) and not text.startswith(OURS_PREFIX):
                where = text if text.isprintable() else repr(text)
                words = hint(text, known, "variables")
                self.problems.append(
                    IntentProblem(where, f"is not a variable of this collection: {words}", KEY, words, "unknown", _origin(variables, name))
                )

    def run(self, variables: Mapping[str, Any]) -> None:
        """Check the variables of a run, which `-e name=value` makes text. They are not part of the intent."""
        for name, key in RUN.items():
            if name in variables:
                self.read(name, _from_text(variables[name], key), key, _origin(variables, name))

    def value(self, where: str, given: Mapping[Any, Any], name: Any, key: Key) -> Any:
        """Return the value of a key in a dictionary, or its default."""
        return self.read(where, given.get(name), key, _origin(given, name))

    def read(self, where: str, value: Any, key: Key, origin: str) -> Any:
        """Return a value by its key. For a wrong value the result is meaningless, and there is a problem."""
        if value is None:
            return self._absent(where, key, origin)
        if not isinstance(value, key.types) or (isinstance(value, bool) and bool not in key.types):
            quoted = " in quotes" if key.types == (str,) and isinstance(value, (int, float)) else ""
            self.wrong(where, _type_words(key) + quoted, value, TYPE, origin)
        elif isinstance(value, Mapping):
            value = self._dictionary(where, value, key, origin)
        elif isinstance(value, list) and key.each is not None:
            value = self._list(where, value, key, origin)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            self._number(where, value, key, origin)
        elif isinstance(value, (str, date)):
            value = self._text(where, value, key, origin)
        return value

    def _absent(self, where: str, key: Key, origin: str) -> Any:
        if key.required:
            self.problems.append(IntentProblem(where, "is missing", KEY, key.meaning, "missing", origin))
            return None
        if key.keys is not None and not (key.one_of or key.optional):
            return self._dictionary(where, {}, key, origin)
        if key.each is not None:
            return {} if key.names is not None else []
        return key.default

    def _dictionary(self, where: str, given: Mapping[Any, Any], key: Key, origin: str) -> dict[str, Any]:
        if key.names is not None and key.each is not None:
            return self._named(where, given, key.names, key.each)
        closed = key.keys or {}
        unknown = [name for name in given if name not in closed]
        for name in unknown:
            words = hint(name, closed, "keys")
            message = f"has no key {_shown(name)}: {words}"
            self.problems.append(IntentProblem(where, message, KEY, words, f"a key {_shown(name)}", _origin(given, name) or origin))
        if key.one_of:
            return self._one(where, given, closed, origin) if not unknown else {}
        return {name: self.value(f"{where}.{name}", given, name, inner) for name, inner in closed.items()}

    def _one(self, where: str, given: Mapping[Any, Any], closed: Mapping[str, Key], origin: str) -> dict[str, Any]:
        there = [name for name in closed if given.get(name) is not None]
        if len(there) != 1:
            self.wrong(where, f"one of {', '.join(closed)}", dict(given), VALUE, origin)
            return {}
        return {there[0]: self.value(f"{where}.{there[0]}", given, there[0], closed[there[0]])}

    def _named(self, where: str, given: Mapping[Any, Any], names: Form, each: Key) -> dict[str, Any]:
        result = {}
        for name in given:
            try:
                known = names.parse(name)
            except ValueError:
                self.wrong(f"a name in {where}", names.words, name, VALUE, _origin(given, name))
                continue
            if given[name] is None and each.keys is None:
                self.wrong(f"{where}.{known}", _type_words(each), None, TYPE, _origin(given, name))
            result[known] = self.value(f"{where}.{known}", given, name, each)
        return result

    def _list(self, where: str, given: Sequence[Any], key: Key, origin: str) -> list[Any]:
        if key.required and not given:
            self.wrong(where, "a list with at least one element", given, VALUE, origin)
        each = key.each or key
        result = []
        for index, element in enumerate(given):
            place = f"{where}[{index}]"
            if element is None:
                self.wrong(place, _type_words(each), None, TYPE, origin)
            result.append(self.read(place, element, each, where_of(element) or origin) if element is not None else None)
        return result

    def _number(self, where: str, value: float, key: Key, origin: str) -> None:
        if isinstance(value, float) and not math.isfinite(value):
            self.wrong(where, "a finite number", value, VALUE, origin)
        elif key.minimum is not None and value < key.minimum:
            self.wrong(where, f"at least {key.minimum}", value, VALUE, origin)
        elif key.maximum is not None and value > key.maximum:
            self.wrong(where, f"at most {key.maximum}", value, VALUE, origin)

    def _text(self, where: str, value: str | date, key: Key, origin: str) -> Any:
        if key.choices:
            if value not in key.choices:
                self.wrong(where, f"one of {', '.join(key.choices)}", value, VALUE, origin)
            return value
        if key.form is None:
            if not str(value).isprintable() or not str(value).strip():
                self.wrong(where, "one line of printable text", value, VALUE, origin)
            return value
        try:
            return key.form.parse(value)
        except ValueError:
            self.wrong(where, key.form.words, value, key.form.check, origin)
            return value


def _type_words(key: Key) -> str:
    words = [TYPE_WORDS[kind] for kind in key.types if kind in TYPE_WORDS and not (kind is int and float in key.types)]
    return " or ".join(words)


def _from_text(value: Any, key: Key) -> Any:
    """Return the value meant by `-e name=value`; other texts are unchanged."""
    if key.choices and isinstance(value, (bool, str)):
        truth = TRUTHS.get(str(value).lower())
        return value if truth is None else str(truth).lower()
    if bool in key.types and isinstance(value, str):
        return TRUTHS.get(value.lower(), value)
    if float in key.types and isinstance(value, str):
        with contextlib.suppress(ValueError):
            return float(value)
    return value


def _shown(value: Any) -> str:
    """Return a value for a message. Python cannot print an integer of thousands of digits."""
    try:
        words = repr(without_passwords(value))
    except ValueError:
        return "an integer too long to show"
    return words if len(words) <= SHOWN else f"{words[:SHOWN]}…"


def _origin(given: Mapping[Any, Any], name: Any) -> str:
    """Return the origin of a key: the place of its value, else of the key, else of the dictionary."""
    return where_of(given.get(name)) or next((where_of(key) for key in given if key == name), "") or where_of(given)
