# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings requested of each card, and the rail that reports them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._firmware.requests import RailRequest, rail_requests
from tests.unit.builders.cards import ADDRESSES, card_facts, card_rails, first_netdev, infiniband_rails
from tests.unit.builders.firmware import dual_port, entry, intent, setting_facts


def requested(plan: dict[str, Any], facts: dict[str, Any]) -> list[RailRequest]:
    return rail_requests(plan, from_dict(facts))


def shown(requests: list[RailRequest]) -> list[tuple[str | None, dict[str, object]]]:
    return [(request.card, request.settings) for request in requests]


def test_nothing_is_requested_where_the_link_layer_is_as_planned() -> None:
    assert shown(requested(intent(card_rails()), card_facts())) == [(ADDRESSES[0], {}), (ADDRESSES[1], {})]


def test_the_link_type_of_a_port_of_the_wrong_kind() -> None:
    requests = requested(intent(card_rails()), card_facts("InfiniBand"))
    assert shown(requests) == [(address, {"LINK_TYPE_P1": "ETH(2)"}) for address in ADDRESSES]
    requests = requested(intent(infiniband_rails()), card_facts("Ethernet"))
    assert shown(requests) == [(address, {"LINK_TYPE_P1": "IB(1)"}) for address in ADDRESSES]
    assert shown(requested(intent(card_rails(), link_type=False), card_facts("InfiniBand"))) == [(address, {}) for address in ADDRESSES]


def test_settings_go_to_every_card_and_the_link_type_with_them() -> None:
    settings = {"LINK_TYPE_P1": "ETH(2)", "SRIOV_EN": 0}
    assert shown(requested(intent(card_rails(), {"SRIOV_EN": 0}), card_facts())) == [(address, settings) for address in ADDRESSES]


def test_the_link_type_is_judged_where_it_was_read_anyway() -> None:
    facts = {**card_facts(), "firmware": {ADDRESSES[0]: entry(LINK_TYPE_P1=setting_facts("IB(1)", "ETH(2)"))}}
    assert shown(requested(intent(card_rails()), facts)) == [(ADDRESSES[0], {"LINK_TYPE_P1": "ETH(2)"}), (ADDRESSES[1], {})]


def test_two_ports_of_one_card() -> None:
    rails, facts = dual_port()
    requests = requested(intent(rails, {"SRIOV_EN": 0}), facts)
    assert shown(requests) == [(ADDRESSES[0], {"LINK_TYPE_P1": "ETH(2)", "SRIOV_EN": 0}), (ADDRESSES[0], {"LINK_TYPE_P2": "ETH(2)"})]
    assert [request.first for request in requests] == [True, False]


def test_two_ports_of_one_function_as_mlx4_has_them() -> None:
    rails, facts = card_rails(link_layer="infiniband"), card_facts()
    for rail in rails:
        rail["nic"] = {"pci": ADDRESSES[0]}
    port = facts["devices"]["mlx5_0"]["ports"]["1"]
    facts["devices"] = {"mlx4_0": {**facts["devices"]["mlx5_0"], "driver": "mlx4_core", "ports": {"2": {**port, "netdev": "ens1"}}}}
    facts["netdevs"] = {"ens1": {"pci": ADDRESSES[0], "dev_port": 1, "driver": "mlx4_core"}}
    assert shown(requested(intent(rails[1:]), facts)) == [(ADDRESSES[0], {"LINK_TYPE_P2": "IB(1)"})]


def test_what_the_intent_says_by_name_wins() -> None:
    rails, facts = dual_port()
    requests = requested(intent(rails, {"LINK_TYPE_P2": "IB"}), facts)
    assert [request.settings["LINK_TYPE_P2"] for request in requests] == ["IB", "IB"]


@pytest.mark.parametrize(
    ("rail", "device", "words"),
    [
        ({"soft": True}, {}, "a software device has no firmware"),
        ({}, {"software": True}, "a software device has no firmware"),
        ({}, {"driver": "bnxt_en"}, "its driver is bnxt_en"),
        ({}, {"function": "vf"}, "a virtual function has no settings"),
        ({"nic": {"pci": "0000:99:00.0"}}, {}, "its NIC is missing"),
    ],
)
def test_what_has_no_such_settings(rail: dict[str, object], device: dict[str, object], words: str) -> None:
    rails, facts = card_rails(**rail), card_facts("InfiniBand")
    for each in facts["devices"].values():
        each.update(device)
    request = requested(intent(rails, {"SRIOV_EN": 0}), facts)[0]
    assert (request.card, request.settings) == (None, {})
    assert words in request.why


def test_an_interface_without_rdma_device() -> None:
    facts = card_facts()
    del facts["devices"]["mlx5_0"]
    assert requested(intent(card_rails(), {"SRIOV_EN": 0}), facts)[0].card == ADDRESSES[0]
    first_netdev(facts)["driver"] = "virtio_net"
    assert "its driver is virtio_net" in requested(intent(card_rails(), {"SRIOV_EN": 0}), facts)[0].why
