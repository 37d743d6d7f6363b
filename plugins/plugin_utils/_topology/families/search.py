# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The search for the cheapest layout of a plane: exhaustive over all layouts that could be cheaper than the best one so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.bisection import bisection
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.layout import CORE, DIRECT, POD, Layout
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

#: What is compared: the price (0 without prices), switches, cables.
Cost = tuple[float, int, int]
#: Float arithmetic of bandwidths may be off by this much.
EPSILON = 1e-9


@dataclass(frozen=True)
class Ports:
    """Port arithmetic of the requested switch. total: cable ends of a switch that has only cables to switches."""

    request: PlanRequest

    @property
    def total(self) -> int:
        return self.request.switch.ports * self.request.uplink_parts

    @property
    def link_gbps(self) -> float:
        return self.request.switch.gbps / self.request.uplink_parts

    def host_ports(self, nics: int) -> int:
        """Return the physical ports for NICs."""
        return -(-nics // self.request.host_parts)

    def most_uplinks(self, nics: int) -> int:
        """Return the uplinks that fit on a leaf with these NICs and the spare ports; negative if the NICs do not fit."""
        return (self.request.switch.ports - self.request.spare_ports - self.host_ports(nics)) * self.request.uplink_parts

    def least_uplinks(self, nics: int) -> int:
        """Return the uplinks that hold the oversubscription."""
        return max(1, math.ceil(nics * self.request.nic_gbps / (self.request.oversubscription * self.link_gbps) - EPSILON))

    def most_nics(self) -> int:
        """Return the NICs on a switch without uplinks."""
        return (self.request.switch.ports - self.request.spare_ports) * self.request.host_parts


def cost_of(request: PlanRequest, switches: int, host_cables: int, switch_cables: int) -> Cost:
    """Return the compared cost. Cables to hosts count as copper, those between switches as optical cables.

    The price is 0 for all layouts if one of the three prices is not given: without it, a layout with many such parts would look cheap.
    """
    price, (one, host, between) = 0.0, (request.switch.price, request.cables.dac, request.cables.between_switches)
    if one is not None and host is not None and between is not None:
        price = switches * one + host_cables * host + switch_cables * between
    return price, switches, host_cables + switch_cables


def layout_cost(request: PlanRequest, layout: Layout) -> Cost:
    """Return the cost of one plane."""
    return cost_of(request, sum(layout.switches.values()), layout.nics, layout.leaf_spine_cables + layout.upper_cables)


def wanted_gbps(request: PlanRequest, layout: Layout) -> float:
    """Return the requested bisection of a plane: half of its NICs at full rate, divided by the oversubscription."""
    return layout.nics // 2 * layout.nic_gbps / request.oversubscription


def divisors(number: int) -> list[int]:
    """Return the divisors, ascending."""
    return [each for each in range(1, number + 1) if number % each == 0]


Keeps = Callable[[Layout], bool]


class Search:
    """The cheapest layout of a plane.

    rails, spread: as in Layout. keeps: whether a layout keeps the cables that must not move. The layouts are for hosts_later. The bounds
    hold for hosts and for hosts_later.
    """

    def __init__(self, request: PlanRequest, rails: int, spread: bool, keeps: Keeps | None = None) -> None:
        self.request = request
        self.ports = Ports(request)
        self.rails = rails
        self.spread = spread
        self.keeps = keeps
        self.has_prices = not request.prices_not_given
        self.best: Layout | None = None
        self.best_cost: Cost = (math.inf, 0, 0)

    def single(self) -> Layout | None:
        """Return the plane of one switch; None if the NICs do not fit."""
        nics = self.request.hosts_later * self.rails
        layout = Layout(self.request.hosts_later, self.rails, False, self.request.hosts_later, self.request.nic_gbps, self.ports.link_gbps)
        return layout if nics <= self.ports.most_nics() and self._kept(layout) else None

    def two_levels(self) -> Layout | None:
        """Return the cheapest plane of leaves and spines; None if there is none."""
        for per_leaf in self._per_leaf():
            shape = self._shape(per_leaf)
            if shape.leaves < 2:
                continue
            for uplinks in self._uplinks(shape, 1):
                for spines in divisors(uplinks):
                    links = uplinks // spines
                    if shape.leaves * links <= self.ports.total and self._offer(
                        replace(shape, spines=spines, links=links, pod_leaves=shape.leaves, reach=POD)
                    ):
                        break
        return self.best

    def three_levels(self) -> Layout | None:
        """Return the cheapest plane of pods and cores; None if there is none."""
        total = self.ports.total
        for per_leaf in self._per_leaf():
            shape = self._shape(per_leaf)
            for uplinks in self._uplinks(shape, 3):
                for spines in divisors(uplinks):
                    links = uplinks // spines
                    for pod_leaves, pods in self._pods(shape, total // (2 * links)):
                        upper = -(-shape.leaves * uplinks // total)
                        if pods > total or self._is_dearer(shape, pods * spines + upper, shape.leaves * uplinks * 2):
                            break
                        self._cores(replace(shape, spines=spines, links=links, pod_leaves=pod_leaves, reach=CORE), pods)
        return self.best

    def _cores(self, layout: Layout, pods: int) -> None:
        """Offer the layouts with the fewest cores of a column that hold all bounds, and with the fewest cables."""
        down = layout.pod_leaves * layout.links
        most = self.ports.total // pods
        for cores in range(-(-down // most), self.ports.total - down + 1):
            links = -(-down // cores)
            fits = down + cores * links <= self.ports.total
            # With prices, more cores may cost less than the cables that they save: 5 cables to 5 cores, but 6 to 2.
            if fits and self._offer(replace(layout, cores=cores, core_links=links)) and (not self.has_prices or cores * links == down):
                return
            if links == 1 and cores > down:
                return

    def dragonfly(self) -> Layout | None:
        """Return the cheapest dragonfly+: groups of leaves and spines, and each spine with cables to its number in each other group."""
        total = self.ports.total
        for per_leaf in self._per_leaf():
            shape = self._shape(per_leaf)
            for uplinks in self._uplinks(shape, 1):
                for spines in divisors(uplinks):
                    links = uplinks // spines
                    for pod_leaves, pods in self._pods(shape, total // links):
                        if pods > total or self._is_dearer(shape, pods * spines, shape.leaves * uplinks):
                            break
                        for between in range(1, (total - pod_leaves * links) // max(1, pods - 1) + 1):
                            layout = replace(shape, spines=spines, links=links, pod_leaves=pod_leaves, core_links=between, reach=DIRECT)
                            if self._offer(layout):
                                break
        return self.best

    def _shape(self, per_leaf: int) -> Layout:
        return Layout(
            self.request.hosts_later, self.rails, self.spread, per_leaf, self.request.nic_gbps, self.ports.link_gbps, pod_leaves=1
        )

    def _per_leaf(self) -> Iterator[int]:
        """Yield the hosts of a leaf, the most first; of several values with as many leaves, only the least one, unless cables are kept."""
        wide = 1 if self.spread else self.rails
        hosts = self.request.hosts_later
        for per_leaf in range(min(hosts, self.ports.most_nics() // wide), 0, -1):
            if self.keeps or per_leaf == 1 or -(-hosts // (per_leaf - 1)) != -(-hosts // per_leaf):
                yield per_leaf

    def _uplinks(self, shape: Layout, ends: int) -> Iterator[int]:
        """Yield the possible uplinks of a leaf until they must be dearer than the best layout.

        ends: the least cable ends above the leaves for each uplink.
        """
        for uplinks in range(self.ports.least_uplinks(shape.down), self.ports.most_uplinks(shape.down) + 1):
            if self._is_dearer(shape, -(-shape.leaves * uplinks * ends // self.ports.total), shape.leaves * uplinks):
                return
            yield uplinks

    def _pods(self, shape: Layout, most_leaves: int) -> Iterator[tuple[int, int]]:
        """Yield (leaves of a pod, number of pods), the largest pods first; at least two pods. A group of rails is in one pod."""
        wide = shape.rails if shape.spread else 1
        most = most_leaves // wide
        for groups in range(min(most, shape.groups - 1), 0, -1):
            pods = -(-shape.groups // groups)
            if self.keeps or groups == 1 or -(-shape.groups // (groups - 1)) != pods:
                yield groups * wide, pods

    def _is_dearer(self, shape: Layout, above: int, cables: int) -> bool:
        return cost_of(self.request, shape.leaves + above, shape.nics, cables) >= self.best_cost

    def _offer(self, layout: Layout) -> bool:
        """Keep a layout if it holds all bounds and is cheaper. Returns whether it holds all bounds."""
        cost = layout_cost(self.request, layout)
        if cost >= self.best_cost:
            return True
        if not self._kept(layout) or not self.holds(layout):
            return False
        self.best, self.best_cost = layout, cost
        return True

    def _kept(self, layout: Layout) -> bool:
        return self.keeps is None or self.keeps(layout)

    def holds(self, layout: Layout) -> bool:
        """Return whether a layout has the requested bisection, without failures and after the requested ones."""
        survive = self.request.survive
        for hosts in sorted({self.request.hosts_later, self.request.hosts}, reverse=True):
            each = replace(layout, hosts=hosts)
            wanted = wanted_gbps(self.request, each)
            if layout.reach == DIRECT and bisection(each, enough=wanted - EPSILON) < wanted - EPSILON:
                return False
            least = survive.min_bisection * wanted
            if (survive.spines or survive.links) and (
                bisection(each, survive.spines, survive.links, enough=least - EPSILON) < least - EPSILON
            ):
                return False
        return True


def most_hosts(request: PlanRequest, rails: int, spread: bool, levels: int) -> int:
    """Return the hosts that a plane of this many levels holds at most, without regard to failures."""
    ports = Ports(request)
    wide = 1 if spread else rails
    if levels == 1:
        return ports.most_nics() // rails
    most = 0
    for per_leaf in range(1, ports.most_nics() // wide + 1):
        for uplinks in range(ports.least_uplinks(per_leaf * wide), ports.most_uplinks(per_leaf * wide) + 1):
            for spines in divisors(uplinks):
                links = uplinks // spines
                leaves = ports.total // links if levels == 2 else ports.total // (2 * links) * ports.total
                if levels == 3 and spread:
                    leaves = ports.total // (2 * links) // rails * rails * ports.total
                most = max(most, leaves // (rails if spread else 1) * per_leaf)
    return most
