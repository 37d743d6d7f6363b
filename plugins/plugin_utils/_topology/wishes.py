# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request for a plan (rdma_plan), typed and complete with defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Transceivers of a fiber.
OPTICS_PER_CABLE = 2


@dataclass(frozen=True)
class SwitchModel:
    """A model of switch. ports: physical ports of `gbps`. breakout: parts into which a port may be split. price: None if unknown.

    watts: the typical power, None if unknown. latency_ns: port to port, None if unknown. source: of ports and gbps, "" if the user gave
    them. breakout_source: of breakout, "" if the user gave it or if it is unknown. read: the date on which the sources were read.
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
    breakout_source: str = ""
    read: str = ""

    @property
    def has_unknown_breakout(self) -> bool:
        """Return whether no source states how its ports can be split."""
        return bool(self.source) and not self.breakout_source


@dataclass(frozen=True)
class Survive:
    """Failures that leave at least min_bisection of the requested bisection in each plane. spines: switches above the leaves."""

    spines: int = 0
    links: int = 0
    min_bisection: float = 0.5


@dataclass(frozen=True)
class CablePrices:
    """dac_max_m, aoc_max_m: the longest copper and active optical cable, in m.

    Prices of one cable (dac, aoc), of one transceiver (optic) and of one fiber; None if not given.
    """

    dac_max_m: float = 3.0
    dac: float | None = None
    aoc: float | None = None
    optic: float | None = None
    aoc_max_m: float = 30.0
    fiber: float | None = None

    @property
    def between_switches(self) -> float | None:
        """Return the price of a cable between switches: of an active optical cable, else of a fiber with two transceivers."""
        if self.aoc is not None or self.optic is None or self.fiber is None:
            return self.aoc
        return self.fiber + OPTICS_PER_CABLE * self.optic


@dataclass(frozen=True)
class Room:
    """Sizes of the room. Lengths in m. slack_m: of a cable, both ends together."""

    hosts_per_rack: int = 4
    racks_per_row: int = 8
    rack_width_m: float = 0.6
    row_pitch_m: float = 3.0
    slack_m: float = 1.0


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

    @property
    def rails(self) -> tuple[str, ...]:
        """Return the names of the rails."""
        return tuple(f"rail{rail}" for rail in range(self.nics_per_host))

    @property
    def prices_not_given(self) -> tuple[str, ...]:
        """Return the keys of rdma_plan whose prices are missing. If there are any, the numbers of switches and cables decide."""
        prices = {
            "switch.price": self.switch.price,
            "cables.prices.dac": self.cables.dac,
            "cables.prices.aoc": self.cables.between_switches,
        }
        return tuple(key for key, price in prices.items() if price is None)
