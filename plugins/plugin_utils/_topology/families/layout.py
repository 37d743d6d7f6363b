# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layout of a plane: a few numbers from which all its switches and cables follow.

A plane is a set of leaves in pods of equal size. Each leaf has `links` cables to each spine of its pod. The spines of all pods with the
same number form a column. Above a column are the cores of this column only, with `core_links` cables from each core to each spine of the
column (CORE), or the spines of a column are joined directly (DIRECT, dragonfly+). So every link of a kind carries an equal share.

Hosts fill the leaves in order. Leaves, pods and ports of later hosts come after those of earlier hosts, so growth moves no cable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

#: The pods are joined by nothing (a single pod), by cores, or by cables between spines.
POD, CORE, DIRECT = "pod", "core", "direct"


@dataclass(frozen=True)
class Layout:
    """The layout of one plane.

    hosts: of the plane. rails: NICs of a host on this plane. spread: each NIC of a host is on its own leaf ("rail"), else all are on one
    leaf. per_leaf: hosts of a full leaf (of a full group of leaves with spread). spines: of a pod. links: between a leaf and a spine of its
    pod. pod_leaves: leaves of a full pod. cores: of a column. core_links: between a spine and a core of its column, or with DIRECT between
    two spines of a column. nic_gbps, link_gbps: rates of the cables.
    """

    hosts: int
    rails: int
    spread: bool
    per_leaf: int
    nic_gbps: float
    link_gbps: float
    spines: int = 0
    links: int = 0
    pod_leaves: int = 0
    cores: int = 0
    core_links: int = 0
    reach: str = POD

    @cached_property
    def groups(self) -> int:
        """Return the groups of leaves that take the same hosts: leaves, or sets of one leaf for each rail."""
        return -(-self.hosts // self.per_leaf)

    @cached_property
    def leaves(self) -> int:
        return self.groups * (self.rails if self.spread else 1)

    @cached_property
    def pods(self) -> int:
        return -(-self.leaves // self.pod_leaves) if self.spines else 0

    @property
    def nics(self) -> int:
        return self.hosts * self.rails

    @property
    def uplinks(self) -> int:
        """Return the cables of a leaf to spines."""
        return self.spines * self.links

    @property
    def spine_up(self) -> int:
        """Return the cables of a spine to cores, or to the spines of other pods of the full fabric."""
        return self.cores * self.core_links

    @property
    def down(self) -> int:
        """Return the NICs of a full leaf."""
        return self.per_leaf * (1 if self.spread else self.rails)

    def leaf_nics(self, leaf: int) -> int:
        """Return the NICs on a leaf, counted from 0."""
        group = leaf // (self.rails if self.spread else 1)
        hosts = min(self.per_leaf, self.hosts - group * self.per_leaf)
        return hosts * (1 if self.spread else self.rails)

    @cached_property
    def leaf_spine_cables(self) -> int:
        return self.leaves * self.uplinks

    @cached_property
    def upper_cables(self) -> int:
        """Return the cables between spines and cores, or between spines."""
        if self.reach == CORE:
            return self.pods * self.spines * self.spine_up
        return self.spines * self.core_links * self.pods * (self.pods - 1) // 2 if self.reach == DIRECT else 0

    @cached_property
    def switches(self) -> dict[str, int]:
        """Return tier → number of switches."""
        found = {"leaf": self.leaves, "spine": self.pods * self.spines, "core": self.spines * self.cores if self.reach == CORE else 0}
        return {tier: number for tier, number in found.items() if number}
