# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the network of a plan costs, by the prices of the user. It is an estimate for comparison, and no offer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Cable, Design
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import OPTICS_PER_CABLE, SwitchModel

DAC, AOC, OPTIC, FIBER, NIC = "dac", "aoc", "optic", "fiber", "nic"
UNKNOWN_LENGTH = "unknown length"
HOURS_PER_YEAR = 8760
#: The change of a price in the sensitivity.
CHANGE = 0.2
USER = "rdma_plan"


@dataclass(frozen=True)
class Price:
    """The price of one piece. date, source: as given, "" if not."""

    amount: float
    date: str = ""
    source: str = USER

    def __post_init__(self) -> None:
        if self.amount < 0:
            raise ValueError(f"a price must not be negative; got {self.amount}")


@dataclass(frozen=True)
class Prices:
    """Prices and power by the name of a part: a switch's model, "dac", "aoc", "optic", "nic". A missing one is not given, never zero."""

    currency: str = "$"
    parts: Mapping[str, Price] = field(default_factory=dict)
    watts: Mapping[str, float] = field(default_factory=dict)
    kwh: Price | None = None


@dataclass(frozen=True)
class Part:
    """A kind of part. amount: count × price, None if the price is not given. watts: of all, None if not given."""

    name: str
    count: int
    price: Price | None
    amount: float | None
    watts: float | None


@dataclass(frozen=True)
class Cost:
    """The cost of a design. parts: the largest amount first, those without a price last."""

    currency: str
    parts: tuple[Part, ...]
    kwh: Price | None

    @property
    def known(self) -> float:
        """Return the sum of the parts whose prices are given."""
        return sum(part.amount for part in self.parts if part.amount is not None)

    @property
    def missing(self) -> list[str]:
        """The names of the parts without a price."""
        return [part.name for part in self.parts if part.amount is None]

    @property
    def total(self) -> float | None:
        """Return the sum, None if a price is missing: a sum without a part would look cheaper than it is."""
        return None if self.missing else self.known

    @property
    def watts(self) -> float | None:
        """Return the power of all parts in W, None if the power of one is not given."""
        given = [part.watts for part in self.parts]
        return None if None in given else sum(each for each in given if each is not None)

    @property
    def energy_per_year(self) -> float | None:
        """Return W / 1000 × 8760 h × price of a kWh, None if one of them is not given."""
        if self.watts is None or self.kwh is None:
            return None
        return self.watts / 1000 * HOURS_PER_YEAR * self.kwh.amount

    def sensitivity(self, change: float = CHANGE) -> list[tuple[str, float, float]]:
        """Return (part, lowest sum, highest sum) for each part whose price is given, if that price alone changes by ± change.

        Formula: known sum ± change × count × price. The part with the largest effect is first.
        """
        return [
            (part.name, self.known - change * part.amount, self.known + change * part.amount)
            for part in self.parts
            if part.amount is not None
        ]


def prices_of(plan: Mapping[str, Any], switch: SwitchModel | None) -> Prices:
    """Return the prices of a normalized rdma_plan. switch: the planned model, whose price the user gives, None without one."""
    given = plan["prices"]
    date, source = given["date"] or "", given["source"] or USER
    amounts = {**plan["cables"]["prices"], FIBER: given["fiber"], NIC: given["nic"]}
    parts = {name: Price(amount, date, source) for name, amount in amounts.items() if amount is not None}
    watts = {OPTIC: given["optic_watts"], NIC: given["nic_watts"]}
    if given["optic_watts"] is not None:
        watts[AOC] = OPTICS_PER_CABLE * given["optic_watts"]
    if switch is not None:
        watts[switch.name] = switch.watts
        if switch.price is not None:
            parts[switch.name] = Price(switch.price, date, source)
    kwh = None if given["kwh"] is None else Price(given["kwh"], date, source)
    return Prices(given["currency"], parts, {name: each for name, each in watts.items() if each is not None}, kwh)


def cable_kind(length_m: float | None, dac_max_m: float, aoc_max_m: float) -> str:
    """Return the kind of a cable: "dac" up to dac_max_m, "aoc" up to aoc_max_m, "optic" beyond: a fiber with two transceivers.

    Without a length it is "unknown length", which has no price. Lengths in meters. Raises ValueError for a negative length.
    """
    if length_m is None:
        return UNKNOWN_LENGTH
    if length_m < 0:
        raise ValueError(f"a cable's length must not be negative; got {length_m} m")
    if length_m <= dac_max_m:
        return DAC
    return AOC if length_m <= aoc_max_m else OPTIC


def cable_kinds(
    cables: Iterable[Cable], length_m: Callable[[Cable], float | None] | Mapping[Cable, float], dac_max_m: float, aoc_max_m: float
) -> dict[str, int]:
    """Return the number of cables of each kind. length_m: a function or mapping from a cable to its length in meters."""
    of = length_m.get if isinstance(length_m, Mapping) else length_m
    return dict(Counter(cable_kind(of(cable), dac_max_m, aoc_max_m) for cable in cables))


def parts_of(design: Design, kinds: Mapping[str, int], nics: int = 0) -> dict[str, int]:
    """Return the number of pieces of each part: switches by model, cables by kind, two optics and a fiber for each "optic", NICs."""
    counts = {**Counter(switch.model for switch in design.switches), **kinds, NIC: nics}
    if kinds.get(OPTIC):
        counts.update({OPTIC: kinds[OPTIC] * OPTICS_PER_CABLE, FIBER: kinds[OPTIC]})
    return {name: count for name, count in counts.items() if count}


def cost(counts: Mapping[str, int], prices: Prices) -> Cost:
    """Return the cost of parts. counts: part → pieces. A DAC and a fiber are passive: their power is zero."""
    watts = {DAC: 0.0, FIBER: 0.0, **prices.watts}
    parts = []
    for name, count in counts.items():
        price, power = prices.parts.get(name), watts.get(name)
        amount = None if price is None else count * price.amount
        parts.append(Part(name, count, price, amount, None if power is None else count * power))
    parts.sort(key=lambda part: (part.amount is None, -(part.amount or 0.0), part.name))
    return Cost(prices.currency, tuple(parts), prices.kwh)
