# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cables as they are laid: each with its label, kind, length and racks. All lists of a plan are made from these rows."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import FABRIC, Cable, Design, Plug
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.cost import cable_kind
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.places import Place, lengths
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

CABLE_COLUMNS = (
    "label", "from", "from_port", "to", "to_port", "kind", "length_m", "gbps", "plane", "from_rack", "to_rack", "status",
)  # fmt: skip
PORT_COLUMNS = ("plane", "port", "number", "kind", "to", "its_end", "label", "cable", "length_m")
EXISTING, NEW = "existing", "new"
#: Characters with which a spreadsheet begins a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Laid:
    """A cable with its label, kind and length. racks: of both ends. is_new: it is not in the existing fabric."""

    cable: Cable
    label: str
    plane: str
    kind: str
    length_m: float
    racks: tuple[str, str]
    is_new: bool


def laid_cables(design: Design, request: PlanRequest, at: Mapping[str, Place], existing: Collection[Cable] = frozenset()) -> list[Laid]:
    """Return the cables of a design in its order. at: host or switch → place. existing: cables that are laid already."""
    planes = {switch.name: switch.plane for switch in design.switches}
    long = lengths(design, at, request.room)
    return [
        Laid(
            cable,
            label(cable),
            planes.get(cable.b.node, FABRIC),
            cable_kind(long[cable], request.cables.dac_max_m, request.cables.aoc_max_m),
            long[cable],
            (at[cable.a.node].rack, at[cable.b.node].rack),
            cable not in existing,
        )
        for cable in design.cables
    ]


def label(cable: Cable) -> str:
    """Return the label of a cable: its lower end, "node1-p1" or "leaf3-p33". A port has one cable, so no other has this label."""
    return f"{cable.a.node}-p{cable.a.port}"


def port_words(plug: Plug, parts: int) -> str:
    """Return a port as it is written on a label: "rail3", "33", or "33/2", the second part of port 33. parts: of a split port."""
    if plug.rail is not None:
        return plug.rail
    return str(plug.port) if parts == 1 else f"{(plug.port - 1) // parts + 1}/{(plug.port - 1) % parts + 1}"


def parts_of_port(request: PlanRequest) -> int:
    """Return the numbers of ports that a physical port of a switch takes."""
    return max(request.host_parts, request.uplink_parts)


def cables_csv(rows: Iterable[Laid], parts: int) -> str:
    """Return the cabling list."""
    return csv_text(
        CABLE_COLUMNS,
        (
            (
                row.label, row.cable.a.node, port_words(row.cable.a, parts), row.cable.b.node, port_words(row.cable.b, parts), row.kind,
                f"{row.length_m:g}", f"{row.cable.gbps:g}", row.plane, *row.racks, NEW if row.is_new else EXISTING,
            )
            for row in rows
        ),
    )  # fmt: skip


def port_maps(design: Design, rows: Iterable[Laid], parts: int) -> dict[str, str]:
    """Return switch → the CSV of its used ports, in the order of their numbers. number: as in the cable plan."""
    ends: dict[str, list[tuple[Plug, Plug, Laid]]] = defaultdict(list)
    for row in rows:
        ends[row.cable.a.node].append((row.cable.a, row.cable.b, row))
        ends[row.cable.b.node].append((row.cable.b, row.cable.a, row))
    found = {}
    for switch in design.switches:
        its = sorted(ends[switch.name], key=_number)
        found[switch.name] = csv_text(PORT_COLUMNS, (_port_cells(*each, parts) for each in its))
    return found


def _number(end: tuple[Plug, Plug, Laid]) -> int:
    return end[0].port


def _port_cells(plug: Plug, other: Plug, row: Laid, parts: int) -> tuple[str, ...]:
    kind = "host" if other.rail is not None else "switch"
    end = other.rail or f"port {port_words(other, parts)}"
    words = (row.plane, f"port {port_words(plug, parts)}", str(plug.port), kind, other.node, end)
    return (*words, row.label, row.kind, f"{row.length_m:g}")


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as CSV with a header."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([cell(text) for text in row] for row in rows)
    return stream.getvalue()


def cell(text: str) -> str:
    """Return a cell that no spreadsheet reads as a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
