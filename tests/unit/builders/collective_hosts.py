# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts of collectives: lab machines with two cards of 100 Gb/s in the place of Soft-RoCE, and GPUs that only the intent knows of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._collectives.plan import CollectivePlan
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proofs
from tests.unit.builders.hosts import lab_facts, lab_intent
from tests.unit.builders.known import known_of

HOSTS = ["node1", "node2", "node3", "node4"]
NOW = 1_795_179_000.0


def known(hosts: Sequence[str] = (*HOSTS,), *, hard: bool = True, **collectives: Any) -> dict[str, dict[str, Any]]:
    """hard: cards of 100 Gb/s behind Gen3 x16; else Soft-RoCE."""
    found = {}
    for host in hosts:
        number = int(host[-1])
        each = {"intent": lab_intent(number, collectives={"gpus": 2, **collectives}), "facts": comparable(lab_facts(number))}
        if hard:
            _cards(each)
        found[host] = each
    return found


def _cards(host: dict[str, Any]) -> None:
    for rail, device in enumerate(host["facts"]["devices"].values()):
        link = {"address": f"0000:{2 * rail + 2}1:00.0", "speed_gtps": 8.0, "width": 16}
        device.update(software=False, driver="mlx5_core", node_type="CA", pci={**link, "narrowest": link})
        device["ports"]["1"].update(rate_gbps=100.0, width=4, speed="EDR", active_mtu_bytes=4096)
    for rail in host["intent"]["rails"]:
        rail["soft"] = False


def plan(of: dict[str, dict[str, Any]] | None = None, proofs: Proofs | None = None, *, now: float = NOW) -> CollectivePlan:
    return CollectivePlan(Fleet.of(known_of(known() if of is None else of)), proofs or {}, now, 168.0)
