# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where hosts and switches stand, and the lengths of the cables between them.

The model of the room: rows of racks with hosts, "R1", "R2", … in order, `racks_per_row` in each row. At the head of row r are its network
racks, "Nr-1", "Nr-2", … Row 0 has the network racks of spines and cores, "N0-1", "N0-2", … A leaf whose hosts are all in one rack stands at
the top of that rack; other leaves stand at the head of the row of their first host. A place depends on the places before it only, and the
places of an existing fabric are kept, so a cable keeps its length.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Cable, Design
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import Room

#: Switches of a network rack, with a free unit between them for cables.
SWITCHES_PER_RACK = 16
#: Heights above the floor in m: of the cable tray above the racks, of the highest host, and of the switch at the top of a host rack.
TRAY_M, HOSTS_M, TOP_M = 2.4, 1.8, 1.9
#: The height of a switch with the free unit above it.
SWITCH_M = 0.1
#: Lengths in which cables are sold, in m. A longer cable has a multiple of LONGER_M.
LENGTHS_M = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0)
LONGER_M = 10.0
_HOST_RACK = re.compile(r"R([1-9][0-9]{0,5})")
_NETWORK_RACK = re.compile(r"N([0-9]{1,6})-([1-9][0-9]{0,5})")


@dataclass(frozen=True, order=True)
class Place:
    """A rack, and the position in it from 1: of hosts from the bottom, of switches at the top of a host rack from the top."""

    rack: str
    slot: int


@dataclass(frozen=True)
class Spot:
    """A point in a rack: x along the row, y across the rows, and the height above the floor, in m."""

    rack: str
    x_m: float
    y_m: float
    height_m: float


def is_rack(name: str) -> bool:
    """Return whether a name is one of this model."""
    return bool(_HOST_RACK.fullmatch(name) or _NETWORK_RACK.fullmatch(name))


def rack_order(rack: str) -> tuple[int, int, int]:
    """Return the key to sort racks by: row, then network racks, then host racks of all rows."""
    host, network = _HOST_RACK.fullmatch(rack), _NETWORK_RACK.fullmatch(rack)
    return (0, int(network[1]), int(network[2])) if network else (1, int(host[1]) if host else 0, 0)


def places(design: Design, room: Room, kept: Mapping[str, Place] | None = None) -> dict[str, Place]:
    """Return host or switch → its place. kept: places of an existing fabric, which stay."""
    found = {host: _host_place(index, room) for index, host in enumerate(design.hosts)}
    kept = kept or {}
    found.update({name: place for name, place in kept.items() if name not in found})
    below = _hosts_of(design)
    racks = {leaf: {found[host].rack for host in hosts} for leaf, hosts in below.items()}
    in_racks = bool(racks) and all(len(each) == 1 for each in racks.values())
    used: dict[str, int] = defaultdict(int)
    for switch in design.switches:
        if switch.name in kept:
            used[kept[switch.name].rack] = max(used[kept[switch.name].rack], kept[switch.name].slot)
    for switch in design.switches:
        if switch.name in found:
            continue
        hosts = below.get(switch.name)
        # Spines and cores have no hosts, and stand in row 0.
        beside = found[hosts[0]].rack if hosts else "N0-1"
        rack = beside if hosts and in_racks else _free_rack(_row(beside, room), used)
        used[rack] += 1
        found[switch.name] = Place(rack, used[rack])
    return {name: found[name] for name in (*design.hosts, *(switch.name for switch in design.switches))}


def _host_place(index: int, room: Room) -> Place:
    rack, slot = divmod(index, room.hosts_per_rack)
    return Place(f"R{rack + 1}", slot + 1)


def _hosts_of(design: Design) -> dict[str, list[str]]:
    """Return leaf → its hosts in order."""
    switches = {switch.name for switch in design.switches}
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for cable in design.cables:
        if cable.a.rail is not None and cable.b.node in switches:
            found[cable.b.node][cable.a.node] = None
    return {leaf: list(hosts) for leaf, hosts in found.items()}


def _row(rack: str, room: Room) -> int:
    """Return the row of a rack: 0 for spines and cores, from 1 for hosts."""
    network = _NETWORK_RACK.fullmatch(rack)
    return int(network[1]) if network else (int(rack[1:]) - 1) // room.racks_per_row + 1


def _free_rack(row: int, used: Mapping[str, int]) -> str:
    number = 1
    while used.get(f"N{row}-{number}", 0) >= SWITCHES_PER_RACK:
        number += 1
    return f"N{row}-{number}"


def spot_of(place: Place, room: Room, *, is_host: bool) -> Spot:
    """Return where the cables of a host or switch begin."""
    row = _row(place.rack, room)
    network = _NETWORK_RACK.fullmatch(place.rack)
    if network:
        # At the head of a row, network racks grow away from the hosts.
        column = int(network[2]) if row == 0 else 1 - int(network[2])
        height = place.slot * SWITCH_M
    else:
        column = (int(place.rack[1:]) - 1) % room.racks_per_row + 1
        height = HOSTS_M * place.slot / room.hosts_per_rack if is_host else TOP_M - (place.slot - 1) * SWITCH_M
    return Spot(place.rack, column * room.rack_width_m, row * room.row_pitch_m, height)


def length_m(one: Spot, other: Spot, room: Room) -> float:
    """Return the length of a cable between two spots as it is sold, in m.

    Within a rack: the difference of the heights. Else up to the tray above the racks, along it in right angles, and down again. Both plus
    slack, rounded up to the next of LENGTHS_M.
    """
    if one.rack == other.rack:
        needed = abs(one.height_m - other.height_m)
    else:
        needed = (TRAY_M - one.height_m) + (TRAY_M - other.height_m) + abs(one.x_m - other.x_m) + abs(one.y_m - other.y_m)
    return sold_m(needed + room.slack_m)


def sold_m(needed_m: float) -> float:
    """Return the shortest length that is sold and at least as long, in m."""
    # A rounding error of the sum must not lead to the next length.
    least = round(needed_m, 6)
    return next((each for each in LENGTHS_M if each >= least), math.ceil(least / LONGER_M) * LONGER_M)


def lengths(design: Design, at: Mapping[str, Place], room: Room) -> dict[Cable, float]:
    """Return cable → its length in m."""
    spots = {host: spot_of(at[host], room, is_host=True) for host in design.hosts}
    spots.update({switch.name: spot_of(at[switch.name], room, is_host=False) for switch in design.switches})
    return {cable: length_m(spots[cable.a.node], spots[cable.b.node], room) for cable in design.cables}
