# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a sweep: one document, the same for every host, made from intent and facts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._net.ip_address import ip_of, is_ipv6
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import session_address
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.runner.perftest import PERFTEST_OVERHEAD_SECONDS
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import (
    ResolvedRail,
    rail_addresses,
    rail_ip,
    resolve,
    rocev2_gid_index,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import gpus_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import plan_rounds
from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.profile import roce_profile, service_level
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import NO_PARTITION, Place, partition_place

SCHEMA = 2
RENDEZVOUS_PORT = 18600
PERFTEST_PORT = 18515
#: The time that Ansible may need to start the last host after the first one: until then, a host is only late, not dead.
START_SECONDS = 60
START_SECONDS_PER_HOST = 10
#: perftest's default for latency tests, which take 1.5 seconds with it.
LATENCY_ITERATIONS = 1000
LATENCY_BYTES = 2
BANDWIDTH, LATENCY, GPU_BANDWIDTH = "bandwidth", "latency", "gpu_bandwidth"

Endpoint = dict[str, Any]
"""{"address", "ipv6", "gid_address", "device", "port", "gid_index", "pkey", "pkey_index", "numa_node", "gpu"}: the address at which
partners meet on a rail, and the values for perftest. ipv6 exists only if that is an IPv6 address: perftest (since 23.07) needs an option
for it at both ends. gid_address exists only if RDMA uses another address than the one where partners meet. pkey exists only
on InfiniBand: the 15 bits of the partition in which a port is measured; pkey_index: its index in the port's table. gpu: of gpus_of, None
if the intent requests no GPU memory, or the rail has no GPU."""


def endpoints(intent: Intent, facts: Facts) -> dict[str, Endpoint]:
    """Return the measurable rails of a host: rail → endpoint. intent: normalized. facts: of comparable().

    A rail without a device or GID has none, nor has a port that is not a full member of any partition. On InfiniBand without IP on the
    rail, partners use the address of Ansible's session if possible.
    """
    rails = resolve(intent["rails"], facts)
    gpus = gpus_of(rails, intent, facts) if intent.get("pairs", {}).get("gpu_memory") else {}
    found = ((rail.name, _endpoint(rail, facts, intent)) for rail in rails)
    return {name: {**endpoint, "gpu": gpus.get(name)} for name, endpoint in found if endpoint is not None}


def _endpoint(rail: ResolvedRail, facts: Facts, intent: Intent) -> Endpoint | None:
    if rail.device is None or rail.port is None:
        return None
    device = facts.devices[rail.device]
    port = device.ports[rail.port]
    address, of_gid, index = rail_ip(rail.rail), None, None
    place: Place | None = NO_PARTITION
    if rail.rail["link_layer"] == "roce":
        index = rocev2_gid_index(port, address)
        if index is None:
            return None
        of_gid, address = address, _meeting_address(rail)
    else:
        address = address or session_address(facts.session)
        place = partition_place(port, intent)
    if address is None or place is None:
        return None
    numa_node = device.numa_node
    if numa_node is None and rail.netdev is not None:
        numa_node = facts.netdevs[rail.netdev].numa_node
    return {
        "address": address,
        **({"ipv6": True} if is_ipv6(address) else {}),
        **({"gid_address": of_gid} if of_gid not in (None, address) else {}),
        "device": rail.device,
        "port": int(rail.port),
        "gid_index": index,
        **({} if place is NO_PARTITION else place._asdict()),
        "numa_node": numa_node,
    }


def _meeting_address(rail: ResolvedRail) -> str | None:
    """Return the address at which partners meet, which need not be that of the GID: a further IPv4 address, if there is one.

    perftest of Debian 12 (4.5) connects by IPv4 only. The data uses the GID in any case.
    """
    return next((ip_of(text) for text in rail_addresses(rail.rail) if not is_ipv6(text)), rail_ip(rail.rail))


def gid_address(endpoint: Mapping[str, Any]) -> str:
    """Return the address that RDMA uses at an endpoint."""
    return str(endpoint.get("gid_address") or endpoint["address"])


def make_plan(
    sweep: str,
    *,
    hosts: Sequence[str],
    rails: Sequence[str],
    of: Mapping[str, Mapping[str, Endpoint]],
    tests: Sequence[Mapping[str, Any]],
    schedule: Mapping[str, Any],
    forks: int = 1,
) -> dict[str, Any]:
    """Return the plan for the pair runner (schema 2). hosts: in the order used by the schedule. of: host → rail → endpoint.

    forks: the number of hosts that Ansible starts at once.
    """
    profiles: list[dict[str, Any]] = []
    columns = [_column(name, hosts, of, profiles) for name in rails]
    return {
        "schema": SCHEMA,
        "sweep": sweep,
        "rendezvous_port": RENDEZVOUS_PORT,
        "perftest_port": PERFTEST_PORT,
        "start_deadline_seconds": START_SECONDS + START_SECONDS_PER_HOST * math.ceil(len(hosts) / max(1, forks)),
        "tests": [dict(test) for test in tests],
        "hosts": list(hosts),
        "schedule": dict(schedule),
        "profiles": profiles,
        "rails": columns,
    }


def _column(rail: str, hosts: Sequence[str], of: Mapping[str, Mapping[str, Endpoint]], profiles: list[dict[str, Any]]) -> dict[str, Any]:
    addresses: list[str | None] = []
    numbers: list[int | None] = []
    for host in hosts:
        endpoint = of[host].get(rail)
        if endpoint is None:
            addresses.append(None)
            numbers.append(None)
            continue
        profile = {key: value for key, value in endpoint.items() if key not in ("address", "gid_address")}
        if profile not in profiles:
            profiles.append(profile)
        addresses.append(endpoint["address"])
        numbers.append(profiles.index(profile))
    return {"name": rail, "addresses": addresses, "profiles": numbers}


def tests_of(intent: Intent) -> list[dict[str, Any]]:
    """Return the tests of each meeting, from the intent of a host; the same for all hosts."""
    pairs = intent["pairs"]
    common = {
        "mtu_bytes": None if pairs["mtu_bytes"] is None else int(pairs["mtu_bytes"]),
        "qp_timeout": pairs["qp_timeout"],
        "traffic_class": traffic_class(intent),
        "memory": "host",
        "deadline_seconds": _deadline_seconds(pairs),
    }
    level = service_level(intent["rails"])
    common.update({} if level is None else {"service_level": level})
    kept = ("command", "size_bytes", "queue_pairs", "duration_seconds", "iterations", "bidirectional")
    tests = [{"name": BANDWIDTH, **{key: value for key, value in pairs.items() if key in kept}, **common}]
    if pairs["latency_command"] != "none":
        latency = {"command": pairs["latency_command"], "size_bytes": LATENCY_BYTES, "queue_pairs": 1, "duration_seconds": 0}
        tests.append({"name": LATENCY, **latency, "iterations": LATENCY_ITERATIONS, "bidirectional": False, **common})
    if pairs["gpu_memory"]:
        tests.append({**tests[0], "name": GPU_BANDWIDTH, "memory": "gpu"})
    return tests


def meeting(test: Mapping[str, Any], sends: int, receives: int) -> list[int]:
    """Return [server, client] of a listed meeting in which the data flows that way: in a read, the client receives."""
    return [sends, receives] if test["command"].startswith("ib_read_") else [receives, sends]


def _deadline_seconds(pairs: Mapping[str, Any]) -> float:
    """Return the time limit of a test: at least its duration and some time to start."""
    lasts_seconds = pairs["duration_seconds"] + PERFTEST_OVERHEAD_SECONDS if pairs["iterations"] is None else 0
    return float(max(pairs["deadline_seconds"], lasts_seconds))


def traffic_class(intent: Intent) -> int | None:
    """Return the traffic class for perftest, that of the RoCE profile; None if no rail is RoCE, or rdma_roce is not set."""
    profile = roce_profile(intent)
    if profile is None or all(rail["link_layer"] != "roce" for rail in intent["rails"]):
        return None
    return int(profile["traffic_class"])


def runtime_max_seconds(plan: Mapping[str, Any]) -> int:
    """Return the maximum time of the sweep, after which systemd stops it: every test of every round at its deadline."""
    each = sum(test["deadline_seconds"] for test in plan["tests"])
    return int(plan["start_deadline_seconds"] + plan_rounds(plan) * each)


def plain(plan: Mapping[str, Any]) -> bytes:
    """Return the plan's bytes, whose hash partners compare."""
    return json.dumps(plan, separators=(",", ":")).encode()


def pack(plan: Mapping[str, Any]) -> str:
    """Return the plan as sent to the hosts: the same text for each of them."""
    return base64.b64encode(gzip.compress(plain(plan), mtime=0)).decode()


def fingerprint(plan: Mapping[str, Any]) -> str:
    """Return the fingerprint of this plan, independent of its sweep."""
    return hashlib.sha256(plain({**plan, "sweep": ""})).hexdigest()
