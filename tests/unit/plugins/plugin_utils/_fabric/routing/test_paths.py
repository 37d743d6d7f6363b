# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The planned paths against BGP itself: routers that exchange paths until nothing changes, with the planned route-maps and lists."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import Neighbor, RoutedPlane, Router
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.paths import TIERS
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.policy import (
    MapRule,
    PrefixRule,
    community_lists,
    peer_groups,
    prefix_lists,
    route_maps,
)
from lab.clos_plan import ClosShape
from tests.unit.builders.clos import podded

Sessions = Mapping[str, tuple[Neighbor, ...]]


@dataclass(frozen=True)
class Path:
    """routers: from the owner of the prefix to the router that has the path. asns: as BGP has them."""

    routers: tuple[str, ...]
    asns: tuple[int, ...]
    community: str | None = None


class Policies:
    """The route-maps of each router, as they treat one prefix."""

    def __init__(self, plane: RoutedPlane, prefix: str) -> None:
        self.plane = plane
        self.maps: dict[str, dict[str, list[MapRule]]] = {}
        self.groups: dict[tuple[str, Neighbor], tuple[str, str]] = {}
        for name, router in plane.routers.items():
            known = {each for each, rules in prefix_lists(plane, router).items() if any(covers(rule, prefix) for rule in rules)}
            # A rule whose prefix list does not have the prefix does not match.
            self.maps[name] = {
                each: [rule for rule in rules if rule.prefixes is None or rule.prefixes in known]
                for each, rules in route_maps(plane, router)
            }
            for group in peer_groups(plane, router):
                self.groups.update({(name, each): (group.inbound, group.outbound) for each in group.neighbors})

    def apply(self, router: Router, neighbor: Neighbor, outbound: int, path: Path) -> Path | None:
        """Return the path after the route-map to or from a neighbor, None if the map denies it."""
        communities = community_lists(self.plane, router)
        for rule in self.maps[router.name][self.groups[router.name, neighbor][outbound]]:
            if rule.community is None or path.community == communities[rule.community]:
                return Path(path.routers, path.asns, rule.sets or path.community) if rule.permits else None
        return None


def covers(rule: PrefixRule, prefix: str) -> bool:
    network, pool = ipaddress.IPv4Network(prefix), ipaddress.IPv4Network(rule.prefix)
    least = rule.least if rule.least is not None else pool.prefixlen
    most = rule.most if rule.most is not None else (32 if rule.least is not None else least)
    return network.subnet_of(pool) and least <= network.prefixlen <= most


def converged(plane: RoutedPlane, sessions: Sessions, owner: str, prefix: str) -> dict[str, dict[Neighbor, Path]]:
    """Return router → session → the best paths to a prefix, when no router has anything new to announce."""
    best: dict[str, dict[Neighbor, Path]] = {name: {} for name in plane.routers}
    policies = Policies(plane, prefix)
    for _round in range(2 * len(plane.routers)):
        announced = {name: min(paths.values(), key=lambda path: path.routers) for name, paths in best.items() if paths}
        announced[owner] = Path((owner,), ())
        after: dict[str, dict[Neighbor, Path]] = {name: {} for name in plane.routers}
        for name, router in plane.routers.items():
            heard = {}
            for each in sessions[name] if name != owner else ():
                sender = plane.routers[each.name]
                back = next(other for other in sessions[each.name] if other.port == each.its_port)
                sent = announced.get(each.name)
                sent = policies.apply(sender, back, 1, sent) if sent is not None else None
                if sent is None or router.asn in (asns := (sender.asn, *sent.asns)):
                    continue
                path = policies.apply(router, each, 0, Path((*sent.routers, name), asns, sent.community))
                if path is not None:
                    heard[each] = path
            shortest = min((len(path.asns) for path in heard.values()), default=0)
            after[name] = {each: path for each, path in heard.items() if len(path.asns) == shortest}
        if after == best:
            return best
        best = after
    raise AssertionError(f"BGP does not converge for {prefix} of {owner}")


@st.composite
def networks(draw: st.DrawFn) -> tuple[RoutedPlane, Sessions]:
    """Return a plan, and its sessions, of which some are down."""
    pods = draw(st.integers(1, 3))
    cores = draw(st.integers(0 if pods == 1 else 1, 2))
    shape = ClosShape(pods * draw(st.integers(1, 2)), pods * draw(st.integers(1, 2)), 1, cores, pods)
    plane = podded(shape, spine_asn=draw(st.sampled_from(["shared", "own"])))
    cables = sorted(
        {tuple(sorted(((name, each.port), (each.name, each.its_port)))) for name in plane.routers for each in plane.routers[name].neighbors}
    )
    down = draw(st.sets(st.sampled_from(cables), max_size=3))
    sessions = {
        name: tuple(each for each in router.neighbors if tuple(sorted(((name, each.port), (each.name, each.its_port)))) not in down)
        for name, router in plane.routers.items()
    }
    return plane, sessions


@given(networks())
def test_the_expected_widths_are_those_of_bgp_and_no_path_goes_down_and_up(network: tuple[RoutedPlane, Sessions]) -> None:
    plane, sessions = network
    expected = plane.paths_by(sessions)
    for owner, prefixes in plane.own_prefixes.items():
        for prefix in prefixes[-1:]:
            best = converged(plane, sessions, owner, prefix)
            assert {name: len(paths) for name, paths in best.items() if paths} == {
                name: widths[owner] for name, widths in expected.items() if owner in widths
            }
            for paths in best.values():
                for path in paths.values():
                    # From the owner to the router: up, then down. Traffic takes it the other way round.
                    heights = [TIERS.index(plane.routers[name].tier) for name in path.routers]
                    top = heights.index(max(heights))
                    assert heights == [*sorted(heights[:top]), max(heights), *sorted(heights[top + 1 :], reverse=True)]
                    assert len(set(path.routers)) == len(path.routers)


def test_paths_between_pods_use_all_spines_and_all_cores() -> None:
    plane = podded(ClosShape(4, 4, 1, 3, 2))
    assert plane.widths("leaf1") == {
        "leaf2": 2, "leaf3": 2, "leaf4": 2, "spine1": 1, "spine2": 1, "spine3": 2, "spine4": 2, "core1": 2, "core2": 2, "core3": 2,
    }  # fmt: skip
    assert plane.widths("spine1")["leaf4"] == 3
    assert plane.widths("core1") == {"leaf1": 2, "leaf2": 2, "leaf3": 2, "leaf4": 2, "spine1": 1, "spine2": 1, "spine3": 1, "spine4": 1}


def test_spines_of_a_pod_reach_each_other_by_cores_only_with_their_own_asns() -> None:
    shape = ClosShape(2, 4, 0, 2, 2)
    assert "spine2" not in podded(shape).widths("spine1")
    assert podded(shape, spine_asn="own").widths("spine1")["spine2"] == 2
    assert "core2" not in podded(shape, spine_asn="own").widths("core1")
