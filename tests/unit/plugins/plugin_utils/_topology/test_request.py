# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request rdma_plan: what it means, and what of it is refused."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.keys import NAME, is_form
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.topology import FABRICS
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.catalogue import CATALOGUE
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.output.table import head_lines
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.request import read_request
from ansible_collections.rdma.cluster.plugins.plugin_utils._topology.wishes import PlanRequest, Pools, Survive


def read(**more: Any) -> PlanRequest:
    return read_request({"rdma_plan": {"hosts": 32, "switch": {"model": "qm9700"}, **more}})[0]


def refusal(**more: Any) -> str:
    with pytest.raises(IntentError) as caught:
        read(**more)
    return "\n".join(map(str, caught.value.problems))


def test_a_short_request_has_these_defaults() -> None:
    request = read()
    assert (request.hosts, request.hosts_later, request.nics_per_host, request.nic_gbps) == (32, 32, 8, 400)
    assert (request.topology, request.fabric, request.host_parts, request.oversubscription) == ("auto", "infiniband", 1, 1.0)
    assert request.survive == Survive(0, 0, 0.5)
    assert (request.switch.name, request.switch.ports, request.switch.gbps) == ("qm9700", 64, 400)
    assert request.rails == tuple(f"rail{rail}" for rail in range(8))
    assert request.pools == Pools()


def test_values_of_the_request_reach_the_plan() -> None:
    request = read(
        hosts_later=64,
        survive={"spines": 2, "links": 3, "min_bisection": 0.75},
        switch={"model": "qm9700", "price": 80000, "watts": 1700},
        cables={"prices": {"dac": 200, "aoc": 900, "optic": 1500}},
        spare_ports=2,
    )
    assert request.hosts_later == 64
    assert request.survive == Survive(2, 3, 0.75)
    assert (request.switch.price, request.switch.watts) == (80000, 1700)
    assert (request.cables.dac, request.cables.aoc, request.cables.optic, request.cables.dac_max_m) == (200, 900, 1500, 3)
    assert request.spare_ports == 2


def test_a_port_is_split_if_its_parts_are_as_fast_as_a_nic() -> None:
    assert read(nic_gbps=200).host_parts == 2
    assert read(nic_gbps=100).host_parts == 1
    sn5600 = read(fabric="ethernet", switch={"model": "sn5600"})
    assert (sn5600.host_parts, sn5600.switch.gbps) == (2, 800)
    assert read(nic_gbps=200, switch={"model": "qm9700", "breakout": 1}).host_parts == 1


def test_a_switch_by_ports_and_rate() -> None:
    request = read(switch={"ports": 48, "gbps": 400, "breakout": 2}, nic_gbps=200)
    assert (request.switch.ports, request.host_parts, request.switch.breakout) == (48, 2, (1, 2))


def test_the_models_of_the_request_replace_and_add() -> None:
    models = {"qm9700": {"ports": 64, "gbps": 400, "price": 1.0}, "mine": {"ports": 10, "gbps": 400, "breakout": [2], "latency_ns": 90}}
    assert read(models=models).switch.price == 1.0
    mine = read(models=models, switch={"model": "mine"}).switch
    assert (mine.ports, mine.breakout, mine.latency_ns, mine.source) == (10, (1, 2), 90, "")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"host": 3}, "rdma_plan has no key 'host': did you mean 'hosts'?"),
        ({"hosts": 1}, "rdma_plan.hosts must be at least 2; got 1"),
        ({"topology": "fattree"}, "rdma_plan.topology must be one of auto, single, leaf_spine"),
        ({"switch": {"model": "qm970"}}, "rdma_plan.switch.model 'qm970' is not known: did you mean 'qm9700'?"),
        ({"switch": {}}, "rdma_plan.switch needs a model, or ports and gbps; ports and gbps is missing"),
        ({"switch": {"ports": 64}}, "gbps is missing"),
        ({"switch": {"model": "qm9700", "ports": 32}}, "rdma_plan.switch.ports is a value of the model qm9700"),
        ({"switch": {"model": "sn5600"}}, "sn5600 switches ethernet, and rdma_plan.fabric is infiniband; models for infiniband: qm8700"),
        ({"fabric": "ethernet"}, "qm9700 switches infiniband, and rdma_plan.fabric is ethernet; models for ethernet: "),
        ({"hosts_later": 30}, "rdma_plan.hosts_later is 30, 2 less than hosts (32): write at least 32"),
        ({"oversubscription": 4}, "rdma_plan.oversubscription is 4; at most 2 is planned for compute rails"),
        ({"nic_gbps": 800}, "a port of qm9700 has 400 Gb/s: 400 too slow for a NIC"),
        ({"switch": {"model": "qm9700", "breakout": 2}}, "rdma_plan.switch.breakout is 2: a part has 200 Gb/s, and a NIC 400; write 1"),
        ({"switch": {"model": "q3400", "breakout": 4}}, "is 4; no source states how the ports of q3400 can be split"),
        ({"switch": {"model": "qm9700", "uplink_breakout": 4}}, "is 4; ports of qm9700 can be split into 1, 2 parts"),
        ({"spare_ports": 63}, "rdma_plan.spare_ports is 63, and qm9700 has 64 ports: write at most 62"),
        ({"switch": {"ports": 1024, "gbps": 800, "breakout": 2}}, "has 1024 × 2 port numbers; a cable plan has at most 1024"),
    ],
)
def test_a_wrong_request_is_refused_with_the_nearest_one(more: dict[str, Any], words: str) -> None:
    assert words in refusal(**more)


def test_all_problems_are_reported_at_once() -> None:
    assert len(refusal(oversubscription=4, nic_gbps=800, hosts_later=3).splitlines()) == 3


def test_no_request_is_refused() -> None:
    with pytest.raises(IntentError, match="rdma_plan is missing"):
        read_request({"rdma_plan": None})


def test_the_documentation_has_each_model_with_its_ways_to_split_a_port() -> None:
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", (ROOT / "docs/plan.md").read_text(encoding="utf-8"), re.MULTILINE))
    for name, model in CATALOGUE.items():
        parts = ", ".join(str(each) for each in model.breakout if each > 1) or "unknown"
        assert rows[name] == f"{model.fabric} | {model.ports} | {model.gbps:g} | {parts}"


def test_a_port_that_cannot_be_split_for_sure_is_reported() -> None:
    lines = list(head_lines(read(nic_gbps=400, switch={"model": "q3400"})))
    assert lines[-1].startswith(
        "Ports to hosts are not split, although they are faster than a NIC: no source states how the ports of q3400"
    )
    assert not any("not split" in line for line in head_lines(read()))


#: What a model may state.
FIGURES = {"ports", "gbps", "breakout", "watts", "price", "latency_ns"}
ROOT = Path(__file__).parents[5]


@pytest.mark.parametrize("model", CATALOGUE.values(), ids=lambda model: str(model.name))
def test_the_catalogue_is_sound(model: Any) -> None:
    assert model.fabric in FABRICS
    # Each figure has a source: ports and rate always, the ways to split a port if there are any.
    assert model.source.startswith("https://")
    assert model.breakout_source.startswith("https://") if len(model.breakout) > 1 else not model.breakout_source
    assert re.fullmatch(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}", model.read)
    assert (model.price, model.watts, model.latency_ns) == (None, None, None)
    # A new figure needs a source too.
    assert {each.name for each in fields(model)} == FIGURES | {"name", "fabric", "source", "breakout_source", "read"}
    assert model.ports >= 32
    assert model.breakout[0] == 1
    # A request can replace it.
    assert is_form(NAME, model.name)
