# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fabric.bgp over what FRR printed on a healthy network, and changes of it. molecule/routed makes the same faults by real means."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import FORWARD, HASH, RouterState, router_state
from ansible_collections.rdma.cluster.plugins.module_utils._routing.vtysh import BgpRoute
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.findings import State, check_routers
from lab.clos_plan import ClosShape
from tests.unit.builders.clos import podded, routed

FIXTURES = Path(__file__).parents[4] / "fixtures/frr"
PLANE = routed(spine_asn="own")
States = dict[str, State]
Change = Callable[[RouterState], State]


@cache
def state(switch: str) -> RouterState:
    return router_state(json.loads((FIXTURES / f"8.4.4-{switch}.json").read_text()))


def healthy(**changes: Change) -> States:
    return {name: changes[name](state(name)) if name in changes else state(name) for name in PLANE.routers}


def brief(states: States, mtu_bytes: int | None = 9000) -> list[tuple[str, str, str]]:
    return [(each.status, each.subject, each.observed) for each in check_routers(PLANE, states, mtu_bytes, ["172.31.0.0/16"])]


def peer(port: str, **values: object) -> Change:
    def change(seen: RouterState) -> RouterState:
        peers = {**seen.summary.peers, port: replace(seen.summary.peers[port], **values)}  # type: ignore[arg-type]
        return replace(seen, summary=replace(seen.summary, peers=peers))

    return change


def kernel(prefix: str, *paths: str) -> Change:
    """A route with these paths, in FRR and in the kernel; none removes it."""

    def change(seen: RouterState) -> RouterState:
        routes = [replace(each, paths=list(paths)) if each.prefix == prefix else each for each in seen.routes]
        assert isinstance(seen.kernel, dict)
        return replace(
            seen, routes=[each for each in routes if each.prefix != prefix or paths], kernel={**seen.kernel, prefix: list(paths)}
        )

    return change


def port(name: str, **values: object) -> Change:
    return lambda seen: replace(seen, interfaces={**seen.interfaces, name: replace(seen.interfaces[name], **values)})  # type: ignore[arg-type]


def both(*changes: Change) -> Change:
    def change(seen: RouterState) -> State:
        found: State = seen
        for each in changes:
            assert isinstance(found, RouterState)
            found = each(found)
        return found

    return change


def test_a_healthy_network_has_one_finding_that_is_ok() -> None:
    (finding,) = check_routers(PLANE, healthy(), 9000)
    assert (finding.status, finding.host, finding.check, finding.stage) == ("ok", "plane fab", "fabric.bgp", "fabric")
    assert finding.observed == "4 sessions between 4 switches are Established, and all prefixes have all their paths"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (healthy(leaf1=peer("swp1", state="Idle")), ("error", "leaf1 swp1 to spine1 swp1", "Idle; the last session ended with: ")),
        (healthy(leaf1=peer("swp1", policy="Policy")), ("error", "leaf1 swp1 to spine1 swp1", "Established (Policy): no route-map")),
        (
            healthy(leaf1=both(peer("swp2", state="Idle"), port("swp2", up=False))),
            ("error", "leaf1 swp2 to spine2 swp1", "Idle: swp2 of leaf1 has no carrier"),
        ),
        (
            healthy(spine1=both(peer("swp2", state="Active"), port("swp2", addresses=[]))),
            ("error", "spine1 swp2 to leaf2 swp1", "swp2 of spine1 has no IPv6 link-local"),
        ),
        (healthy(leaf2=kernel("10.0.0.101/32", "swp1")), ("error", "leaf2", "1 of 2 paths to leaf1 (10.0.0.101/32)")),
        (healthy(leaf2=kernel("10.1.0.66/31")), ("error", "leaf1", "10.1.0.66/31 of leaf1 is missing on leaf2")),
        (healthy(spine1=lambda seen: replace(seen, bfd=None)), ("error", "spine1", "bfdd does not run")),
        (
            healthy(spine1=lambda seen: replace(seen, bfd={"swp1": "up", "swp2": "down"})),
            ("error", "spine1", "BFD is not up on swp2 (down)"),
        ),
        (healthy(leaf1=lambda seen: replace(seen, sysctls={**seen.sysctls, HASH: 0})), ("error", "leaf1", f"{HASH} is 0, planned 1")),
        (healthy(leaf1=lambda seen: replace(seen, sysctls={FORWARD: 1})), ("unknown", "leaf1", f"{HASH} could not be read")),
        (healthy(spine2=port("swp1", mtu_bytes=1500)), ("error", "spine2 swp1", "its MTU is 1500; the rails have 9000")),
        (
            healthy(leaf1=lambda seen: replace(seen, table=[*seen.table, BgpRoute("172.31.0.0/24", True, 0)])),
            ("error", "leaf1", "announces 172.31.0.0/24 (the management network)"),
        ),
        (
            healthy(leaf1=lambda seen: replace(seen, table=[*seen.table, BgpRoute("0.0.0.0/0", False, 1)])),
            ("error", "leaf1", "has 0.0.0.0/0 (a default route"),
        ),
        (
            healthy(
                leaf1=lambda seen: replace(seen, neighbors={**seen.neighbors, "swp1": replace(seen.neighbors["swp1"], router_id=None)})
            ),
            ("unknown", "leaf1 swp1 to spine1 swp1", "Established, but FRR does not report the router ID"),
        ),
        (healthy(spine2=lambda _seen: "`vtysh` failed"), ("unknown", "spine2", "`vtysh` failed")),
    ],
)
def test_one_fault_is_one_finding(states: States, expected: tuple[str, str, str]) -> None:
    found = brief(states)
    assert len(found) == 1, found
    assert found[0][:2] == expected[:2]
    assert expected[2] in found[0][2]


LOST = "the kernel has 1 of 2 paths that FRR shows to 10.0.0.102/32, 10.1.1.66/31; missing: swp1 to spine1"


def test_paths_that_the_kernel_lost_are_one_finding_that_names_switch_prefixes_and_uplink() -> None:
    """The capture is of the real fault: FRR 8.4.4 shows two paths."""
    (finding,) = check_routers(PLANE, healthy(leaf1=lambda _seen: state("leaf1-lost-path")), 9000)
    assert (finding.status, finding.subject, finding.observed) == ("error", "leaf1", LOST)
    assert "`vtysh -c 'clear bgp swp1'`" in finding.remedy


def lost(prefix: str, *paths: str) -> Change:
    """A route with these paths in the kernel alone."""

    def change(seen: RouterState) -> RouterState:
        assert isinstance(seen.kernel, dict)
        return replace(seen, kernel={**seen.kernel, prefix: list(paths)})

    return change


def test_two_lost_paths_are_two_findings_and_a_route_that_is_not_there_has_none() -> None:
    found = brief(healthy(leaf1=both(lost("10.0.0.102/32", "swp1"), lost("10.1.1.66/31"))))
    assert found == [
        ("error", "leaf1", "the kernel has 1 of 2 paths that FRR shows to 10.0.0.102/32; missing: swp2 to spine2"),
        ("error", "leaf1", "the kernel has 0 of 2 paths that FRR shows to 10.1.1.66/31; missing: swp1 to spine1 and swp2 to spine2"),
    ]


def test_paths_that_frr_does_not_show_are_reported_for_frr_alone() -> None:
    assert brief(healthy(leaf2=kernel("10.0.0.101/32", "swp1"))) == [("error", "leaf2", "1 of 2 paths to leaf1 (10.0.0.101/32)")]


def test_routes_of_the_kernel_that_were_not_read_are_unknown() -> None:
    unread: Change = lambda seen: replace(seen, kernel="`ip` failed")  # noqa: E731
    found = brief(healthy(leaf1=unread, spine1=unread))
    assert found == [("unknown", "leaf1, spine1", "the routes of the kernel are not known: `ip` failed")]


def test_a_session_seen_as_bad_by_its_other_end_alone_is_bad() -> None:
    """The first end may not have noticed yet."""
    (finding,) = brief(healthy(spine2=peer("swp2", state="Idle")))
    assert finding[:2] == ("error", "spine2 swp2 to leaf2 swp2")


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"leaf1": peer("swp1", state="Idle")}, ["leaf1 has 1 of 2 uplinks with a good session"]),
        ({"spine2": peer("swp2", state="Idle")}, ["leaf2 has 1 of 2 uplinks with a good session"]),
        ({"leaf1": peer("swp2", policy="Policy")}, ["leaf1 has 1 of 2 uplinks with a good session"]),
        (
            {"leaf1": both(peer("swp1", state="Idle"), peer("swp2", state="Idle"))},
            ["leaf1 has 0 of 2 uplinks with a good session"] * 2,
        ),
        (
            {"leaf1": peer("swp1", state="Idle"), "leaf2": peer("swp1", state="Idle")},
            ["leaf1 has 1 of 2 uplinks with a good session", "leaf2 has 1 of 2 uplinks with a good session"],
        ),
    ],
    ids=["leaf", "spine", "policy", "both", "two leaves"],
)
def test_a_bad_session_names_the_paths_that_are_left(change: dict[str, Change], left: list[str]) -> None:
    assert [observed.rpartition("; ")[2] for _status, _subject, observed in brief(healthy(**change))] == left


def test_without_planned_mtu_the_ends_of_a_cable_are_compared() -> None:
    assert brief(healthy(spine2=port("swp1", mtu_bytes=1500)), None)[0][2] == "its MTU is 1500; leaf1 swp2 has 9000"


def test_a_host_port_without_a_carrier_is_not_a_missing_route() -> None:
    states = healthy(
        leaf1=port("swp33", up=False), leaf2=kernel("10.1.0.66/31"), spine1=kernel("10.1.0.66/31"), spine2=kernel("10.1.0.66/31")
    )
    assert [status for status, _subject, _observed in brief(states)] == ["ok"]


def test_a_prefix_that_all_miss_is_one_finding_at_its_origin() -> None:
    lost = {name: kernel("10.1.0.66/31") for name in ("leaf2", "spine1", "spine2")}
    assert brief(healthy(**lost)) == [("error", "leaf1", "10.1.0.66/31 of leaf1 is missing on leaf2, spine1, spine2")]


def test_a_plane_of_which_nothing_was_read_is_unknown() -> None:
    assert brief({}) == [("unknown", "leaf1, leaf2, spine1, spine2", "it was not read in this run")]


def test_a_router_with_another_identity_is_named() -> None:
    found = brief(healthy(leaf1=lambda seen: replace(seen, summary=replace(seen.summary, asn=65001))))
    assert ("error", "leaf1", "ASN 65001, router ID 10.0.0.101; planned: ASN 4200000101, router ID 10.0.0.101") in found


PODS = podded(ClosShape(2, 2, 1, 2, 2))


def pods(**changes: Change) -> list[tuple[str, str, str]]:
    """Return the findings on four switches of a network with two pods; the others were not read."""
    read = {
        name: router_state(json.loads((FIXTURES / f"8.4.4-pods-{name}.json").read_text())) for name in ("leaf1", "spine1", "core1", "core2")
    }
    states: States = {name: changes[name](seen) if name in changes else seen for name, seen in read.items()}
    return [(each.status, each.subject, each.observed) for each in check_routers(PODS, states, 9000, ["172.31.0.0/16"])]


def test_a_healthy_network_with_pods_has_no_error() -> None:
    assert pods() == [("unknown", "leaf2, spine2", "it was not read in this run")]


def test_a_path_by_one_of_two_cores_is_named() -> None:
    (_unread, found) = pods(spine1=kernel("10.0.0.2/32", "swp33"))
    assert found == ("error", "spine1", "1 of 2 paths to spine2 (10.0.0.2/32)")


def test_a_core_that_lost_a_pod_is_named() -> None:
    (_unread, found) = pods(core1=kernel("10.1.0.66/31"))
    assert found == ("error", "leaf1", "10.1.0.66/31 of leaf1 is missing on core1")


def test_a_switch_with_another_system_is_not_judged_by_its_kernel_and_has_its_own_remedy() -> None:
    plane = routed(spine_asn="own", switches={"leaf1": {"syntax": "nvue", "port_prefix": None, "port_lanes": None}})
    states = healthy(leaf1=lambda seen: replace(seen, sysctls={}), spine1=kernel("10.0.0.101/32"))
    (found,) = check_routers(plane, states, 9000)
    assert found.observed == "10.0.0.101/32 of leaf1 is missing on spine1"
    assert found.remedy.endswith("for others, the network team applies their files in plan/ of the run folder.")
