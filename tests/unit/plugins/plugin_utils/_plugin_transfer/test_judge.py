# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate says of data that was moved through the network plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import RECEIVES, SENDS
from ansible_collections.rdma.cluster.plugins.plugin_utils._plugin_transfer.plan import FOLDER, PLAN
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.unit.builders.transfer_runs import BY_TCP, OTHER, found, moved, users, verdicts

SENT = ("node1", "rail0 to node2")


def sent(tmp_path: Path, plugin: Any = None, **changed: Any) -> Finding:
    """The finding of node1 that sends to node2, with other values of its result."""
    known = users(2, *([plugin] if plugin else []))
    return found(moved(tmp_path, known, {("node1", SENDS): changed}), known)[SENT]


def test_data_that_an_rdma_port_counted_went_by_verbs(tmp_path: Path) -> None:
    known = users(2)
    results = found(moved(tmp_path, known), known)
    assert sorted(results) == [
        (f"node{one}", words) for one, other in ((1, 2), (2, 1)) for words in (f"from rail0 of node{other}", f"rail0 to node{other}")
    ]
    assert {each.status for each in results.values()} == {OK}
    assert results[SENT].observed == "4194304 bytes by verbs: rxe_rail0/1 counted 4113 packets"


def test_bytes_count_as_well_as_packets(tmp_path: Path) -> None:
    finding = sent(tmp_path, ports={"mlx5_0/1": {"bytes": 4_300_000, "packets": 1080}})
    assert (finding.status, finding.observed) == (OK, "4194304 bytes by verbs: mlx5_0/1 counted 4300000 bytes and 1080 packets")


def test_data_that_only_an_interface_counted_went_by_tcp(tmp_path: Path) -> None:
    finding = sent(tmp_path, **BY_TCP)
    assert finding.status == ERROR
    assert finding.observed == "the plugin moved the data by TCP, not by verbs: ens2 counted 4465000 bytes; rxe_rail0/1 did not"
    assert "Build the plugin with libibverbs" in finding.remedy
    finding = sent(tmp_path, ports={}, netdevs={"lo": 12})
    assert finding.observed.endswith("not by verbs: no interface counted the data either; no RDMA port exists")


def test_a_few_packets_of_others_are_not_the_data(tmp_path: Path) -> None:
    assert sent(tmp_path, ports={"rxe_rail0/1": {"bytes": 3_700_000, "packets": 1023}}).status == ERROR
    assert sent(tmp_path, ports={"rxe_rail0/1": {"bytes": None, "packets": 1024}}).status == OK


def test_ports_without_counters_show_nothing(tmp_path: Path) -> None:
    finding = sent(tmp_path, ports={"x/1": {"bytes": None, "packets": None}})
    assert (finding.status, finding.observed) == (UNKNOWN, "4194304 bytes arrived, but no RDMA port of node1 has counters")


def test_wrong_bytes_and_failures_are_errors(tmp_path: Path) -> None:
    finding = sent(tmp_path, mismatch="8 of 4194304 bytes differ, the first at offset 262144")
    assert (finding.status, finding.observed) == (
        ERROR,
        "the received data is wrong: 8 of 4194304 bytes differ, the first at offset 262144",
    )
    finding = sent(tmp_path, failed="the plugin hangs in accept: no answer in time, so its process was ended")
    assert (finding.status, finding.observed.partition(":")[0]) == (ERROR, "the transfer failed")
    finding = sent(tmp_path, failed="node2 did not call 192.168.100.1 port 18590 in time")
    assert "Allow TCP port 18590" in finding.remedy


def test_a_failure_is_an_error_only_where_it_happened(tmp_path: Path) -> None:
    finding = sent(tmp_path, failed="node2 failed: isend is NULL in the table ncclNetPlugin_v9")
    assert (finding.status, finding.remedy) == (UNKNOWN, "See the finding on node2.")


def test_another_plugin_that_uses_another_port_is_a_warning(tmp_path: Path) -> None:
    finding = sent(tmp_path, OTHER, ports={"rxe_rail1/1": {"bytes": None, "packets": 4113}})
    assert (finding.status, finding.observed) == (
        WARNING,
        "4194304 bytes by verbs: rxe_rail1/1 counted 4113 packets; the rail's device is rxe_rail0",
    )


def test_passed_transfers_are_proven_at_both_hosts_and_failed_ones_are_not(tmp_path: Path) -> None:
    known = users(2)
    proofs = verdicts(moved(tmp_path / "a", known, {("node2", RECEIVES): BY_TCP}), known).proofs
    assert sorted(proofs) == ["node1: from rail0 of node2", "node1: rail0 to node2", "node2: rail0 to node1"]
    later = found(RunFolder(tmp_path / "b"), known, proofs=proofs)
    assert later[SENT].status == OK
    assert later[SENT].observed == "4194304 bytes by verbs: rxe_rail0/1 counted 4113 packets (proven 1970-01-12 13:46 UTC)"
    assert later["node2", "from rail0 of node1"].status == UNKNOWN


def test_a_transfer_that_was_not_made(tmp_path: Path) -> None:
    known, folder = users(2), RunFolder(tmp_path)
    assert found(folder, known)[SENT].status == UNKNOWN
    assert found(folder, known, check=True)[SENT].status == NOT_APPLICABLE
    busy = found(folder, known, blocked={"node2": "GPU process 4711 (python3)"})[SENT]
    assert busy.observed == "it was never moved with this plugin and these settings; node2 is in use: GPU process 4711 (python3)"
    old = {name: {**each, "measured": 0.0} for name, each in verdicts(moved(tmp_path / "a", known), known).proofs.items()}
    assert found(folder, known, proofs=old)[SENT].status == WARNING


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (None, "nothing was moved: no result of this run"),
        (
            {"problem": "the host is in use: job process 815 (slurmstepd)"},
            "nothing was moved: the host is in use: job process 815 (slurmstepd)",
        ),
        ({"results": [{"partner": 3}]}, "nothing was moved: the host's answer is not readable: TypeError"),
        ({}, "nothing was moved: the host's answer is not readable: KeyError"),
    ],
)
def test_a_host_without_a_usable_answer_is_unknown(tmp_path: Path, stored: Any, words: str) -> None:
    known = users(2)
    folder = moved(tmp_path, known)
    if stored is None:
        (folder.path / folder.host_file(FOLDER, "node1")).unlink()
    else:
        folder.write_json(folder.host_file(FOLDER, "node1"), stored)
    assert (found(folder, known)[SENT].status, found(folder, known)[SENT].observed) == (UNKNOWN, words)


def test_hosts_without_a_partner_or_a_plugin(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert found(folder, users(1))["node1", "network plugin"].status == NOT_APPLICABLE
    assert found(folder, users(2, {"kind": "none"})) == {}
    known = users(2)
    assert (folder.path / PLAN).exists() is False
    assert known["node1"].facts is not None
    assert known["node1"].facts.nccl is not None
    other = users(2, {**OTHER, "checksum": "sha256:" + "b" * 64})
    mixed = {"node1": type(known["node1"])(other["node1"].intent, known["node1"].facts), "node2": known["node2"]}
    assert found(folder, mixed)["node1", "network plugin"].status == UNKNOWN
