# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The presets of known machines: the rails that they give, and hosts that are other machines."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, OK, UNKNOWN, Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.preflight.preset import check_preset
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.problem import IntentError
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._machines.presets import PRESETS
from tests.unit.builders.hosts import lab_facts

#: The GPUs of an H100 baseboard behind the switches of the NICs 18, 40, 4f, 5e, 9a, c0, ce and dc.
GPUS = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")


def gpu(bus: str, model: str | None = "NVIDIA H100 80GB HBM3") -> dict[str, Any]:
    return {"address": f"0000:{bus}:00.0", "model": model, "uuid": None, "numa_node": 0, "pci": None}


def facts(pci: tuple[str, ...], gpus: Any = GPUS, model: str | None = "NVIDIA H100 80GB HBM3", distances: Any = None) -> Any:
    tree = {**lab_facts(), "devices": {}, "gpus": None if gpus is None else [gpu(bus, model) for bus in gpus], "distances": distances}
    soft = lab_facts()["devices"]["rxe_rail0"]
    for number, address in enumerate(pci):
        link = {"address": address, "speed_gtps": 32.0, "width": 16}
        port = {**soft["ports"]["1"], "link_layer": "InfiniBand", "netdev": None}
        tree["devices"][f"mlx5_{number}"] = {**soft, "software": False, "pci": {**link, "narrowest": link}, "ports": {"1": port}}
    tree["nics"] = {address: {"address": address} for address in pci}
    return from_dict(tree)


def finding(preset: str, host_facts: Any, **variables: Any) -> Finding:
    [found] = check_preset("node7", normalize({"rdma_preset": preset, **variables}), host_facts)
    return found


H100 = PRESETS["dgx_h100"].pci


def test_a_preset_alone_is_an_intent() -> None:
    rails = normalize({"rdma_preset": "dgx_h100"})["rails"]
    assert [rail["name"] for rail in rails] == [f"rail{number}" for number in range(8)]
    assert [rail["nic"] for rail in rails][:2] == [{"pci": "0000:18:00.0"}, {"pci": "0000:40:00.0"}]
    assert {(rail["link_layer"], rail["rate_gbps"], rail["plane"], rail["role"]) for rail in rails} == {
        ("infiniband", 400, "compute", "compute")
    }


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.pci and preset.common["link_layer"] == "infiniband"])
def test_each_preset_with_addresses_has_valid_rails(name: str) -> None:
    rails = normalize({"rdma_preset": name})["rails"]
    assert len(rails) == PRESETS[name].nics == len(set(PRESETS[name].pci))


def test_given_values_have_priority() -> None:
    given = [
        {"name": "rail1", "rate_gbps": 200, "nic": {"pci": "0000:99:00.0"}},
        {"name": "rail3"},
        {"name": "storage0", "nic": {"pci": "0000:29:00.0"}, "role": "storage", "link_layer": "infiniband"},
    ]
    rails = normalize({"rdma_preset": "dgx_h100", "rdma_rails": given})["rails"]
    assert [(rail["nic"]["pci"], rail["rate_gbps"], rail["plane"]) for rail in rails] == [
        ("0000:99:00.0", 200, "compute"),
        ("0000:5e:00.0", 400, "compute"),
        ("0000:29:00.0", None, "default"),
    ]


def test_roce_rails_still_need_their_addresses() -> None:
    with pytest.raises(IntentError, match=r"rdma_rails\[0\].address is missing: rail0 is RoCE"):
        normalize({"rdma_preset": "dgx_spark"})
    rails = [{"name": f"rail{number}", "address": f"10.0.{number}.1/24"} for number in (0, 2)]
    found = normalize({"rdma_preset": "dgx_spark", "rdma_rails": rails})["rails"]
    assert [rail["nic"]["pci"] for rail in found] == ["0000:01:00.0", "0002:01:00.0"]


def test_a_machine_without_known_addresses_needs_its_rails() -> None:
    with pytest.raises(IntentError, match="rdma_rails is missing"):
        normalize({"rdma_preset": "hgx_b200"})
    rails = [{"name": "a", "nic": {"pci": "0000:18:00.0"}, "link_layer": "infiniband"}]
    assert normalize({"rdma_preset": "hgx_b200", "rdma_rails": rails})["rails"][0]["rate_gbps"] == 400


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(IntentError, match="rdma_preset must be one of dgx_h100, dgx_spark, hgx_b200, xe9680, nd_h100_v5; got 'dgx_h200'"):
        normalize({"rdma_preset": "dgx_h200", "rdma_rails": [{"name": "a", "nic": {"pci": "0000:18:00.0"}, "link_layer": "infiniband"}]})


def test_the_machine_itself() -> None:
    assert finding("dgx_h100", facts(H100)).status == OK
    # Without the driver, the model of the GPUs is not known.
    assert finding("dgx_h100", facts(H100, model=None)).status == OK


def test_missing_nics() -> None:
    found = finding("dgx_h100", facts(H100[:6]))
    assert found.status == ERROR
    places = ", ".join(H100)
    assert found.observed == (
        f"dgx_h100 expects 8 compute NICs of 400 Gb/s at {places}; node7 has 6 of them, and none at 0000:ce:00.0, 0000:dc:00.0"
    )


def test_a_nic_at_the_place_that_the_intent_gives_is_not_missing() -> None:
    rails = [{"name": "rail7", "nic": {"pci": "0000:dd:00.0"}}]
    assert finding("dgx_h100", facts((*H100[:7], "0000:dd:00.0")), rdma_rails=rails).status == OK


@pytest.mark.parametrize(
    ("gpus", "model", "observed"),
    [
        (GPUS[:7], "NVIDIA H100 80GB HBM3", "dgx_h100 expects 8 GPUs; node7 has 7"),
        (GPUS, "NVIDIA A100-SXM4-80GB", "dgx_h100 expects GPUs H100; node7 has NVIDIA A100-SXM4-80GB"),
    ],
)
def test_other_gpus(gpus: Any, model: str, observed: str) -> None:
    assert finding("dgx_h100", facts(H100, gpus, model)).observed == observed


def test_gpus_that_were_not_read() -> None:
    assert finding("dgx_h100", facts(H100, None)).status == UNKNOWN


def pairs(swapped: bool = False) -> dict[str, dict[str, str]]:
    near = [*range(8)]
    if swapped:
        near[0], near[1] = near[1], near[0]
    return {
        f"0000:{bus}:00.0": {f"mlx5_{number}": "PXB" if near[at] == number else "SYS" for number in range(8)} for at, bus in enumerate(GPUS)
    }


def test_each_nic_is_next_to_its_gpu() -> None:
    assert finding("dgx_h100", facts(H100, distances=pairs())).status == OK
    found = finding("dgx_h100", facts(H100, distances=pairs(swapped=True)))
    assert found.observed == "dgx_h100 expects rail0 next to GPU 0 (0000:1b:00.0); on node7 its NIC mlx5_0 is at distance SYS"


def test_a_machine_by_the_order_of_its_gpus() -> None:
    own = tuple(f"0000:{16 + number:02x}:00.0" for number in range(8))
    rails = [{"name": f"gpu{number}", "nic": {"pci": address}, "link_layer": "infiniband"} for number, address in enumerate(own)]
    model = "NVIDIA B200"
    assert finding("hgx_b200", facts(own, model=model, distances=pairs()), rdma_rails=rails).status == OK
    assert "is at distance SYS" in finding("hgx_b200", facts(own, model=model, distances=pairs(swapped=True)), rdma_rails=rails).observed
    few = finding("hgx_b200", facts(own, model=model), rdma_rails=rails[:6])
    assert few.observed.endswith("; rdma_rails of node7 has 6 compute rails")


def test_without_a_preset_nothing_is_checked() -> None:
    rails = [{"name": "a", "nic": {"pci": "0000:18:00.0"}, "link_layer": "infiniband"}]
    assert check_preset("node7", normalize({"rdma_rails": rails}), facts(())) == []
