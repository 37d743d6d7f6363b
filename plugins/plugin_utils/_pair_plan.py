# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a sweep: one document, the same for every host, made from intent and facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._pair_runner import PERFTEST_OVERHEAD_SECONDS
from ansible_collections.rdma.cluster.plugins.module_utils._rails import ResolvedRail, rail_ip, resolve, rocev2_gid_index

RENDEZVOUS_PORT = 18500
PERFTEST_PORT = 18515
#: A late host is not a dead one: what Ansible may need to start the last of the hosts after the first.
START_SECONDS = 60
START_SECONDS_PER_HOST = 5


def make_plan(sweep: str, intents: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """The plan that the pair runner reads.

    intents: host → normalised intent; facts: host → digest. Hosts in the order given; a rail that a host does not have,
    or whose device or GID was not found there, has no endpoint of that host.
    """
    hosts = list(intents)
    pairs = intents[hosts[0]]["pairs"]
    rails: dict[str, dict[str, Any]] = {}
    for host in hosts:
        for rail in resolve(intents[host]["rails"], facts[host]):
            endpoint = _endpoint(rail, facts[host])
            rails.setdefault(rail.name, {})
            if endpoint is not None:
                rails[rail.name][host] = endpoint
    return {
        "schema": 1,
        "sweep": sweep,
        "rendezvous_port": RENDEZVOUS_PORT,
        "start_deadline_seconds": START_SECONDS + START_SECONDS_PER_HOST * len(hosts),
        "test": {
            "command": pairs["command"],
            "size_bytes": pairs["size_bytes"],
            "queue_pairs": pairs["queue_pairs"],
            "duration_seconds": pairs["duration_seconds"],
            "iterations": pairs["iterations"],
            "deadline_seconds": max(pairs["deadline_seconds"], pairs["duration_seconds"] + PERFTEST_OVERHEAD_SECONDS),
            "qp_timeout": pairs["qp_timeout"],
            "mtu_bytes": None,
            "traffic_class": None,
            "port": PERFTEST_PORT,
        },
        "hosts": hosts,
        "rails": [{"name": name, "endpoints": endpoints} for name, endpoints in rails.items()],
    }


def runtime_max_seconds(plan: Mapping[str, Any]) -> int:
    """How long the sweep may take at the most before systemd ends it."""
    rounds = len(plan["hosts"])
    return int(plan["start_deadline_seconds"] + rounds * plan["test"]["deadline_seconds"])


def _endpoint(rail: ResolvedRail, facts: Mapping[str, Any]) -> dict[str, Any] | None:
    if rail.device is None or rail.port is None or not rail.rail["address"]:
        return None
    address = rail_ip(rail.rail)
    device = facts["devices"][rail.device]
    index = rocev2_gid_index(device["ports"][rail.port], address)
    if index is None:
        return None
    numa_node = device["numa_node"]
    if numa_node is None and rail.netdev is not None:
        numa_node = facts["netdevs"][rail.netdev].get("numa_node")
    return {"address": address, "device": rail.device, "port": int(rail.port), "gid_index": index, "numa_node": numa_node}
