# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a convergence drill: each allowed fault, the two hosts that measure it, and what speaks against it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import DrillFault
from ansible_collections.rdma.cluster.plugins.module_utils._drill.fault import CUT, KINDS, PORTS_DOWN, SILENCE, STOP_FRR
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import HostPort, RoutedPlane, Router
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.paths import SPINE

#: Faults of one port, and of a whole switch.
PORT_FAULTS, SWITCH_FAULTS = (CUT, SILENCE), (STOP_FRR, PORTS_DOWN)
#: A step has so many flows that with this probability none of them uses the port of the fault.
MISSED = 1e-4
LEAST_FLOWS, MOST_FLOWS = 8, 256
BOTH = "give switch, for a fault of a switch, or host and rail, for one of a host, not both"
WORDS = {
    CUT: "set {ports} of {switch} down (its carrier is lost at both ends)",
    SILENCE: "drop every packet at {ports} of {switch} (its carrier stays)",
    STOP_FRR: "stop frr.service of {switch}, and start it again",
    PORTS_DOWN: "set all uplinks of {switch} down ({ports})",
}


@dataclass(frozen=True)
class Step:
    """One fault. ports: the uplinks that it touches. ends: host → its rail's address, without prefix length; they are on two leaves.

    paths: the planned number of equal paths between the ends. bfd: whether BFD watches the sessions, by the plan.
    """

    kind: str
    switch: str
    ports: list[str]
    plane: str
    ends: dict[str, str]
    paths: int
    bfd: bool

    @property
    def place(self) -> str:
        """Return where the fault is made, as the name of a host in the inventory."""
        return self.switch

    @property
    def name(self) -> str:
        """Return the name in messages and in the stored results: "silence leaf1 swp1"."""
        return " ".join([self.kind, self.switch, *(self.ports if self.kind in PORT_FAULTS else [])])

    @property
    def words(self) -> str:
        """Return what the step does, for a person."""
        does = WORDS[self.kind].format(switch=self.switch, ports=", ".join(self.ports))
        return f"{does}, and measure between {' and '.join(f'{host} ({address})' for host, address in self.ends.items())}"

    @property
    def flows(self) -> int:
        """Return the number of flows, so many that the port of the fault is used."""
        if self.paths < 2:
            return LEAST_FLOWS
        return min(max(math.ceil(math.log(MISSED) / math.log(1 - 1 / self.paths)), LEAST_FLOWS), MOST_FLOWS)


def plan_steps(allowed: Sequence[DrillFault], planes: Sequence[RoutedPlane], hosts: Sequence[str]) -> tuple[list[Step], list[str]]:
    """Return the steps in the order of rdma_drill.allow, and the problems, a sentence each. hosts: those of the play."""
    steps: list[Step] = []
    problems: list[str] = []
    for number, fault in enumerate(allowed):
        if is_of_host(fault):
            continue
        made = _step(fault, planes, hosts)
        if isinstance(made, str):
            problems.append(f"rdma_drill.allow[{number}]: {made}")
        elif made in steps:
            problems.append(f"rdma_drill.allow[{number}]: {made.name} is listed twice")
        else:
            steps.append(made)
    return steps, problems


def is_of_host(fault: DrillFault) -> bool:
    """Return whether a permission is one of the drill of hosts, not of that of switches."""
    return fault["host"] is not None and fault["switch"] is None


def _step(fault: DrillFault, planes: Sequence[RoutedPlane], hosts: Sequence[str]) -> Step | str:
    """Return the step of a permission, or why there is none."""
    name, port, kind = fault["switch"], fault["port"], fault["fault"]
    routers = {router: plane for plane in planes for router in plane.routers}
    if name is None or name not in routers or kind not in KINDS or fault["host"] or fault["rail"]:
        return _unusable(fault, list(routers))
    plane = routers[name]
    router = plane.routers[name]
    if wrong := _wrong_place(router, port, kind):
        return wrong
    ends = next(_ends(plane, router, port, hosts), None)
    if ends is None:
        return f"no two hosts of this run use {name}: the drill needs a host on each of two leaves that it connects"
    paths = plane.widths(ends[0][0])[ends[1][0]]
    if paths < 2:
        return f"there is no other path from {ends[0][0]} to {ends[1][0]}, so traffic would stop until the fault ends"
    addresses = {port.host: port.host_address.partition("/")[0] for _leaf, port in ends}
    ports = [str(port)] if kind in PORT_FAULTS else [each.port for each in router.neighbors]
    return Step(kind, name, ports, plane.name, addresses, paths, plane.settings["bfd"])


def _unusable(fault: DrillFault, routers: Sequence[str]) -> str:
    """Return why a permission is not one of a known switch."""
    name = fault["switch"]
    if name is None or fault["host"] is not None or fault["rail"] is not None:
        return BOTH
    if fault["fault"] not in KINDS:
        return f"{fault['fault']} is a fault of a host: give host and rail, not switch"
    near = difflib.get_close_matches(name, routers, n=1)
    return f"{name} is not a switch of a routed plane{f'; did you mean {near[0]}?' if near else ''}"


def _wrong_place(router: Router, port: str | None, kind: str) -> str:
    """Return why a kind of fault cannot be made at this port, or at this switch without one; "" if it can."""
    uplinks = [each.port for each in router.neighbors]
    if kind in PORT_FAULTS and port in [each.port for each in router.host_ports]:
        return f"{port} of {router.name} leads to a host, which has no other path. Name an uplink: {', '.join(uplinks)}"
    if kind in PORT_FAULTS and port not in uplinks:
        return f"{kind} needs the port of an uplink of {router.name}: {', '.join(uplinks)}; got {port}"
    if kind in SWITCH_FAULTS and port is not None:
        return f"{kind} concerns the whole switch: leave out port"
    if kind in SWITCH_FAULTS and router.tier != SPINE:
        return f"{kind} of {router.name} would cut its hosts off, because it is a leaf. Allow it for a spine"
    return ""


Ends = tuple[tuple[str, HostPort], tuple[str, HostPort]]


def _ends(plane: RoutedPlane, router: Router, port: str | None, hosts: Sequence[str]) -> Iterator[Ends]:
    """Yield two hosts, each with its leaf, whose packets may pass the switch, and the port if one is given."""
    near = [each.name for each in router.neighbors if port is None or each.port == port]
    if router.tier == SPINE:
        firsts, seconds = near, [each.name for each in router.neighbors]
    else:
        firsts, seconds = [router.name], [each.name for spine in near for each in plane.routers[spine].neighbors]
    for first in firsts:
        for second in seconds:
            if first != second:
                for one in _host_ports(plane, first, hosts):
                    for other in _host_ports(plane, second, hosts):
                        if one.host != other.host:
                            yield (first, one), (second, other)


def _host_ports(plane: RoutedPlane, leaf: str, hosts: Sequence[str]) -> list[HostPort]:
    return [port for port in plane.routers[leaf].host_ports if port.host in hosts]


def steps_text(steps: Sequence[Step], hold_seconds: int) -> str:
    """Return the list of all steps, without a final line break."""
    if not steps:
        return "The drill has no step: rdma_drill.allow permits no fault of a switch. Nothing was changed."
    head = f"The steps of the drill, one after the other; each fault lasts {hold_seconds} s:"
    return "\n".join([head, *(f"{number}. {step.name}: {step.words}." for number, step in enumerate(steps, 1))])
