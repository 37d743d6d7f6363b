# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the network gate finds of routes with several next hops."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, OK, UNKNOWN, WARNING
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.network.multipath import check_multipath
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.hosts import lab_facts, lab_intent

OVER_RAILS = [{"network": "10.1.0.0/16", "netdevs": ["ens1", "ens2"]}, {"network": "10.2.0.0/16", "netdevs": ["ens1", "ens2"]}]
ELSEWHERE = [{"network": "10.1.0.0/16", "netdevs": ["enp0s2", "enp0s3"]}]


def found(**planes: Any) -> list[tuple[str, str, str]]:
    """Status, what was seen and the remedy of each finding of a host that forwards."""
    facts = lab_facts()
    facts["planes"].update({"forwarding": True, **planes})
    return [(each.status, each.observed, each.remedy) for each in check_multipath("node1", lab_intent(), from_dict(facts))]


@pytest.mark.parametrize("policy", [0, 2])
def test_a_host_that_forwards_and_hashes_addresses_is_a_warning(policy: int) -> None:
    [(status, observed, remedy)] = found(multipath=OVER_RAILS, hash_policy=policy)
    seen = f"net.ipv4.fib_multipath_hash_policy is {policy}; 10.1.0.0/16 and 1 more over ens1, ens2, and net.ipv4.ip_forward is 1"
    assert (status, observed) == (WARNING, f"{seen}: all queue pairs of two addresses that pass this host take one path")
    assert remedy.startswith("1. If node1 must not forward, disable it as planes.forward says. 2. If RoCE traffic passes node1, set ")


@pytest.mark.parametrize("policy", [1, 3])
@pytest.mark.parametrize("forwarding", [True, False])
def test_a_hash_of_ports_is_well(policy: int, forwarding: bool) -> None:
    assert [each[0] for each in found(multipath=OVER_RAILS, hash_policy=policy, forwarding=forwarding)] == [OK]


@pytest.mark.parametrize("multipath", [[], ELSEWHERE])
def test_without_such_routes_over_rails_nothing_is_said(multipath: list[Any]) -> None:
    assert found(multipath=multipath, hash_policy=0) == []


@pytest.mark.parametrize("policy", [0, 2])
def test_the_own_queue_pairs_of_a_host_do_not_depend_on_the_hash(policy: int) -> None:
    [(status, observed, remedy)] = found(multipath=OVER_RAILS, hash_policy=policy, forwarding=False)
    assert (status, remedy) == (NOT_APPLICABLE, "")
    assert "10.1.0.0/16 and 1 more over ens1, ens2: the kernel selects the next hop of a queue pair by addresses and " in observed


@pytest.mark.parametrize(
    ("planes", "words"),
    [
        ({"multipath": None}, "the routes were not read"),
        ({"multipath": None, "way_error": "no netlink"}, "the routes were not read: no netlink"),
        ({"multipath": OVER_RAILS, "hash_policy": None}, "net.ipv4.fib_multipath_hash_policy was not read; 10.1.0.0/16 and 1 more"),
        ({"multipath": OVER_RAILS, "hash_policy": 1, "forwarding": None}, "net.ipv4.ip_forward was not read; 10.1.0.0/16 and 1 more"),
    ],
)
def test_what_was_not_read_is_unknown(planes: dict[str, Any], words: str) -> None:
    [(status, observed, remedy)] = found(**planes)
    assert (status, observed.startswith(words), remedy.endswith("on node1.")) == (UNKNOWN, True, True)
