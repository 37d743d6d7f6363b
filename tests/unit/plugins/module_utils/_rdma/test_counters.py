# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The counters between two readings of a host."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import COUNTERS, since
from tests.unit.builders.cards import card_facts, first_netdev, first_port
from tests.unit.builders.hosts import lab_facts

QUIET = {"mlx5_0": {"1": {}}, "mlx5_1": {"1": {}}}


def later(**boot: Any) -> dict[str, Any]:
    """The facts of card_facts half an hour later."""
    facts = card_facts()
    facts["boot"].update({"uptime_seconds": 9000.0, **boot})
    return facts


def test_a_quiet_host_was_compared_and_nothing_rose() -> None:
    assert since(card_facts(), later(), "run-1") == {
        "run": "run-1",
        "seconds": 1800.0,
        "devices": QUIET,
        "netdevs": {"ens1np0": {}, "ens2np0": {}},
    }


def test_what_rose_is_reported_and_what_is_no_error_is_not() -> None:
    after = later()
    first_port(after)["counters"].update(symbol_error=12, port_xmit_data=10**9, port_xmit_discards=1)
    first_port(after)["hw_counters"]["out_of_sequence"] = 3
    first_netdev(after)["ethtool"]["counters"].update(rx_symbol_err_phy=12, tx_packets=10**6)
    first_netdev(after)["carrier_downs"] = 3
    found = since(card_facts(), after, "run-1")
    assert found is not None
    assert found["devices"]["mlx5_0"] == {"1": {"out_of_sequence": 3, "port_xmit_discards": 1, "symbol_error": 12}}
    assert found["netdevs"]["ens1np0"] == {"carrier_downs": 2, "rx_symbol_err_phy": 12}


def test_a_counter_that_somebody_cleared_or_that_one_reading_does_not_report_is_left_out() -> None:
    before, after = card_facts(), later()
    first_port(before)["counters"].update(symbol_error=500, link_downed=None)
    first_port(after)["counters"].update(symbol_error=4, link_downed=4, port_rcv_errors=None, local_link_integrity_errors=2)
    found = since(before, after, "run-1")
    assert found is not None
    assert found["devices"] == QUIET


@pytest.mark.parametrize(
    "boot", [{"boot_id": "b-2"}, {"boot_id": None}, {"uptime_seconds": 7200.0}, {"uptime_seconds": 60.0}, {"uptime_seconds": None}]
)
def test_another_boot_or_no_later_reading_is_not_compared(boot: dict[str, Any]) -> None:
    assert since(card_facts(), later(**boot), "run-1") is None


def test_two_readings_without_a_boot_id_are_not_of_one_boot() -> None:
    before = card_facts()
    before["boot"]["boot_id"] = None
    assert since(before, later(boot_id=None), "run-1") is None


def test_facts_without_uptime_are_not_compared() -> None:
    assert since(lab_facts(), lab_facts(), "run-1") is None
    assert since({}, later(), "run-1") is None


def test_a_device_that_is_gone_or_another_one_is_left_out() -> None:
    after = later()
    after["devices"]["mlx5_0"]["node_guid"] = "a088:c203:0000:0009"
    after["netdevs"]["ens1np0"]["mac"] = "a0:88:c2:00:00:09"
    after["devices"]["mlx5_2"] = copy.deepcopy(after["devices"]["mlx5_1"])
    found = since(card_facts(), after, "run-1")
    assert found is not None
    assert list(found["devices"]) == ["mlx5_1"]
    assert list(found["netdevs"]) == ["ens2np0"]


def test_no_device_in_common_is_nothing_to_compare() -> None:
    after = later()
    after["devices"] = {}
    assert since(card_facts(), after, "run-1") is None


def test_a_port_that_is_new_is_left_out() -> None:
    after = later()
    after["devices"]["mlx5_0"]["ports"]["2"] = copy.deepcopy(first_port(after))
    found = since(card_facts(), after, "run-1")
    assert found is not None
    assert found["devices"]["mlx5_0"] == {"1": {}}


def test_soft_roce_counts_among_the_hardware_counters() -> None:
    before, after = lab_facts(), lab_facts()
    before["boot"]["uptime_seconds"], after["boot"]["uptime_seconds"] = 100.0, 160.0
    before["devices"]["rxe_rail0"]["ports"]["1"]["hw_counters"].update(link_downed=1, sent_pkts=70)
    after["devices"]["rxe_rail0"]["ports"]["1"]["hw_counters"].update(link_downed=2, sent_pkts=77)
    found = since(before, after, "run-1")
    assert found is not None
    assert found["devices"] == {"rxe_rail0": {"1": {"link_downed": 1}}, "rxe_rail1": {"1": {}}}


def test_data_and_packets_are_no_events() -> None:
    assert not {name for name in COUNTERS if name.endswith(("_data", "_packets", "_bytes", "_pkts")) or "pause_ctrl" in name}
    assert "VL15_dropped" not in COUNTERS


values = st.none() | st.integers(0, 2**64)
names = st.sampled_from([*sorted(COUNTERS)[:6], "port_xmit_data"])


@given(st.dictionaries(names, values), st.dictionaries(names, values))
def test_any_counters_give_rises_only(first: dict[str, int | None], second: dict[str, int | None]) -> None:
    before, after = card_facts(), later()
    first_port(before)["counters"], first_port(after)["counters"] = first, second
    first_netdev(before)["ethtool"]["counters"], first_netdev(after)["ethtool"]["counters"] = second, first
    found = since(before, after, "run-1")
    assert found is not None
    for risen in (found["devices"]["mlx5_0"]["1"], found["netdevs"]["ens1np0"]):
        assert all(value > 0 for value in risen.values())
        assert risen.keys() <= COUNTERS


@pytest.mark.parametrize("wrong", [None, [], "text", 7, {"a": 1}])
@pytest.mark.parametrize(
    "place",
    [
        ("devices",),
        ("devices", "mlx5_0"),
        ("devices", "mlx5_0", "ports"),
        ("devices", "mlx5_0", "ports", "1"),
        ("netdevs",),
        ("netdevs", "ens1np0"),
        ("netdevs", "ens1np0", "ethtool"),
        ("boot",),
        ("boot", "uptime_seconds"),
        ("boot", "boot_id"),
    ],
)
def test_damaged_facts_of_an_earlier_run_compare_less(place: tuple[str, ...], wrong: Any) -> None:
    before, after = card_facts(), later()
    first_port(after)["counters"]["symbol_error"] = 12
    tree: Any = before
    for name in place[:-1]:
        tree = tree[name]
    tree[place[-1]] = wrong
    found = since(before, after, "run-1")
    assert found is None or "ens2np0" in found["netdevs"] or place == ("netdevs",)
