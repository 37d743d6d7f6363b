# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a link is good: its port states, and its rate against the supported rate, the plan and similar links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Link, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.rate import LANES, SPEEDS, TOLERANCE
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, Rate, View, rate_of

#: The port states of a good link, if reported.
WELL = (None, "ACTIVE")
UP = (None, "LinkUp")


@dataclass(frozen=True)
class Faults:
    """The faults of a link; empty for a good one. not_up: ends with their ports.

    could_be: the rate that both ends support, if the link is slower and has not reached its planned rate. planned_gbps: the planned rate,
    if the link has not reached it. usual: the rate of most similar links, if this one has fewer lanes or is slower and no rate is planned.
    """

    not_up: tuple[tuple[End, Port], ...] = ()
    could_be: Rate | None = None
    planned_gbps: float | None = None
    usual: Rate | None = None


def faults(view: View, link: Link) -> Faults:
    """Return the faults of a link of the view's graph. Rates apply only to cabling: a device inside a switch has no similar links."""
    not_up = tuple(_not_up(view, link))
    rate = rate_of(link) if link.a in view.link_at else None
    if rate is None:
        return Faults(not_up)
    planned_gbps = _planned_gbps(view, link)
    short = planned_gbps is not None and link.rate_gbps is not None and link.rate_gbps < planned_gbps * (1 - TOLERANCE)
    usual = view.usual_rates.get(view.kind(link)) if planned_gbps is None else None
    less = usual is not None and (rate[0] < usual[0] or SPEEDS.index(rate[1]) < SPEEDS.index(usual[1]))
    could_be = _could_be(view, link, rate) if short or planned_gbps is None else None
    return Faults(not_up, could_be, planned_gbps if short else None, usual if less else None)


def _not_up(view: View, link: Link) -> Iterator[tuple[End, Port]]:
    for end in (link.a, link.b):
        node = view.graph.nodes.get(end[0])
        port = node.ports.get(end[1]) if node is not None else None
        if port is not None and (port.state not in WELL or port.physical not in UP):
            yield end, port


def _could_be(view: View, link: Link, rate: Rate) -> Rate | None:
    """Return the better rate that iblinkinfo shows at either end, if it is better.

    Ports that support 12 lanes report so, but no current cable has them: a full link has LANES lanes.
    """
    for end in (link.a, link.b):
        port = view.port(end)
        width, speed = (port.could_be if port is not None else None) or (None, None)
        could = (min(width or rate[0], max(LANES, rate[0])), speed if speed in SPEEDS else rate[1])
        if could[0] > rate[0] or SPEEDS.index(could[1]) > SPEEDS.index(rate[1]):
            return could
    return None


def _planned_gbps(view: View, link: Link) -> float | None:
    for guid, _port in (link.a, link.b):
        if (planned := view.planned(guid)) is not None:
            return planned.rate_gbps
    return None
