# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bill of materials: what is bought, by length and rate, with the prices of the request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Design
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.cost import FIBER, NIC, OPTIC, Prices
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.laid import Laid, csv_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import OPTICS_PER_CABLE

COLUMNS = ("item", "length_m", "gbps", "count", "new", "unit_price", "total", "currency")
NOT_GIVEN = "not given"


@dataclass(frozen=True)
class Item:
    """A kind of part. part: its name in the prices. length_m, gbps: None if it has none. new: of `count`, those to buy now."""

    part: str
    length_m: float | None
    gbps: float | None
    count: int
    new: int


def bill(design: Design, rows: Iterable[Laid], nics: tuple[int, int] = (0, 0), existing: frozenset[str] = frozenset()) -> list[Item]:
    """Return the parts: switches, then cables by kind, rate and length, then NICs. nics: all and new ones, (0, 0) if not counted.

    existing: names of switches that are there. A cable of kind "optic" is a fiber with two transceivers.
    """
    switches, new = (
        Counter(switch.model for switch in design.switches),
        Counter(switch.model for switch in design.switches if switch.name not in existing),
    )
    found = [Item(model, None, None, count, new[model]) for model, count in switches.items()]
    counts: Counter[tuple[str, float | None, float]] = Counter()
    fresh: Counter[tuple[str, float | None, float]] = Counter()
    for row in rows:
        keys: list[tuple[str, float | None, float]] = [(FIBER if row.kind == OPTIC else row.kind, row.length_m, row.cable.gbps)]
        if row.kind == OPTIC:
            keys += [(OPTIC, None, row.cable.gbps)] * OPTICS_PER_CABLE
        for key in keys:
            counts[key] += 1
            fresh[key] += row.is_new
    found += [Item(*key, counts[key], fresh[key]) for key in sorted(counts, key=_order)]
    if nics[0]:
        found.append(Item(NIC, None, None, *nics))
    return found


def _order(key: tuple[str, float | None, float]) -> tuple[str, float, float]:
    return key[0], key[2], key[1] or 0.0


def bill_rows(items: Iterable[Item], prices: Prices) -> list[tuple[str, ...]]:
    """Return the cells of the bill, with the sums of the whole and of the new parts at the end. Prices are those of one piece.

    A sum in which a price is missing is "not given", because it would look cheaper than it is.
    """
    rows, sums = [], [0.0, 0.0]
    complete = True
    for item in items:
        price = prices.parts.get(item.part)
        length, rate = (("" if each is None else f"{each:g}") for each in (item.length_m, item.gbps))
        money = (NOT_GIVEN, NOT_GIVEN) if price is None else (f"{price.amount:g}", f"{item.count * price.amount:.2f}")
        rows.append((item.part, length, rate, str(item.count), str(item.new), *money, "" if price is None else prices.currency))
        complete = complete and price is not None
        if price is not None:
            sums = [sums[0] + item.count * price.amount, sums[1] + item.new * price.amount]
    words = [f"{each:.2f}" if complete else NOT_GIVEN for each in sums]
    currency = prices.currency if complete else ""
    return [*rows, ("all parts", "", "", "", "", "", words[0], currency), ("new parts", "", "", "", "", "", words[1], currency)]


def bill_csv(items: Iterable[Item], prices: Prices) -> str:
    """Return the bill as CSV."""
    return csv_text(COLUMNS, bill_rows(items, prices))
