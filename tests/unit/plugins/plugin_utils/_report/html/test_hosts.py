# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts of all hosts in the report: versions, distances, limits, and kinds of devices. The facts are recorded (tests.bench.fleet)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.expected import Limit
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.plan.endpoint import NoLimit
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.hosts import (
    HostFacts,
    affinity,
    changed_traits,
    kind_of_devices,
    read_hosts,
    traits,
    versions,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.bench import fleet
from tests.bench.report import RUN, plan

CARD, SOFT, UNKNOWN = Limit(100.0, 100.0, "link", ""), NoLimit("not_applicable", "Soft-RoCE"), NoLimit("unknown", "link down")


def run_with(base: Path, *trees: Any) -> Run:
    """The run of hosts gpu0001 and so on with these facts."""
    folder = RunFolder(base / RUN)
    for number, tree in enumerate(trees, 1):
        folder.write_json(f"facts/{fleet.name(number)}.json", tree)
        folder.write_json(f"intent/{fleet.name(number)}.json", normalize({"rdma_rails": fleet.rails(number)}))
    return Run(folder)


def test_hosts_of_the_sweep_have_limits(tmp_path: Path) -> None:
    run = run_with(tmp_path, fleet.facts(1), fleet.facts(2), fleet.facts(3))
    found = read_hosts(run, plan([fleet.name(1), fleet.name(3)]))
    assert found.unread == {}
    assert list(found.limits) == [fleet.name(1), fleet.name(3)]
    assert list(found.limits[fleet.name(1)]) == [f"rail{rail}" for rail in range(8)]
    limit = found.limits[fleet.name(3)]["rail7"]
    assert isinstance(limit, Limit)
    # 400 Gb/s at an MTU of 4096 bytes.
    assert limit.gbps == pytest.approx(392, abs=1)
    assert list(found.traits) == [fleet.name(number) for number in (1, 2, 3)]


def test_without_a_sweep_no_limit_is_computed(tmp_path: Path) -> None:
    found = read_hosts(run_with(tmp_path, fleet.facts(1)), None)
    assert (found.limits, found.unread, list(found.traits)) == ({}, {}, [fleet.name(1)])


def test_a_host_without_an_intent_has_no_limit(tmp_path: Path) -> None:
    run = run_with(tmp_path, fleet.facts(1))
    (run.folder.path / "intent" / f"{fleet.name(1)}.json").unlink()
    found = read_hosts(run, plan([fleet.name(1)]))
    assert (found.limits, found.unread) == ({}, {})


def test_node_guids_are_plain_digits_by_device(tmp_path: Path) -> None:
    tree = fleet.facts(1)
    tree["devices"]["mlx5_1"]["node_guid"] = "0xA088C20300AB0001"
    tree["devices"]["mlx5_2"]["node_guid"] = None
    found = read_hosts(run_with(tmp_path, tree, fleet.facts(2)), None)
    assert found.guids[fleet.name(1), "mlx5_0"] == "a088c20300000001"
    assert found.guids[fleet.name(1), "mlx5_1"] == "a088c20300ab0001"
    assert found.guids[fleet.name(1), "mlx5_2"] == ""
    assert found.guids[fleet.name(2), "mlx5_7"] == "a088c20300070002"


def test_damaged_facts_are_named_with_the_reason(tmp_path: Path) -> None:
    run = run_with(tmp_path, fleet.facts(1), {"schema": 7, "devices": {"mlx5_0": 7}}, {"schema": 1})
    (run.folder.path / "facts" / f"{fleet.name(1)}.json").write_text('{"cut')
    found = read_hosts(run, None)
    assert found.unread[fleet.name(1)] == "the file is damaged"
    assert found.unread[fleet.name(2)].startswith("AttributeError: 'int' object has no attribute")
    assert fleet.name(3) not in found.unread
    assert found.schemas == {7, 1}


def test_the_versions_of_a_host() -> None:
    tree = fleet.facts(1)
    tree["nccl"] = {"version": None, "library": {"version": "2.28.9"}}
    tree["gpu_driver"] = {"version": "570.86.15"}
    tree["gpu_support"] = {"cuda": "12.8", "fabric_manager": None}
    tree["stack"]["modules"]["mlx5_core"]["version"] = "24.10-1.1.4"
    tree["stack"]["distribution"] = {"id": "ubuntu", "version_id": "24.04", "packages": {"perftest": "24.10", "bash": "5.2"}}
    found = traits(tree)
    version = tree["stack"]["modules"]["mlx5_ib"]["version"]
    assert {name: value for name, value in found.items() if " of " not in name and name != "kernel command line"} == {
        "operating system": "ubuntu 24.04",
        "kernel": tree["stack"]["kernel"],
        "NVIDIA driver": "570.86.15",
        "CUDA": "12.8",
        "NCCL": "2.28.9",
        "module mlx5_core": "24.10-1.1.4",
        "package perftest": "24.10",
        **({"module mlx5_ib": version} if version else {}),
    }
    assert {name: value for name, value in found.items() if name.endswith((" of mlx5_3", " mlx5_3 port 1"))} == {
        "firmware of mlx5_3": "28.41.1000",
        "board of mlx5_3": "MT_0000000838",
        "rate of mlx5_3 port 1": "400 Gb/s",
        "PCIe of mlx5_3": "32 GT/s x16",
    }


def test_a_software_device_has_neither_firmware_nor_board() -> None:
    device = {"software": True, "firmware": "0", "board_id": "x", "ports": {"1": {"rate_gbps": None}}, "pci": None}
    assert traits({"devices": {"rxe0": device}}) == {"operating system": "?"}


def test_own_version_of_nccl_has_priority_over_the_library() -> None:
    assert traits({"nccl": {"version": "2.27.3", "library": {"version": "2.28.9"}}})["NCCL"] == "2.27.3"
    assert "NCCL" not in traits({"nccl": None})
    assert "NCCL" not in traits({"nccl": ["damaged"]})


def test_versions_are_counted_by_host_the_most_frequent_first() -> None:
    of = {"firmware of mlx5_0": "28.1", "firmware of mlx5_1": "28.1", "kernel": "6.8"}
    found = HostFacts(
        traits={
            "node10": {**of, "kernel command line": "quiet"},
            "node2": {**of, "kernel": "5.15"},
            "node3": {**of, "firmware of mlx5_1": "28.2"},
        }
    )
    assert {each.name: list(each.values) for each in versions(found)} == {
        "firmware": [("28.1", 3, "node10, node2, node3"), ("28.2", 1, "node3")],
        "kernel": [("6.8", 2, "node10, node3"), ("5.15", 1, "node2")],
    }
    many = HostFacts(traits={f"node{number}": {"kernel": f"6.{number}"} for number in range(20)})
    assert len(versions(many)[0].values) == 12


def test_hosts_with_equal_distances_share_a_table(tmp_path: Path) -> None:
    tree = {"distances": {"0000:1b:00.0": {"mlx5_10": "SYS", "mlx5_2": "PIX"}, "0000:0a:00.0": {"mlx5_2": None}}}
    other = {"distances": {"0000:1b:00.0": {"mlx5_2": "NODE"}}}
    found = affinity(read_hosts(run_with(tmp_path, other, tree, tree, {"distances": {}}, {}), None))
    assert [(each.hosts, each.count, list(each.nics)) for each in found] == [
        ("gpu0002, gpu0003", 2, ["mlx5_2", "mlx5_10"]),
        ("gpu0001", 1, ["mlx5_2"]),
    ]
    assert [(gpu, list(row)) for gpu, row in found[0].rows] == [
        ("0000:0a:00.0", ["unknown", ""]),
        ("0000:1b:00.0", ["PIX", "SYS"]),
    ]


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        ([], "unknown"),
        ([CARD, CARD], "cards"),
        ([CARD, UNKNOWN], "cards"),
        ([SOFT, SOFT], "software"),
        ([CARD, SOFT], "mixed"),
        ([UNKNOWN, SOFT], "mixed"),
    ],
)
def test_the_kind_of_the_measured_devices(limits: list[Limit | NoLimit], kind: str) -> None:
    found = HostFacts(limits={"node1": dict(zip("ab", limits[:1], strict=False)), "node2": dict(zip("ab", limits[1:], strict=False))})
    assert kind_of_devices(found) == kind


def test_changed_versions_of_hosts_that_both_runs_have_read() -> None:
    before = {
        "node1": {"kernel": "6.5", "CUDA": "12.8", "NCCL": "2.27"},
        "node2": {"kernel": "6.5", "CUDA": "12.8"},
        "node3": {"kernel": "6.5"},
    }
    now = {"node1": {"kernel": "6.8", "CUDA": "12.8"}, "node2": {"kernel": "6.8", "CUDA": "12.9"}, "node4": {"kernel": "6.8"}}
    assert changed_traits(before.items(), now) == [
        ("node1", "NCCL", "2.27", "none"),
        ("node1, node2", "kernel", "6.5", "6.8"),
        ("node2", "CUDA", "12.8", "12.9"),
    ]
    assert changed_traits([("node1", {})], {"node1": {"CUDA": "12.8"}}) == [("node1", "CUDA", "none", "12.8")]
