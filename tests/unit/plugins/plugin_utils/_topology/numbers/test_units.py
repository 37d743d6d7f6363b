# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes, times and amounts: parsed, computed and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology_numbers import SIZE, parse_size
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.units import (
    money_words,
    seconds_words,
    size_words,
    transfer_seconds,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1 MB", 10**6), ("1 MiB", 2**20), ("256MiB", 2**28), ("1.5 GB", 1_500_000_000), (4096, 4096), ("8 B", 8), ("2 TiB", 2**41)],
)
def test_mb_and_mib_are_different_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size
    assert SIZE.parse(text) == str(text)


@pytest.mark.parametrize("text", ["", "GB", "1 GiBB", "1 Gb", "1 gb", "-1 GB", "1e9", "0 GB", "0.1 B", True, None, 1.5, "1 GB/s"])
def test_what_is_not_a_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="not a"):
        parse_size(text)


def test_sizes_times_and_amounts_in_words() -> None:
    assert [size_words(size) for size in (14e9, 1.96875e9, 980e9, 512, 999_999_999, 1.4e11)] == [
        "14 GB", "1.97 GB", "980 GB", "512 B", "1 GB", "140 GB",
    ]  # fmt: skip
    seconds = (12.5e-6, 5.1e-3, 89.6, 313.6, 7300, 0.99999)
    assert [seconds_words(each) for each in seconds] == ["12.5 µs", "5.1 ms", "89.6 s", "5.23 min", "2.03 h", "1 s"]
    assert [money_words(each, "$") for each in (15.36e6, 80_000, 1.25, 999_999, -15_000)] == [
        "$15.4 M",
        "$80,000",
        "$1.25",
        "$1 M",
        "-$15,000",
    ]
    assert money_words(25.6e6, "EUR") == "EUR 25.6 M"


@pytest.mark.parametrize(
    ("size", "gbps", "seconds"), [(280e9, 25, 89.6), (280e9, 100, 22.4), (140e9, 25, 44.8), (140e9, 100, 11.2), (980e9, 25, 313.6)]
)
def test_published_transfers(size: float, gbps: float, seconds: float) -> None:
    """90 and 22 s are the times of 280 GB. Weights of 140 GB take half of it, a checkpoint of 980 GB 3.5 times as long."""
    assert transfer_seconds(size, gbps) == pytest.approx(seconds)


@pytest.mark.parametrize(("gbps", "efficiency"), [(0, 1), (-1, 1), (float("inf"), 1), (float("nan"), 1), (100, 0), (100, 1.1)])
def test_impossible_rates_are_refused(gbps: float, efficiency: float) -> None:
    with pytest.raises(ValueError, match="rate above 0"):
        transfer_seconds(1e9, gbps, efficiency)


@given(st.integers(1, 10**15), st.floats(0.1, 1e5), st.floats(0.1, 1))
def test_a_transfer_is_proportional(size: int, gbps: float, efficiency: float) -> None:
    seconds = transfer_seconds(size, gbps, efficiency)
    assert seconds > 0
    assert transfer_seconds(3 * size, gbps, efficiency) == pytest.approx(3 * seconds)
    assert transfer_seconds(size, 2 * gbps, efficiency) == pytest.approx(seconds / 2)
