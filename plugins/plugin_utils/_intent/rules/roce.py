# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conflicts between the keys of rdma_roce, or between them and NCCL's settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, Rail, RoceIntent
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile

Problem = tuple[str, str, str]
"""(key's path, what is wrong with it, what is expected)"""
#: Keys without effect unless congestion is marked.
OF_ECN = ("cnp_dscp", "cnp_priority", "dcqcn")
#: Variables that would set the same value a second time, and their neutral values.
TRAFFIC_CLASSES = {"NCCL_IB_TC": None, "UCX_IB_TRAFFIC_CLASS": "auto"}
ROCE_VERSION = "NCCL_IB_ROCE_VERSION_NUM"
RANGE = re.compile(r"(.*\D)([0-9]{1,4})-([0-9]{1,4})")
NVUE_PORT = re.compile(r"swp[0-9]{1,4}(s[0-9]{1,2})?(-[0-9]{1,4})?")


def roce_problems(roce: Mapping[str, Any], given: Mapping[Any, Any]) -> Iterator[Problem]:
    """Yield the problems of a section that is valid by itself, by paths below rdma_roce. given: the section in the inventory."""
    yield from _priorities(roce)
    if not roce["pfc"] and not roce["ecn"]:
        yield "ecn", "is false, like pfc: nothing would protect RDMA from packet loss", "ecn: true or pfc: true"
    if not roce["ecn"]:
        for key in OF_ECN:
            if given.get(key) not in (None, {}):
                message = "is given, but ecn is false: packets are not marked, and no congestion notification is sent"
                yield key, message, "nothing, or ecn: true"
    yield from _switches(roce["switches"])


def _priorities(roce: Mapping[str, Any]) -> Iterator[Problem]:
    for key in ("priority", "cnp_priority"):
        if roce[key] == 0:
            yield key, "is 0, the priority of all unmarked traffic", "a priority from 1 to 7"
    same = roce["cnp_priority"] == roce["priority"]
    if roce["dscp"] == roce["cnp_dscp"] and not same:
        message = f"is {roce['dscp']}, like dscp, but with another priority: a DSCP has only one"
        yield "cnp_dscp", message, "a different DSCP, or the same priority"
    if roce["pfc"] and same:
        message = f"is {roce['priority']}, like priority, which pfc makes lossless: congestion notifications would be paused with RDMA"
        yield "cnp_priority", message, "another priority, or pfc: false"


def _switches(switches: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name, switch in switches.items():
        first = seen.setdefault(name.lower(), name)
        if first != name:
            yield f"switches.{name}", f"is given twice: {first} has the same name", "a name once"
        yield from _ports(f"switches.{name}.ports", switch)


def _ports(where: str, switch: Mapping[str, Any]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for index, ports in enumerate(switch["ports"]):
        place = f"{where}[{index}]"
        if switch["syntax"] == "nvue" and NVUE_PORT.fullmatch(ports) is None:
            yield place, f"is {ports}, which is not a Cumulus Linux port", "swp1, swp1-32 or swp33s0-3"
            continue
        names = expand(ports)
        if not names:
            yield place, f"is {ports}, a descending range", "an ascending range"
        twice = [port for port in names if port in seen]
        if twice:
            yield place, f"is {ports}: {', '.join(twice[:4])} is also in {seen[twice[0]]}", "each port once"
        seen.update(dict.fromkeys(names, ports))


def expand(ports: str) -> list[str]:
    """Return the ports of a range: "swp33s0-1" → ["swp33s0", "swp33s1"]; a single port for other text; [] for an empty range."""
    parts = RANGE.fullmatch(ports)
    if parts is None:
        return [ports]
    return [f"{parts[1]}{number}" for number in range(int(parts[2]), int(parts[3]) + 1)]


def rail_problems(rails: Sequence[Rail], roce: RoceIntent) -> Iterator[Problem]:
    """Yield switches whose ports carry less than a RoCE rail sends, by paths below rdma_roce."""
    sizes = {rail["mtu_bytes"]: rail["name"] for rail in reversed(rails) if rail["link_layer"] == "roce" and rail["mtu_bytes"]}
    largest = max(sizes, default=0)
    for name, switch in roce["switches"].items():
        if switch["mtu_bytes"] < largest:
            message = f"is {switch['mtu_bytes']}, but {sizes[largest]} sends {largest}: the switch would drop these packets"
            yield f"switches.{name}.mtu_bytes", message, f"at least {largest}"


def nccl_problems(intent: Intent) -> Iterator[Problem]:
    """Yield variables of rdma_nccl that conflict with rdma_roce, by name; none if no compute rail is RoCE."""
    profile = roce_profile(intent)
    if profile is None or not any(rail["role"] == "compute" and rail["link_layer"] == "roce" for rail in intent["rails"]):
        return
    wanted, variables = profile["traffic_class"], intent["nccl"]["variables"]
    for name, neutral in TRAFFIC_CLASSES.items():
        if name in variables and variables[name] != neutral and _integer(variables[name]) != wanted:
            message = f"is {variables[name]}, but rdma_roce requires {wanted} (DSCP {profile['dscp']}, {_ecn(profile)})"
            yield name, message, f"nothing, or {wanted}; or change rdma_roce"
    if ROCE_VERSION in variables and _integer(variables[ROCE_VERSION]) != 2:
        message = f"is {variables[ROCE_VERSION]}, but rdma_roce marks by DSCP, which only RoCE v2 supports"
        yield ROCE_VERSION, message, "nothing, or 2"


def _ecn(profile: Mapping[str, Any]) -> str:
    return "ECN on" if profile["ecn"] else "ECN off"


def _integer(value: str | int) -> int | None:
    """Return a number as NCCL and UCX read it, also in hexadecimal."""
    try:
        return int(str(value), 0)
    except ValueError:
        return None
