# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a link is well: what its ports say of themselves, and its rate beside what it could be, is planned to be, and its like have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._fabric.graph import Link, Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.rate import LANES, SPEEDS, TOLERANCE
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import End, Rate, View, rate_of

#: What a port that is well says of itself, if anything.
WELL = (None, "ACTIVE")
UP = (None, "LinkUp")


@dataclass(frozen=True)
class Faults:
    """What speaks against a link; of one that is well nothing. not_up: ends with their ports.

    could_be: what both ends could do, and the link does not, unless it reaches its planned rate; planned_gbps: what it is planned to
    reach, and does not; usual: what most of its like run at, if it has fewer lanes or is slower, and no rate is planned.
    """

    not_up: tuple[tuple[End, Port], ...] = ()
    could_be: Rate | None = None
    planned_gbps: float | None = None
    usual: Rate | None = None


def faults(view: View, link: Link) -> Faults:
    """Of any link of the view's graph; rates only of those that are cabling, for a device inside a switch has no like."""
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
    """The better rate that iblinkinfo names at either end, where it is better.

    Ports that could do 12 lanes say so, and no cable of today has them: whole is a link of LANES.
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
