# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proposed rails of a mesh as an inventory, the difference from the present intent, and a text for a person."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import nic_label
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.discover.inventory_text import OneLine, inventory_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._fleet.majority import some
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import RAIL
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.given import Given
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.plan import Cable, PlannedCable, RailOf, plan_cables
from ansible_collections.rdma.cluster.plugins.plugin_utils._mesh.shape import Pair, Shape, shape_of

#: The keys of a new rail that it takes from the other rails of the mesh, if all of these agree.
SHARED = ("link_layer", "rate_gbps", "plane", "role", "mtu_bytes", "soft")
HEADING = "Proposed by rdma.cluster.plan. Compare it with the cables, then put it behind your inventory: -i hosts.yml -i mesh.yml"
RELAY = "Only the mesh plugin with NCCL_MESH_ENABLE_RELAY relays between hosts that share no cable."


@dataclass(frozen=True)
class Proposal:
    """present, planned: host → its rails. notes: what a person should know before taking it over."""

    cables: list[PlannedCable]
    shape: Shape
    present: Mapping[str, Sequence[RailOf]]
    planned: Mapping[str, Sequence[RailOf]]
    notes: list[str] = field(default_factory=list)

    @property
    def inventory(self) -> str:
        """The planned rails as an inventory."""
        return _text(self.planned, [HEADING, *self.notes])

    @property
    def difference(self) -> str:
        """The unified diff from the present rails to the planned ones, "" if they are equal."""
        before, after = (_text(rails, []).splitlines(keepends=True) for rails in (self.present, self.planned))
        return "".join(difflib.unified_diff(before, after, "present intent", "plan/mesh.yml"))

    @property
    def text(self) -> str:
        """The cables as a table, the shape, the notes and the difference."""
        rows = [
            (cable.name, *(f"{end} {address}" for end, address in zip(cable.ends, cable.addresses, strict=True)), _state(cable))
            for cable in self.cables
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        change = ["", self.difference.rstrip("\n")] if self.difference else ["The present rails are those of the plan."]
        return "\n".join([f"Mesh: {self.shape.words}", *table, *self.notes, *change])


def _state(cable: PlannedCable) -> str:
    return "kept" if cable.kept else "new"


def propose(given: Given, cables: Sequence[Cable], kept: Mapping[str, Iterable[str]], notes: Iterable[str] = ()) -> Proposal:
    """Return the proposal for these cables. Raises PoolError.

    kept: host → the NICs without a cable whose rails stay as they are. Other rails without a cable are left out: in a mesh, a rail is a
    cable.
    """
    stay = {host: [rail for rail in rails if nic_label(rail["nic"]) in set(kept.get(host, ()))] for host, rails in given.rails.items()}
    planned = plan_cables(cables, given.pool, given.rails, [rail for rails in stay.values() for rail in rails])
    shared = _shared(given)
    rails = {host: _rails(host, given.rails.get(host, []), planned, stay.get(host, []), shared) for host in _hosts(given, planned)}
    shape = shape_of(rails, [(a.host, b.host) for a, b in (cable.ends for cable in planned)])
    said = [*notes, *_shape_notes(shape, relays=given.relays)]
    present = {host: list(given.rails.get(host, [])) for host in rails}
    return Proposal(planned, shape, present, rails, said)


def _hosts(given: Given, planned: Iterable[PlannedCable]) -> list[str]:
    ends = [end.host for cable in planned for end in cable.ends]
    return list(dict.fromkeys([*given.rails, *ends]))


def _shape_notes(shape: Shape, *, relays: bool) -> list[str]:
    apart = words_apart(shape.apart)
    notes = [f"No common cable: {apart}. They cannot reach each other by RDMA. {RELAY}"] if apart and not relays else []
    if len(shape.islands) > 1:
        notes.append(f"The cables do not connect all hosts: {shape.words}.")
    return notes


def words_apart(pairs: Sequence[Pair]) -> str:
    """Return "n1 and n3, n2 and n4" for pairs of hosts, at most some of them."""
    return some([f"{a} and {b}" for a, b in pairs])


def _shared(given: Given) -> dict[str, Any]:
    """Return the settings of a new rail: those on which all rails of the mesh agree, and the only plane of the fabric."""
    rails = [rail for of in given.rails.values() for rail in of]
    found: dict[str, Any] = {} if given.plane is None else {"plane": given.plane}
    for key in SHARED if rails else ():
        values = [rail[key] for rail in rails]
        if all(value == values[0] for value in values):
            found[key] = values[0]
    return found


def _rails(
    host: str, present: Sequence[RailOf], planned: Sequence[PlannedCable], stay: Sequence[RailOf], shared: Mapping[str, Any]
) -> list[RailOf]:
    """Return the rails of a host: the present ones in their order with the name and address of their cable, then the new ones."""
    cables = {
        end.nic: (end, cable.name, address)
        for cable in planned
        for end, address in zip(cable.ends, cable.addresses, strict=True)
        if end.host == host
    }
    found: list[RailOf] = []
    for rail in present:
        if nic_label(rail["nic"]) in cables:
            _end, name, address = cables.pop(nic_label(rail["nic"]))
            found.append({**rail, "name": name, "address": address})
        elif rail in stay:
            found.append(rail)
    return [*found, *({"name": name, "nic": {end.key: end.nic}, **shared, "address": address} for end, name, address in cables.values())]


def _text(rails: Mapping[str, Sequence[RailOf]], notes: Iterable[str]) -> str:
    hosts = {host: {"rdma_rails": [OneLine(_written(rail)) for rail in of]} if of else {} for host, of in rails.items()}
    # The writer of YAML does not know Ansible's own text type, which host names have.
    return inventory_text({"all": {"hosts": {"".join(host): of for host, of in hosts.items()}}}, notes)


def _written(rail: RailOf) -> dict[str, Any]:
    """Return a rail as a person writes it: without keys that have their default."""
    keys = RAIL.keys or {}
    return {key: rail[key] for key in keys if key in rail and rail[key] != (keys[key].default if keys[key].each is None else [])}
