# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the link gate on P_Keys: each is in the tables of its members' ports, and in no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import port_guid
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.partitions_conf import (
    DEFAULT_KEY,
    DEFAULT_NAME,
    FULL_BIT,
    table_key,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.rail_port import RailPort, rail_ports

declare(
    {
        "link.pkey": Check(
            "link",
            "the P_Keys of each InfiniBand rail's port",
            "`ports/N/pkeys`",
            "run the link stage for the plane's subnet manager; look for a second manager; check the switch's partitions",
            sources=(reads.PKEYS,),
        ),
        "link.partitions": Check(
            "link",
            "whether the default partition connects hosts that other partitions separate",
            "the intent",
            "set `default_membership: limited`, or make 0x7fff limited in `rdma_partitions`",
            sources=(reads.INTENT,),
        ),
    }
)

STAGE = "link"
TABLE = "link.pkey"
POLICY = "link.partitions"
#: Partition → P_Key of one port, with the bit for full membership.
Keys = Mapping[str, int]


def check_pkeys(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Findings `link.pkey` of each InfiniBand rail on a plane with a planned subnet manager, and `link.partitions` of each such plane."""
    planes = {name: plane["subnet_manager"] for name, plane in intent["fabric"]["planes"].items() if plane["subnet_manager"]}
    ports = [port for port in rail_ports(STAGE, host, intent["rails"], facts) if _looked_at(port, planes)]
    return [*(_table(port, intent, planes[port.rail.rail["plane"]]) for port in ports), *_policies(host, intent, planes, ports)]


def _looked_at(port: RailPort, planes: Mapping[str, Mapping[str, Any]]) -> bool:
    rail = port.rail.rail
    return rail["link_layer"] == "infiniband" and planes.get(rail["plane"], {}).get("kind") in ("hosts", "switch")


def planned_keys(host: str, guid: str | None, intent: Intent) -> dict[str, int]:
    """The P_Keys that the intent's partitions plan for a port. guid: its port GUID."""
    found = {}
    for name, partition in intent["partitions"].items():
        membership = _membership(host, guid, partition)
        if membership is not None:
            found[name] = table_key(partition["key"], membership)
    return found


def _membership(host: str, guid: str | None, partition: Mapping[str, Any]) -> str | None:
    """The membership of a port in a partition; an entry by GUID has priority, as the last of two entries has in opensm."""
    if partition["members"] == "all":
        return str(partition["membership"])
    found = None
    for each in partition["members"]:
        member = {"host": each, "guid": each, "membership": None} if isinstance(each, str) else each
        if (member["guid"] or "").lower() == (guid or "none"):
            return member["membership"] or str(partition["membership"])
        if member["host"] == host:
            found = member["membership"] or str(partition["membership"])
    return found


def _table(port: RailPort, intent: Intent, manager: Mapping[str, Any]) -> Finding:
    planned = planned_keys(port.host, port_guid(port.port), intent)
    allowed = {**planned, **_default(intent, manager)}
    expected = _words(allowed) if allowed else "not in any partition of rdma_partitions"
    if port.not_judged:
        return port.skip(TABLE, port.not_judged, expected)
    seen = port.port.pkeys if port.port else None
    if seen is None:
        remedy = f"Run `grep . {port.sysfs}/pkeys/*` on {port.host}."
        return port.finding(TABLE, UNKNOWN, "the P_Key table was not read", expected, remedy)
    problems = list(_problems(set(seen.values()), allowed, port.host, intent, manager))
    if not problems:
        return port.finding(TABLE, OK, ", ".join(f"0x{key:04x}" for key in seen.values()) or "an empty table", expected)
    if manager["kind"] == "switch":
        remedy = f"On the switch that runs the subnet manager of plane {port.rail.rail['plane']}, set the partitions of rdma_partitions."
    else:
        first = manager["hosts"][0]
        remedy = (
            f"1. Run the link stage for {first}, which configures the partitions in its opensm. If it reports "
            "subnet_manager_partition_change_required, allow it with `-e subnet_manager_partition_change_allowed=true`. "
            f"2. On {first}, search /var/log/opensm.*.log for `Partition configuration in error`. "
            f"3. On {port.host}, run `sminfo -C {port.rail.device} -P {port.rail.port}` and look for another manager."
        )
    return port.finding(TABLE, ERROR, "; ".join(problems), expected, remedy)


def _default(intent: Intent, manager: Mapping[str, Any]) -> dict[str, int]:
    """The planned key of the default partition; {} if a switch sets it. Without default_membership: full, or unchanged."""
    if manager["kind"] == "switch" or any(each["key"] == DEFAULT_KEY for each in intent["partitions"].values()):
        return {}
    return {DEFAULT_NAME: table_key(DEFAULT_KEY, manager.get("default_membership") or "full")}


def _problems(seen: set[int], allowed: Keys, host: str, intent: Intent, manager: Mapping[str, Any]) -> Iterator[str]:
    # The master's own port is always a full member of the default partition.
    may_be_full = host in manager["hosts"]
    # Without default_membership the default partition is not changed, so it may be limited.
    may_be_limited = not manager.get("default_membership") and not any(each["key"] == DEFAULT_KEY for each in intent["partitions"].values())
    names = {partition["key"]: name for name, partition in intent["partitions"].items()}
    there = {key & ~FULL_BIT: key for key in sorted(seen)}
    for name, key in allowed.items():
        found = there.get(key & ~FULL_BIT)
        if found is None:
            yield f"not in {name} (0x{key & ~FULL_BIT:04x})"
        elif found != key and not (key & ~FULL_BIT == DEFAULT_KEY and (may_be_full if found & FULL_BIT else may_be_limited)):
            yield f"in {name} as {_kind(found)} member, planned is {_kind(key)}"
    planned = {key & ~FULL_BIT for key in allowed.values()}
    for short in sorted(set(there) - planned):
        if short in names:
            yield f"in {names[short]} (0x{short:04x}), but it is not a planned member"
        elif short != DEFAULT_KEY and manager["kind"] == "hosts":
            yield f"in 0x{short:04x}, which is not in rdma_partitions"


def _kind(key: int) -> str:
    return "full" if key & FULL_BIT else "limited"


def _words(keys: Keys) -> str:
    return ", ".join(f"0x{key:04x} ({name})" for name, key in keys.items())


def _policies(host: str, intent: Intent, planes: Mapping[str, Any], ports: list[RailPort]) -> Iterator[Finding]:
    """Finding `link.partitions` of each plane whose planned master is this host."""
    partitions = intent["partitions"]
    tenants = [name for name, each in partitions.items() if each["key"] != DEFAULT_KEY and not each["shared"]]
    named = next((each for each in partitions.values() if each["key"] == DEFAULT_KEY), None)
    for plane in dict.fromkeys(port.rail.rail["plane"] for port in ports):
        if host not in planes[plane]["hosts"][:1]:
            continue
        subject, expected = f"plane {plane}", "a default partition that does not connect tenants"
        given = planes[plane].get("default_membership")
        full = (named["membership"] == "full" and named["members"] == "all") if named else given != "limited"
        if not full:
            yield Finding(STAGE, POLICY, host, subject, OK, "its members are limited: they cannot reach each other over it", expected)
        elif not tenants:
            status = WARNING if named else OK
            yield Finding(STAGE, POLICY, host, subject, status, "all ports are full members, and no tenants are planned", expected)
        else:
            who = f"{', '.join(tenants[:4])} can reach each other over it"
            unless = "" if named or given else ", unless it was limited before: default_membership is not given"
            yield Finding(
                STAGE, POLICY, host, subject, WARNING, f"all ports are full members of it: {who}{unless}", expected,
                f"1. Set `default_membership: limited` in rdma_fabric.planes.{plane}.subnet_manager. 2. While no job runs, run the link "
                "stage with `-e subnet_manager_partition_change_allowed=true`.",
            )  # fmt: skip
