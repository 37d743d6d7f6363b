# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values of firmware settings: printed, requested and written."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._firmware.cards import (
    RequestedValue,
    argument,
    is_array,
    is_requested,
    read_value,
    spelled,
)
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.mlxconfig import Value


@pytest.mark.parametrize("text", ["ETH(2)", "8", "_256KB(1)", "Array[0..7]", "0xff(255)", "False(0)", "A_(B)(3)"])
def test_what_is_printed_is_read_and_printed_again(text: str) -> None:
    assert spelled(read_value(text)) == text


def test_a_value_that_is_not_reported() -> None:
    assert spelled(None) is None


@pytest.mark.parametrize("requested", [2, "2", "0x2", "ETH", "eth", "ETH(2)", " Eth(2) "])
def test_one_value_is_requested_in_many_ways(requested: RequestedValue) -> None:
    assert is_requested(Value("ETH", 2), requested)
    assert not is_requested(Value("IB", 1), requested)


@pytest.mark.parametrize("requested", [True, "True", "true", 1, "1", "True(1)"])
def test_a_boolean(requested: RequestedValue) -> None:
    assert is_requested(Value("True", 1), requested)
    assert is_requested(Value("1", 1), requested)  # as old tools print it
    assert not is_requested(Value("False", 0), requested)


def test_a_name_that_is_no_number() -> None:
    assert is_requested(Value("DEVICE_DEFAULT", 0), "device_default")
    assert not is_requested(Value("%d", None), "8")
    assert not is_requested(Value("DEVICE_DEFAULT", 0), "DISABLED")


def test_an_array_stands_for_several_values() -> None:
    assert is_array(Value("Array[0..7]", None))
    assert not is_array(Value("8", 8))
    assert not is_array(None)


@pytest.mark.parametrize(
    ("requested", "now", "word"),
    [
        ("ETH(2)", "IB(1)", "2"),
        ("ETH", "IB(1)", "ETH"),
        (True, "False(0)", "1"),
        ("0x10", "8", "16"),
        (255, "0x1(1)", "0xff"),
        ("255", "0x1(1)", "0xff"),
    ],
)
def test_what_set_is_reported(requested: RequestedValue, now: str, word: str) -> None:
    assert argument(requested, read_value(now)) == word
