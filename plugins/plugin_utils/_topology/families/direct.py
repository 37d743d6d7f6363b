# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Families without switches: a mesh, in which each host has a cable to each other host, and a ring."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import FABRIC, Cable, Design, Failure, Measures, Plug
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.build import host_names
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.figures import HOST_M, NIC_NS, NS_PER_M, worst_failures
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

MESH, RING = "mesh", "ring"


def cables_of_pair(request: PlanRequest, family: str) -> int:
    """Return the cables between two neighbors; 0 if the hosts have too few NICs."""
    nics = request.nics_per_host
    if family == MESH:
        return nics // (request.hosts_later - 1)
    return nics if request.hosts == 2 else nics // 2


def build_direct(request: PlanRequest, family: str) -> Design:
    """Return the design of a mesh or ring. The ports of a mesh are numbered for hosts_later, so later hosts move no cable."""
    links = cables_of_pair(request, family)
    cables = _mesh(request, links) if family == MESH else _ring(request, links)
    return Design(family, host_names(request.hosts), (FABRIC,), (), tuple(cables))


def _plug(host: int, nic: int) -> Plug:
    return Plug(f"node{host + 1}", nic + 1, f"rail{nic}")


def _mesh(request: PlanRequest, links: int) -> Iterator[Cable]:
    for low in range(request.hosts):
        for high in range(low + 1, request.hosts):
            for link in range(links):
                yield Cable(_plug(low, (high - 1) * links + link), _plug(high, low * links + link), request.nic_gbps)


def _ring(request: PlanRequest, links: int) -> Iterator[Cable]:
    hosts = request.hosts
    for host in range(1 if hosts == 2 else hosts):
        for link in range(links):
            far = link if hosts == 2 else links + link
            yield Cable(_plug(host, link), _plug((host + 1) % hosts, far), request.nic_gbps)


def measure_direct(request: PlanRequest, family: str) -> Measures:
    """Return the figures of a mesh or ring. The bisection is that of the hosts."""
    hosts, links = request.hosts, cables_of_pair(request, family)
    crossing = _crossing(family, hosts, links)
    cables = len(build_direct(request, family).cables)
    forwarding = 0 if family == MESH or hosts == 2 else hosts // 2 - 1
    nic = request.nic_gbps
    left = _crossing(family, hosts - 1, links) if family == MESH else links
    share = 1 / crossing
    failures = [
        Failure("host", f"node{hosts}", hosts, 1, request.nics_per_host, left * nic, left * share),
        Failure("cable", "node1 to node2", cables, 0, 1, (crossing - 1) * nic, (crossing - 1) * share),
    ]
    return Measures(
        switches={},
        cables={"host-host": cables},
        free_ports={},
        bisection_gbps=crossing * nic,
        plane_bisection_gbps=crossing * nic,
        wanted_gbps=hosts * request.nics_per_host // 2 * nic / request.oversubscription,
        ratio={},
        imbalance=1.0,
        worst_gbps=max(0, crossing - request.survive.links) * nic,
        diameter=forwarding,
        latency_ns=(forwarding + 1) * (2 * NIC_NS + HOST_M * NS_PER_M),
        failures=worst_failures(failures),
    )


def _crossing(family: str, hosts: int, links: int) -> int:
    """Return the least cables between two halves of the hosts."""
    if family == MESH:
        return hosts // 2 * (hosts - hosts // 2) * links
    return links if hosts == 2 else 2 * links
