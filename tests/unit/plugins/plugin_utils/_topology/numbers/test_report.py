# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Alternatives by their numbers: the published fabric of 4096 ports, failed spines, and missing prices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology_numbers import WORKLOADS as KINDS_OF_WORK
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.design import Candidate, Failure, Measures
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.families.choose import plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.collectives import Network
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.compare import Basis, alternatives, oversubscription
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.cost import Price, Prices
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.report import decision_text, plan_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.training import Model, gpu_hour
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.uplink import WORKLOADS
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import read_request

#: One plane of 64 NICs with 400 Gb/s; one of four spines fails.
MEASURES = Measures(
    switches={"leaf": 4, "spine": 4},
    cables={"host-leaf": 64, "leaf-spine": 64},
    free_ports={"leaf": 0, "spine": 0},
    bisection_gbps=12_800,
    plane_bisection_gbps=12_800,
    wanted_gbps=12_800,
    ratio={"leaf": 1.0},
    imbalance=1.0,
    worst_gbps=12_800,
    diameter=3,
    latency_ns=1000,
    failures=(Failure("spine", "spine1", 4, 0, 0, 9_600, 0.75),),
)
NETWORK = Network(hosts=64, gpus_per_host=1, nics_per_host=1, nic_gbps=400, latency_usec=0)
MODEL = Model("m", 7e9, compute_seconds=2.0)
PRICES = Prices(parts={"s": Price(1000), "dac": Price(10), "aoc": Price(20)})


def row(measures: Measures | None = MEASURES, **basis: Any) -> Any:
    (found,) = alternatives(
        [Candidate("leaf_spine", measures=measures)], Basis(**{"prices": PRICES, "switch_model": "s", "network": NETWORK, **basis})
    )
    return found


def requested(**more: Any) -> Any:
    given = {"hosts": 512, "switch": {"model": "qm9700", "price": 80_000, "watts": 1700}, **more}
    return read_request({"rdma_plan": given})[0]


def test_the_parts_and_the_price_of_a_candidate() -> None:
    found = row()
    assert (found.switches, found.cables, found.cost.total) == (8, 128, 8_000 + 640 + 1_280)
    assert row(nics=64).cost.missing == ["nic"]
    assert row(nics=64).cost.total is None
    assert found.all_reduce_seconds is None


def test_a_failed_spine_slows_the_all_reduce_by_its_share() -> None:
    found = row(model=MODEL)
    assert found.all_reduce_seconds == pytest.approx(2 * 63 / 64 * 14e9 / 50e9)
    assert found.spine_seconds == pytest.approx(found.all_reduce_seconds / 0.75)
    assert found.spine_step_share == pytest.approx((found.spine_seconds - found.all_reduce_seconds) / (2 + found.all_reduce_seconds))
    assert row(model=replace(MODEL, overlap=1.0)).spine_step_share == 0


def test_a_fabric_with_more_bisection_than_wanted_is_not_slowed() -> None:
    assert oversubscription("leaf_spine", replace(MEASURES, plane_bisection_gbps=25_600), 1.0, 0.75) == 1
    assert oversubscription("leaf_spine", replace(MEASURES, wanted_gbps=6_400, plane_bisection_gbps=6_400), 2.0) == 2
    assert oversubscription("ring", replace(MEASURES, plane_bisection_gbps=800), 1.0) == 1
    assert oversubscription("leaf_spine", MEASURES, 1.0, 0.0) is None


def test_a_family_that_does_not_hold_has_no_figures() -> None:
    found = row(None, model=MODEL)
    assert (found.cost, found.switches, found.all_reduce_seconds, found.spine_seconds) == (None, None, None, None)


def test_the_published_fabric_costs_15_or_26_million_in_switches() -> None:
    request = requested(training={"parameters_billions": 7})
    found = {each.family: each for each in alternatives(plan(request), Basis(Prices(parts={"qm9700": Price(80_000)}), "qm9700", NETWORK))}
    assert found["rail_planes"].cost.known == 15.36e6
    assert found["fat_tree"].cost.known == 25.6e6
    assert found["leaf_spine"].cost is None


def test_the_text_names_missing_prices_and_calls_itself_no_quote() -> None:
    request = requested(prices={"source": "our reseller", "date": "2026-11-01"})
    text = " ".join(decision_text(request, plan(request)).split())
    assert "an estimate, not a quote" in text
    assert "sum more than $15.4 M (no price of aoc, dac)" in text
    assert "$80,000 (our reseller, 2026-11-01)" in text
    assert "power not given" in text


def test_without_prices_and_training_there_is_no_further_text() -> None:
    request = read_request({"rdma_plan": {"hosts": 32, "switch": {"model": "qm9700"}}})[0]
    assert decision_text(request, plan(request)) == ""


def test_a_failed_spine_has_a_price_with_that_of_a_gpu_hour() -> None:
    """192 switches in eight planes; a step of 20 s without overlap."""
    section = {"parameters_billions": 70, "compute_seconds": 20, "overlap": 0}
    request = requested(training=section, gpu_hour=2)
    text = decision_text(request, plan(request))
    chosen = next(line for line in text.splitlines() if "rail_planes" in line)
    assert "835 ms (+14%)" in chosen
    assert " a day" in text


def test_the_record_of_a_gpu_hour() -> None:
    section = {"parameters_billions": 7, "compute_seconds": 2, "hosts": 4, "latency_usec": 0, "nvlink_latency_usec": 0}
    stored = gpu_hour(plan_of(requested(training=section, gpu_hour=2)))
    assert stored is not None
    assert (stored["price"], stored["gpus_per_host"], stored["job_hosts"]) == (2, 8, 4)
    assert stored["step"]["communication_seconds"] == pytest.approx(2 * 31 / 32 * 14e9 / 8 / 50e9)
    assert gpu_hour(plan_of(requested())) is None


def test_kinds_of_work_are_those_of_the_schema() -> None:
    assert tuple(WORKLOADS) == KINDS_OF_WORK
