# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The summary of a plan and the printable list of cables by rack, as pages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate, Measures
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.bill import COLUMNS
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.laid import Laid, parts_of_port, port_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.page import Page, Section, Table
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.places import Place, rack_order
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.table import (
    comparison_rows,
    failure_rows,
    figure_lines,
    head_lines,
    price_lines,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

#: The files that the summary explains.
FILES = (
    ("cables.csv, cables.html", "every cable: label, ends, kind, length; the page is by rack, for printing"),
    ("cabling/PLANE.yml", "the cables for rdma_fabric.planes.PLANE.plan"),
    ("inventory.yml", "the inventory; its first lines say what to fill in"),
    ("ports/SWITCH.csv", "the ports of each switch"),
    ("drawings/PLANE.svg, .graphml, .dot", "the plane as a drawing and as graphs"),
    ("bom.csv", "the bill of materials"),
    ("topology.json", "the whole plan; rdma_plan.existing reads it when the fabric grows"),
)


def summary(
    request: PlanRequest, candidates: Sequence[Candidate], rows: Sequence[Laid], bill: Sequence[Sequence[str]], growth: Sequence[str] = ()
) -> Page:
    """Return the summary. bill: the cells of the bill of materials. growth: the lines on the growth of an existing fabric."""
    chosen = next(candidate for candidate in candidates if candidate.chosen)
    head, *table = comparison_rows(candidates)
    sections = [Section("Request", list(head_lines(request))), Section("Comparison", list(price_lines(request)), [Table(head, table)])]
    if growth:
        sections.append(Section("Growth", [line.strip() for line in growth]))
    if chosen.measures is not None:
        sections += list(_chosen(request, chosen.family, chosen.measures))
    kinds = Counter((row.kind, row.length_m) for row in rows)
    lengths = [(kind, f"{meters:g}", str(count)) for (kind, meters), count in sorted(kinds.items())]
    note = _split_note(request)
    sections += [
        Section("Cables by length", note, [Table(("kind", "length m", "count"), lengths)]),
        Section("Bill of materials", note, [Table(COLUMNS, bill)]),
        Section("Files", tables=[Table(("file", "content"), FILES)]),
    ]
    return Page(f"Plan of a fabric for {request.hosts} hosts: {chosen.family}", sections)


def _chosen(request: PlanRequest, family: str, measures: Measures) -> Iterator[Section]:
    yield Section(f"Chosen: {family}", list(figure_lines(request, measures)))
    head, *rows = failure_rows(measures)
    words = "NICs cut: NICs without a link. left: bisection of all planes, and as a share of the plane of the failure."
    yield Section("The cost of one failure", [words], [Table(head, rows)])


def _split_note(request: PlanRequest) -> list[str]:
    parts = parts_of_port(request)
    return [f"Ports are split into {parts} parts. Each part is counted as a cable; a breakout cable holds several."] if parts > 1 else []


def cable_pages(rows: Sequence[Laid], at: dict[str, Place], request: PlanRequest) -> Page:
    """Return the cables by rack: a section for each rack with the nodes in it and each cable that ends there."""
    parts = parts_of_port(request)
    by_rack: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for row in rows:
        cable, kind = row.cable, f"{row.kind} {row.length_m:g} m"
        ends = [(plug.node, port_words(plug, parts), rack) for plug, rack in zip((cable.a, cable.b), row.racks, strict=True)]
        for (node, port, rack), (other, far, far_rack) in (ends, ends[::-1]):
            by_rack[rack].append((row.label, node, port, other, far, far_rack, kind))
    nodes: dict[str, list[str]] = defaultdict(list)
    for name, place in at.items():
        nodes[place.rack].append(name)
    head = ("label", "here", "port", "to", "port", "rack", "cable")
    racks = sorted(nodes, key=rack_order)
    sections = [
        Section(f"Rack {rack}", [f"In it: {', '.join(nodes[rack])}"], [Table(head, by_rack[rack])], own_page=True) for rack in racks
    ]
    return Page("Cables by rack", sections)
