# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""plan/topology.json: the comparison and the chosen design. A later plan reads the design back to keep its cables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Cable, Candidate, Design, Plug, Switch
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest

SCHEMA = 1
_SWITCH_KEYS = ("name", "tier", "plane", "number", "model")


def to_dict(request: PlanRequest, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """Return the content of plan/topology.json. A cable is one text: "node1 1 rail0 leaf1 1 400"."""
    chosen = next(candidate for candidate in candidates if candidate.chosen)
    return {
        "schema": SCHEMA,
        "request": asdict(request),
        "candidates": [_candidate(candidate) for candidate in candidates],
        "design": None if chosen.design is None else _design(chosen.design),
    }


def read_design(data: Any) -> Design:
    """Return the design in the content of plan/topology.json. Raises ParseError."""
    try:
        design = data["design"]
        return Design(
            str(design["family"]),
            tuple(map(str, design["hosts"])),
            tuple(map(str, design["planes"])),
            tuple(_switch(each) for each in design["switches"]),
            tuple(_cable(each) for each in design["cables"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError(f"it is not a plan/topology.json of this collection ({type(error).__name__}: {error})") from error


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
