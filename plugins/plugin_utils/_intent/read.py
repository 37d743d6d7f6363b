# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent: what the inventory says the cluster should be, read by the closed schema of _intent/schema/table.py."""

from __future__ import annotations

import contextlib
import ipaddress
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import SHOWN, hint, without_passwords
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.mtu import ROCE_HEADERS_BYTES, rdma_mtu_bytes
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import Form, Key
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.driver import driver_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.fabric import (
    ipoib_problems,
    partition_problems,
    plane_problems,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.nccl import nccl_rail_problems, nccl_section_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.roce import nccl_problems, rail_problems, roce_problems
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import OURS, OURS_PREFIX, RUN, SECTIONS

KEY, TYPE, VALUE, RAILS, ADDRESS = "intent.key", "intent.type", "intent.value", "intent.rails", "intent.address"
#: The sections with rules of their own, each by a method of _Rules.
RULED = (
    "rdma_fabric", "rdma_driver", "rdma_roce", "rdma_partitions", "rdma_nccl", "rdma_gate", "rdma_checks", "rdma_pairs",
    "rdma_collectives",
)  # fmt: skip
TYPE_WORDS = {str: "a string", int: "an integer", float: "a number", bool: "true or false", dict: "a dictionary", list: "a list"}
#: The texts that `-e name=value` makes of a truth value, as Ansible reads them.
TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True)
class IntentProblem:
    """One thing that is wrong. where: the variable's path ("rdma_rails[0].name"); message goes on from there; check: its id.

    expected and observed: the same for a finding; origin: "hosts.yml:12", or "" where it is not known.
    """

    where: str
    message: str
    check: str
    expected: str = ""
    observed: str = ""
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.where} {self.message}" + (f" ({self.origin})" if self.origin else "")


class IntentError(ValueError):
    """The inventory cannot be built as it stands; `problems` has every reason."""

    def __init__(self, problems: Sequence[IntentProblem]) -> None:
        super().__init__("The intent cannot be built:\n" + "\n".join(f"  - {problem}" for problem in problems))
        self.problems = list(problems)


def where_of(value: Any) -> str:
    """Where the inventory has a value or a key: "hosts.yml:12", or "" where Ansible does not tell (before 2.19, or not from a file)."""
    try:
        from ansible._internal._datatag._tags import Origin

        origin = Origin.get_tag(value)
    except (ImportError, AttributeError, TypeError):
        return ""
    if origin is None or not origin.path:
        return ""
    path = os.path.relpath(origin.path)
    path = origin.path if path.startswith("..") else path
    return f"{path}:{origin.line_num}" if origin.line_num else path


def normalise(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The normalised intent of one host, complete with defaults: {"rails": [...], "fabric": {...}, "driver": {...}, ...}.

    variables: those of the host's variables whose names begin with rdma_, templated. The result has a key for each
    section of the schema. Raises IntentError with every problem found.
    """
    reader = _Reader()
    reader.top_level(variables)
    reader.run(variables)
    result = {name.removeprefix("rdma_"): reader.value(name, variables, name, section.key) for name, section in SECTIONS.items()}
    rules = _Rules(result, variables, reader.problems)
    rules.check()
    if reader.problems:
        raise IntentError(reader.problems)
    return result


def findings(host: str, problems: Iterable[IntentProblem], stage: str = "preflight") -> list[Finding]:
    """One error for each problem of a host."""
    return [
        Finding(
            stage, problem.check, host, problem.where, ERROR, problem.observed or problem.message, problem.expected,
            f"Correct {problem.where} of {host} in {problem.origin or 'the inventory'}.",
        )
        for problem in problems
    ]  # fmt: skip


class _Reader:
    """Reads values by their keys of the schema, and collects what is wrong."""

    def __init__(self) -> None:
        self.problems: list[IntentProblem] = []

    def wrong(self, where: str, expected: str, value: Any, check: str, origin: str) -> None:
        seen = _shown(value)
        self.problems.append(IntentProblem(where, f"is {expected}; got {seen}", check, expected, seen, origin))

    def top_level(self, variables: Mapping[str, Any]) -> None:
        """Names beginning with rdma_ that nobody knows."""
        known = (*SECTIONS, *RUN)
        for name in variables:
            text = str(name)
            if text.startswith("rdma_") and text not in (*known, *OURS) and not text.startswith(OURS_PREFIX):
                where = text if text.isprintable() else repr(text)
                words = hint(text, known, "variables")
                self.problems.append(
                    IntentProblem(where, f"is no variable of this collection: {words}", KEY, words, "not known", _origin(variables, name))
                )

    def run(self, variables: Mapping[str, Any]) -> None:
        """The variables of a run, of which `-e name=value` makes texts. They are no part of the intent."""
        for name, key in RUN.items():
            if name in variables:
                self.read(name, _from_text(variables[name], key), key, _origin(variables, name))

    def value(self, where: str, given: Mapping[Any, Any], name: Any, key: Key) -> Any:
        """The value of a key in a dictionary, or its default."""
        return self.read(where, given.get(name), key, _origin(given, name))

    def read(self, where: str, value: Any, key: Key, origin: str) -> Any:
        """A value by its key. What is returned for a wrong one means nothing: there is a problem then."""
        if value is None:
            return self._absent(where, key, origin)
        if not isinstance(value, key.types) or (isinstance(value, bool) and bool not in key.types):
            self.wrong(where, _type_words(key), value, TYPE, origin)
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
            self.wrong(where, "a list of one at least", given, VALUE, origin)
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
            self.wrong(where, f"{key.minimum} at least", value, VALUE, origin)
        elif key.maximum is not None and value > key.maximum:
            self.wrong(where, f"{key.maximum} at most", value, VALUE, origin)

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


class _Rules:
    """What shows only between the values of one host. A section with a problem of its own is left out."""

    def __init__(self, intent: Mapping[str, Any], given: Mapping[str, Any], problems: list[IntentProblem]) -> None:
        self.intent, self.given, self.problems = intent, given, problems
        text = "\n".join(problem.where for problem in problems)
        self.sound = {name for name in SECTIONS if name not in text}

    def add(self, where: str, message: str, check: str, expected: str, place: Any = None) -> None:
        self.problems.append(IntentProblem(where, message, check, expected, message, where_of(place)))

    def check(self) -> None:
        if "rdma_rails" in self.sound:
            self.alike("name", RAILS)
            self.alike("nic", RAILS)
            self.rails()
            if "rdma_fabric" in self.sound:
                self.subnets()
                self.planes()
        for name in RULED:
            if name in self.sound:
                getattr(self, name.removeprefix("rdma_"))()

    def place(self, index: int, key: str) -> Any:
        """A rail's value as the inventory has it, for its origin."""
        given = self.given["rdma_rails"][index]
        return given.get(key, given)

    def alike(self, key: str, check: str) -> None:
        """Names and NICs that occur twice."""
        seen: dict[str, int] = {}
        for index, rail in enumerate(self.intent["rails"]):
            value = next(iter(rail[key].values())) if key == "nic" else rail[key]
            if value in seen:
                message = f"is {value}, and so is that of rdma_rails[{seen[value]}]"
                self.add(f"rdma_rails[{index}].{key}", message, check, "one of its own", self.place(index, key))
            seen.setdefault(value, index)

    def rails(self) -> None:
        """RoCE needs an address, and Soft-RoCE is RoCE; an address occurs once."""
        seen: dict[str, str] = {}
        for index, rail in enumerate(self.intent["rails"]):
            where = f"rdma_rails[{index}]"
            if rail["soft"] and rail["link_layer"] != "roce":
                self.add(f"{where}.soft", "is true, but Soft-RoCE is no InfiniBand", RAILS, "link_layer roce", self.place(index, "soft"))
            if rail["address"] is None:
                if rail["link_layer"] == "roce":
                    self.add(f"{where}.address", f"is missing: {rail['name']} is RoCE", ADDRESS, "an address", self.place(index, "address"))
                continue
            address = rail["address"].split("/")[0]
            if address in seen:
                message = f"is {address}, and so is that of {seen[address]}"
                self.add(f"{where}.address", message, ADDRESS, "one of its own", self.place(index, "address"))
            seen.setdefault(address, rail["name"])

    def subnets(self) -> None:
        """Two rails of a host in one subnet: then the kernel answers and sends by any of them (ARP flux)."""
        seen: dict[str, str] = {}
        for index, rail in enumerate(self.intent["rails"]):
            if rail["address"] is None or self.intent["fabric"]["shared_subnet"]:
                continue
            network = str(ipaddress.IPv4Interface(rail["address"]).network)
            if network in seen:
                message = f"is in {network}, and so is {seen[network]}; give each rail its own, or set rdma_fabric.shared_subnet"
                self.add(f"rdma_rails[{index}].address", message, ADDRESS, "a subnet of its own", self.place(index, "address"))
            seen.setdefault(network, rail["name"])

    def planes(self) -> None:
        """A rail's plane is one of the fabric's, where those are given."""
        known = self.intent["fabric"]["planes"]
        for index, rail in enumerate(self.intent["rails"]):
            if known and rail["plane"] not in known:
                words = hint(rail["plane"], known, "planes")
                message = f"is {rail['plane']}, which rdma_fabric.planes does not have: {words}"
                self.add(f"rdma_rails[{index}].plane", message, RAILS, words, self.place(index, "plane"))

    def driver(self) -> None:
        for path, message, expected in driver_problems(self.intent["driver"]):
            self.add(f"rdma_driver.{path}", message, VALUE, expected, self.given.get("rdma_driver"))

    def roce(self) -> None:
        roce = self.intent["roce"]
        if roce is None:
            return
        found = list(roce_problems(roce, self.given["rdma_roce"]))
        if "rdma_rails" in self.sound:
            found += rail_problems(self.intent)
        for path, message, expected in found:
            self.add(f"rdma_roce.{path}", message, VALUE, expected, self.given["rdma_roce"])
        if {"rdma_rails", "rdma_nccl"} <= self.sound:
            for name, message, expected in nccl_problems(self.intent):
                self.add(f"rdma_nccl.variables.{name}", message, VALUE, expected, _key(self.given["rdma_nccl"]["variables"], name))

    def fabric(self) -> None:
        stack = self.intent["driver"]["stack"] if "rdma_driver" in self.sound else None
        for path, message, expected in plane_problems(self.intent["fabric"]["planes"], stack):
            self.add(f"rdma_fabric.{path}", message, VALUE, expected, self.given.get("rdma_fabric"))

    def partitions(self) -> None:
        planes = self.intent["fabric"]["planes"] if "rdma_fabric" in self.sound else None
        for path, message, expected in partition_problems(self.intent["partitions"], planes):
            self.add(f"rdma_partitions.{path}", message, VALUE, expected, _key(self.given["rdma_partitions"], path.split(".")[0]))
        if "rdma_rails" in self.sound:
            for path, message, expected in ipoib_problems(self.intent):
                self.add(f"rdma_rails{path}", message, VALUE, expected, self.given["rdma_rails"])

    def nccl(self) -> None:
        found = list(nccl_section_problems(self.intent["nccl"]))
        if {"rdma_rails", "rdma_fabric"} <= self.sound:
            found += nccl_rail_problems(self.intent)
        for path, message, expected in found:
            self.add(f"rdma_nccl.{path}", message, VALUE, expected, _key(self.given["rdma_nccl"], path.split(".")[0]))

    def gate(self) -> None:
        gate, where = self.intent["gate"], "rdma_gate.max_failed_percent"
        if gate["policy"] == "quarantine" and gate["max_failed_percent"] is None:
            self.add(where, "is missing: the policy quarantine needs a limit", KEY, "a percentage", self.given["rdma_gate"])
        if gate["policy"] == "stop" and gate["max_failed_percent"]:
            message = f"is {gate['max_failed_percent']:g}, but the policy stop means 0; the policy with a limit is quarantine"
            self.add(where, message, VALUE, "0, or the policy quarantine", self.given["rdma_gate"])

    def checks(self) -> None:
        for name, rule in self.intent["checks"].items():
            place = _key(self.given["rdma_checks"], name)
            if name not in CHECKS:
                words = hint(name, CHECKS, "checks")
                self.add(f"rdma_checks.{name}", f"is no check of this collection: {words}", KEY, words, place)
            elif CHECKS[name].fixed:
                self.add(f"rdma_checks.{name}", "is a check that nothing can change", VALUE, "another check", place)
            elif rule["threshold"] is not None and not CHECKS[name].threshold:
                known = ", ".join(each for each, check in CHECKS.items() if check.threshold)
                self.add(
                    f"rdma_checks.{name}.threshold", "is given, but this check has none", VALUE, f"one of a check with one: {known}", place
                )
            for key in ("reason", "until"):
                if rule["silenced_by"] is not None and rule[key] is None:
                    where = f"rdma_checks.{name}.{key}"
                    self.add(where, "is missing: who silences a check says why and until when", KEY, key, self.given["rdma_checks"][name])

    def pairs(self) -> None:
        pairs = self.intent["pairs"]
        if pairs["fail_below"] > pairs["warn_below"]:
            message = f"is {pairs['fail_below']:g}, which is more than warn_below, {pairs['warn_below']:g}"
            self.add("rdma_pairs.fail_below", message, VALUE, "warn_below at most", self.given.get("rdma_pairs"))
        mtu_bytes = pairs["mtu_bytes"]
        if mtu_bytes is not None and mtu_bytes & (mtu_bytes - 1):
            place = self.given.get("rdma_pairs")
            self.add("rdma_pairs.mtu_bytes", f"is {mtu_bytes}, which no MTU of RDMA is", VALUE, "a power of two from 256 to 4096", place)
        elif mtu_bytes is not None and "rdma_rails" in self.sound:
            self.carried(mtu_bytes)

    def collectives(self) -> None:
        """Sizes of a run; one that is not given has a default."""
        given, sizes = self.given.get("rdma_collectives") or {}, self.intent["collectives"]
        if sizes["min_bytes"] <= sizes["max_bytes"]:
            return
        name, other, relation = ("min_bytes", "max_bytes", "more") if given.get("min_bytes") else ("max_bytes", "min_bytes", "less")
        default = "" if given.get(other) else " by default"
        message = f"is {sizes[name]}, which is {relation} than {other}, {sizes[other]}{default}"
        expected = f"min_bytes of {sizes['max_bytes']} at most, or max_bytes of {sizes['min_bytes']} at least"
        self.add(f"rdma_collectives.{name}", message, VALUE, expected, given.get(name))

    def carried(self, mtu_bytes: int) -> None:
        """An RDMA MTU that the interface of a RoCE rail cannot carry; Soft-RoCE has headers of its own."""
        for rail in self.intent["rails"]:
            if rail["mtu_bytes"] is None:
                # The interface keeps its MTU: network.rdma_mtu judges that.
                continue
            most = rdma_mtu_bytes(rail["mtu_bytes"])
            if rail["link_layer"] == "roce" and not rail["soft"] and (most is None or most < mtu_bytes):
                message = f"is {mtu_bytes}, and {rail['name']} has an MTU of {rail['mtu_bytes']}, which carries {most or 'no RoCE'}"
                expected = f"an MTU of {mtu_bytes + ROCE_HEADERS_BYTES} at least on each RoCE rail, or a smaller one here"
                self.add("rdma_pairs.mtu_bytes", message, VALUE, expected, self.given.get("rdma_pairs"))
                return


def _key(given: Mapping[Any, Any], name: str) -> Any:
    """A key as the inventory has it, for its origin."""
    return next((each for each in given if each == name), name)


def _type_words(key: Key) -> str:
    words = [TYPE_WORDS[kind] for kind in key.types if kind in TYPE_WORDS and not (kind is int and float in key.types)]
    return " or ".join(words)


def _from_text(value: Any, key: Key) -> Any:
    """What `-e name=value` meant; a value that is no such text stays as it is."""
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
    """A value for a message. An integer of thousands of digits has no text at all in Python."""
    try:
        words = repr(without_passwords(value))
    except ValueError:
        return "an integer too long to show"
    return words if len(words) <= SHOWN else f"{words[:SHOWN]}…"


def _origin(given: Mapping[Any, Any], name: Any) -> str:
    """Where a key stands: its value's place, or its own, or that of the dictionary."""
    return where_of(given.get(name)) or next((where_of(key) for key in given if key == name), "") or where_of(given)
