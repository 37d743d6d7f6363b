# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cables of a planned fabric in the format of the fabric stage's cable plan (rdma_fabric.planes.NAME.plan)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import FABRIC, Cable, Design, Plug

HEAD = """\
# The planned cables of plane {plane}: {family}. Set rdma_fabric.planes.{plane}.plan to this file.
# The device of a host is the name of the rail. If a switch reports another name, add its GUID.
"""


def cables_of_planes(design: Design) -> dict[str, list[Cable]]:
    """Return plane → its cables, in the order of the design."""
    planes = {switch.name: switch.plane for switch in design.switches}
    found: dict[str, list[Cable]] = {plane: [] for plane in design.planes}
    for cable in design.cables:
        found[planes.get(cable.b.node, FABRIC)].append(cable)
    return found


def cable_plans(design: Design) -> dict[str, str]:
    """Return plane → text of its cable plan."""
    return {plane: "".join(_lines(design, plane, cables)) for plane, cables in cables_of_planes(design).items()}


def _lines(design: Design, plane: str, cables: list[Cable]) -> Iterator[str]:
    yield HEAD.format(plane=plane, family=design.family)
    switches = [switch for switch in design.switches if switch.plane == plane]
    yield "switches:\n" if switches else "switches: {}\n"
    for switch in switches:
        yield f"  {switch.name}: {{tier: {switch.tier}}}\n"
    yield "links:\n"
    for nodes, group in groupby(cables, key=lambda cable: (cable.a.node, cable.b.node, cable.a.rail)):
        run = list(group)
        if nodes[2] is None:
            low, high = (_ports([end(cable) for cable in run]) for end in (_port_a, _port_b))
            yield f"  - {{from: {_quoted(nodes[0], low)}, to: {_quoted(nodes[1], high)}}}\n"
        else:
            for cable in run:
                yield f"  - {{from: {_end(cable.a)}, to: {_end(cable.b)}}}\n"


def _port_a(cable: Cable) -> int:
    return cable.a.port


def _port_b(cable: Cable) -> int:
    return cable.b.port


def _end(plug: Plug) -> str:
    return f"{plug.node} {plug.rail}" if plug.rail is not None else f"{plug.node}/{plug.port}"


def _quoted(node: str, ports: str) -> str:
    """Return the end of several cables. A comma would end a value of YAML that is not quoted."""
    return f'"{node}/{ports}"' if "," in ports else f"{node}/{ports}"


def _ports(ports: list[int]) -> str:
    """Return "33-40" for consecutive ports, else "1,3,5"."""
    if len(ports) > 1 and ports == list(range(ports[0], ports[0] + len(ports))):
        return f"{ports[0]}-{ports[-1]}"
    return ",".join(map(str, ports))
