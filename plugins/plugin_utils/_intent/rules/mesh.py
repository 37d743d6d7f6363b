# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conflicts between the cables of a mesh, its pool of subnets, and the other networks of a host."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, MeshIntent
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.fabric import nearest
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.rules.roce import Problem
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.mesh import MOST_NICS, CableEnd, Pool, split_end


def mesh_problems(fabric: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield problems of `mesh` by paths below rdma_fabric. fabric: valid by itself."""
    mesh: MeshIntent | None = fabric["mesh"]
    if mesh is None:
        return
    if fabric["topology"] != "mesh":
        yield "mesh", f"is given, but topology is {fabric['topology']}", "nothing, or topology: mesh"
    pool = Pool.of(mesh["pool"], mesh["prefix_length"])
    if int(pool.first) % pool.step:
        yield "mesh.pool", f"begins at {pool.first}, which is not the first address of a /{pool.prefix_length}", "the address of a subnet"
    cables = [] if isinstance(mesh["cables"], str) else mesh["cables"]
    broken = list(_cable_problems(cables))
    yield from broken
    if not broken:
        yield from _size_problems([(split_end(a), split_end(b)) for a, b in cables], pool)
    yield from _management(fabric, pool)


def _cable_problems(cables: Sequence[Sequence[str]]) -> Iterator[Problem]:
    """Yield cables without two ends on two hosts, and ends that two cables have."""
    seen: dict[str, str] = {}
    for index, ends in enumerate(cables):
        where = f"mesh.cables[{index}]"
        if len(ends) != 2:
            yield where, f"has {len(ends)} {'end' if len(ends) == 1 else 'ends'}", "two ends: [spark1/0000:01:00.0, spark2/0000:01:00.0]"
            continue
        if split_end(ends[0]).host == split_end(ends[1]).host:
            yield where, f"is a cable from {split_end(ends[0]).host} to itself", "ends on two hosts"
            continue
        for number, end in enumerate(ends):
            if end in seen:
                yield f"{where}[{number}]", f"is {end}, which is also an end of {seen[end]}", "a NIC of its own for each end"
            seen.setdefault(end, f"cables[{index}]")


def _size_problems(cables: Sequence[tuple[CableEnd, CableEnd]], pool: Pool) -> Iterator[Problem]:
    """Yield more cables than a host has ports, or than the pool has subnets."""
    nics = Counter(end.host for cable in cables for end in cable)
    host, most = max(nics.items(), key=lambda item: item[1], default=("", 0))
    if most > MOST_NICS:
        joined = {frozenset(end.host for end in cable) for cable in cables}
        is_full = len(joined) == len(nics) * (len(nics) - 1) // 2
        seen = f"are a full mesh of {len(nics)} hosts, which needs {most} NICs a host" if is_full else f"need {most} NICs in {host}"
        yield "mesh.cables", seen, f"at most {MOST_NICS} NICs a host, in a ring or another partial mesh; or a switch"
    elif len(cables) > pool.size:
        message = f"is {pool}, which has room for {pool.size} subnets of /{pool.prefix_length}, but there are {len(cables)} cables"
        yield "mesh.pool", message, "a larger pool, or a longer prefix_length (30 or 31)"


def _management(fabric: Mapping[str, Any], pool: Pool) -> Iterator[Problem]:
    subnet = (fabric["management"] or {}).get("subnet")
    if subnet is not None and pool.overlaps(ipaddress.ip_network(subnet)):
        yield "mesh.pool", f"is {pool}, which overlaps the management subnet {subnet}", "a pool without addresses of other networks"


def mesh_rail_problems(intent: Intent) -> Iterator[tuple[int, str, str, str]]:
    """Yield (rail's number, key, what is wrong with it, what is expected): addresses that conflict with the mesh of a host's fabric."""
    mesh = intent["fabric"]["mesh"]
    if mesh is None or intent["fabric"]["topology"] != "mesh":
        return
    pool = Pool.of(mesh["pool"], mesh["prefix_length"])
    ends = None if isinstance(mesh["cables"], str) else {split_end(end).nic for cable in mesh["cables"] for end in cable}
    for index, rail in enumerate(intent["rails"]):
        if rail["address"] is None:
            continue
        network = ipaddress.ip_interface(rail["address"]).network
        (nic,) = rail["nic"].values()
        if ends is not None and nic not in ends:
            if pool.overlaps(network):
                message = f"is in {network}, which overlaps the pool of the mesh, {pool}; no cable of rdma_fabric.mesh has its NIC {nic}"
                yield index, "address", message, "an address outside of the pool, or a cable with this NIC"
        elif network.prefixlen != pool.prefix_length:
            message = f"is in a /{network.prefixlen}, but rdma_fabric.mesh.prefix_length is {pool.prefix_length}: NCCL supports only one"
            yield index, "address", message, f"an address with /{pool.prefix_length}: run plan.yml with the tag mesh"


def mesh_host_problems(mesh: MeshIntent, inventory: Iterable[str]) -> Iterator[Problem]:
    """Yield ends of cables on hosts that are not in the inventory, by paths below rdma_fabric."""
    known = list(inventory)
    for index, ends in enumerate(() if isinstance(mesh["cables"], str) else mesh["cables"]):
        for number, end in enumerate(ends):
            host = split_end(end).host
            if host not in known:
                yield f"mesh.cables[{index}][{number}]", f"is on {host}, which is not in the inventory", nearest(host, known)
