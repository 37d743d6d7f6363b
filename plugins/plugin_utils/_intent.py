# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent: what the inventory says the cluster should be. One closed, typed schema; defaults live here.

First slice: the keys that the driver, link, network and pairs stages use.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
PCI = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
#: IPv6's minimum MTU; below it an interface is of no use to anything.
MIN_MTU_BYTES = 1280


class IntentError(ValueError):
    """The inventory cannot be built as it stands; `problems` says each reason in a sentence."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("The intent cannot be built:\n" + "\n".join(f"  - {problem}" for problem in problems))
        self.problems = problems


@dataclass(frozen=True)
class Key:
    """A key of the schema. types: what a value may be; default: its value if absent, None if it may be missing."""

    types: tuple[type, ...]
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()


RAIL = {
    "name": Key((str,), required=True),
    "nic": Key((dict,), required=True),
    "link_layer": Key((str,), "roce", choices=("roce", "infiniband")),
    "rate_gbps": Key((int, float)),
    "plane": Key((str,), "default"),
    "role": Key((str,), "compute", choices=("compute", "storage")),
    "address": Key((str,)),
    "mtu_bytes": Key((int,), 9000),
    "soft": Key((bool,), False),
}
FABRIC = {
    "topology": Key((str,), "switched", choices=("switched", "mesh", "single")),
    "planes": Key((dict,), {}),
    "shared_subnet": Key((bool,), False),
}
DRIVER = {"stack": Key((str,), "inbox", choices=("inbox",))}
PAIRS = {
    "command": Key((str,), "ib_write_bw", choices=("ib_write_bw",)),
    "size_bytes": Key((int,), 65536),
    "queue_pairs": Key((int,), 1),
    "duration_seconds": Key((int,), 5),
    # Instead of a duration. For software devices: on a starved CPU perftest can count nothing within its duration.
    "iterations": Key((int,)),
    "deadline_seconds": Key((int,), 60),
    # 4.096 µs × 2^n until a queue pair sends again; perftest's own is 14. A starved CPU answers later than 67 ms.
    "qp_timeout": Key((int,)),
    "floor_gbps": Key((int, float), 0.0),
    "software_fail_below": Key((int, float), 0.25),
    "fail_below": Key((int, float), 0.80),
    "warn_below": Key((int, float), 0.95),
}
SECTIONS = {"rdma_fabric": FABRIC, "rdma_driver": DRIVER, "rdma_pairs": PAIRS}


def normalise(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The normalised intent of one host: {"rails": [...], "fabric": {...}, "driver": {...}, "pairs": {...}}.

    variables: the host's inventory variables, templated. Raises IntentError with every problem found.
    """
    problems: list[str] = []
    rails = variables.get("rdma_rails")
    if not isinstance(rails, list) or not rails:
        raise IntentError(
            ["rdma_rails is a list of this host's rails, one at least; it is " + ("empty" if rails == [] else "missing or no list")]
        )
    result: dict[str, Any] = {"rails": [_rail(f"rdma_rails[{i}]", rail, problems) for i, rail in enumerate(rails)]}
    for variable, schema in SECTIONS.items():
        result[variable.removeprefix("rdma_")] = _section(variable, variables.get(variable, {}), schema, problems)
    if not problems:
        _check_rails(result["rails"], result["fabric"], problems)
    if problems:
        raise IntentError(problems)
    return result


def _section(where: str, given: Any, schema: Mapping[str, Key], problems: list[str]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        problems.append(f"{where} is a dictionary; got {type(given).__name__}")
        return {}
    for name in given:
        if name not in schema:
            near = difflib.get_close_matches(str(name), schema, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"the keys are {', '.join(schema)}"
            problems.append(f"{where} has no key '{name}': {hint}")
    return {name: _value(f"{where}.{name}", given, name, key, problems) for name, key in schema.items()}


def _value(where: str, given: Mapping[str, Any], name: str, key: Key, problems: list[str]) -> Any:
    value = given.get(name, key.default)
    if value is None:
        if key.required:
            problems.append(f"{where} is missing")
        return None
    wrong_bool = isinstance(value, bool) and bool not in key.types
    if wrong_bool or not isinstance(value, key.types):
        problems.append(f"{where} is {' or '.join(kind.__name__ for kind in key.types)}; got {value!r}")
    elif key.choices and value not in key.choices:
        problems.append(f"{where} is one of {', '.join(key.choices)}; got '{value}'")
    return value


def _rail(where: str, given: Any, problems: list[str]) -> dict[str, Any]:
    rail = _section(where, given, RAIL, problems)
    if isinstance(rail.get("name"), str) and not NAME.fullmatch(rail["name"]):
        problems.append(f"{where}.name is letters, digits, _ and -, 32 at most, beginning with a letter; got {rail['name']!r}")
    if isinstance(rail.get("nic"), dict):
        rail["nic"] = _nic(f"{where}.nic", rail["nic"], problems)
    if isinstance(rail.get("mtu_bytes"), int) and rail["mtu_bytes"] < MIN_MTU_BYTES:
        problems.append(f"{where}.mtu_bytes is {MIN_MTU_BYTES} at least; got {rail['mtu_bytes']}")
    if isinstance(rail.get("address"), str):
        try:
            rail["address"] = str(ipaddress.IPv4Interface(rail["address"]))
        except ValueError:
            problems.append(f"{where}.address is an IPv4 address with its prefix length (192.168.100.1/24); got {rail['address']!r}")
    return rail


def _nic(where: str, nic: Mapping[str, Any], problems: list[str]) -> dict[str, str]:
    patterns = {"pci": PCI, "mac": MAC}
    if len(nic) != 1 or next(iter(nic)) not in patterns:
        problems.append(f"{where} is either pci: 0000:21:00.0 or mac: 52:54:00:12:34:56; got {dict(nic)!r}")
        return {}
    key, value = next(iter(nic.items()))
    if not isinstance(value, str) or not patterns[key].fullmatch(value):
        problems.append(f"{where}.{key} is no {'PCI address (0000:21:00.0)' if key == 'pci' else 'MAC'}; got {value!r}")
    return {key: str(value).lower()}


def _check_rails(rails: list[dict[str, Any]], fabric: Mapping[str, Any], problems: list[str]) -> None:
    """What only shows between the rails of one host."""
    for key, label in (("name", "the name"), ("nic", "the NIC"), ("address", "the address")):
        seen: dict[str, str] = {}
        for rail in rails:
            value = rail[key]
            if value is not None and str(value) in seen:
                problems.append(f"{rail['name']} and {seen[str(value)]} both have {label} {value}")
            seen[str(value)] = rail["name"]
    for rail in rails:
        if rail["link_layer"] == "roce" and rail["address"] is None:
            problems.append(f"{rail['name']} is RoCE and needs an address")
    networks: dict[str, str] = {}
    for rail in rails:
        network = str(ipaddress.IPv4Interface(rail["address"]).network) if rail["address"] else ""
        if network in networks and network and not fabric["shared_subnet"]:
            problems.append(
                f"{rail['name']} and {networks[network]} are both in {network}; give each rail its own, or set rdma_fabric.shared_subnet"
            )
        networks[network] = rail["name"]
