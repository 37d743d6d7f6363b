# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Uplinks: the published table and examples, single flows, transfers, and the management plane."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import read_variable
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology_numbers import UPLINK
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.numbers.uplink import (
    Lag,
    Uplink,
    checkpoint_bytes,
    checkpoint_write,
    demand,
    ingest_gbps,
    management,
    size_uplink,
    transfers,
)


def section(**given: Any) -> dict[str, Any]:
    result: dict[str, Any] = read_variable({"rdma_plan.uplink": given}, "rdma_plan.uplink", UPLINK)
    return result


def sized(gpus: int = 16, **given: Any) -> Uplink:
    known = section(**given)
    return size_uplink(demand(known, gpus), known)


def choices(uplink: Uplink) -> set[tuple[int, float]]:
    return {(lag.links, lag.link_gbps) for lag in uplink.lags if not lag.why_not}


# Published examples


def test_16_gpus_at_1_gb_a_second_read_128_gbps() -> None:
    assert ingest_gbps(16, 1.0) == 128
    assert demand(section(ingest_gbytes_per_s_per_gpu=1.0), 16).sustained_gbps == 128


def test_four_hosts_at_22_gbytes_are_704_gbps() -> None:
    assert ingest_gbps(4, 22.0) == 704


@pytest.mark.parametrize(
    ("workload", "published"),
    [("text", {(1, 25)}), ("images", {(2, 100), (1, 200)}), ("tuning", {(2, 25), (1, 100)}), ("inference", {(1, 100)})],
)
def test_the_published_table(workload: str, published: set[tuple[int, float]]) -> None:
    assert published <= choices(sized(workload=workload))


def test_the_smallest_number_of_links_is_chosen_then_the_slowest_that_is_enough() -> None:
    assert sized(workload="text").chosen == Lag(25, 1, 0)
    assert sized(workload="images").chosen == Lag(200, 1, 0)
    assert sized(workload="images", link_gbps=[25, 100]).chosen == Lag(100, 2, 0)


def test_the_uplink_follows_the_data_and_not_the_fabric() -> None:
    """400 Gb/s inside do not need 400 Gb/s outside: text at 4 Gb/s with bursts of 20 fits into 25."""
    chosen = sized(gpus=4096, ingest_gbps=4, burst_gbps=20).chosen
    assert chosen is not None
    assert chosen.total_gbps == 25


def test_a_checkpoint_is_seven_times_the_weights() -> None:
    """70 × 10^9 parameters: 140 GB of weights, and 980 GB with Adam, not 280."""
    known = section(parameters_billions=70)
    assert checkpoint_bytes(known) == 980e9
    found = {(each.name, each.gbps): each.seconds for each in transfers(known, (25, 100))}
    assert found[("weights", 25)] == pytest.approx(44.8)
    assert found[("weights", 100)] == pytest.approx(11.2)
    assert found[("checkpoint", 25)] == pytest.approx(313.6)
    assert found[("checkpoint", 100)] == pytest.approx(78.4)


# Loads


def test_sustained_loads_add_up_and_leave_headroom() -> None:
    found = demand(section(ingest_gbps=40, inference_gbps=24, burst_gbps=60), 16)
    assert found.sustained_gbps == 64
    assert found.needed_gbps == 80
    assert found.missing == ["checkpoint"]
    assert demand(section(ingest_gbps=40, burst_gbps=60), 16).needed_gbps == 60


def test_a_checkpoint_in_time_is_a_load() -> None:
    """980 GB in 98 s are 80 Gb/s."""
    found = demand(section(parameters_billions=70, checkpoint_seconds=98), 16)
    assert found.sustained_gbps == pytest.approx(80)
    assert found.sustained[1].source == "980 GB × 8 / 98 s"


def test_no_load_and_two_forms_of_one_load_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no load is given\. Set at least one of ingest_gbps"):
        demand(section(flows=4), 16)
    with pytest.raises(ValueError, match="give ingest_gbps or ingest_gbytes_per_s_per_gpu, not both"):
        demand(section(ingest_gbps=1, ingest_gbytes_per_s_per_gpu=1), 16)


# One flow and many


def test_one_flow_does_not_get_the_sum() -> None:
    """Four links of 100 carry 400 Gb/s, and one flow 100."""
    lag = Lag(100, 4, 0)
    assert lag.total_gbps == 400
    assert lag.flows_gbps(1) == pytest.approx(100)
    uplink = sized(ingest_gbps=320, link_gbps=[100])
    assert uplink.chosen == lag
    assert uplink.warnings[0].startswith("One flow uses one link: a single stream gets at most 100 of the 400 Gb/s.")
    assert "largest single flow is not given" in uplink.warnings[1]


def test_a_flow_larger_than_a_link_excludes_its_rate() -> None:
    uplink = sized(ingest_gbps=320, flow_gbps=150, link_gbps=[100, 200])
    assert uplink.chosen == Lag(200, 2, 0)
    assert uplink.lags[0].why_not == "one flow of 150 Gb/s does not fit into a link of 100 Gb/s"


def test_few_flows_do_not_fill_the_links() -> None:
    """Four flows over four links use 4 × (1 - 0.75^4) = 2.73 of them on average."""
    assert Lag(100, 4, 0).flows_gbps(4) == pytest.approx(273.4, abs=0.1)
    warnings = sized(ingest_gbps=320, link_gbps=[100], flows=4, flow_gbps=100).warnings
    assert any(text.startswith("4 equal flows reach about 273 of the 400 Gb/s on average") for text in warnings)
    assert not any("equal flows" in text for text in sized(ingest_gbps=240, link_gbps=[100], flows=200, spare_links=1).warnings)


def test_spare_links_are_added_and_a_single_link_is_named() -> None:
    assert sized(workload="images", spare_links=1).chosen == Lag(200, 1, 1)
    assert sized(workload="text").warnings == ("A single link has no second path: if it fails, the uplink is lost (uplink.spare_links).",)


def test_a_load_that_no_lag_holds_is_named() -> None:
    uplink = sized(ingest_gbps=10_000, max_links=4)
    assert uplink.chosen is None
    assert uplink.lags[-1].why_not == "32 links, and at most 4 are allowed (uplink.max_links)"
    assert uplink.warnings[0].startswith("No choice of links holds the load.")


@given(st.floats(0.1, 3000), st.integers(0, 3), st.floats(0.1, 1), st.integers(1, 500))
def test_a_chosen_uplink_holds_its_load_after_failures(load: float, spare: int, headroom: float, flows: int) -> None:
    uplink = sized(ingest_gbps=load, spare_links=spare, headroom=headroom, max_links=64)
    lag = uplink.chosen
    if lag is None:
        assert all(each.why_not for each in uplink.lags)
        return
    assert (lag.links - spare) * lag.link_gbps * headroom >= load * (1 - 1e-6)
    assert (lag.needed - 1) * lag.link_gbps * headroom < load * (1 + 1e-6)
    assert lag.link_gbps <= lag.flows_gbps(flows) * (1 + 1e-9)
    assert lag.flows_gbps(flows) <= lag.flows_gbps(flows + 1) * (1 + 1e-9) <= lag.total_gbps * (1 + 1e-6)


# Checkpoints


def test_the_slower_of_uplink_and_storage_limits_a_checkpoint() -> None:
    known = section(parameters_billions=70, storage_gbps=40, checkpoint_interval_minutes=30)
    found = checkpoint_write(known, 100.0)
    assert found is not None
    assert (found.by, found.seconds) == ("storage", pytest.approx(196))
    assert found.share == pytest.approx(196 / 1800)
    assert checkpoint_write(section(parameters_billions=70), None) is None
    assert checkpoint_write(section(storage_gbps=40), 100.0) is None


def test_files_are_transferred_too() -> None:
    found = transfers(section(files={"image": "8 GiB"}), (10,))
    assert [(each.name, round(each.seconds, 2)) for each in found] == [("image", 6.87)]


# The management plane


def test_ports_and_switches_of_the_management_plane() -> None:
    """64 hosts with 2 ports and 12 switches: 140 ports, 46 usable ones a switch."""
    found = management(section()["management"], 64, 12)
    assert (found.ports, found.switches, found.uplinks, found.install_gbps, found.warnings) == (140, 4, 8, None, ())
    assert management(section()["management"], 64, None).warnings == ("The management ports of the fabric's switches are not counted.",)


def test_installing_many_hosts_at_once() -> None:
    """16 hosts × 8 GB in 10 minutes: 1.71 Gb/s; 8 GB in 0.5 minutes do not fit into a port of 1 Gb/s."""
    found = management(section(management={"install_image": "8 GB"})["management"], 64, 0)
    assert found.install_gbps == pytest.approx(1.7067, abs=1e-4)
    slow = management(section(management={"install_image": "8 GB", "install_minutes": 0.5})["management"], 64, 0)
    assert slow.warnings == ("One host needs 2.13 Gb/s to be installed in time, and its port has 1 Gb/s.",)


def test_a_switch_of_uplinks_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="16 uplinks leave no port of a switch with 16 ports"):
        management(section(management={"switch_ports": 16, "switch_uplinks": 16})["management"], 4, 0)


@given(st.integers(1, 4096), st.integers(0, 500), st.integers(1, 8))
def test_every_port_finds_a_place(hosts: int, switches: int, ports: int) -> None:
    given = section(management={"ports_per_host": ports})["management"]
    found = management(given, hosts, switches)
    assert (found.switches - 1) * 46 < found.ports <= found.switches * 46
    assert management(given, hosts + 1, switches).switches >= found.switches


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ingest_gbp": 4}, "has no key 'ingest_gbp': did you mean 'ingest_gbps'"),
        ({"ingest_gbps": "4"}, "ingest_gbps must be a number; got '4'"),
        ({"headroom": 0}, "headroom must be at least 0.1; got 0"),
        ({"workload": "video"}, "workload must be one of text, images, tuning, inference; got 'video'"),
        ({"files": {"image": "8 Gib"}}, "files.image must be a size with its unit"),
    ],
)
def test_bad_sections_name_the_key(given: dict[str, Any], words: str) -> None:
    with pytest.raises(IntentError, match=words):
        section(**given)
