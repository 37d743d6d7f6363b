# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The comparison of the routers of a plane with their plan: what was read of them, and the findings so far."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._routing.read import RouterState
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import Neighbor, RoutedPlane
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import PLANE

STAGE, CHECK = "fabric", "fabric.bgp"

declare(
    {
        CHECK: Check(
            STAGE,
            "the routers of a plane with `routing`, and its hosts with `hosts_peer`: each session and what is at its other end, the "
            "routes, the number of equal paths in FRR and in the kernel, prefixes that are not planned, BFD, the hash policy, the MTU of "
            "the uplinks",
            "on each of them `vtysh -c 'show bgp summary json'`, the neighbors, the tables of BGP and of routes, `show bfd peers json`, "
            "`show interface json`, `ip -json -4 route show`, and sysctl",
            "apply the planned configuration with `rdma.cluster.routed`; correct the cable that leads to another switch",
            sources=(reads.result("routers"),),
        ),
    }
)

APPLY = "`ansible-playbook rdma.cluster.routed -e frr_allowed=true`"
#: In a plane with switches that the collection does not configure.
VENDORS = f"{APPLY} for switches with FRR; for others, the network team applies their files in plan/ of the run folder"
_EXPECTED = {
    "read": "every switch of the plan is read, and every host of this run that speaks BGP",
    "session": "each planned session is Established with the planned switch",
    "route": "every switch has each planned prefix by all equal paths",
    "path": "the kernel has all paths that FRR shows",
    "leak": "the fabric carries only the planned loopbacks and host ports",
    "bfd": "BFD is up on each uplink",
    "kernel": "the switch forwards, and its hash policy is the planned one",
    "mtu": "all uplinks have the MTU of the rails",
}
#: A cable, by its two ends (switch or host, port).
Cable = frozenset[tuple[str, str]]
State = RouterState | str


@dataclass
class Judge:
    """The comparison of one plane.

    states: switch or host → what was read, or why nothing was. elsewhere: the prefixes of other planes, in which hosts may be too. up: the
    cables with a good session.
    """

    plane: RoutedPlane
    states: Mapping[str, State]
    mtu_bytes: int | None
    management: Sequence[str]
    elsewhere: Collection[str] = ()
    findings: list[Finding] = field(default_factory=list)
    up: set[Cable] = field(default_factory=set)

    def add(self, status: str, subject: str, observed: str, expected: str, remedy: str) -> None:
        host = f"{PLANE}{self.plane.name}"
        if any(router.syntax != "frr" for router in self.plane.routers.values()):
            remedy = remedy.replace(APPLY, VENDORS)
        self.findings.append(Finding(STAGE, CHECK, host, subject, status, observed, _EXPECTED[expected], remedy))

    def read(self) -> dict[str, RouterState]:
        return {name: state for name, state in self.states.items() if isinstance(state, RouterState)}

    def good(self, name: str) -> Iterator[Neighbor]:
        """Yield the neighbors by good sessions. A session with an unread end counts by what the other end reports."""
        for each in self.plane.speakers[name].sessions:
            if cable_of(name, each) in self.up:
                yield each


def cable_of(name: str, neighbor: Neighbor) -> Cable:
    """Return the cable between a router and a neighbor of it."""
    return frozenset({(name, neighbor.port), (neighbor.name, neighbor.its_port)})
