# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All files of a plan, made from the same cables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.cost import prices_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.report import decision_text, plan_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.bill import bill, bill_csv, bill_rows
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.cabling import cable_plans
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.drawing import drawings
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.growth import growth, growth_csv, growth_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.inventory import inventory
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.laid import cables_csv, laid_cables, parts_of_port, port_maps
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.page import html, markdown
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.places import Place, places
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.stored import Existing, to_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.summary import cable_pages, summary
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.table import plan_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest


@dataclass(frozen=True)
class Written:
    """text: what is printed. files: name in the folder of the plan → text."""

    text: str
    files: dict[str, str]


def files_of(request: PlanRequest, candidates: Sequence[Candidate], existing: Existing | None = None, source: str = "") -> Written:
    """Return the text and all files of a plan. existing: the fabric that grows; source: the file or the run that it is from.

    Raises ParseError if the room is not that of the existing fabric.
    """
    design = next(candidate.design for candidate in candidates if candidate.chosen)
    if design is None:
        raise ParseError("the chosen candidate has no design")
    kept = None if existing is None else _places_of(existing, request)
    at = places(design, request.room, kept)
    rows = laid_cables(design, request, at, frozenset(existing.design.cables) if existing is not None else frozenset())
    parts = parts_of_port(request)
    items = bill(design, rows, _nics(request, existing), _switches(existing))
    prices = prices_of(plan_of(request), request.switch)
    grown = None if existing is None else growth(existing.design, design)
    lines = [] if grown is None else growth_text(grown, source)
    page = summary(request, candidates, rows, bill_rows(items, prices), lines)
    decision = decision_text(request, candidates, {row.cable: row.length_m for row in rows})
    text = "\n\n".join(part for part in (plan_text(request, candidates), "\n".join(lines), decision) if part)
    found = {
        "topology.json": json.dumps(to_dict(request, candidates, at), indent=1, sort_keys=True) + "\n",
        "topology.txt": text + "\n",
        "summary.md": markdown(page),
        "summary.html": html(page),
        "cables.csv": cables_csv(rows, parts),
        "cables.html": html(cable_pages(rows, at, request)),
        "bom.csv": bill_csv(items, prices),
        "inventory.yml": inventory(design, request, at),
        **{f"cabling/{plane}.yml": plan for plane, plan in cable_plans(design).items()},
        **{f"ports/{switch}.csv": ports for switch, ports in port_maps(design, rows, parts).items()},
        **{f"drawings/{name}": drawing for name, drawing in drawings(design).items()},
    }
    if grown is not None:
        found["growth.csv"] = growth_csv(grown, request)
    return Written(text, found)


def _places_of(existing: Existing, request: PlanRequest) -> Mapping[str, Place]:
    """Return the places of an existing fabric. Raises ParseError if its room is another one, because all its cables would move."""
    before, room = existing.room, request.room
    if before is not None and before != room:
        differ = [key for key in before.__dict__ if getattr(before, key) != getattr(room, key)]
        words = ", ".join(f"{key} is {getattr(room, key):g} and was {getattr(before, key):g}" for key in differ)
        raise ParseError(f"rdma_plan.room and hosts_per_rack must be those of the existing fabric: {words}")
    return existing.places or places(existing.design, room)


def _nics(request: PlanRequest, existing: Existing | None) -> tuple[int, int]:
    """Return all NICs and the new ones; (0, 0) if the request does not count them."""
    prices = request.sections.get("prices")
    if not isinstance(prices, Mapping) or not prices["nics"]:
        return 0, 0
    before = 0 if existing is None else len(existing.design.hosts)
    return request.hosts * request.nics_per_host, (request.hosts - before) * request.nics_per_host


def _switches(existing: Existing | None) -> frozenset[str]:
    return frozenset() if existing is None else frozenset(switch.name for switch in existing.design.switches)
