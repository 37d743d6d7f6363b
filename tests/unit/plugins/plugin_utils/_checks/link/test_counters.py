# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of the link stage on what the counters of ports did since the last run."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.counters import CABLE_ERRORS, CONGESTION, since
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.counters import FULL, check_counters
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.cards import HOST, bad, card_facts, card_rails, first_netdev, first_port, infiniband_rails, of_first
from tests.unit.builders.hosts import lab_facts, lab_rails


def checked(port: dict[str, int], netdev: dict[str, int] | None = None, hours: float = 2.0, **thresholds: float) -> dict[str, Finding]:
    """The findings on rail 0 after its counters did that."""
    facts = card_facts()
    facts["since"] = {
        "run": "20261121-1",
        "seconds": hours * 3600,
        "devices": {"mlx5_0": {"1": port}},
        "netdevs": {"ens1np0": netdev or {}},
    }
    return of_first(check_counters(HOST, card_rails(), from_dict(facts), **thresholds))


def test_a_quiet_link_says_for_how_long() -> None:
    found = checked({})
    assert [(finding.check, finding.status) for finding in found.values()] == [("link.flaps", "ok"), ("link.errors", "ok")]
    assert found["link.errors"].observed == "none in 2 h since run 20261121-1"
    assert found["link.errors"].expected == "none; 100 an hour or more is an error"
    assert found["link.flaps"].expected == "none; 3 an hour or more is an error"
    assert {finding.stage for finding in found.values()} == {"link"}


@pytest.mark.parametrize(
    ("count", "hours", "status"),
    [
        pytest.param(1, 2, "warning", id="any"),
        pytest.param(199, 2, "warning", id="just below the rate"),
        pytest.param(200, 2, "error", id="the rate"),
        pytest.param(2400, 24, "error", id="the rate over a day"),
        pytest.param(2000, 24, "warning", id="less over a day"),
        pytest.param(9, 0.01, "warning", id="too few to be a rate"),
        pytest.param(10, 0.01, "error", id="enough to be a rate"),
    ],
)
def test_errors_by_their_rate(count: int, hours: float, status: str) -> None:
    assert bad(list(checked({"symbol_error": count}, hours=hours).values())) == [("link.errors", status)]


@pytest.mark.parametrize(
    ("count", "hours", "status"),
    [(1, 0.01, "warning"), (2, 0.01, "warning"), (3, 0.9, "error"), (3, 1.0, "error"), (3, 1.1, "warning"), (50, 24, "warning")],
)
def test_flaps_by_their_rate(count: int, hours: float, status: str) -> None:
    assert bad(list(checked({"link_downed": count}, hours=hours).values())) == [("link.flaps", status)]


def test_one_flap_that_several_counters_saw_is_not_several() -> None:
    found = checked({"link_downed": 2, "link_error_recovery": 2}, {"link_down_events_phy": 2, "carrier_downs": 2}, hours=0.5)
    assert bad(list(found.values())) == [("link.flaps", "warning")]
    assert found["link.flaps"].observed == (
        "carrier_downs 2 (4 an hour), link_down_events_phy 2 (4 an hour), link_downed 2 (4 an hour), link_error_recovery 2 (4 an hour) "
        "in 0.5 h since run 20261121-1"
    )
    assert "On node1, run `journalctl -k`" in found["link.flaps"].remedy


@pytest.mark.parametrize("name", sorted(CABLE_ERRORS))
def test_every_error_of_the_cable_can_fail(name: str) -> None:
    finding = checked({}, {name: 1000})["link.errors"]
    assert finding.status == "error"
    assert finding.observed == f"{name} 1000 (500 an hour) in 2 h since run 20261121-1"
    assert finding.remedy.startswith("Clean and reseat the cable of rail 0 on node1 (mlx5_0/1, 0000:3d:00.0) at both ends")


@pytest.mark.parametrize("name", [*sorted(CONGESTION), "rx_oversize_pkts_phy", "module_high_temp", "tx_pci_signal_integrity"])
def test_what_is_not_the_cable_is_a_warning_however_much(name: str) -> None:
    finding = checked({name: 10**9})["link.errors"]
    assert finding.status == "warning"
    assert "Clean and reseat" not in finding.remedy


def test_damage_from_further_up_fails_and_does_not_blame_this_cable() -> None:
    finding = checked({"port_rcv_remote_physical_errors": 1000})["link.errors"]
    assert finding.status == "error"
    assert "damaged before the switch of the cable of rail 0 on node1 (mlx5_0/1, 0000:3d:00.0). If this has been" in finding.remedy
    assert "reseat" not in finding.remedy


def test_each_kind_has_its_remedy_and_the_greatest_stands_first() -> None:
    finding = checked({"symbol_error": 3, "port_xmit_discards": 70})["link.errors"]
    assert finding.status == "warning"
    assert finding.observed == "port_xmit_discards 70 (35 an hour), symbol_error 3 (1.5 an hour) in 2 h since run 20261121-1"
    assert "then replace it" in finding.remedy
    assert "congestion, not the cable" in finding.remedy


def test_transport_events_are_not_the_links() -> None:
    assert bad(list(checked({"out_of_sequence": 10**6}).values())) == []


def test_thresholds_can_be_replaced() -> None:
    found = checked({"symbol_error": 30, "link_downed": 4}, errors_per_hour=10, flaps_per_hour=2)
    assert bad(list(found.values())) == [("link.flaps", "error"), ("link.errors", "error")]
    assert found["link.errors"].expected == "none; 10 an hour or more is an error"
    found = checked({"symbol_error": 3000, "link_downed": 40}, errors_per_hour=10000, flaps_per_hour=100)
    assert bad(list(found.values())) == [("link.flaps", "warning"), ("link.errors", "warning")]
    assert bad(list(checked({"symbol_error": 10}, errors_per_hour=0).values())) == [("link.errors", "error")]


def test_the_first_run_of_a_boot_has_nothing_to_compare_with() -> None:
    for facts in (card_facts(), {**card_facts(), "since": None}):
        found = check_counters(HOST, card_rails(), from_dict(facts))
        assert {(finding.status, finding.observed) for finding in found} == {
            ("not_applicable", "no earlier run of this boot to compare with")
        }


def test_a_port_that_is_not_up_is_not_judged_twice() -> None:
    facts = card_facts()
    first_port(facts)["state"] = "DOWN"
    facts["since"] = {"run": "r", "seconds": 60.0, "devices": {"mlx5_0": {"1": {"link_downed": 9, "symbol_error": 999}}}, "netdevs": {}}
    found = of_first(check_counters(HOST, card_rails(), from_dict(facts)))
    assert {finding.observed for finding in found.values()} == {"the port is not up: see link.state"}


def test_a_rail_without_a_device_points_to_the_finding_on_that() -> None:
    facts = card_facts()
    del facts["devices"]["mlx5_0"]
    found = of_first(check_counters(HOST, card_rails(), from_dict(facts)))
    assert {finding.status for finding in found.values()} == {"not_applicable"}
    assert "see link.state" in found["link.errors"].observed


def test_a_device_that_was_another_one_then() -> None:
    facts = card_facts()
    facts["since"] = {"run": "run-7", "seconds": 60.0, "devices": {"mlx5_1": {"1": {}}}, "netdevs": {"ens2np0": {}}}
    assert of_first(check_counters(HOST, card_rails(), from_dict(facts)))["link.flaps"].observed == "not the same port as in run run-7"


def test_the_greatest_values_are_those_of_16_8_and_4_bits() -> None:
    assert {value: sorted(name for name in FULL if FULL[name] == value) for value in FULL.values()} == {
        65535: ["port_rcv_errors", "port_rcv_remote_physical_errors", "port_xmit_discards", "symbol_error"],
        255: ["link_downed", "link_error_recovery"],
        15: ["excessive_buffer_overrun_errors", "local_link_integrity_errors"],
    }


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("compared", [True, False])
def test_a_counter_that_is_full_is_a_warning_with_and_without_an_earlier_run(name: str, *, compared: bool) -> None:
    facts = card_facts("InfiniBand")
    first_port(facts)["counters"][name] = FULL[name]
    if compared:
        facts["since"] = {"run": "r", "seconds": 60.0, "devices": {"mlx5_0": {"1": {}}}, "netdevs": {}}
    (finding,) = [each for each in check_counters(HOST, infiniband_rails(), from_dict(facts)) if each.status == "warning"]
    assert finding.check == ("link.flaps" if name in ("link_downed", "link_error_recovery") else "link.errors")
    assert f"; {name} is at its maximum and no longer counts" in finding.observed
    assert "`perfquery -C mlx5_0 -P 1 -R`" in finding.remedy


def test_a_full_counter_beside_one_that_rises_keeps_the_error() -> None:
    facts = card_facts()
    first_port(facts)["counters"]["symbol_error"] = 65535
    facts["since"] = {"run": "r", "seconds": 3600.0, "devices": {"mlx5_0": {"1": {"port_rcv_errors": 500}}}, "netdevs": {}}
    finding = of_first(check_counters(HOST, card_rails(), from_dict(facts)))["link.errors"]
    assert finding.status == "error"
    assert finding.observed.endswith("; symbol_error is at its maximum and no longer counts")
    assert "or reboot node1" in finding.remedy
    assert finding.remedy.endswith("If this has been fixed since, run again: the next run counts from this one.")


def test_a_counter_beyond_the_classic_width_is_not_full() -> None:
    facts = card_facts("InfiniBand")
    first_port(facts)["counters"]["symbol_error"] = 65536
    assert bad(check_counters(HOST, infiniband_rails(), from_dict(facts))) == []


def test_soft_roce_has_flaps_and_no_error_counters() -> None:
    before, after = lab_facts(), lab_facts()
    before["boot"]["uptime_seconds"], after["boot"]["uptime_seconds"] = 100.0, 3700.0
    for facts, downs in ((before, 1), (after, 2)):
        facts["devices"]["rxe_rail0"]["ports"]["1"]["hw_counters"]["link_downed"] = downs
    after["since"] = since(before, after, "run-1")
    found = of_first(check_counters("node1", lab_rails(), from_dict(after)))
    assert (found["link.flaps"].status, found["link.errors"].status) == ("warning", "not_applicable")
    assert found["link.flaps"].observed == "link_downed 1 (1 an hour) in 1 h since run run-1"
    assert found["link.errors"].observed == "rxe_rail0/1 and its interface have none of these counters"


def test_null_counters_report_nothing() -> None:
    facts = card_facts()
    first_port(facts).update(counters={"symbol_error": None, "link_downed": None}, hw_counters={})
    netdev: dict[str, Any] = first_netdev(facts)
    netdev.update(carrier_downs=None, ethtool=None)
    found = of_first(
        check_counters(HOST, card_rails(), from_dict({**facts, "since": {"run": "r", "seconds": 1.0, "devices": {}, "netdevs": {}}}))
    )
    assert {finding.observed for finding in found.values()} == {"mlx5_0/1 and its interface have none of these counters"}


def test_an_infiniband_port_without_counters_is_unknown() -> None:
    """Each InfiniBand port has them; those of its IPoIB interface say nothing about the cable."""
    facts = card_facts("InfiniBand")
    first_port(facts).update(counters={}, hw_counters={})
    facts["since"] = {"run": "r", "seconds": 3600.0, "devices": {"mlx5_0": {"1": {}}}, "netdevs": {"ens1np0": {}}}
    found = of_first(check_counters(HOST, infiniband_rails(), from_dict(facts)))
    assert {check: finding.status for check, finding in found.items()} == {"link.flaps": "unknown", "link.errors": "unknown"}
    assert "`perfquery -C mlx5_0 -P 1`" in found["link.errors"].remedy
