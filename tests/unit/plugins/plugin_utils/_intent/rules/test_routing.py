# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rdma_fabric.planes.NAME.routing: its defaults, and what is refused before anything is planned."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize

ROUTING = {"loopbacks": "10.0.0.0/24", "host_subnets": "10.1.0.0/16"}
RAIL = {"name": "rail0", "nic": {"mac": "52:54:00:00:00:01"}, "link_layer": "roce", "plane": "fab", "address": "10.1.1.67/31"}


def given(fabric: dict[str, Any] | None = None, plane: dict[str, Any] | None = None, **routing: Any) -> dict[str, Any]:
    planes = {"fab": {"plan": "cabling.yml", "routing": {**ROUTING, **routing}, **(plane or {})}}
    return {"rdma_rails": [RAIL], "rdma_fabric": {"planes": planes, **(fabric or {})}}


def problems(variables: dict[str, Any]) -> str:
    with pytest.raises(IntentError) as caught:
        normalize(variables)
    return "\n".join(f"{each.where} {each.message}" for each in caught.value.problems)


def test_what_is_not_given_has_a_default() -> None:
    routing = normalize(given())["fabric"]["planes"]["fab"]["routing"]
    assert routing == {
        **ROUTING, "kind": "bgp_unnumbered", "asn_base": 4200000000, "spine_asn": "shared", "leaf_prefix_length": 24, "port_prefix": "swp",
        "port_lanes": None, "syntax": "frr", "switches": {}, "hosts_peer": False, "bfd": True, "maximum_paths": 64, "hash_policy": "l4",
    }  # fmt: skip


def test_a_switch_has_only_what_differs_from_the_plane() -> None:
    routing = normalize(given(switches={"leaf1": {"syntax": "nvue"}}))["fabric"]["planes"]["fab"]["routing"]
    assert routing["switches"] == {"leaf1": {"syntax": "nvue", "port_prefix": None, "port_lanes": None}}


def test_a_plane_that_does_not_route_has_none() -> None:
    assert normalize({"rdma_rails": [RAIL], "rdma_fabric": {"planes": {"fab": None}}})["fabric"]["planes"]["fab"]["routing"] is None


OTHER = {"plan": "other.yml", "routing": {"loopbacks": "10.0.0.128/25", "host_subnets": "10.2.0.0/16"}}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (given(plane={"plan": None}), "planes.fab.routing is given without `plan`"),
        (given(plane={"subnet_manager": {"hosts": ["a"]}}), "planes.fab.routing is given, but the plane has a subnet_manager"),
        (given({"topology": "mesh"}), "routing is given, but rdma_fabric.topology is mesh"),
        (given(host_subnets="10.0.0.0/16"), "routing.host_subnets is 10.0.0.0/16, which overlaps 10.0.0.0/24, loopbacks of plane fab"),
        (given({"management": {"subnet": "10.0.0.0/22"}}), "routing.loopbacks is 10.0.0.0/24, which overlaps 10.0.0.0/22: the management"),
        (given({"management": {"subnet": "10.1.9.0/24"}}), "routing.host_subnets is 10.1.0.0/16, which overlaps 10.1.9.0/24"),
        (given(asn_base=65000), ""),
        (given(asn_base=65434), "routing.asn_base is 65434, which leaves no ASN for leaves: theirs begin at 65535"),
        (given(asn_base=70000), "routing.asn_base is 70000: 70000 is not for private use (RFC 6996)"),
        (given(syntax="junos"), "routing.syntax must be one of frr, nvue, sonic"),
        (given(switches={"leaf1": {"sintax": "nvue"}}), "routing.switches.leaf1 has no key 'sintax': did you mean 'syntax'?"),
        (given(port_lanes=0), "routing.port_lanes must be at least 1"),
        (given(asn_base=100), "routing.asn_base must be at least 64512"),
        (given(loopbacks="fd00::/64"), "routing.loopbacks must be an IPv4 network"),
        (given(loopbacks=None), "routing.loopbacks is missing"),
        (given(host_subnets="10.1.1.0/28"), "routing.leaf_prefix_length is 24, but host_subnets 10.1.1.0/28 is smaller"),
        (given(port_prefix="swp 1"), "routing.port_prefix must be letters"),
        (given(kind="ospf"), "routing.kind must be one of bgp_unnumbered"),
        (given({"planes": {"fab": given()["rdma_fabric"]["planes"]["fab"], "b": OTHER}}), "planes.b.routing.loopbacks is 10.0.0.128/25"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(variables: dict[str, Any], expected: str) -> None:
    if not expected:
        normalize(variables)
        return
    assert expected in problems(variables)


def test_a_plane_with_an_infiniband_rail_does_not_route() -> None:
    rail = {**RAIL, "link_layer": "infiniband", "nic": {"pci": "0000:21:00.0"}}
    assert "routing is given, but rail0 of this plane is InfiniBand" in problems({**given(), "rdma_rails": [rail]})
