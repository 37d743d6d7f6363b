# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Headroom: its parts, each of which counts."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._roce.switch_config import headroom_bytes


def test_the_parts_add_up() -> None:
    """By hand: 2 × 99 m at 198 000 000 m/s are 1 µs, 12 500 bytes at 100 Gb/s; two frames of 1500 + 22; 84; 394 × 64."""
    assert headroom_bytes(99, 100, 1500) == 12_500 + 3_044 + 84 + 25_216


@pytest.mark.parametrize(
    ("one", "other"), [((5, 400, 9216), (6, 400, 9216)), ((5, 400, 9000), (5, 400, 9216)), ((5, 200, 9216), (5, 400, 9216))]
)
def test_longer_faster_and_larger_need_more(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    less, more = headroom_bytes(*one), headroom_bytes(*other)
    assert less is not None
    assert more is not None
    assert less < more


@pytest.mark.parametrize("rate_gbps", [1, 800, 100.5])
def test_a_rate_of_which_nothing_is_known_has_none(rate_gbps: float) -> None:
    assert headroom_bytes(5, rate_gbps, 9216) is None
