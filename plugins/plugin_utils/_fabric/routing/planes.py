# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All routed planes of a fleet, from the intents of its hosts and the cabling plans, and their text for a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent, RoutingIntent
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.cabling.plan import parse_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.hosts import (
    Interfaces,
    peer_problems,
    with_identities,
    with_interfaces,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane, RoutingError
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.plan import make_plan, rail_problems, twice
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known

Wanted = tuple[RoutingIntent, str | None]


def routed_planes(
    intents: Mapping[str, Intent], read_plan: Callable[[str], str], interfaces: Interfaces | None = None
) -> list[RoutedPlane]:
    """Return the plan of each plane with `routing`, by name. read_plan: returns the text of a cabling plan, or raises ParseError.

    interfaces: those of the rails of hosts that speak BGP, as far as they are known.
    Raises RoutingError with all problems: hosts that disagree, cables and pools that cannot be routed, rails with other addresses.
    """
    wanted: dict[str, list[tuple[Wanted, str]]] = {}
    for host, intent in intents.items():
        for name, plane in intent["fabric"]["planes"].items():
            if plane["routing"] is not None:
                wanted.setdefault(name, []).append(((plane["routing"], plane["plan"]), host))
    problems: list[str] = []
    planes: list[RoutedPlane] = []
    for name, given in sorted(wanted.items()):
        (settings, file), first = given[0]
        if others := [host for each, host in given if each != (settings, file)]:
            problems.append(f"plane {name}: {', '.join(others[:4])} and {first} have different routing or plans: a plane has one")
            continue
        try:
            planes.append(make_plan(name, settings, parse_plan(read_plan(str(file)))))
        except RoutingError as error:
            problems.append(str(error))
    planes, doubled = with_identities(planes)
    of_rails = (problem for plane in planes for problem in (*rail_problems(plane, intents), *peer_problems(plane, intents)))
    problems += [*twice(planes), *doubled, *of_rails]
    if problems:
        raise RoutingError("\n".join(problems))
    return [with_interfaces(plane, interfaces or {}) for plane in planes]


def host_interfaces(known: Mapping[str, Known]) -> dict[tuple[str, str], str]:
    """Return (host, rail) → interface of the hosts with facts."""
    rails = ((host, rail) for host, each in known.items() if each.intent is not None for rail in resolve(each.intent["rails"], each.facts))
    return {(host, rail.name): rail.interface for host, rail in rails if rail.interface is not None}


def plan_text(planes: Sequence[RoutedPlane]) -> str:
    """Return a table of the switches of each plane, without a final line break."""
    if not planes:
        return "No plane has routing (rdma_fabric.planes.NAME.routing)."
    parts = ["The routed planes: what each switch is, and its neighbors. Nothing was changed."]
    for plane in planes:
        rows = [("switch", "syntax", "ASN", "loopback", "hosts", "neighbors")]
        rows += [
            (
                each.name,
                each.syntax,
                str(each.asn),
                each.loopback,
                each.subnet or "-",
                ", ".join(f"{it.port} {it.name}" for it in each.sessions),
            )
            for each in plane.speakers.values()
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
        lines = ["  ".join([*(f"{text:{width}}" for text, width in zip(row[:-1], widths, strict=True)), row[-1]]).rstrip() for row in rows]
        ports = [
            f"{port.host} {port.device}: address {port.host_address}, gateway {port.address.partition('/')[0]} ({each.name} {port.port})"
            for each in plane.routers.values()
            for port in each.host_ports
        ]
        parts.append("\n".join([f"plane {plane.name}:", *lines, *(["", "The rails:", *ports] if ports else [])]))
    return "\n\n".join(parts)
