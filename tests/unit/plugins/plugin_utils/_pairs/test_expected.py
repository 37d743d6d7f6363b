# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What link, MTU and PCIe path allow, and what a measured figure is worth against it."""

from __future__ import annotations

import math
import time
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import gather, to_dict
from ansible_collections.rdma.cluster.plugins.module_utils._pci.functions import PciLink
from ansible_collections.rdma.cluster.plugins.module_utils._pci.path import payload_gbps
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail, resolve
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import (
    PCIE_PAYLOAD_SHARE,
    LatencyBounds,
    Limit,
    judge_bandwidth,
    judge_latency,
    latency_bounds,
    mtu_efficiency,
    pair_limit,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import Endpoint, NoLimit, endpoints
from tests.unit.builders.cards import card_facts, card_rails, infiniband_rails
from tests.unit.builders.hosts import lab_facts, lab_rails
from tests.unit.builders.trees import mlx5_machine

ETHERNET, INFINIBAND = "Ethernet", "InfiniBand"
GEN4_X8, GEN5_X16 = PciLink("0000:20:01.0", 16.0, 8), PciLink("0000:3b:00.0", 32.0, 16)
#: MTU → efficiency in percent, then Gb/s of 100, 200 and 400 Gb/s, as they are printed in tables of RoCE v2.
ROCE_TABLE = {
    4096: ("98.04", "98.0", "196.1", "392.2"),
    2048: ("96.15", "96.2", "192.3", "384.6"),
    1024: ("92.59", "92.6", "185.2", "370.4"),
}


def end(rate_gbps: float = 400.0, mtu_bytes: int = 4096, link: PciLink | None = GEN5_X16, link_layer: str = ETHERNET) -> Endpoint:
    gbps = payload_gbps(link.speed_gtps, link.width) if link is not None else math.inf
    return Endpoint(link_layer=link_layer, rate_gbps=rate_gbps, mtu_bytes=mtu_bytes, pcie=link, pcie_gbps=gbps)


def limit_of(facts: dict[str, Any], rail: int = 0, link_layer: str = ETHERNET, **asked: Any) -> Limit | NoLimit:
    rails = card_rails() if link_layer == ETHERNET else infiniband_rails()
    one = endpoints([resolve(rails, from_dict(facts))[rail]], from_dict(facts))[0]
    return pair_limit(one, one, **asked)


def cards(link_layer: str = ETHERNET, link: tuple[float, int] | None = None, **port: Any) -> dict[str, Any]:
    """The facts of the host with two cards; port: changes to the first one's port."""
    facts = card_facts(link_layer)
    facts["devices"]["mlx5_0"]["ports"]["1"].update(port)
    if "rate_gbps" in port:
        for netdev in facts["netdevs"].values():
            netdev["ethtool"] = {}
    if link is not None:
        facts["devices"]["mlx5_0"]["pci"]["narrowest"] = {"address": "0000:20:01.0", "speed_gtps": link[0], "width": link[1]}
    return facts


def sure(limit: Limit | NoLimit) -> Limit:
    assert isinstance(limit, Limit), limit
    return limit


def printed(value: float, digits: str) -> str:
    """A figure rounded half up to as many places as another one has."""
    return str(Decimal(repr(value)).quantize(Decimal(digits), ROUND_HALF_UP))


@pytest.mark.parametrize("mtu_bytes", ROCE_TABLE)
def test_what_roce_leaves_of_a_link_is_as_in_the_tables(mtu_bytes: int) -> None:
    percent, *rates = ROCE_TABLE[mtu_bytes]
    assert printed(100 * mtu_efficiency(mtu_bytes, ETHERNET), percent) == percent
    for rate_gbps, figure in zip((100, 200, 400), rates, strict=True):
        # The tables multiply the rounded percentage: at 400 Gb/s that is up to 0.02 off, which we are not.
        assert printed(float(Decimal(percent) * rate_gbps / 100), figure) == figure
        assert sure(limit_of(cards(rate_gbps=float(rate_gbps), active_mtu_bytes=mtu_bytes))).gbps == pytest.approx(float(figure), abs=0.07)


@pytest.mark.parametrize(("mtu_bytes", "percent"), [(4096, "99.37"), (2048, "98.75"), (1024, "97.5")])
def test_what_infiniband_leaves_of_a_link(mtu_bytes: int, percent: str) -> None:
    assert printed(100 * mtu_efficiency(mtu_bytes, INFINIBAND), percent) == percent


def test_ipv6_and_a_vlan_take_more_of_roce_and_nothing_of_infiniband() -> None:
    assert mtu_efficiency(4096, ETHERNET, ipv6=True, vlan=True) == 4096 / (4096 + 106)
    assert mtu_efficiency(4096, ETHERNET, vlan=True) == 4096 / (4096 + 86)
    assert mtu_efficiency(4096, INFINIBAND, ipv6=True, vlan=True) == mtu_efficiency(4096, INFINIBAND)


def test_the_tag_of_a_vlan_counts_in_the_limit_and_is_named() -> None:
    rails = [{**rail, "vlan": {"id": 100, "pcp": None}} for rail in card_rails()]
    facts = from_dict(cards(rate_gbps=400.0))
    [one] = endpoints([resolve(rails, facts)[0]], facts)
    limit = sure(pair_limit(one, one))
    assert (limit.gbps, limit.reason) == (pytest.approx(400.0 * 4096 / (4096 + 86)), "link 400 Gb/s, MTU 4096 with a VLAN tag: 391.8")


@pytest.mark.parametrize(
    ("speed_gtps", "width", "figure"),
    [(8.0, 8, 57), (8.0, 16, 115), (16.0, 8, 115), (16.0, 16, 229), (32.0, 4, 115), (32.0, 8, 229)],
)
def test_a_narrow_pcie_path_caps_a_card_as_in_the_tables(speed_gtps: float, width: int, figure: int) -> None:
    limit = sure(limit_of(cards(link=(speed_gtps, width))))
    assert (round(limit.gbps), limit.bound) == (figure, "pcie")
    assert limit.reason.startswith(f"PCIe {speed_gtps:g} GT/s x{width} at 0000:20:01.0: ")
    assert limit.ceiling_gbps == pytest.approx(speed_gtps * width * 128 / 130)


def test_gen5_x16_carries_459_and_so_all_of_400_gbps() -> None:
    assert round(end().pcie_gbps) == 459
    limit = sure(limit_of(cards()))
    assert (limit.bound, limit.reason) == ("link", "link 400 Gb/s, MTU 4096: 392.1")
    assert limit.gbps == limit.ceiling_gbps == 400 * 4096 / 4178


def test_the_share_of_payload_is_that_of_the_pci_checks() -> None:
    assert payload_gbps(16.0, 16) == 16.0 * 16 * 128 / 130 * PCIE_PAYLOAD_SHARE


@pytest.mark.parametrize(("asked", "reason"), [(1024, "MTU 1024 (requested): 370.3"), (4096, "MTU 4096: 392.1"), (None, "MTU 4096: 392.1")])
def test_a_smaller_mtu_that_is_asked_for_lowers_the_limit(asked: int | None, reason: str) -> None:
    assert sure(limit_of(cards(), mtu_bytes=asked)).reason == f"link 400 Gb/s, {reason}"


def test_an_mtu_above_the_active_one_raises_nothing() -> None:
    assert sure(limit_of(cards(active_mtu_bytes=1024), mtu_bytes=4096)).reason == "link 400 Gb/s, MTU 1024: 370.3"


@pytest.mark.parametrize(
    ("rate_gbps", "width", "speed", "data_gbps"),
    [
        (400.0, 4, "NDR", 400.0),
        (200.0, 2, "NDR", 200.0),
        (100.0, 4, "EDR", 100.0),
        (56.0, 4, "FDR", 56.25 * 64 / 66),
        (56.0, 4, None, 56.25 * 64 / 66),
        (40.0, 4, "FDR10", 40.0),
        (40.0, 4, "QDR", 32.0),
        (10.0, 4, None, 8.0),
    ],
)
def test_the_rate_of_infiniband_is_that_of_data(rate_gbps: float, width: int, speed: str | None, data_gbps: float) -> None:
    facts = cards(INFINIBAND, rate_gbps=rate_gbps, width=width, speed=speed)
    assert sure(limit_of(facts, link_layer=INFINIBAND)).gbps == pytest.approx(data_gbps * 4096 / 4122)


def test_on_ethernet_the_interface_reports_the_rate_and_there_is_no_line_coding() -> None:
    facts = cards(rate_gbps=100.0, width=4, speed="EDR")
    facts["netdevs"]["ens1np0"]["ethtool"] = {"speed_mbps": 200_000}
    assert sure(limit_of(facts)).reason == "link 200 Gb/s, MTU 4096: 196.1"
    assert sure(limit_of(cards(rate_gbps=40.0, width=4, speed="QDR"))).reason == "link 40 Gb/s, MTU 4096: 39.21"


def test_a_captured_tree_has_what_bounds_its_pairs(tmp_path: Path) -> None:
    """Two hundred Gb/s below a switch of Gen5 x8; the second port's cable is out."""
    facts = to_dict(gather(SysRoot(str(mlx5_machine(tmp_path)))))
    facts["devices"]["mlx5_0"]["ports"]["1"]["active_mtu_bytes"] = 4096
    rails = [{**rail, "nic": {"pci": f"0000:3d:00.{port}"}} for port, rail in enumerate(card_rails())]
    seen = from_dict(comparable(facts))

    one, other = endpoints(resolve(rails, seen), seen)

    assert (one.rate_gbps, one.mtu_bytes, one.pcie, one.shared_with) == (200.0, 4096, PciLink("0000:3b:00.0", 32.0, 8), ())
    assert sure(pair_limit(one, one)).reason == "link 200 Gb/s, MTU 4096: 196.1"
    assert other.why_not == NoLimit("unknown", "the port is not up: see link.state")


def on_one_link(up: bool = True) -> list[Endpoint]:
    """Two ports of 400 Gb/s behind one link that carries 459."""
    facts = cards()
    hop = {"address": "0000:3b:00.0", "speed_gtps": 32.0, "width": 16}
    for device in facts["devices"].values():
        device["pci"]["hops"] = [hop]
    if not up:
        facts["devices"]["mlx5_1"]["ports"]["1"]["state"] = "DOWN"
    return endpoints(resolve(card_rails(), from_dict(facts)), from_dict(facts))


def test_rails_that_are_measured_side_by_side_share_a_pcie_link() -> None:
    one, other = on_one_link()
    limit = sure(pair_limit(one, other))
    assert limit.gbps == pytest.approx(payload_gbps(32.0, 16) / 2)
    assert limit.reason == "PCIe 32 GT/s x16 at 0000:3b:00.0, shared with rail1: 229"
    # Either may have it alone while the other one waits.
    assert limit.ceiling_gbps == pytest.approx(400 * 4096 / 4178)


def test_a_port_that_is_not_up_takes_nothing_of_a_shared_link() -> None:
    one, _other = on_one_link(up=False)
    assert (one.shared_with, one.pcie_gbps) == ((), pytest.approx(payload_gbps(32.0, 16)))


def test_in_a_virtual_machine_bridges_bound_nothing() -> None:
    facts = {**cards(link=(2.5, 1)), "iommu": {"virtual_machine": True}}
    facts["devices"]["mlx5_0"]["pci"].update(speed_gtps=None, width=None)
    limit = sure(limit_of(facts))
    assert (limit.bound, limit.reason) == ("link", "link 400 Gb/s, MTU 4096: 392.1, PCIe path unknown")


def test_in_a_virtual_machine_a_function_of_its_own_link_is_bound_by_it() -> None:
    facts = {**cards(link=(2.5, 1)), "iommu": {"virtual_machine": True}}
    facts["devices"]["mlx5_0"]["pci"].update(speed_gtps=16.0, width=16)
    assert sure(limit_of(facts)).reason == "PCIe 16 GT/s x16 at 0000:3d:00.0: 229"


def test_soft_roce_has_no_line_rate_and_pairs_of_it_are_judged_by_their_fleet() -> None:
    facts = from_dict(lab_facts())
    one, other = endpoints(resolve(lab_rails(), facts), facts)
    assert pair_limit(one, other) == NoLimit("not_applicable", "Soft-RoCE has no line rate")
    assert judge_bandwidth(0.2, pair_limit(one, other), 0.8, 0.95) == ("not_applicable", "Soft-RoCE has no line rate")


@pytest.mark.parametrize(
    ("port", "reason"),
    [
        ({"rate_gbps": None}, "mlx5_0/1 reports no rate"),
        ({"rate_gbps": 0.0}, "mlx5_0/1 reports no rate"),
        ({"active_mtu_bytes": None}, "the active MTU of mlx5_0/1 is unknown (ibv_devinfo shows it)"),
        ({"active_mtu_bytes": 0}, "the active MTU of mlx5_0/1 is unknown (ibv_devinfo shows it)"),
        ({"link_layer": None}, "mlx5_0/1 reports no link layer"),
        ({"link_layer": "InfiniBand"}, "the port has the wrong link layer: see link.layer"),
        ({"state": "DOWN"}, "the port is not up: see link.state"),
    ],
)
def test_what_is_not_known_is_unknown_with_its_reason(port: dict[str, Any], reason: str) -> None:
    limit = limit_of(cards(**port))
    assert limit == NoLimit("unknown", reason)
    assert judge_bandwidth(390.0, limit, 0.8, 0.95) == ("unknown", reason)


def test_a_digest_without_the_active_mtu_is_unknown() -> None:
    facts = cards()
    del facts["devices"]["mlx5_0"]["ports"]["1"]["active_mtu_bytes"]
    assert isinstance(limit_of(facts), NoLimit)


def test_iwarp_and_a_rail_without_device_have_no_limit() -> None:
    facts = cards()
    facts["devices"]["mlx5_0"]["node_type"] = "RNIC"
    assert limit_of(facts) == NoLimit("unknown", "mlx5_0/1 is iWARP, which is not a rail")
    lost = ResolvedRail(0, card_rails()[0], None, None, None)
    nothing = endpoints([lost], from_dict(None))[0].why_not
    assert nothing is not None
    assert nothing.status == "unknown"


def test_the_smaller_end_bounds_a_pair_and_is_named() -> None:
    wide, narrow = end(), end(link=GEN4_X8)
    limits = [pair_limit(wide, narrow, hosts=("node1", "node3")), pair_limit(narrow, wide, hosts=("node3", "node1"))]
    assert {sure(limit).reason for limit in limits} == {"node3: PCIe 16 GT/s x8 at 0000:20:01.0: 115"}
    assert {(sure(limit).gbps, sure(limit).bound) for limit in limits} == {(narrow.pcie_gbps, "pcie")}


def test_ends_that_are_alike_are_both_named() -> None:
    assert sure(pair_limit(end(), end(), hosts=("node1", "node2"))).reason == "node1 and node2: link 400 Gb/s, MTU 4096: 392.1"


def test_the_smaller_mtu_of_both_ends_counts() -> None:
    limit = sure(pair_limit(end(mtu_bytes=1024), end(rate_gbps=200.0), hosts=("node1", "node2")))
    assert limit.reason == "node2: link 200 Gb/s, MTU 1024 (the other end's): 185.2"


def test_the_lower_ceiling_of_both_ends_holds() -> None:
    """The limit may be the link's, the ceiling the raw rate of a PCIe link that carries little more."""
    slow, narrow = end(rate_gbps=120.0), end(link=GEN4_X8)
    assert sure(pair_limit(slow, narrow)).ceiling_gbps == pytest.approx(120 * 4096 / 4178)


def test_both_directions_reach_less_than_twice_one() -> None:
    limit = sure(pair_limit(end(), end(), bidirectional=True))
    assert limit.gbps == pytest.approx(1.9 * 400 * 4096 / 4178)
    assert limit.ceiling_gbps == pytest.approx(2 * 400 * 4096 / 4178)
    assert limit.reason == "link 400 Gb/s, MTU 4096: 392.1, both directions: 745.1"


def test_a_pair_over_ipv6_has_20_more_bytes_in_each_packet() -> None:
    six = Endpoint(link_layer=ETHERNET, rate_gbps=400.0, mtu_bytes=4096, ipv6=True)
    limit = pair_limit(six, six)
    assert isinstance(limit, Limit)
    assert limit.gbps == 400 * 4096 / (4096 + 102)
    assert limit.reason == "link 400 Gb/s, MTU 4096, IPv6: 390.3, PCIe path unknown"


SOFT = Endpoint(NoLimit("not_applicable", "Soft-RoCE has no line rate"), ETHERNET, 2.5, 4096)
LOST = Endpoint(why_not=NoLimit("unknown", "mlx5_0/1 reports no rate"))


@pytest.mark.parametrize(
    ("one", "other", "status", "reason"),
    [
        (end(), LOST, "unknown", "node2: mlx5_0/1 reports no rate"),
        (SOFT, end(), "not_applicable", "node1: Soft-RoCE has no line rate"),
        (SOFT, SOFT, "not_applicable", "node1 and node2: Soft-RoCE has no line rate"),
        (SOFT, LOST, "unknown", "node2: mlx5_0/1 reports no rate"),
        (end(), end(link_layer=INFINIBAND), "unknown", "node1 and node2: one end is Ethernet, the other InfiniBand"),
    ],
)
def test_an_end_without_a_limit_leaves_its_pair_without_one(one: Endpoint, other: Endpoint, status: str, reason: str) -> None:
    limit = pair_limit(one, other, hosts=("node1", "node2"))
    assert isinstance(limit, NoLimit)
    assert (limit.status, limit.reason) == (status, reason)


@pytest.mark.parametrize(
    ("gbps", "status", "expected"),
    [
        (79.9, "error", "at least 80 Gb/s, 0.8 of the limit (why)"),
        (80.0, "warning", "at least 95 Gb/s, 0.95 of the limit (why)"),
        (94.9, "warning", "at least 95 Gb/s, 0.95 of the limit (why)"),
        (95.0, "ok", "at least 95 Gb/s, 0.95 of the limit (why)"),
        (111.0, "ok", "at least 95 Gb/s, 0.95 of the limit (why)"),
        (111.2, "error", "at most 110 Gb/s; more is impossible, so something else was measured (why)"),
        (math.inf, "error", "at most 110 Gb/s; more is impossible, so something else was measured (why)"),
        (None, "unknown", "at least 95 Gb/s, 0.95 of the limit (why)"),
        (0.0, "unknown", "at least 95 Gb/s, 0.95 of the limit (why)"),
        (-1.0, "unknown", "at least 95 Gb/s, 0.95 of the limit (why)"),
        (math.nan, "unknown", "at least 95 Gb/s, 0.95 of the limit (why)"),
    ],
)
def test_a_figure_is_judged_by_fractions_of_the_limit_and_by_what_is_possible(gbps: float | None, status: str, expected: str) -> None:
    assert judge_bandwidth(gbps, Limit(100.0, 110.0, "link", "why"), 0.8, 0.95) == (status, expected)


#: What fast fabrics were seen to reach, in Gb/s: EDR, HDR, 100 and 200 and 400 Gb/s Ethernet.
@pytest.mark.parametrize(
    ("link_layer", "rate_gbps", "seen_gbps"),
    [
        (INFINIBAND, 100.0, 96.6),
        (INFINIBAND, 200.0, 196.8),
        (INFINIBAND, 200.0, 197.5),
        (ETHERNET, 100.0, 98.0),
        (ETHERNET, 100.0, 98.01),
        (ETHERNET, 200.0, 193.0),
        (ETHERNET, 200.0, 196.0),
        (ETHERNET, 400.0, 388.8),
    ],
)
def test_what_was_seen_on_healthy_fabrics_is_ok(link_layer: str, rate_gbps: float, seen_gbps: float) -> None:
    one = end(rate_gbps, link_layer=link_layer)
    assert judge_bandwidth(seen_gbps, pair_limit(one, one), 0.8, 0.95)[0] == "ok"


@pytest.mark.parametrize(
    ("link_layer", "command", "bounds"),
    [
        (INFINIBAND, "ib_write_lat", (2, 5)),
        (INFINIBAND, "ib_send_lat", (2, 5)),
        (INFINIBAND, "ib_read_lat", (4, 10)),
        (ETHERNET, "ib_write_lat", (3, 5)),
        (ETHERNET, "ib_read_lat", (6, 10)),
    ],
)
def test_latency_has_bounds_of_half_a_round_trip_and_reads_of_a_whole_one(link_layer: str, command: str, bounds: tuple[int, int]) -> None:
    assert latency_bounds(link_layer, software=False, command=command) == bounds


@pytest.mark.parametrize(
    ("link_layer", "software", "size_bytes", "status"),
    [
        (ETHERNET, True, 2, "not_applicable"),
        (ETHERNET, False, 65536, "not_applicable"),
        (None, False, 2, "unknown"),
        ("x", False, 2, "unknown"),
    ],
)
def test_latency_without_bounds_is_never_ok(link_layer: str | None, software: bool, size_bytes: int, status: str) -> None:
    assert judge_latency(1.0, latency_bounds(link_layer, software=software, size_bytes=size_bytes))[0] == status


@pytest.mark.parametrize(
    ("usec", "status", "expected"),
    [
        (1.1, "ok", "at most 3 µs"),
        (3.0, "ok", "at most 3 µs"),
        (3.1, "warning", "at most 3 µs"),
        (5.1, "error", "at most 5 µs"),
        (math.inf, "error", "at most 5 µs"),
        (0.0, "unknown", "at most 3 µs"),
        (None, "unknown", "at most 3 µs"),
        (math.nan, "unknown", "at most 3 µs"),
    ],
)
def test_a_latency_is_judged_by_its_bounds(usec: float | None, status: str, expected: str) -> None:
    assert judge_latency(usec, LatencyBounds(3.0, 5.0)) == (status, expected)


def test_like_pairs_cost_next_to_nothing() -> None:
    """Four million pairs of a large fleet are judged: 20 µs each would be more than a minute."""
    ends = [end(rate_gbps=100.0 * rate) for rate in range(1, 9)]
    before = time.process_time()
    for one in ends * 50:
        for other in ends:
            pair_limit(one, other)
    assert (time.process_time() - before) / (50 * 64) < 20e-6
