# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The partition that a port is measured in."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.device import Port
from ansible_collections.rdma.cluster.plugins.plugin_utils._subnet_manager.plan import (
    NO_PARTITION,
    limited_only,
    limited_places,
    partition_place,
    partition_words,
)
from tests.unit.builders.driver_hosts import part


def intent(*keys: int) -> dict[str, Any]:
    return {"partitions": {f"tenant{number}": {"key": key} for number, key in enumerate(keys)}}


def port(*table: int) -> Port:
    return part(Port, {"pkeys": {str(index): key for index, key in enumerate(table)}})


@pytest.mark.parametrize(
    ("table", "keys", "place"),
    [
        ((0xFFFF,), (), (0x7FFF, 0)),
        ((0xFFFF, 0x8001), (1,), (0x7FFF, 0)),
        ((0x8001, 0xFFFF), (1, 0x7FFF), (1, 0)),
        ((0x7FFF, 0x8001), (1,), (1, 1)),
        ((0x7FFF, 0x8002, 0x8001), (1, 2), (1, 2)),
        ((0x7FFF, 0x8001, 0x8002), (2, 1), (2, 2)),
        ((0x7FFF, 0x8009, 0x8003), (), (3, 2)),
        ((0x7FFF, 0x0001, 0x8002), (1, 2), (2, 2)),
        ((0x7FFF, 0x8001, 0x8001), (1,), (1, 1)),
    ],
    ids=["default", "default before tenants", "as listed", "tenant", "first of the intent", "other order", "foreign", "limited", "twice"],
)  # fmt: skip
def test_a_port_is_measured_where_it_is_a_full_member(table: tuple[int, ...], keys: tuple[int, ...], place: tuple[int, int]) -> None:
    assert partition_place(port(*table), intent(*keys)) == place
    assert limited_only(port(*table), intent(*keys)) == ""


def test_a_limited_member_reaches_no_other_one() -> None:
    assert partition_place(port(0x7FFF, 0x0001), intent(1)) is None
    assert limited_only(port(0x7FFF, 0x0001), intent(1)) == (
        "its port is a full member of no partition (its table has 0x7fff, 0x0001), and limited members cannot reach each other"
    )
    assert limited_only(port(), intent(1)).startswith("its port is a full member of no partition (its table has nothing)")


def test_without_a_table_there_are_no_partitions() -> None:
    reported = part(Port, {})
    assert partition_place(reported, intent(1)) is NO_PARTITION
    assert limited_only(reported, intent(1)) == ""
    assert limited_places(reported) == {}


def test_where_a_port_is_a_limited_member() -> None:
    assert limited_places(port(0x7FFF, 0x8001, 0x0002)) == {0x7FFF: 0, 2: 2}


def test_a_partition_in_words() -> None:
    assert (partition_words(1), partition_words(0x7FFF), partition_words(None)) == ("partition 0x8001", "partition 0xffff", "")
