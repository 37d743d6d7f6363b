# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of a design, from its layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Failure, Measures
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.bisection import bisection
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.layout import CORE, DIRECT, Layout
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.search import wanted_gbps
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

#: Assumptions of the latency estimate. NIC_NS: one NIC, from the doorbell to the wire or back. SWITCH_NS: port to port, for models without
#: a value of their own. NS_PER_M: light in fiber. HOST_M, SWITCH_M: cable lengths.
NIC_NS = 600.0
SWITCH_NS = {"infiniband": 200.0, "ethernet": 800.0}
NS_PER_M = 5.0
HOST_M = 3.0
SWITCH_M = 20.0
#: Rows of the N-1 table.
WORST = 10


def latency_ns(request: PlanRequest, switches: int) -> float:
    """Return the estimated latency in ns between two NICs, one way, over this many switches."""
    model = request.switch.latency_ns
    switch = SWITCH_NS[request.fabric] if model is None else model
    meters = 2 * HOST_M + (switches - 1) * SWITCH_M
    return 2 * NIC_NS + switches * switch + meters * NS_PER_M


def measure(request: PlanRequest, layout: Layout, planes: int, *, with_failures: bool = False) -> Measures:
    """Return the figures of a design of equal planes. with_failures: also the N-1 table."""
    whole = bisection(layout)
    survive = request.survive
    upper = "spine-core" if layout.reach == CORE else "spine-spine"
    cables = {"host-leaf": layout.nics, "leaf-spine": layout.leaf_spine_cables, upper: layout.upper_cables}
    diameter = _diameter(layout)
    return Measures(
        switches={tier: count * planes for tier, count in layout.switches.items()},
        cables={kind: count * planes for kind, count in cables.items() if count},
        free_ports=_free_ports(request, layout),
        bisection_gbps=whole * planes,
        plane_bisection_gbps=whole,
        wanted_gbps=wanted_gbps(request, layout),
        ratio=_ratio(layout),
        imbalance=1.0,
        worst_gbps=bisection(layout, survive.spines, survive.links),
        diameter=diameter,
        latency_ns=latency_ns(request, diameter),
        failures=worst_failures(list(_failures(layout, planes, whole))) if with_failures else (),
    )


def worst_failures(failures: list[Failure]) -> tuple[Failure, ...]:
    """Return the N-1 table: the failures that cost most, the worst first."""
    return tuple(sorted(failures, key=lambda each: (-each.hosts_cut, each.plane_share, -each.nics_cut))[:WORST])


def _diameter(layout: Layout) -> int:
    if layout.leaves == 1:
        return 1
    if layout.pods == 1:
        return 3
    return 5 if layout.reach == CORE else 4


def _free_ports(request: PlanRequest, layout: Layout) -> dict[str, int]:
    ports, parts = request.switch.ports, request.uplink_parts
    most_nics = min(layout.hosts, layout.per_leaf) * (1 if layout.spread else layout.rails)
    found = {"leaf": ports - -(-most_nics // request.host_parts) - -(-layout.uplinks // parts)}
    if layout.spines:
        up = (layout.pods - 1) * layout.core_links if layout.reach == DIRECT else layout.spine_up
        found["spine"] = ports - -(-(min(layout.pod_leaves, layout.leaves) * layout.links + up) // parts)
    if layout.reach == CORE:
        found["core"] = ports - -(-layout.pods * layout.core_links // parts)
    return found


def _ratio(layout: Layout) -> dict[str, float]:
    if not layout.spines:
        return {}
    found = {"leaf": layout.leaf_nics(0) * layout.nic_gbps / (layout.uplinks * layout.link_gbps)}
    if layout.reach == CORE:
        found["spine"] = min(layout.pod_leaves, layout.leaves) * layout.links / layout.spine_up
    return found


def _failures(layout: Layout, planes: int, whole: float) -> Iterator[Failure]:
    """Yield the cost of one failure of each kind."""
    prefix = "" if planes == 1 else "rail0-"
    alone = planes == 1 and layout.rails == 1
    others = whole * (planes - 1)
    last = layout.leaves - 1
    nics = layout.leaf_nics(last)

    def failure(part: str, example: str, count: int, cut: tuple[int, int], left: float) -> Failure:
        return Failure(part, example, count * planes, *cut, left + others, left / whole if whole else 0.0)

    # All NICs of a host are on one leaf, or each NIC is on a leaf of its own.
    cut = 0 if planes > 1 or (layout.spread and layout.rails > 1) else nics // layout.rails
    left = bisection(layout, lost="leaf") if layout.leaves > 1 else 0.0
    yield failure("leaf", f"{prefix}leaf{last + 1}", layout.leaves, (cut, nics), left)
    cable = f"node{layout.hosts} to {prefix}leaf{last + 1}"
    yield failure("host cable", cable, layout.nics, (1 if alone else 0, 1), bisection(layout, lost="nic"))
    if layout.spines:
        spine = bisection(layout, 1, tiers=("spine",))
        yield failure("spine", f"{prefix}spine1", layout.switches["spine"], (0, 0), spine)
        cables = layout.leaf_spine_cables + layout.upper_cables
        yield failure("cable between switches", f"{prefix}leaf1 to {prefix}spine1", cables, (0, 0), bisection(layout, 0, 1))
    if layout.reach == CORE:
        yield failure("core", f"{prefix}core1", layout.switches["core"], (0, 0), bisection(layout, 1, tiers=("core",)))


def later(layout: Layout, hosts: int) -> Layout:
    """Return the layout of the same fabric with another number of hosts."""
    return replace(layout, hosts=hosts)
