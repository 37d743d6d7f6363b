# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of the report: the fabric with its bad cables, collectives, counters, drift, proofs, commands, and where figures come from."""

from __future__ import annotations

import base64
from dataclasses import asdict
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proof
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html import parts
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.parts import (
    age_words,
    cables,
    collectives,
    commands,
    drawings,
    drift_lines,
    evidence,
    graphs_of,
    leaves,
    proofs,
    risen_counters,
    time_words,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.run import Run
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.bench.report import RUN, plan
from tests.unit.builders.small_fabrics import fabric, hca


def test_each_cable_has_its_own_name() -> None:
    graph = fabric(6)
    assert len(cables([graph])) == len(graph.links)


def test_each_host_node_has_a_leaf() -> None:
    graph = fabric(6)
    names = {node.name for node in graph.nodes.values() if node.kind == "switch"}
    found = leaves([graph])
    assert found
    assert set(found.values()) <= names


def test_a_cable_that_a_finding_names_is_bad() -> None:
    graph = fabric(6)
    description = next(node.description for node in graph.nodes.values() if node.kind != "switch")
    finding = Finding("fabric", "fabric.cabling", "node1", "node1", "error", f"swapped: {description} is on leaf2", "as planned")
    [before], [after] = drawings([graph]), drawings([graph], [finding])
    assert {fault for _link, fault in after.bad} - {fault for _link, fault in before.bad} == {"fabric.cabling: node1"}


def test_leaves_are_found_by_the_digits_of_the_node_guid() -> None:
    found = leaves([fabric(6)])
    # node1 to node4 are on leaf0 and leaf1, one for each rail.
    assert {found[hca(rail, host).removeprefix("0x")] for rail in (0, 1) for host in (0, 3)} == {"leaf0", "leaf1"}
    assert found[hca(0, 4).removeprefix("0x")] == "leaf2"
    assert len(found) == 12


def test_a_drawing_counts_its_nodes_and_bad_links() -> None:
    [drawing] = drawings([fabric(6, slow=["leaf1/101"])])
    assert drawing.words == f"Fabric {drawing.plane}: {len(fabric(6).nodes)} nodes, {len(fabric(6).links)} links, of which 1 bad"
    [(link, _fault)] = drawing.bad
    assert "leaf1" in link
    assert base64.b64decode(drawing.image.removeprefix("data:image/svg+xml;base64,")).startswith(b"<svg")


def test_a_large_drawing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "DRAWING_BYTES", 100)
    assert drawings([fabric(6)])[0].image == ""


def test_a_finding_names_whole_descriptions_only() -> None:
    graph = fabric(12)
    other = Finding("fabric", "fabric.cabling", "node1", "node1", "error", "swapped: xnode1 mlx5_0 is on leaf2", "as planned")
    elsewhere = Finding("link", "link.rate", "node1", "node1", "error", "node1 mlx5_0 is slow", "as planned")
    assert drawings([graph], [other, elsewhere]) == drawings([graph])


def run_with(base: Path, **files: object) -> Run:
    folder = RunFolder(base / RUN)
    for name, data in files.items():
        folder.write_json(f"{name.replace('__', '/')}.json", data)
    return Run(folder)


def test_planes_that_cannot_be_read_are_missing(tmp_path: Path) -> None:
    run = run_with(tmp_path, fabric={"planes": [{"plane": "x"}, 7, fabric(2).to_dict()]})
    assert [graph.plane for graph in graphs_of(run)] == [fabric(2).plane]


ALL_REDUCE = {
    "operation": "all_reduce_perf", "hosts": ["node1", "node2"], "status": "ok", "gbytes_per_s": 300.0, "expected_gbytes_per_s": 400.0,
    "sizes": [[1024, 1.5], [2048, 3]], "argv": ["mpirun", "-np", "2", "all reduce"],
}  # fmt: skip


def test_collectives_joint_ones_first(tmp_path: Path) -> None:
    alone = {"operation": "alltoall_perf", "hosts": ["node3"]}
    ladder = {"runs": [ALL_REDUCE], "also": [{**ALL_REDUCE, "operation": "broadcast_perf"}, "damaged"], "problem": "node4 is gone"}
    run = run_with(
        tmp_path, collectives={**ladder, "blames": [{"words": "node2 is slow"}, 7]}, collectives__node3=alone, collectives__node4={}
    )
    found, blames, problem = collectives(run)
    assert [each.operation for each in found] == ["all_reduce_perf", "broadcast_perf", "alltoall_perf"]
    assert (blames, problem) == (["node2 is slow"], "node4 is gone")
    first, _second, last = found
    assert (first.hosts, first.count, first.status, first.gbytes_per_s, first.expected) == ("node1, node2", 2, "ok", 300.0, 400.0)
    assert (first.sizes, first.command, first.share) == ([(1024, 1.5), (2048, 3.0)], "mpirun -np 2 'all reduce'", 0.75)
    assert (last.status, last.gbytes_per_s, last.share, last.sizes, last.command) == ("unknown", None, None, [], "")


def test_counters_that_rose_the_greatest_first(tmp_path: Path) -> None:
    rails = {"rail0": {"risen": {"symbol_error": 3, "link_downed": 0, "torn": "x"}}, "rail1": {"risen": None}, "rail2": 7}
    run = run_with(tmp_path)
    run.folder.write_json("pairs/node1.counters.json", rails)
    run.folder.write_json("pairs/node2.counters.json", {"rail0": {"risen": {"rx_discards": 50}}})
    assert risen_counters(run) == [("node2", "rail0", "rx_discards", 50), ("node1", "rail0", "symbol_error", 3)]


def test_lines_of_drift(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    assert drift_lines(run) == []
    run.folder.append("drift.jsonl", {"host": "node1", "stage": "host", "subject": "sysctl", "was": 1, "should_be": 2, "more": 3})
    with (run.folder.path / "drift.jsonl").open("a") as stream:
        stream.write('[1]\n{"cut\n')
    assert drift_lines(run) == [{"host": "node1", "stage": "host", "subject": "sysctl", "was": "1", "should_be": "2"}]


def proof(run: str, measured: float) -> dict[str, object]:
    return asdict(Proof({"driver": "x"}, measured, run, 3, {"bandwidth": 390.0}, 0.99, {}, None))


def test_proofs_by_rail_and_their_age(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    for host in ("node1", "node2", "node10"):
        run.folder.write_findings("link", host, [Finding("link", "link.state", host, "rail 0", "ok", "seen", "expected")])
    old, later = "20261120T120000Z-1", "20261127T120000Z-1"
    endpoints = {
        "node10": {"rail0": proof(old, run.began - 36000), "rail1": proof(RUN, run.began)},
        "node2": {"rail0": proof(old, run.began - 72000), "rail1": proof(later, run.began + 1)},
        "node1": {"rail0": proof(RUN, run.began)},
        "node9": {"rail0": proof(old, run.began)},
    }
    run.folder.write_json("../proofs/pairs.json", {"schema": 2, "endpoints": endpoints})
    rows, others = proofs(run)
    assert [(row.rail, list(row.ages)) for row in rows] == [
        ("rail0", [("20.0 hours", 2, "node2, node10", old), ("this run", 1, "node1", RUN)]),
        ("rail1", [("this run", 1, "node10", RUN)]),
    ]
    assert others == 1


def test_ages_and_times_in_words() -> None:
    assert [age_words(hours * 3600) for hours in (-1, 0, 1.25, 47.9, 48, 84)] == [
        "0.0 hours", "0.0 hours", "1.2 hours", "47.9 hours", "2.0 days", "3.5 days",
    ]  # fmt: skip
    assert time_words(1795694400.0) == "2026-11-26 12:00:00 UTC"


def test_the_commands_that_reproduce_a_run(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    assert commands(run, None, []) == [("this page", f"ansible-playbook rdma.cluster.report -e rdma_run={RUN}")]
    for host, stage in (("node1", "pairs"), ("node2", "pairs"), ("node3", "link")):
        run.folder.write_findings(stage, host, [Finding(stage, f"{stage}.x", host, "rail 0", "error", "seen", "expected")])
    found = collectives(run_with(tmp_path / "other", collectives={"runs": [ALL_REDUCE]}))[0]
    assert commands(Run(run.folder), plan(["node1", "node2"]), found) == [
        ("the gates, without measuring", "ansible-playbook rdma.cluster.validate"),
        ("all pairs of this sweep", "ansible-playbook rdma.cluster.pairs -e rdma_measure=true"),
        ("only the hosts with errors", "ansible-playbook rdma.cluster.pairs -l node1,node2 -e rdma_measure=true"),
        (
            "bandwidth of one pair on rail0; first the same without PARTNER there",
            "ib_write_bw -d mlx5_0 -i 1 -x 3 -s 1048576 -q 4 -D 10 --report_gbits -F -p 18515 PARTNER",
        ),
        (
            "latency of one pair on rail0; first the same without PARTNER there",
            "ib_write_lat -d mlx5_0 -i 1 -x 3 -s 2 -D 1 -F -p 18515 PARTNER",
        ),
        ("the collectives", "ansible-playbook rdma.cluster.collectives -e rdma_measure=true"),
        ("all_reduce_perf on node1, node2", "mpirun -np 2 'all reduce'"),
        ("this page", f"ansible-playbook rdma.cluster.report -e rdma_run={RUN}"),
    ]


def test_where_each_figure_comes_from(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    assert [row[:2] for row in evidence("unknown", run, None, [])] == [
        ("bandwidth and latency of pairs", "not measured in this run"),
        ("expected bandwidth", "derived"),
        ("state, versions, counters, affinity", "reported by hosts"),
        ("cabling", "reported by switches and hosts"),
    ]
    found = collectives(run_with(tmp_path / "other", collectives={"runs": [ALL_REDUCE]}))[0]
    for kind, rung in (
        ("cards", "measured, on cards"),
        ("software", "measured, on software devices"),
        ("mixed", "measured, some on software devices"),
    ):
        assert [row[:2] for row in evidence(kind, run, plan(["node1"]), found)][:2] == [
            ("bandwidth and latency of pairs", rung),
            ("busbw of collectives", "measured"),
        ]
    run.folder.write_findings("collectives", "node1", [Finding("collectives", "collective.x", "node1", "x", "ok", "seen", "expected")])
    assert ("busbw of collectives", "not measured in this run") in [row[:2] for row in evidence("cards", Run(run.folder), None, [])]
