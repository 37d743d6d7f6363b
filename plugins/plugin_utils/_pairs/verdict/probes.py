# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Observations of partners with which a measurement had just failed: whether their addresses answer, and on which rail.

After a failure, a pair runner that re-measures suspects sends ICMP echo to the partner's address, and ARP requests for it on all of its own
rails. If an address answers on another rail with the MAC of the planned NIC, the cable of this NIC ends there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Macs = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Probe:
    """observer: the host that probed. target: its partner, at its address on a rail. echo: None if it could not be sent.

    arp: rail of the observer → the MAC address that answered there, None if none did.
    """

    observer: str
    target: str
    rail: str
    echo: bool | None
    arp: Mapping[str, str | None]


def parse_probes(failures: Iterable[Mapping[str, Any]]) -> Iterator[Probe]:
    """Yield the probes in the failures of one host, as stored in the run folder; other entries are ignored."""
    for failure in failures:
        probe, role = failure.get("probe"), failure.get("role")
        if not isinstance(probe, Mapping) or role not in ("client", "server") or not isinstance(probe.get("arp"), Mapping):
            continue
        ends = str(failure.get("server")), str(failure.get("client"))
        target, observer = ends if role == "client" else ends[::-1]
        arp = {str(rail): mac.lower() if isinstance(mac, str) else None for rail, mac in probe["arp"].items()}
        yield Probe(observer, target, str(failure.get("rail")), probe.get("echo"), arp)


def answering(probes: Iterable[Probe]) -> frozenset[tuple[str, str]]:
    """Return (rail, host) whose address answered ICMP echo."""
    return frozenset((probe.rail, probe.target) for probe in probes if probe.echo is True)


def answering_elsewhere(probes: Iterable[Probe]) -> frozenset[str]:
    """Return hosts with an address that answered ARP on another rail than its own, but not there."""
    return frozenset(
        probe.target
        for probe in probes
        if probe.arp.get(probe.rail) is None and any(mac is not None for rail, mac in probe.arp.items() if rail != probe.rail)
    )


def crossed_cables(host: str, probes: Iterable[Probe], macs: Macs, accused: Iterable[str] = ()) -> dict[str, str]:
    """Return rail of a host → the rail at which its NIC was found. macs: (host, rail) → MAC.

    accused: hosts whose own cables may be crossed.

    The planned NIC itself must answer, there and not on its own rail: a host may answer for its addresses on all of its NICs.
    """
    left_out = {*accused} - {host}
    found: dict[str, str] = {}
    for probe in probes:
        mac = macs.get((host, probe.rail))
        if probe.target != host or probe.observer in left_out or mac is None or probe.arp.get(probe.rail) == mac:
            continue
        elsewhere = [rail for rail, answer in probe.arp.items() if answer == mac and rail != probe.rail]
        if len(elsewhere) == 1:
            found[probe.rail] = elsewhere[0]
    return found


def crossing_words(host: str, crossed: Mapping[str, str]) -> tuple[str, str] | None:
    """Return (seen, the step that fixes it) for crossed cables, None if there are none."""
    for rail, other in sorted(crossed.items()):
        if crossed.get(other) == rail:
            seen = f"the cables of {rail} and {other} of {host} are swapped: the NIC of each answers ARP on the other rail"
            return seen, f"At {host}: swap the cables of {rail} and {other}, then run the pairs stage again"
    for rail, other in sorted(crossed.items()):
        seen = f"the cable of {rail} of {host} ends on {other}: its NIC answers ARP there"
        return seen, f"At {host}: move the cable of {rail} from the switch of {other} to that of {rail}, then run the pairs stage again"
    return None
