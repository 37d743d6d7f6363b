# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rate and width of ports: what came up slower, narrower or faster than it should, and why that is one error."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.link.link import check_link
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from tests.unit.builders.cards import HOST, bad, card_facts, card_rails, first_netdev, first_pci, first_port, infiniband_rails, of_first


def infiniband(gbps: float | None, width: int | None, speed: str, planned: float | None = None) -> dict[str, Finding]:
    facts = card_facts("InfiniBand")
    first_port(facts).update(rate_gbps=gbps, width=width, speed=speed)
    first_netdev(facts)["ethtool"] = {"speed_mbps": 10, "supported_speeds_mbps": [10]}  # what IPoIB says is not the port's
    return of_first(check_link(HOST, infiniband_rails(planned), from_dict(facts)))


def ethernet(gbps: float, width: int | None, speed: str, planned: float | None, speed_mbps: int | None = None) -> dict[str, Finding]:
    facts = card_facts()
    first_port(facts).update(rate_gbps=gbps, width=width, speed=speed)
    first_netdev(facts)["ethtool"]["speed_mbps"] = speed_mbps or int(gbps * 1000)
    return of_first(check_link(HOST, card_rails(planned), from_dict(facts)))


def judged(found: dict[str, Finding]) -> tuple[str, str]:
    assert [check for check, status in bad(list(found.values()))] in ([], ["link.rate"], ["link.width"])
    return found["link.rate"].status, found["link.width"].status


@pytest.mark.parametrize(
    ("seen", "planned", "rate_status", "width_status"),
    [
        pytest.param((400, 4, "NDR"), 400, "ok", "ok", id="NDR"),
        pytest.param((100, 2, "HDR"), 100, "ok", "ok", id="HDR100 as planned"),
        pytest.param((200, 2, "NDR"), 200, "ok", "ok", id="NDR200 as planned"),
        pytest.param((800, 4, "XDR"), 800, "ok", "ok", id="XDR"),
        pytest.param((800, 8, "NDR"), 800, "ok", "ok", id="eight lanes"),
        pytest.param((56, 4, "FDR"), 56, "ok", "ok", id="FDR"),
        pytest.param((56.25, 4, "FDR"), 56, "ok", "ok", id="FDR unrounded"),
        pytest.param((100, 4, "EDR"), 100, "ok", "not_applicable", id="EDR and no lanes reported"),
        pytest.param((40, 4, "FDR10"), 40, "ok", "ok", id="FDR10"),
        pytest.param((41.25, 4, "FDR10"), 40, "warning", "ok", id="beyond the tolerance"),
        pytest.param((100, 4, "EDR"), 200, "error", "not_applicable", id="200 came up at 100"),
        pytest.param((200, 2, "NDR"), 400, "not_applicable", "error", id="NDR at 2x"),
        pytest.param((100, 1, "NDR"), 400, "not_applicable", "error", id="NDR at 1x"),
        pytest.param((50, 2, "EDR"), 400, "error", "not_applicable", id="slow and narrow"),
        pytest.param((400, 4, "NDR"), 200, "warning", "ok", id="faster than planned"),
        pytest.param((388, 4, "NDR"), 400, "ok", "ok", id="inside the tolerance"),
        pytest.param((387, 4, "NDR"), 400, "error", "not_applicable", id="outside the tolerance"),
        pytest.param((400, 4, "NDR"), 800, "error", "not_applicable", id="one of two planes"),
    ],
)
def test_against_the_plan(seen: tuple[float, int, str], planned: float, rate_status: str, width_status: str) -> None:
    gbps, width, speed = seen
    width_reported = None if width_status == "not_applicable" and rate_status == "ok" else width
    assert judged(infiniband(gbps, width_reported, speed, planned)) == (rate_status, width_status)
    assert judged(ethernet(gbps, width_reported, speed, planned)) == (rate_status, width_status)


def test_a_slow_port_names_cable_and_forced_speed() -> None:
    finding = infiniband(100, 4, "EDR", 200)["link.rate"]
    assert (finding.observed, finding.expected) == ("mlx5_0/1 runs at 100 Gb/s (4X EDR)", "200 Gb/s")
    assert "the cable of rail 0 on node1 (mlx5_0/1, 0000:3d:00.0) supports 200 Gb/s" in finding.remedy
    assert "on node1 `ibportstate -C mlx5_0 -P 1 -D 0 1 query`" in finding.remedy
    assert "`ethtool ens1np0`" in ethernet(100, 4, "EDR", 200)["link.rate"].remedy


def test_a_narrow_port_is_reported_once() -> None:
    found = infiniband(200, 2, "NDR", 400)
    assert (found["link.width"].observed, found["link.width"].expected) == ("mlx5_0/1 runs at 200 Gb/s (2X NDR): 2 of 4 lanes", "4 lanes")
    assert found["link.rate"].observed == "mlx5_0/1 runs at 200 Gb/s (2X NDR): see link.width"
    assert "splitter" in found["link.width"].remedy
    assert found["link.width"].rate_ratio == 0.5


def test_faster_than_planned_asks_for_the_plan_to_be_corrected() -> None:
    assert "Correct rate_gbps of rail0 of node1 to 400" in infiniband(400, 4, "NDR", 200)["link.rate"].remedy


@pytest.mark.parametrize(
    ("width", "speed", "status"),
    [(4, "NDR", "ok"), (8, "HDR", "ok"), (2, "HDR", "warning"), (1, "NDR", "warning"), (None, "NDR", "unknown")],
)
def test_infiniband_without_a_plan_is_judged_by_its_lanes(width: int | None, speed: str, status: str) -> None:
    assert judged(infiniband(100, width, speed)) == ("not_applicable", status)


def test_fewer_lanes_that_may_be_meant_say_how_to_plan_them() -> None:
    remedy = infiniband(100, 2, "HDR")["link.width"].remedy
    assert remedy.startswith("If intended (HDR100, NDR200, a splitter cable), set `rate_gbps: 100` for rail0 of node1. Else: ")


@pytest.mark.parametrize(
    ("gbps", "width", "rate_status", "width_status"),
    [(400, 4, "ok", "ok"), (100, 4, "error", "not_applicable"), (200, 2, "not_applicable", "error")],
)
def test_ethernet_without_a_plan_is_judged_by_what_the_port_can_do(gbps: float, width: int, rate_status: str, width_status: str) -> None:
    found = ethernet(gbps, width, "NDR", None)
    assert judged(found) == (rate_status, width_status)
    if rate_status == "error":
        assert found["link.rate"].expected == "400 Gb/s, the port's maximum"
        assert "If 100 Gb/s is intended, set `rate_gbps: 100` for rail0." in found["link.rate"].remedy


def test_the_interface_is_believed_where_the_driver_does_not_know_the_speed() -> None:
    """mlx5 before it knew 100 Gb/s lanes, and bnxt_re: a speed that the driver does not know is printed as another."""
    found = ethernet(40, 4, "QDR", 400, speed_mbps=400000)
    assert judged(found) == ("ok", "not_applicable")
    assert found["link.rate"].observed == "mlx5_0/1 runs at 400 Gb/s"


def test_an_interface_without_a_speed_leaves_the_word_to_the_driver() -> None:
    facts = card_facts()
    first_netdev(facts)["ethtool"]["speed_mbps"] = None
    assert judged(of_first(check_link(HOST, card_rails(), from_dict(facts)))) == ("ok", "ok")


def test_a_planned_rate_and_none_that_can_be_read_is_unknown() -> None:
    assert judged(infiniband(None, None, "NDR", 400)) == ("unknown", "not_applicable")


def test_ethernet_that_reports_nothing_is_not_judged_without_a_plan() -> None:
    facts = card_facts()
    first_netdev(facts)["ethtool"] = None
    found = of_first(check_link(HOST, card_rails(None), from_dict(facts)))
    assert judged(found) == ("not_applicable", "not_applicable")
    assert "does not report its maximum" in found["link.rate"].observed


@pytest.mark.parametrize(
    ("gbps", "speed", "device_id", "status"),
    [
        (400, "NDR", "0x1021", "not_applicable"),
        (200, "HDR", "0x1021", "warning"),
        (200, "HDR", "0x101b", "not_applicable"),
        (400, "NDR", "0x101b", "not_applicable"),
        (200, "HDR", "0x101e", "not_applicable"),
        (200, "XYZ", "0x1021", "not_applicable"),
    ],
    ids=["best", "ConnectX-7 at HDR", "ConnectX-6", "better than the best", "a VF", "a speed of the future"],
)
def test_infiniband_without_a_plan_is_judged_by_the_card_s_generation(gbps: float, speed: str, device_id: str, status: str) -> None:
    facts = card_facts("InfiniBand")
    first_port(facts).update(rate_gbps=float(gbps), width=4, speed=speed)
    first_pci(facts)["device_id"] = device_id
    finding = of_first(check_link(HOST, infiniband_rails(), from_dict(facts)))["link.rate"]
    assert finding.status == status
    assert ("set `rate_gbps: 200` for rail0 of node1" in finding.remedy) is (status == "warning")


@pytest.mark.parametrize(("lanes", "status"), [(4, "ok"), (16, "warning")])
def test_a_lower_rate_is_planned_with_reason_where_pcie_caps_the_port(lanes: int, status: str) -> None:
    """DGX Spark: a port of 200 Gb/s is two functions of Gen5 x4, of which each says 200."""
    facts = card_facts()
    first_port(facts).update(rate_gbps=200.0, width=4, speed="HDR")
    first_netdev(facts)["ethtool"]["speed_mbps"] = 200_000
    first_pci(facts)["narrowest"] = {"address": "0000:3d:00.0", "speed_gtps": 32.0, "width": lanes}
    assert of_first(check_link(HOST, card_rails(100), from_dict(facts)))["link.rate"].status == status
