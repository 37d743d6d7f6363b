# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request for a plan (rdma_plan), typed and complete with defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SwitchModel:
    """A model of switch. ports: physical ports of `gbps`. breakout: parts into which a port may be split. price: None if unknown.

    watts: the typical power, None if unknown. latency_ns: port to port, None if unknown. source: the data sheet, "" if the user gave the
    values. read: the date on which the source was read.
    """

    name: str
    ports: int
    gbps: float
    breakout: tuple[int, ...] = (1,)
    fabric: str = "infiniband"
    watts: float | None = None
    price: float | None = None
    latency_ns: float | None = None
    source: str = ""
    read: str = ""


@dataclass(frozen=True)
class Survive:
    """Failures that leave at least min_bisection of the requested bisection in each plane. spines: switches above the leaves."""

    spines: int = 0
    links: int = 0
    min_bisection: float = 0.5


@dataclass(frozen=True)
class CablePrices:
    """dac_max_m, aoc_max_m: the longest copper and active optical cable, in m.

    Prices of one cable (dac, aoc) and of one transceiver (optic); None if not given.
    """

    dac_max_m: float = 3.0
    dac: float | None = None
    aoc: float | None = None
    optic: float | None = None
    aoc_max_m: float = 30.0


@dataclass(frozen=True)
class Room:
    """Sizes of the room. Lengths in m. slack_m: of a cable, both ends together."""

    hosts_per_rack: int = 4
    racks_per_row: int = 8
    rack_width_m: float = 0.6
    row_pitch_m: float = 3.0
    slack_m: float = 1.0


@dataclass(frozen=True)
class Pools:
    """The IPv4 networks of routed planes: of hosts and of switches. Several planes divide them."""

    host_subnets: str = "10.0.0.0/9"
    loopbacks: str = "10.128.0.0/16"


@dataclass(frozen=True)
class PlanRequest:
    """The request. hosts_later: the plan holds for this many hosts without moving a cable.

    host_parts: parts into which a switch port to hosts is split. uplink_parts: the same of ports between switches. sections: the parts of
    rdma_plan that other planners read (uplink, storage, training, prices), as the schema returned them.
    """

    hosts: int
    hosts_later: int
    gpus_per_host: int
    nics_per_host: int
    nic_gbps: float
    switch: SwitchModel
    topology: str = "auto"
    fabric: str = "infiniband"
    host_parts: int = 1
    uplink_parts: int = 1
    oversubscription: float = 1.0
    spare_ports: int = 0
    survive: Survive = Survive()
    cables: CablePrices = CablePrices()
    sections: Mapping[str, object] = field(default_factory=dict)
    room: Room = Room()
    pools: Pools = Pools()

    @property
    def rails(self) -> tuple[str, ...]:
        """Return the names of the rails."""
        return tuple(f"rail{rail}" for rail in range(self.nics_per_host))
