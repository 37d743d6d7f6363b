# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The growth of a fabric: what stays, what is added, and what would have to move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Cable, Design
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import NoPlanError, plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.laid import csv_text, label, parts_of_port, port_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

COLUMNS = ("change", "label", "from", "from_port", "to", "to_port")
ADD, MOVE, REMOVE = "add", "move to", "remove"


@dataclass(frozen=True)
class Growth:
    """The difference of two designs. moved: an existing cable, and what is at its lower end in the new design (None: nothing)."""

    kept: tuple[Cable, ...]
    added: tuple[Cable, ...]
    moved: tuple[tuple[Cable, Cable | None], ...]
    hosts: int
    switches: int


def growth(existing: Design, design: Design) -> Growth:
    """Return what a fabric needs to become another one. hosts, switches: those that are added."""
    before, after = set(existing.cables), set(design.cables)
    at = {cable.a: cable for cable in design.cables}
    moved = tuple((cable, at.get(cable.a)) for cable in existing.cables if cable not in after)
    # The new place of a moved cable is no further cable.
    places = {cable for _old, cable in moved if cable is not None}
    names = {switch.name for switch in existing.switches}
    return Growth(
        tuple(cable for cable in existing.cables if cable in after),
        tuple(cable for cable in design.cables if cable not in before and cable not in places),
        moved,
        len(set(design.hosts) - set(existing.hosts)),
        sum(switch.name not in names for switch in design.switches),
    )


def growth_text(found: Growth, source: str) -> list[str]:
    """Return the lines for a person. source: the file or the run of the existing fabric."""
    added = f"{found.hosts} hosts, {found.switches} switches, {len(found.added)} cables"
    moved = "none" if not found.moved else f"{len(found.moved)} cables"
    return [
        f"Growth of the fabric in {source}:",
        f"  stay where they are: {len(found.kept)} cables",
        f"  added: {added}",
        f"  must move: {moved}",
    ]


def growth_csv(found: Growth, request: PlanRequest) -> str:
    """Return the cables that are added, moved and removed. A moved one has its old and its new place, a line each."""
    parts = parts_of_port(request)

    def cells(change: str, cable: Cable) -> tuple[str, ...]:
        ends = cable.a.node, port_words(cable.a, parts), cable.b.node, port_words(cable.b, parts)
        return (change, label(cable), *ends)

    def rows() -> Iterator[tuple[str, ...]]:
        for old, new in found.moved:
            yield cells(REMOVE, old)
            if new is not None:
                yield cells(MOVE, new)
        for cable in found.added:
            yield cells(ADD, cable)

    return csv_text(COLUMNS, rows())


def refusal(request: PlanRequest, existing: Design) -> tuple[str, Growth | None]:
    """Return why a fabric cannot grow as requested, with the number that it holds, and what a new plan would move.

    The growth is None if no new plan holds the request either.
    """
    most = most_hosts(request, existing)
    wanted = request.hosts_later
    if most is None:
        words = "The existing fabric does not hold the request even without more hosts: a bound, the switch or the NICs differ."
    else:
        words = f"The existing fabric holds at most {most} hosts without moving a cable; {wanted} are planned: {wanted - most} too many."
    try:
        chosen = next(candidate for candidate in plan(request) if candidate.chosen)
    except NoPlanError:
        return f"{words} No new fabric holds the request either.", None
    if chosen.design is None or chosen.measures is None:
        return words, None
    found = growth(existing, chosen.design)
    steps = [f"Plan for at most {most} hosts"] if most is not None else []
    remedy = "Or remove rdma_plan.existing, for a new plan"
    steps.append(
        f"{remedy}: {chosen.family} with {chosen.measures.switch_count} switches moves {len(found.moved)} of {len(existing.cables)} "
        "existing cables (plan/growth.csv)"
    )
    numbered = " ".join(f"{number}. {step}." for number, step in enumerate(steps, 1))
    return f"{words} {numbered}", found


def most_hosts(request: PlanRequest, existing: Design) -> int | None:
    """Return the most hosts of today that an existing fabric holds without moving a cable, None if it does not even hold its own.

    Between its own number and the requested one, by halving.
    """

    def holds(hosts: int) -> bool:
        try:
            plan(replace(request, hosts=max(hosts, 2), hosts_later=max(hosts, 2)), existing)
        except NoPlanError:
            return False
        return True

    low, high = len(existing.hosts), request.hosts_later
    if not holds(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
