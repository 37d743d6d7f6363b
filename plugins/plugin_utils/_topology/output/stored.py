# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""plan/topology.json: the comparison and the chosen design. A later plan reads the design back to keep its cables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import HOST, NAME, Form, is_form
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Cable, Candidate, Design, Plug, Switch
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.places import Place, is_rack
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest, Room

SCHEMA = 1
_COUNTS = ("hosts_per_rack", "racks_per_row")
_SWITCH_KEYS = ("name", "tier", "plane", "number", "model")


@dataclass(frozen=True)
class Existing:
    """A fabric that exists, from its topology.json. places: host or switch → place; room: None if the file has none."""

    design: Design
    places: Mapping[str, Place]
    room: Room | None


def to_dict(request: PlanRequest, candidates: Sequence[Candidate], at: Mapping[str, Place]) -> dict[str, Any]:
    """Return the content of plan/topology.json. A cable is one text: "node1 1 rail0 leaf1 1 400". A place is one too: "R1 4"."""
    chosen = next(candidate for candidate in candidates if candidate.chosen)
    return {
        "schema": SCHEMA,
        "request": asdict(request),
        "candidates": [_candidate(candidate) for candidate in candidates],
        "design": None if chosen.design is None else _design(chosen.design),
        "room": asdict(request.room),
        "places": {name: f"{place.rack} {place.slot}" for name, place in at.items()},
    }


def read_existing(data: Any) -> Existing:
    """Return the fabric in the content of plan/topology.json. Raises ParseError."""
    design = read_design(data)
    try:
        room = data.get("room")
        return Existing(
            design,
            {str(name): _place(text) for name, text in data.get("places", {}).items()},
            None if room is None else _room(room),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ParseError(f"it is not a plan/topology.json of this collection ({type(error).__name__}: {error})") from error


def _room(stored: Mapping[str, Any]) -> Room:
    counts = {key: int(stored[key]) for key in _COUNTS}
    return Room(**counts, **{key: float(value) for key, value in stored.items() if key not in _COUNTS})  # type: ignore[arg-type]


def _place(text: Any) -> Place:
    rack, slot = text.split(" ")
    if not is_rack(rack) or int(slot) < 1:
        raise ValueError(f"the place {ascii(text)[:80]}")
    return Place(rack, int(slot))


def read_design(data: Any) -> Design:
    """Return the design in the content of plan/topology.json. Raises ParseError."""
    try:
        stored = data["design"]
        design = Design(
            str(stored["family"]),
            tuple(map(str, stored["hosts"])),
            tuple(map(str, stored["planes"])),
            tuple(_switch(each) for each in stored["switches"]),
            tuple(_cable(each) for each in stored["cables"]),
        )
        _refuse_names(design)
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError(f"it is not a plan/topology.json of this collection ({type(error).__name__}: {error})") from error
    return design


def _refuse_names(design: Design) -> None:
    """Raise ValueError for a name that is no host, switch or plane of a plan, for example because it leads out of a folder."""
    wrong = [name for form, names in _names(design) for name in names if not is_form(form, name)]
    if wrong:
        raise ValueError(f"the name {ascii(wrong[0])[:80]}")
    nodes = {*design.hosts, *(switch.name for switch in design.switches)}
    other = [plug.node for cable in design.cables for plug in (cable.a, cable.b) if plug.node not in nodes]
    if other:
        raise ValueError(f"a cable of {ascii(other[0])[:80]}, which is no host and no switch")


def _names(design: Design) -> Iterator[tuple[Form, Sequence[str]]]:
    yield HOST, [*design.hosts, *(switch.name for switch in design.switches)]
    yield NAME, [*design.planes, *(switch.plane for switch in design.switches), *(switch.model for switch in design.switches)]
    yield NAME, [plug.rail for cable in design.cables for plug in (cable.a, cable.b) if plug.rail is not None]


def _candidate(candidate: Candidate) -> dict[str, Any]:
    found = {name: getattr(candidate, name) for name in ("family", "cost", "chosen", "why_not", "hosts_at_most")}
    for name in ("measures", "measures_later"):
        value = getattr(candidate, name)
        found[name] = None if value is None else asdict(value)
    return found


def _design(design: Design) -> dict[str, Any]:
    return {
        "family": design.family,
        "hosts": list(design.hosts),
        "planes": list(design.planes),
        "switches": [" ".join(str(getattr(switch, key)) for key in _SWITCH_KEYS) for switch in design.switches],
        "cables": [f"{_plug(cable.a)} {_plug(cable.b)} {cable.gbps:g}" for cable in design.cables],
    }


def _plug(plug: Plug) -> str:
    return f"{plug.node} {plug.port}" if plug.rail is None else f"{plug.node} {plug.port} {plug.rail}"


def _switch(text: str) -> Switch:
    name, tier, plane, number, model = text.split(" ")
    return Switch(name, tier, plane, int(number), model)


def _cable(text: str) -> Cable:
    words = text.split(" ")
    plugs = []
    for _end in range(2):
        node, port, *words = words
        # Both ends of a cable between hosts have a rail, the lower end of a cable to a leaf, and no end of a cable between switches.
        rail = words.pop(0) if len(words) in {2, 4, 5} else None
        plugs.append(Plug(node, int(port), rail))
    (gbps,) = words
    return Cable(plugs[0], plugs[1], float(gbps))
