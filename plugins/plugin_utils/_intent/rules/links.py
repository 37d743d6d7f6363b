# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conflicts of a rail's VLAN or bond with its other keys, with other rails, and with rdma_roce."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Rail, RoceIntent
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import ACTIVE_BACKUP, bond_name
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import NAME_BYTES

Problem = tuple[str, str, str]
"""(key's path below the rail, what is wrong with it, what is expected)"""

ONE_RAIL = "a NIC has one rail, also if the rails are on different VLANs"


def vlan_problems(rail: Rail) -> Iterator[Problem]:
    """Yield the conflicts of a rail's VLAN with the rail itself."""
    vlan = rail["vlan"]
    if vlan is None:
        return
    if rail["link_layer"] == "infiniband":
        words = "is given, but InfiniBand has no VLANs: there it is a partition"
        yield "vlan", words, "nothing here; rdma_partitions, and ipoib.children for an address on a partition"
    name = f"{rail['name']}.{vlan['id']}"
    if len(name) > NAME_BYTES:
        words = f"is {rail['name']}, which is too long for a rail on a VLAN: its interface may have to be named {name}"
        yield "name", words, f"at most {NAME_BYTES - len(str(vlan['id'])) - 1} characters"


def pcp_problems(rail: Rail, roce: RoceIntent | None) -> Iterator[Problem]:
    """Yield a PCP that says another thing than the RoCE profile: the switches would put the same packets in two queues."""
    vlan = rail["vlan"]
    if vlan is None or vlan["pcp"] is None or rail["link_layer"] != "roce":
        return
    if roce is None:
        yield "vlan.pcp", f"is {vlan['pcp']}, but without rdma_roce no priority has a meaning", "nothing, or rdma_roce with this priority"
    elif vlan["pcp"] != roce["priority"]:
        words = f"is {vlan['pcp']}, but rdma_roce gives RDMA the priority {roce['priority']}: DSCP and the tag would disagree"
        yield "vlan.pcp", words, f"nothing, or {roce['priority']}; or change rdma_roce.priority"


def bond_problems(rail: Rail, rails: Sequence[Rail]) -> Iterator[Problem]:
    """Yield the conflicts of a rail's bond with the rail itself, and with other rails."""
    bond = rail["bond"]
    if bond is None:
        return
    members = [_label(nic) for nic in bond["members"]]
    if rail["link_layer"] == "infiniband":
        words = f"is given, but {rail['name']} is InfiniBand"
        if bond["mode"] != ACTIVE_BACKUP:
            words += f": IP over InfiniBand has no bond in mode {bond['mode']}"
        yield "bond", words, "nothing, or link_layer roce"
    if len(set(members)) < 2:
        yield "bond.members", f"has {len(set(members))} NIC", "at least two NICs"
    elif members[0] != _label(rail["nic"]):
        yield "bond.members", f"begins with {members[0]}, but nic is {_label(rail['nic'])}", "the nic of the rail as the first member"
    if len(set(members)) != len(members):
        yield "bond.members", "has a NIC twice", "each NIC once"
    taken = {
        _label(nic): other["name"]
        for other in rails
        if other is not rail
        for nic in [other["nic"], *(other["bond"] or {"members": []})["members"]]
    }
    for member in members:
        if member in taken:
            yield "bond.members", f"has {member}, which belongs to {taken[member]}", "NICs of this rail alone"
    name = bond_name(rail["name"])
    if len(name) > NAME_BYTES:
        words = f"is {rail['name']}, which is too long for a rail on a bond: its interface would be {name}"
        yield "name", words, f"at most {NAME_BYTES - len(bond_name(''))} characters"


def _label(nic: dict[str, str]) -> str:
    return next(iter(nic.values()))
