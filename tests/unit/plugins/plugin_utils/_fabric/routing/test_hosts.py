# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that speak BGP: their numbers and sessions, what they may announce, what is refused, and what fabric.bgp reports of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import RouterState, router_state
from ansible_collections.rdma.cluster.plugins.module_utils._routing.vtysh import BgpRoute
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.findings import check_routers
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.frr import render
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.hosts import peer_problems, with_identities, with_interfaces
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import Neighbor, RoutedPlane, RoutingError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.plan import make_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.render import host_files
from lab.clos_plan import ClosShape
from tests.unit.builders.clos import podded, routed, settings

FIXTURES = Path(__file__).parents[4] / "fixtures/frr"
GOLDEN = Path(__file__).parent / "golden_hosts"
PLANE = routed(spine_asn="own", hosts_peer=True)
SIZES = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(0, 3))
States = dict[str, RouterState | str]
Change = Callable[[RouterState], RouterState | str]


def plan(links: str, **changes: Any) -> RoutedPlane:
    text = f"switches: {{leaf1: {{tier: leaf}}, leaf2: {{tier: leaf}}, spine1: {{tier: spine}}}}\nlinks:\n{links}"
    uplinks = "  - {from: leaf1/1, to: spine1/1}\n  - {from: leaf2/1, to: spine1/2}\n"
    return make_plan("fab", settings(hosts_peer=True, **changes), parse_plan(text + uplinks))


def test_two_hosts_and_their_leaves() -> None:
    host2 = PLANE.hosts["host2"]
    # 10.1.1.66/31 is /31 number 161 of 10.1.0.0/16.
    assert (host2.asn, host2.router_id, host2.number) == (4201000161, "10.1.1.67", 161)
    assert host2.neighbors == (Neighbor("rail0", "leaf2", "swp33"),)
    assert PLANE.routers["leaf2"].hosts == (Neighbor("swp33", "host2", "rail0"),)
    assert PLANE.own_prefixes["host2"] == ["10.1.1.67/32"]
    assert PLANE.widths("host1") == {"leaf1": 1, "leaf2": 1, "spine1": 1, "spine2": 1}
    assert "host1" not in routed().speakers


@given(SIZES)
def test_each_host_has_an_asn_of_its_own_and_a_session_at_both_ends(size: tuple[int, int, int]) -> None:
    plane = routed(*size, spine_asn="own", hosts_peer=True)
    asns = [each.asn for each in plane.speakers.values()]
    assert len(set(asns)) == len(asns)
    for host in plane.hosts.values():
        for each in host.neighbors:
            assert Neighbor(each.its_port, host.name, each.port) in plane.routers[each.name].hosts


@given(SIZES)
def test_a_host_that_is_added_changes_its_leaf_alone(size: tuple[int, int, int]) -> None:
    leaves, spines, hosts = size
    before, after = (routed(leaves, spines, count, hosts_peer=True) for count in (hosts, hosts + 1))
    changed = {name for name, router in after.routers.items() if render(after, router) != render(before, before.routers[name])}
    assert changed == {f"leaf{number}" for number in range(1, leaves + 1)}, "each leaf has one more host"


def test_two_rails_of_a_plane_are_two_sessions_and_each_address_is_announced_on_its_rail() -> None:
    plane = podded(ClosShape(2, 2, 1, rails=2), hosts_peer=True)
    host1 = plane.hosts["host1"]
    assert host1.neighbors == (Neighbor("rail0", "leaf1", "swp33"), Neighbor("rail1", "leaf1", "swp65"))
    assert plane.own_prefixes["host1"] == ["10.1.0.67/32", "10.1.0.131/32"]
    assert plane.widths("host1")["leaf2"] == 2
    text = host_files([plane], "host1")[".frr.conf"]
    assert "ip prefix-list OWN-rail1 seq 5 permit 10.1.0.131/32\n" in text
    assert "  neighbor rail1 route-map rail1-OUT out\n" in text


@pytest.mark.parametrize(("name", "text"), [("leaf1", "leaf"), ("host1", "host")])
def test_the_files_are_the_golden_ones(name: str, text: str) -> None:
    """molecule/routed has FRR accept them, and its reload find no difference."""
    own = render(PLANE, PLANE.routers[name]) if text == "leaf" else host_files([PLANE], name)[".frr.conf"]
    assert own == (GOLDEN / f"{name}.frr.conf").read_text()


def test_the_kernel_settings_and_daemons_of_a_host() -> None:
    files = host_files([PLANE], "host1")
    assert files[".sysctl"] == "net.ipv4.conf.all.ignore_routes_with_linkdown = 1\n"
    assert "bgpd=yes\nbfdd=yes\n" in files[".daemons"]
    assert "bfdd=no\n" in host_files([routed(hosts_peer=True, bfd=False)], "host1")[".daemons"]


def test_a_plane_without_hosts_that_speak_bgp_has_the_same_files_as_before() -> None:
    assert "HOST" not in render(routed(), routed().routers["leaf1"])


@pytest.mark.parametrize(
    ("links", "changes", "problem"),
    [
        ("  - {from: leaf1/33, to: host1 rail0}\n", {"syntax": "nvue"}, "leaf1 has syntax nvue, but hosts_peer is written for FRR alone"),
        (
            "  - {from: leaf1/33, to: host1 rail0/1}\n  - {from: leaf2/33, to: host1 rail0/2}\n",
            {},
            "host1 rail0 has cables to leaf1/33 and leaf2/33: with hosts_peer, a rail has one cable to one leaf",
        ),
        ("  - {from: leaf1/33, to: leaf2 rail0}\n", {}, "leaf2 is a host and a switch"),
        ("  - {from: leaf1/33, to: 'h$t rail0'}\n", {}, "'h$t' cannot be the name of a host that speaks BGP"),
        (
            "  - {from: leaf1/33, to: 'host1 rail 0'}\n",
            {},
            "host1 has a cable at 'rail 0': with hosts_peer, the cabling plan names the rail",
        ),
        (
            "  - {from: leaf1/33, to: host1 rail0}\n",
            {"asn_base": 4293967290},
            "host1 would have ASN 4294967323, after the last one for private use (4294967294)",
        ),
    ],
)
def test_hosts_that_cannot_speak_bgp_are_refused_by_name(links: str, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(RoutingError, match=problem.replace("$", r"\$").replace("(", r"\(").replace(")", r"\)")):
        plan(links, **changes)


def intent(*rails: dict[str, Any]) -> Any:
    return {"rails": [{"plane": "fab", "bond": None, **rail} for rail in rails]}


def test_rails_that_do_not_match_the_cabling_plan_are_named() -> None:
    assert peer_problems(PLANE, {"host1": intent({"name": "rail0"}), "host2": intent({"name": "rail0"})}) == []
    (wrong,) = peer_problems(PLANE, {"host1": intent({"name": "rail7"})})
    assert wrong == "host1 has no rail rail0: with hosts_peer, the cabling plan names its rails (rail7)"
    (bond,) = peer_problems(PLANE, {"host1": intent({"name": "rail0", "bond": {"members": []}})})
    assert bond == "host1 rail0 is a bond: with hosts_peer, a rail has one cable to one leaf. Make two rails of it"
    (missing,) = peer_problems(PLANE, {"host9": intent({"name": "rail0"})})
    assert missing == "host9 would speak BGP in plane fab, but the cabling plan has no cable of it"
    assert peer_problems(routed(), {"host9": intent({"name": "rail0"})}) == []


def test_a_host_has_one_asn_and_one_router_id_in_all_planes() -> None:
    other = replace(routed(hosts_peer=True, host_subnets="10.2.0.0/16", loopbacks="10.9.0.0/24"), name="fab2")
    (first, second), problems = with_identities([PLANE, other])
    assert problems == []
    for plane in (first, second):
        assert (plane.hosts["host2"].asn, plane.hosts["host2"].router_id) == (4201000161, "10.1.1.67")
    assert second.hosts["host2"].loopback == "10.2.1.67"
    text = host_files([first, second], "host2")[".frr.conf"]
    assert text.count("router bgp 4201000161\n bgp router-id 10.1.1.67\n") == 1
    assert "ip prefix-list POOLS-fab2 seq 10 permit 10.2.0.0/16 ge 31\n" in text


def test_an_asn_that_two_routers_would_have_is_refused() -> None:
    """host8 is only in the second plane, where it has the number that host2 has in the first one."""
    links = "  - {from: leaf2/33, to: host8 rail0}\n  - {from: leaf2/34, to: host2 rail0}\n"
    other = replace(plan(links, host_subnets="10.2.0.0/16", loopbacks="10.9.0.0/24"), name="fab2")
    _planes, problems = with_identities([PLANE, other])
    assert problems == [
        "plane fab2: host2 and host8 would both have ASN 4201000161, so they refuse each other's routes: give the planes of host2 an "
        "asn_base each, 2000000 apart"
    ]


def test_known_interfaces_replace_the_names_of_rails_at_both_ends() -> None:
    plane = with_interfaces(PLANE, {("host1", "rail0"): "ens1f0"})
    assert plane.hosts["host1"].neighbors == (Neighbor("ens1f0", "leaf1", "swp33"),)
    assert plane.routers["leaf1"].hosts == (Neighbor("swp33", "host1", "ens1f0"),)
    assert plane.hosts["host2"].neighbors == (Neighbor("rail0", "leaf2", "swp33"),)
    text = host_files([plane], "host1")[".frr.conf"]
    assert " neighbor ens1f0 interface v6only remote-as external\n" in text
    assert "ip prefix-list OWN-rail0 seq 5 permit 10.1.0.67/32\n" in text


# Findings, over what FRR printed on the leaves, spines and hosts of a healthy network.


@cache
def state(name: str) -> RouterState:
    return router_state(json.loads((FIXTURES / f"8.4.4-peers-{name}.json").read_text()))


def brief(plane: RoutedPlane = PLANE, hosts: list[str] | None = None, **changes: Change) -> list[tuple[str, str, str]]:
    states: States = {name: changes[name](state(name)) if name in changes else state(name) for name in PLANE.speakers}
    return [(each.status, each.subject, each.observed) for each in check_routers(plane, states, 9000, ["172.31.0.0/16"], hosts=hosts)]


def test_a_healthy_network_with_hosts() -> None:
    sessions = "6 sessions between 4 switches and 2 hosts are Established, and all prefixes have all their paths"
    assert brief() == [("ok", "routing", sessions)]


def idle(port: str) -> Change:
    def change(seen: RouterState) -> RouterState:
        peers = {**seen.summary.peers, port: replace(seen.summary.peers[port], state="Idle")}
        return replace(seen, summary=replace(seen.summary, peers=peers))

    return change


def without(prefix: str) -> Change:
    return lambda seen: replace(seen, routes=[each for each in seen.routes if each.prefix != prefix])


def announces(prefix: str) -> Change:
    return lambda seen: replace(seen, table=[*seen.table, BgpRoute(prefix, True, 0)])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"host1": idle("rail0")}, ("error", "host1 rail0 to leaf1 swp33", "host1 has 0 of 1 uplinks with a good session")),
        ({"leaf1": idle("swp33")}, ("error", "leaf1 swp33 to host1 rail0", "host1 has 0 of 1 uplinks with a good session")),
        (
            {name: without("10.1.1.67/32") for name in ("leaf1", "leaf2", "spine1", "spine2", "host1")},
            ("error", "host2", "10.1.1.67/32 of host2 is missing on leaf1, leaf2, spine1, spine2 and 1 more"),
        ),
        ({"host1": without("10.1.1.66/31")}, ("error", "leaf2", "10.1.1.66/31 of leaf2 is missing on host1")),
        ({"host1": announces("0.0.0.0/0")}, ("error", "host1", "announces 0.0.0.0/0 (a default route")),
        ({"host1": announces("172.31.0.0/24")}, ("error", "host1", "announces 172.31.0.0/24 (the management network)")),
        ({"host2": lambda seen: replace(seen, bfd={})}, ("error", "host2", "BFD is not up on rail0 (no session)")),
        ({"host2": lambda _seen: "`vtysh` failed"}, ("unknown", "host2", "`vtysh` failed")),
        (
            {"host1": lambda seen: replace(seen, kernel={**dict(seen.kernel), "10.1.1.67/32": []})},  # type: ignore[arg-type]
            ("error", "host1", "the kernel has 0 of 1 paths that FRR shows to 10.1.1.67/32; missing: rail0 to leaf1"),
        ),
    ],
)
def test_one_fault_is_one_finding(changes: dict[str, Change], expected: tuple[str, str, str]) -> None:
    found = brief(**changes)
    assert len(found) == 1, found
    assert found[0][:2] == expected[:2]
    assert expected[2] in found[0][2]


def test_a_host_that_is_not_in_the_run_is_judged_by_its_leaf() -> None:
    unread: Change = lambda _seen: "it was not read"  # noqa: E731
    assert [status for status, _subject, _observed in brief(hosts=["host1"], host2=unread)] == ["ok"]
    assert brief(hosts=["host1"], host2=unread, leaf2=idle("swp33"))[0][:2] == ("error", "leaf2 swp33 to host2 rail0")


def test_what_a_host_has_of_another_plane_is_no_leak() -> None:
    states: States = {name: state(name) for name in PLANE.speakers}
    states["host1"] = replace(
        state("host1"), table=[*state("host1").table, BgpRoute("10.2.0.67/32", True, 0), BgpRoute("10.2.1.67/32", False, 1)]
    )
    elsewhere = {"10.2.0.67/32", "10.2.1.67/32"}
    assert [each.status for each in check_routers(PLANE, states, 9000, elsewhere=elsewhere)] == ["ok"]
    assert [each.status for each in check_routers(PLANE, states, 9000)] == ["error"]
    leaked = {**states, "leaf1": replace(state("leaf1"), table=[*state("leaf1").table, BgpRoute("10.2.1.67/32", False, 1)])}
    assert [each.subject for each in check_routers(PLANE, leaked, 9000, elsewhere=elsewhere)] == ["leaf1"]
