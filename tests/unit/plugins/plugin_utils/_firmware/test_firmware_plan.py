# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the driver stage asks, writes and waits for in the firmware of cards."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._firmware.requests import (
    firmware_differs,
    firmware_names,
    firmware_pending,
    firmware_requests,
)
from tests.unit.builders.cards import ADDRESSES, card_facts, card_rails
from tests.unit.builders.firmware import dual_port, entry, intent, setting_facts


def test_nothing_is_asked_where_nothing_is_requested() -> None:
    assert firmware_names(intent(card_rails())) == []
    assert firmware_names(intent(card_rails()), from_dict(card_facts())) == []
    assert firmware_names(intent(card_rails(), link_type=False), from_dict(card_facts("InfiniBand"))) == []


def test_the_names_to_ask_for() -> None:
    assert firmware_names(intent(card_rails(), {"SRIOV_EN": 0})) == ["LINK_TYPE_P1", "LINK_TYPE_P2", "SRIOV_EN"]
    assert firmware_names(intent(card_rails(), {"SRIOV_EN": 0}, link_type=False)) == ["SRIOV_EN"]
    assert firmware_names(intent(card_rails()), from_dict(card_facts("InfiniBand"))) == ["LINK_TYPE_P1", "LINK_TYPE_P2"]


def test_each_card_once() -> None:
    rails, facts = dual_port("InfiniBand")
    settings = {"LINK_TYPE_P1": "ETH(2)", "LINK_TYPE_P2": "ETH(2)", "SRIOV_EN": 0}
    assert firmware_requests(intent(rails, {"SRIOV_EN": 0}), from_dict(facts)) == [{"device": ADDRESSES[0], "settings": settings}]
    assert firmware_requests(intent(card_rails()), from_dict(card_facts())) == []


def facts_with(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {**card_facts(), "firmware": dict(zip(ADDRESSES, (first, second), strict=True))}


GOOD = entry(LINK_TYPE_P1=setting_facts("ETH(2)"), SRIOV_EN=setting_facts("False(0)"))


@pytest.mark.parametrize(
    ("second", "differs"),
    [
        (GOOD, False),
        (entry(LINK_TYPE_P1=None, SRIOV_EN=setting_facts("False(0)", "True(1)")), False),
        (entry(LINK_TYPE_P1=setting_facts("ETH(2)"), SRIOV_EN=setting_facts("True(1)", "False(0)")), True),
        (entry("something failed", LINK_TYPE_P1=setting_facts("ETH(2)")), True),
        (entry(LINK_TYPE_P1=setting_facts(None), SRIOV_EN=setting_facts("False(0)")), True),
    ],
)
def test_a_call_is_needed_unless_all_is_proven(second: dict[str, Any], differs: bool) -> None:
    assert firmware_differs(intent(card_rails(), {"SRIOV_EN": 0}), from_dict(facts_with(GOOD, second))) is differs


def test_in_doubt_a_call_is_needed() -> None:
    plan = intent(card_rails(), {"SRIOV_EN": 0})
    assert firmware_differs(plan, None)
    assert firmware_differs(plan, from_dict(card_facts()))
    assert firmware_differs(intent(card_rails()), from_dict(card_facts("InfiniBand")))


def test_without_a_request_no_call_is_needed() -> None:
    assert not firmware_differs(intent(card_rails()), from_dict(card_facts()))
    assert not firmware_differs(intent(card_rails()), None)
    assert not firmware_differs(intent(card_rails(soft=True), {"SRIOV_EN": 0}), from_dict(card_facts()))


def test_what_waits_for_a_reboot() -> None:
    waiting = entry(LINK_TYPE_P1=setting_facts("ETH(2)", "IB(1)"), SRIOV_EN=setting_facts("True(1)", "False(0)"))
    expected = [{"device": ADDRESSES[1], "name": "LINK_TYPE_P1", "current": "IB(1)", "next_boot": "ETH(2)"}]
    assert firmware_pending(intent(card_rails(), {"SRIOV_EN": 0}), from_dict(facts_with(GOOD, waiting))) == expected
    assert firmware_pending(intent(card_rails(), {"SRIOV_EN": 0}), from_dict(card_facts())) == []
