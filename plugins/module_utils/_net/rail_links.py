# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rails on a VLAN or a bond: for the network managers such a rail is several interfaces, each with files of its own.

The NIC is "rail0". With a VLAN it has the rail's MTU and carries the VLAN "rail0@vlan", which has the rail's MTU, address, routes and rule.
With a bond the other NICs are "rail0@1" and so on, and the bond "rail0@bond" has the address, or carries the VLAN. The users of the
RDMA port are the users of all of them. So the files of the NIC keep their names and kinds if a rail gets a VLAN or a bond, or loses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._net.bonds import Bond, SeenBond
from ansible_collections.rdma.cluster.plugins.module_utils._net.links import Link, SeenVlan, Vlan
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail, make_rail, rail_of

#: The suffixes of the names: no rail has an @ in its name. netplan reads files in the order of their names, and refuses a name that it has
#: not read yet. So a NIC sorts before its bond, and that before its VLAN.
VLAN, BOND, MEMBER = "@vlan", "@bond", "@"


def owner_name(rail: str, *, on_vlan: bool, on_bond: bool = False) -> str:
    """Return the name in the files that carry a rail's address."""
    return f"{rail}{VLAN if on_vlan else BOND if on_bond else ''}"


def make_rails(given: Sequence[Mapping[str, Any]]) -> list[NetworkRail]:
    """Return the rails in a module's options, those below an interface before it.

    Raises ApplyError as make_rail does, and for two rails on one NIC: their files would match the same interface, and the manager would
    use only one of them.
    """
    rails = [rail for each in given for rail in _rails(each)]
    owners: dict[str, str] = {}
    for rail in rails:
        first = owners.setdefault(rail.netdev, rail_of(rail.name))
        if first != rail_of(rail.name):
            both = f"{first} and {rail_of(rail.name)} are both on {rail.netdev}"
            raise ApplyError(
                f"{both}: a NIC has one rail, also if the rails are on different VLANs. "
                "1. In rdma_rails, correct `nic` of one of them, or remove it. 2. Run the network stage again."
            )
    return rails


def _rails(given: Mapping[str, Any]) -> list[NetworkRail]:
    plain = make_rail({key: value for key, value in given.items() if key not in ("vlan", "bond")})
    bond, vlan = given.get("bond"), given.get("vlan")
    found = [plain] if bond is None else _bonded(plain, bond)
    if vlan is None:
        return found
    base = found[-1]
    lower = replace(_without_addresses(base), link=replace(base.link, vlans=(vlan["interface"],)))
    link = Link(vlan=Vlan(base.netdev, vlan["id"], vlan.get("pcp")))
    return [*found[:-1], lower, replace(base, name=owner_name(plain.name, on_vlan=True), netdev=vlan["interface"], link=link)]


def _without_addresses(rail: NetworkRail) -> NetworkRail:
    """Return a part of a rail on which another part lies: that one has the addresses, with their rule and routes."""
    return replace(rail, address=None, addresses=(), table=None, gateway=None, routes=())


def _bonded(plain: NetworkRail, given: Mapping[str, Any]) -> list[NetworkRail]:
    """Return the members and the bond. The bond is made when its first member joins it."""
    name = given["interface"]
    below = replace(_without_addresses(plain), link=Link(master=name))
    members = [
        replace(
            below, name=f"{plain.name}{MEMBER}{number}" if number else plain.name, **{key: each[key] for key in ("nic", "netdev", "mac")}
        )
        for number, each in enumerate(given["members"])
    ]
    bond = Bond(given["mode"], given["lacp_rate"], given["hash"], tuple(each.netdev for each in members))
    return [*members, replace(plain, name=owner_name(plain.name, on_vlan=False, on_bond=True), netdev=name, link=Link(bond=bond))]


def membership_differs(rail: NetworkRail, bonds: Mapping[str, SeenBond] | None) -> bool:
    """Return whether an interface is not in the bond that it should be a member of. bonds: from the facts."""
    if rail.link.master is None:
        return False
    seen = (bonds or {}).get(rail.link.master)
    return seen is None or rail.netdev not in seen.members


def link_differs(rail: NetworkRail, vlans: Mapping[str, SeenVlan] | None, *, is_up: bool | None) -> bool:
    """Return whether a rail's VLAN is missing, down, another one than planned, or not known. vlans, is_up: from the facts."""
    vlan = rail.link.vlan
    if vlan is None:
        return False
    seen = (vlans or {}).get(rail.netdev)
    return seen is None or not is_up or not vlan.is_that(seen) or vlan.egress_differs(seen.egress)
