# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a fabric costs: published sums corrected, missing prices, and single prices that change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Cable, Design, Plug, Switch
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.cost import (
    Price,
    Prices,
    cable_kind,
    cable_kinds,
    cost,
    parts_of,
)

LISTED = Prices(parts={"qm9700": Price(80_000, "2023-01-01", "a published list price")})
NAMES = ["qm9700", "dac", "aoc", "optic", "fiber", "nic", "unknown length"]


def cable(host: int, port: int = 1) -> Cable:
    return Cable(Plug(f"node{host}", 1, "rail0"), Plug("leaf1", port), 400)


# Published sums


def test_the_published_10_million_are_15_or_26() -> None:
    """4096 ports of 400 Gb/s: 8 planes need 192 switches, one fabric of three tiers 320; the published 128 hold 2048 ports."""
    assert cost({"qm9700": 192}, LISTED).total == 15.36e6
    assert cost({"qm9700": 320}, LISTED).total == 25.6e6
    assert cost({"qm9700": 128}, LISTED).total == 10.24e6


def test_15_000_a_port_is_the_network_and_not_its_switch() -> None:
    """A switch of 64 ports for 80,000 costs 1,250 a port. 192 switches for 4096 NICs are 3,750 a NIC: a quarter of the published 15,000."""
    assert 80_000 / 64 == 1250
    assert cost({"qm9700": 192}, LISTED).known / 4096 == 3750


# Cables


def test_the_kind_follows_the_length() -> None:
    assert [cable_kind(length, 3, 30) for length in (0, 3, 3.01, 30, 30.1, None)] == ["dac", "dac", "aoc", "aoc", "optic", "unknown length"]
    with pytest.raises(ValueError, match="must not be negative; got -1 m"):
        cable_kind(-1, 3, 30)


def test_lengths_come_from_a_function_or_a_mapping() -> None:
    cables = [cable(1, 1), cable(2, 2), cable(3, 3)]
    assert cable_kinds(cables, lambda each: 2.0 * each.b.port, 3, 30) == {"dac": 1, "aoc": 2}
    assert cable_kinds(cables, {cables[0]: 50.0}, 3, 30) == {"optic": 1, "unknown length": 2}


def test_a_fiber_has_two_optics() -> None:
    switches = (Switch("leaf1", "leaf", "fabric", 1, "qm9700"), Switch("leaf2", "leaf", "fabric", 2, "qm9700"))
    design = Design("leaf_spine", ("node1",), ("fabric",), switches, ())
    assert parts_of(design, {"dac": 5, "optic": 3}, 8) == {"qm9700": 2, "dac": 5, "optic": 6, "fiber": 3, "nic": 8}
    assert parts_of(design, {"aoc": 4}) == {"qm9700": 2, "aoc": 4}


# Prices


def test_a_missing_price_is_not_zero() -> None:
    found = cost({"qm9700": 2, "optic": 10}, LISTED)
    assert found.total is None
    assert found.known == 160_000
    assert found.missing == ["optic"]
    assert found.watts is None
    assert found.energy_per_year is None


def test_a_price_of_zero_is_a_price() -> None:
    found = cost({"dac": 10}, Prices(parts={"dac": Price(0)}))
    assert (found.total, found.missing) == (0, [])
    with pytest.raises(ValueError, match="must not be negative; got -1"):
        Price(-1)


def test_power_and_its_price() -> None:
    """10 switches of 1.7 kW over 8760 h at 0.1: 14,892 a year. A DAC uses none."""
    prices = Prices(parts={"s": Price(1), "dac": Price(1)}, watts={"s": 1700}, kwh=Price(0.1))
    found = cost({"s": 10, "dac": 100}, prices)
    assert found.watts == 17_000
    assert found.energy_per_year == pytest.approx(14_892)


def test_one_price_changed_by_a_fifth() -> None:
    prices = Prices(parts={"s": Price(1000), "optic": Price(10)})
    assert cost({"s": 10, "optic": 100, "nic": 8}, prices).sensitivity() == [("s", 9_000, 13_000), ("optic", 10_800, 11_200)]


COUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 10**5))
PRICES = st.dictionaries(st.sampled_from(NAMES[:-1]), st.floats(0, 1e6).map(Price))


@given(COUNTS, PRICES)
def test_the_sum_is_that_of_the_given_prices_and_complete_only_if_all_are(counts: dict[str, int], parts: dict[str, Price]) -> None:
    found = cost(counts, Prices(parts=parts))
    assert found.known == pytest.approx(sum(count * parts[name].amount for name, count in counts.items() if name in parts))
    assert set(found.missing) == set(counts) - set(parts)
    assert (found.total is None) == bool(found.missing)
    for _name, low, high in found.sensitivity():
        assert low <= found.known <= high
        assert high - found.known == pytest.approx(found.known - low, abs=1e-3)
