# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts without a common cable, rails beside the cables, and networks in the pool."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.reach import check_mesh, check_pool
from tests.unit.builders.inventories import load
from tests.unit.builders.known import known_of
from tests.unit.builders.mesh import nic

RELAY = {"NCCL_NET_PLUGIN": "mesh", "NCCL_MESH_ENABLE_RELAY": 1}
POOL = {"pool": "10.1.0.0/16", "prefix_length": 24}


def hosts(*cables: str, alone: str = "", variables: Any = None, mesh: Any = None, **facts: Any) -> dict[str, Any]:
    """Hosts of cables like "a1-b2", a rail each. alone: hosts that have another kind of rail only."""
    rails: dict[str, list[dict[str, Any]]] = {host: [] for host in alone}
    for number, name in enumerate(cables):
        for last, end in enumerate(name.split("-"), 2):
            rail = {"name": name, "nic": {"pci": nic(int(end[1:]))}, "address": f"10.1.{number}.{last}/24"}
            rails.setdefault(end[0], []).append(rail)
    storage = {"name": "store", "nic": {"pci": nic(99)}, "address": "10.9.0.1/24", "role": "storage"}
    fabric = {"topology": "mesh", **({} if mesh is None else {"mesh": {**POOL, "cables": mesh}})}
    return {
        host: {
            "intent": normalize({"rdma_rails": of or [storage], "rdma_fabric": fabric, "rdma_nccl": {"variables": variables or {}}}),
            "facts": facts,
        }
        for host, of in sorted(rails.items())
    }


def found(of: dict[str, Any], check: str) -> dict[str, tuple[str, str]]:
    findings = check_mesh(known_of(of))
    return {host: (each.status, each.observed) for host, its in findings.items() for each in its if each.check == check}


def test_the_example_reaches_everybody() -> None:
    of: Any = {host: {"intent": intent, "facts": None} for host, intent in load("mesh").items()}
    assert set(found(of, "mesh.reach").values()) == {("ok", "full mesh of 3 hosts")}
    assert found(of, "mesh.rails") == {}


def pool(of: dict[str, Any]) -> tuple[str, str]:
    (finding,) = check_pool("a", of["a"]["intent"], from_dict(of["a"]["facts"]))
    return finding.status, finding.observed


def test_without_a_pool_there_is_nothing_to_check() -> None:
    assert check_pool("a", hosts("a1-b1")["a"]["intent"], from_dict({})) == []


RING = ("a1-b2", "b1-c2", "c1-d2", "d1-a2")


def test_a_pair_without_a_common_cable_is_named_at_its_lower_host() -> None:
    assert found(hosts(*RING), "mesh.reach") == {
        "a": ("warning", "a has no common cable with c: NCCL does not relay, so they cannot reach each other by RDMA"),
        "b": ("warning", "b has no common cable with d: NCCL does not relay, so they cannot reach each other by RDMA"),
        "c": ("ok", "ring of 4 hosts"),
        "d": ("ok", "ring of 4 hosts"),
    }


def test_a_plugin_that_relays_reaches_all_hosts_that_cables_connect() -> None:
    assert {status for status, _words in found(hosts(*RING, variables=RELAY), "mesh.reach").values()} == {"ok"}
    islands = found(hosts("a1-b1", "b2-c1", "d1-e1", variables=RELAY, mesh="discover"), "mesh.reach")
    assert {host: status for host, (status, _words) in islands.items()} == {"a": "ok", "b": "ok", "c": "ok", "d": "error", "e": "error"}
    assert islands["d"][1] == "no path of cables connects d with a, b, c"


def test_two_clusters_without_planned_cables_are_a_warning() -> None:
    pairs = found(hosts("a1-b1", "c1-d1"), "mesh.reach")
    assert {host: status for host, (status, _words) in pairs.items()} == {"a": "ok", "b": "ok", "c": "warning", "d": "warning"}


def test_islands_of_a_limited_run_may_be_connected_by_other_hosts() -> None:
    """c is not in the run."""
    some = hosts("a1-b1", "b2-c1", "c2-d1", "d2-e1", mesh="discover")
    del some["c"]
    assert {host: status for host, (status, _words) in found(some, "mesh.reach").items()} == {
        "a": "ok", "b": "ok", "d": "warning", "e": "warning",
    }  # fmt: skip


def test_a_single_host_and_hosts_of_storage_are_not_judged() -> None:
    one = hosts("a1-b1")
    del one["b"]
    assert found(one, "mesh.reach") == {"a": ("not_applicable", "no other host")}
    assert found(hosts("a1-b1", alone="s"), "mesh.reach").keys() == {"a", "b"}
    switched = hosts("a1-b1")
    for each in switched.values():
        each["intent"]["fabric"]["topology"] = "switched"
    assert found(switched, "mesh.reach") == {}


def ends(*cables: str) -> list[list[str]]:
    return [[f"{end[0]}/{nic(int(end[1:]))}" for end in cable.split("-")] for cable in cables]


@pytest.mark.parametrize(
    ("mesh", "a"),
    [
        (ends("a1-b1"), ("ok", "1 cables, each with its rail")),
        (ends("b1-a1"), ("ok", "1 cables, each with its rail")),
        ("discover", None),
        (ends("a1-b1", "a2-b2"), ("error", "no rail for the cable 0000:02:00.0 to b/0000:02:00.0")),
        (ends("a2-b1"), ("error", "no rail for the cable 0000:02:00.0 to b/0000:01:00.0, a1-b1 (0000:01:00.0) has no cable")),
        (ends("a1-b2"), ("error", "a1-b1 (0000:01:00.0) is named nothing at the other end of its cable, b/0000:02:00.0")),
    ],
    ids=str,
)
def test_rails_are_those_of_the_cables(mesh: Any, a: tuple[str, str] | None) -> None:
    of = hosts("a1-b1")
    for each in of.values():
        each["intent"]["fabric"]["mesh"] = {**POOL, "cables": mesh}
    assert found(of, "mesh.rails").get("a") == a


OWN = {"ipv4": ["10.1.0.2/24"]}
NETDEVS = {"ens1": {"pci": nic(1), **OWN}, "ens2": {"pci": nic(2)}}


@pytest.mark.parametrize(
    ("interfaces", "expected"),
    [
        ({"ens1": OWN, "lo": {"ipv4": ["127.0.0.1/8"]}}, ("ok", "1 other networks, none in it")),
        ({"ens1": OWN, "docker0": {"ipv4": ["10.1.9.1/24"]}}, ("error", "10.1.9.1/24 of docker0 is in it")),
        ({"ens1": OWN, "eno1": {"ipv4": ["10.0.0.1/8"]}}, ("error", "10.0.0.1/8 of eno1 is in it")),
        # A NIC of a cable that is not a rail yet.
        ({"ens1": OWN, "ens2": {"ipv4": ["10.1.7.1/24"]}}, ("ok", "0 other networks, none in it")),
        ({"ens1": {"ipv4": None}}, ("unknown", "the addresses or routes of the host were not read")),
        (None, ("unknown", "the addresses or routes of the host were not read")),
    ],
    ids=str,
)
def test_networks_in_the_pool(interfaces: Any, expected: tuple[str, str]) -> None:
    of = hosts("a1-b1", mesh=ends("a1-b1", "a2-b2"), interfaces=interfaces, netdevs=NETDEVS, planes=planes([]))
    assert pool(of) == expected


def planes(networks: Any) -> dict[str, Any]:
    return {"default_routes": [], "name_servers": [], "forwarding": False, "ssh": [], "networks": networks}


@pytest.mark.parametrize(
    ("networks", "expected"),
    [
        ([{"network": "10.1.128.0/17", "netdev": "eno1"}], ("error", "10.1.128.0/17 of eno1 is in it")),
        ([{"network": "10.2.0.0/16", "netdev": "eno1"}], ("ok", "1 other networks, none in it")),
        (None, ("unknown", "the addresses or routes of the host were not read")),
    ],
    ids=str,
)
def test_routes_into_the_pool(networks: Any, expected: tuple[str, str]) -> None:
    of = hosts("a1-b1", mesh="discover", interfaces={"ens1": OWN}, netdevs=NETDEVS, planes=planes(networks))
    assert pool(of) == expected
