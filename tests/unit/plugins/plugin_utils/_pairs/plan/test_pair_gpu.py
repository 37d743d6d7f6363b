# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The GPU of a rail, and what the gate says of measurements from its memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._rdma.rails import ResolvedRail
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.digest import comparable
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import gpus_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import GPU_BANDWIDTH, endpoints
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.plan import tests_of as measured_of
from tests.unit.builders.fabric_runs import FabricRun
from tests.unit.builders.fabrics import leafspine

POSSIBLE = {"possible": True, "why_not": []}
REFUSED = {"possible": False, "why_not": ["its driver is not the open one"]}
NEAR = {"0000:18:00.0": {"mlx5_0": "PIX", "mlx5_1": "SYS"}, "0000:c0:00.0": {"mlx5_0": "SYS", "mlx5_1": "PXB"}}


def with_gpus(distances: dict[str, dict[str, str | None]], dmabuf: Any = None, peermem: Any = None) -> dict[str, Any]:
    """dmabuf, peermem: what is said of either path, possible where nothing is."""
    paths = {"dmabuf": dmabuf or POSSIBLE, "peermem": peermem or POSSIBLE}
    return {"gpus": [{"address": each} for each in distances], "gpudirect": paths, "distances": distances}


def near(of: list[ResolvedRail], intent: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    return gpus_of(of, intent, from_dict(facts))


def rails(*devices: str | None) -> list[ResolvedRail]:
    return [ResolvedRail(number, {"name": f"rail{number}"}, None, device, "1") for number, device in enumerate(devices)]


def test_each_rail_takes_the_nearest_gpu_by_the_path_of_the_gpu_stage() -> None:
    assert near(rails("mlx5_0", "mlx5_1"), {}, with_gpus(NEAR)) == {
        "rail0": {"bus_id": "0000:18:00.0", "dmabuf": True},
        "rail1": {"bus_id": "0000:c0:00.0", "dmabuf": True},
    }
    found = near(rails("mlx5_1"), {}, with_gpus(NEAR, dmabuf=REFUSED))
    assert found == {"rail0": {"bus_id": "0000:c0:00.0", "dmabuf": False}}


def test_rails_take_turns_where_gpus_are_as_near() -> None:
    alike: dict[str, dict[str, str | None]] = {f"0000:{bus}:00.0": {"mlx5_0": "NODE", "mlx5_1": "NODE"} for bus in ("2a", "1b")}
    found = near(rails("mlx5_0", "mlx5_1", "mlx5_0"), {}, with_gpus(alike))
    assert [each["bus_id"] for each in found.values()] == ["0000:1b:00.0", "0000:2a:00.0", "0000:1b:00.0"]


def test_a_gpu_whose_distance_is_not_known_is_the_last() -> None:
    unknown: dict[str, dict[str, str | None]] = {"0000:1b:00.0": {"mlx5_0": None}, "0000:2a:00.0": {"mlx5_0": "SYS"}}
    assert near(rails("mlx5_0"), {}, with_gpus(unknown))["rail0"]["bus_id"] == "0000:2a:00.0"


@pytest.mark.parametrize(
    ("intent", "facts"),
    [
        ({}, {"gpus": [], "gpudirect": {"dmabuf": POSSIBLE, "peermem": POSSIBLE}, "distances": {}}),
        ({}, with_gpus(NEAR, REFUSED, REFUSED)),
        ({"gpudirect": {"path": "none"}}, with_gpus(NEAR)),
        ({}, {}),
    ],
    ids=["no GPU", "no path", "not asked for", "not reported"],
)
def test_without_a_path_there_is_no_gpu(intent: dict[str, Any], facts: dict[str, Any]) -> None:
    assert near(rails("mlx5_0"), intent, facts) == {}


def test_a_rail_without_a_device_has_none() -> None:
    assert list(near(rails(None, "mlx5_0"), {}, with_gpus(NEAR))) == ["rail1"]


def measured(path: Path, gpus: int = 4, **shares: float | None) -> FabricRun:
    """Four hosts, of which the first ones have a GPU; what a pair reaches from there is the least of both hosts' shares."""
    run = FabricRun(path / "R1", leafspine(1, 1, 4), gpu_memory=True)
    for host in run.hosts[:gpus]:
        place = run.folder.host_file("facts", host)
        run.folder.write_json(place, {**run.folder.read_json(place), **with_gpus({"0000:18:00.0": {"mlx5_0": "PIX"}})})
    return run.sweep(gpu=shares)


def of_gpus(run: FabricRun) -> dict[str, tuple[str, str]]:
    return {each.host: (each.status, each.observed) for each in run.judged("pair.gpu")}


def test_the_test_from_gpus_is_the_last_and_else_the_same(tmp_path: Path) -> None:
    run = measured(tmp_path)
    first, second = measured_of(run.intent)
    assert second == {**first, "name": GPU_BANDWIDTH, "memory": "gpu"}
    (profile,) = run.folder.read_json("pairs/plan.json")["profiles"]
    assert profile["gpu"] == {"bus_id": "0000:18:00.0", "dmabuf": True}


def test_the_comparable_facts_are_enough(tmp_path: Path) -> None:
    run = measured(tmp_path)
    facts = run.folder.read_json(run.folder.host_file("facts", "node1"))
    assert endpoints(run.intent, from_dict(comparable(facts))) == endpoints(run.intent, from_dict(facts))
    assert endpoints(run.intent, from_dict(facts))["rail0"]["gpu"] is not None


def test_as_fast_as_from_the_host_is_well(tmp_path: Path) -> None:
    words = "GPU 0000:18:00.0 by DMA-BUF: 0.98 of that (median of 3 measurements, lowest 0.98)"
    assert of_gpus(measured(tmp_path, node1=0.98, node2=0.98, node3=0.98)) == dict.fromkeys(
        [f"node{number}" for number in range(1, 5)], ("ok", words)
    )


@pytest.mark.parametrize(("share", "remedy"), [(0.7, "Check the PCIe path"), (0.18, "At this rate, data is copied through the host")])
def test_a_slow_gpu_is_named_and_not_its_partners(tmp_path: Path, share: float, remedy: str) -> None:
    run = measured(tmp_path, node3=share)
    assert {host: status for host, (status, _words) in of_gpus(run).items()} == {
        "node1": "ok", "node2": "ok", "node3": "error", "node4": "ok",
    }  # fmt: skip
    (found,) = [each for each in run.judged("pair.gpu") if each.status == "error"]
    assert found.observed.startswith(f"GPU 0000:18:00.0 by DMA-BUF: {share:.2f} of that")
    assert found.remedy.startswith(remedy)
    assert "node3" in found.remedy


def test_a_refused_registration_is_an_error_of_its_host(tmp_path: Path) -> None:
    found = of_gpus(measured(tmp_path, node2=None))
    assert found["node2"] == ("error", "GPU 0000:18:00.0 by DMA-BUF: 3 measurements failed (gpu_memory)")
    assert {host: status for host, (status, _words) in found.items() if host != "node2"} == dict.fromkeys(["node1", "node3", "node4"], "ok")


def test_a_port_without_a_gpu_is_no_partner(tmp_path: Path) -> None:
    found = of_gpus(measured(tmp_path, gpus=3))
    assert found["node4"] == ("not_applicable", "no GPU is planned for its NIC (see the findings of the gpu stage)")
    assert found["node1"] == ("ok", "GPU 0000:18:00.0 by DMA-BUF: 1.00 of that (median of 2 measurements, lowest 1.00)")


def test_the_only_gpu_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    assert of_gpus(measured(tmp_path, gpus=1))["node1"] == ("unknown", "GPU 0000:18:00.0 by DMA-BUF: nothing to compare it with")


def test_what_is_bad_is_not_proven(tmp_path: Path) -> None:
    run = measured(tmp_path, node3=0.5)
    run.judged("pair.gpu")
    assert set(run.folder.read_json("../proofs/pairs.json")["endpoints"]) == {"node1", "node2", "node4"}


def test_nothing_is_reported_where_it_was_not_asked_for(tmp_path: Path) -> None:
    assert FabricRun(tmp_path / "R1", leafspine(1, 1, 4)).sweep().judged("pair.gpu") == []
