# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a routed plane: numbers, neighbors and widths, what cannot be routed, and what an added leaf changes."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.frr import render, render_daemons
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import HostPort, Neighbor, RoutingError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.plan import make_plan, rail_problems, twice
from tests.unit.builders.clos import routed, settings

SIZES = st.tuples(st.integers(1, 8), st.integers(1, 6), st.integers(0, 3))
POLICIES = st.sampled_from(["shared", "own"])


def test_two_by_two() -> None:
    plane = routed()
    leaf2 = plane.routers["leaf2"]
    assert (leaf2.asn, leaf2.loopback, leaf2.subnet) == (4200000102, "10.0.0.102", "10.1.1.0/24")
    assert leaf2.neighbors == (Neighbor("swp1", "spine1", "swp2"), Neighbor("swp2", "spine2", "swp2"))
    assert leaf2.host_ports == (HostPort("swp33", "host2", "rail0", "10.1.1.66/31", "10.1.1.67/31"),)
    assert leaf2.host_ports[0].prefix == "10.1.1.66/31"
    assert [plane.routers[name].asn for name in ("spine1", "spine2")] == [4200000000, 4200000000]
    assert [routed(spine_asn="own").routers[name].asn for name in ("spine1", "spine2")] == [4200000001, 4200000002]
    assert plane.widths("leaf1") == {"spine1": 1, "spine2": 1, "leaf2": 2}
    assert plane.widths("spine1") == {"leaf1": 1, "leaf2": 1}


@given(SIZES, POLICIES)
def test_no_number_is_given_twice(size: tuple[int, int, int], spine_asn: str) -> None:
    plane = routed(*size, spine_asn=spine_asn)
    routers = plane.routers.values()
    assert len({each.loopback for each in routers}) == len(routers)
    asns = [each.asn for each in routers if each.tier == "leaf" or spine_asn == "own"]
    assert len(set(asns)) == len(asns)
    assert {each.asn for each in routers if each.tier == "spine"}.isdisjoint({each.asn for each in routers if each.tier == "leaf"})
    addresses = [ipaddress.ip_interface(text) for each in routers for port in each.host_ports for text in (port.address, port.host_address)]
    assert len({each.ip for each in addresses}) == len(addresses)
    assert all(each.ip in ipaddress.ip_network("10.1.0.0/16") for each in addresses)


@given(SIZES, POLICIES)
def test_each_session_is_planned_at_both_ends(size: tuple[int, int, int], spine_asn: str) -> None:
    plane = routed(*size, spine_asn=spine_asn)
    for router in plane.routers.values():
        for neighbor in router.neighbors:
            back = [each for each in plane.routers[neighbor.name].neighbors if each.port == neighbor.its_port]
            assert back == [Neighbor(neighbor.its_port, router.name, neighbor.port)]
            assert plane.routers[neighbor.name].asn != router.asn


@given(SIZES, POLICIES)
def test_a_leaf_that_is_added_changes_only_its_neighbors_files(size: tuple[int, int, int], spine_asn: str) -> None:
    leaves, spines, hosts = size
    before, after = routed(*size, spine_asn=spine_asn), routed(leaves + 1, spines, hosts, spine_asn=spine_asn)
    changed = {
        name
        for name, router in after.routers.items()
        if name not in before.routers or render(after, router) != render(before, before.routers[name])
    }
    assert changed == {f"leaf{leaves + 1}", *(f"spine{n}" for n in range(1, spines + 1))}
    assert render_daemons(after) == render_daemons(before)


@given(SIZES)
def test_the_width_between_leaves_is_the_number_of_spines(size: tuple[int, int, int]) -> None:
    leaves, spines, _hosts = size
    assert all(routed(*size).widths("leaf1")[f"leaf{n}"] == spines for n in range(2, leaves + 1))


def test_cables_side_by_side_are_paths_of_their_own() -> None:
    text = (
        "switches: {l1: {tier: leaf}, l2: {tier: leaf}, s1: {tier: spine}}\nlinks: [{from: l1/1-2, to: s1/1-2}, {from: l2/1, to: s1/3}]\n"
    )
    plane = make_plan("fab", settings(), parse_plan(text))
    assert plane.widths("l1") == {"s1": 2, "l2": 2}
    assert plane.widths("s1") == {"l1": 2, "l2": 1}


TIERS = "switches: {l1: {tier: leaf}, l2: {tier: leaf}, s1: {tier: spine}, s2: {tier: spine}}\n"
CABLES = "{from: l1/1, to: s1/1}, {from: l2/1, to: s1/2}, {from: l1/2, to: s2/1}, {from: l2/2, to: s2/2}"
GOOD = f"{TIERS}links: [{CABLES}]\n"


def more(cable: str) -> str:
    return f"{TIERS}links: [{CABLES}, {{{cable}}}]\n"


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        (more("from: l1/3, to: l2/3"), {}, "line 2 of the cabling plan: l1 port 3 to l2 port 3 joins two leaf switches"),
        (more("from: s1/3, to: s2/3"), {}, "joins two spine switches"),
        (more("from: h1 rail0, to: s2/3"), {}, "h1 rail0 to s2 port 3 joins a host to a spine"),
        (more("from: h1 rail0, to: h2 rail0"), {}, "joins two hosts"),
        (more("from: h1 rail0, to: l1/200"), {}, "needs the /31 number 200, but a leaf's subnet has /24"),
        (f"{TIERS}links: [{{from: l1/1, to: s1/1}}]\n", {}, "l2 has no cable"),
        (GOOD.replace("{tier: spine}", "{tier: core}"), {}, "joins a leaf and a core: in a routed plane, leaves are cabled to spines only"),
        (GOOD.replace("{tier: leaf}", ""), {}, "l1 has no tier"),
        (GOOD.replace("l1:", '"l1 x":').replace("l1/", "l2/9"), {}, "'l1 x' cannot be the name"),
        (GOOD, {"loopbacks": "10.0.0.0/26"}, "loopbacks 10.0.0.0/26 has no address for l1: it needs at least 102 addresses"),
        (GOOD, {"host_subnets": "10.1.0.0/24"}, "host_subnets 10.1.0.0/24 has 1 subnets of /24, but l2 is leaf number 2"),
        (GOOD, {"asn_base": 65433}, "l2 would have ASN 65535, after the last one for private use (65534)"),
        (GOOD, {"maximum_paths": 1}, "maximum_paths is 1, but 2 equal paths are planned"),
    ],
)
def test_what_cannot_be_routed_is_named(text: str, changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(RoutingError) as caught:
        make_plan("fab", settings(**changes), parse_plan(text))
    assert expected in str(caught.value)
    assert all(line.startswith("plane fab: ") for line in str(caught.value).splitlines())


def rail(address: str, gateway: str | None) -> Any:
    return {"rails": [{"name": "rail0", "address": address, "gateway": gateway, "vlan": None}]}


def test_a_rail_with_another_address_than_its_leaf_expects_is_named() -> None:
    plane = routed()
    assert rail_problems(plane, {"host1": rail("10.1.0.67/31", "10.1.0.66")}) == []
    (problem,) = rail_problems(plane, {"host1": rail("10.1.0.67/31", "10.1.0.66"), "host2": rail("10.1.0.5/24", None)})
    assert problem == (
        "host2 rail0 has address 10.1.0.5/24 and gateway None, but at leaf2 swp33 it needs address 10.1.1.67/31 and gateway 10.1.1.66"
    )


def test_a_switch_of_two_planes_is_named() -> None:
    assert twice([routed()]) == []
    assert twice([routed(), routed()])[0] == "leaf1 is in planes fab and fab: a switch has one configuration"


def test_the_configuration_of_a_leaf() -> None:
    plane = routed()
    lines = [line for line in render(plane, plane.routers["leaf1"]).splitlines() if not line.strip().startswith("!")]
    for line in (
        "router bgp 4200000101", " bgp router-id 10.0.0.101", " bgp bestpath as-path multipath-relax", " neighbor FABRIC bfd",
        " neighbor swp2 interface v6only peer-group FABRIC", "  redistribute connected route-map OWN", "  maximum-paths 64",
        "  neighbor FABRIC route-map FABRIC-IN in", "  neighbor FABRIC route-map FABRIC-OUT out",
        "ip prefix-list OWN seq 5 permit 10.0.0.101/32", "ip prefix-list OWN seq 10 permit 10.1.0.0/24 ge 31 le 31",
        " ip address 10.1.0.66/31",
    ):  # fmt: skip
        assert line in lines
    out = lines.index("route-map FABRIC-OUT permit 10")
    assert lines[out + 1] == " match ip address prefix-list OWN"
    assert "ebgp-requires-policy" not in "\n".join(lines)


def test_a_spine_passes_on_what_the_pools_have() -> None:
    plane = routed(bfd=False)
    lines = render(plane, plane.routers["spine1"]).splitlines()
    assert lines[lines.index("route-map FABRIC-OUT permit 10") + 1] == " match ip address prefix-list POOLS"
    assert "  neighbor FABRIC maximum-prefix 129 restart 5" in lines
    assert not any("bfd" in line for line in lines)
    assert "bfdd=no" in render_daemons(plane).splitlines()
