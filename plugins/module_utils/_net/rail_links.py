# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rails on a VLAN: for the network managers such a rail is two interfaces, its NIC and the VLAN on it, each with files of its own.

The NIC "rail0" has the rail's MTU and carries the VLAN; the VLAN "rail0.vlan" has the rail's MTU, address, routes and rule. The users of
the RDMA port are the users of both. So the files of the NIC keep their names and kinds if a rail gets a VLAN, or loses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._net.links import Link, SeenVlan, Vlan, wanted_egress
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import NetworkRail, make_rail

#: The suffix of the VLAN's name: no rail has a dot in its name.
VLAN = ".vlan"


def owner_name(rail: str, *, on_vlan: bool) -> str:
    """Return the name in the files that carry a rail's address."""
    return f"{rail}{VLAN}" if on_vlan else rail


def make_rails(given: Sequence[Mapping[str, Any]]) -> list[NetworkRail]:
    """Return the rails in a module's options; for one on a VLAN, first its NIC, then its VLAN. Raises ApplyError as make_rail does."""
    return [rail for each in given for rail in _rails(each)]


def _rails(given: Mapping[str, Any]) -> list[NetworkRail]:
    vlan = given.get("vlan")
    plain = make_rail({key: value for key, value in given.items() if key != "vlan"})
    if vlan is None:
        return [plain]
    name = vlan["interface"]
    nic = replace(plain, address=None, addresses=(), table=None, gateway=None, routes=(), link=Link(vlans=(name,)))
    link = Link(vlan=Vlan(plain.netdev, vlan["id"], vlan.get("pcp")))
    return [nic, replace(plain, name=owner_name(plain.name, on_vlan=True), netdev=name, link=link)]


def link_differs(rail: NetworkRail, vlans: Mapping[str, SeenVlan] | None, *, is_up: bool | None) -> bool:
    """Return whether a rail's VLAN is missing, down, another one than planned, or not known. vlans, is_up: from the facts."""
    vlan = rail.link.vlan
    if vlan is None:
        return False
    seen = (vlans or {}).get(rail.netdev)
    if seen is None or not is_up or (seen.parent, seen.id) != (vlan.parent, vlan.id):
        return True
    return vlan.pcp is not None and seen.egress != wanted_egress(vlan)
