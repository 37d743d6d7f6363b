# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is made of a run's output: captures of two H100, started by a real mpirun."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._collectives import start
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.judge import judge
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.result import Expected
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.start import log_summary, read_output

H100 = Path(__file__).parents[3] / "fixtures/h100"
EXPECTED = Expected(2, {"gpu1": "vm"}, gbytes_per_s=300.0)


@pytest.mark.parametrize(
    ("name", "runs", "rows", "average", "channels"),
    [
        ("with", 1, 3, 315.28, {"P2P/CUMEM": 48}),
        ("5", 1, 3, 313.773, {"P2P/CUMEM": 48}),
        ("sockets", 1, 3, 3.46175, {"NET/Socket": 8}),
        ("without", 2, 6, None, {}),
    ],
)
def test_a_run_of_two_gpus_by_open_mpi(name: str, runs: int, rows: int, average: float | None, channels: dict[str, int]) -> None:
    outcome = read_output(str(H100 / f"mpirun_{name}.txt"), host="gpu1", subject=name, exit_status=0)
    assert outcome.test is not None
    test = outcome.test
    assert (test.version, test.library_version, test.runs, len(test.rows), test.truncated) == ("2.19.6", "2.28.9", runs, rows, False)
    assert test.average_busbw_gbytes_per_s == average
    assert {rank.name for rank in test.ranks} == {"NVIDIA H100 80GB HBM3"}
    summary = log_summary(outcome.log)
    assert summary is not None
    assert summary["channels"] == channels


def test_two_hosts_over_sockets() -> None:
    outcome = read_output(str(H100 / "two_hosts_sockets.txt"), host="nodea", subject="two", exit_status=0)
    expected = Expected(2, {"node1": "nodea", "node2": "nodeb"}, gbytes_per_s=2.0, hcas={"node1": frozenset(["mlx5_0"])}, gdr=True)
    found = {(each.check, each.host): (each.status, each.observed) for each in judge(outcome, expected)}
    away = "Channel 00/0 : {0}[{0}] -> {1}[{1}] [receive] via NET/Socket/0"
    assert found == {
        ("collective.exit", "nodea"): ("ok", "exit status 0"),
        ("collective.ranks", "nodea"): ("ok", "2 ranks on 2 hosts"),
        ("collective.wrong", "nodea"): ("ok", "3 sizes checked, none wrong"),
        ("collective.busbw", "nodea"): ("ok", "2.325 GB/s at 268435456 bytes and more, lowest 2.14, highest 2.51"),
        ("collective.transport", "node1"): ("error", f"4 over NET/Socket: {away.format(1, 0)}"),
        ("collective.transport", "node2"): ("error", f"4 over NET/Socket: {away.format(0, 1)}"),
        ("collective.hcas", "node1"): ("not_applicable", "not all channels used an HCA, see collective.transport"),
        ("collective.hcas", "node2"): ("not_applicable", "no HCA is planned for it"),
    }


def test_two_hosts_of_which_one_s_rank_is_killed() -> None:
    outcome = read_output(str(H100 / "two_hosts_killed.txt"), host="nodea", subject="two", exit_status=137)
    found = {each.check: each for each in judge(outcome, Expected(2, {"nodea": "nodea", "nodeb": "nodeb"}, gbytes_per_s=2.0))}
    assert found["collective.exit"].status == "error"
    assert "process rank 1 with PID 1503 on node nodeb exited on signal 9 (Killed)" in found["collective.exit"].observed


@pytest.mark.parametrize(
    ("name", "verdicts"),
    [
        ("with", {"ranks": "ok", "busbw": "ok", "transport": "ok"}),
        ("5", {"ranks": "ok", "busbw": "ok", "transport": "ok"}),
        ("sockets", {"ranks": "ok", "busbw": "error", "transport": "error"}),
        ("without", {"ranks": "error", "busbw": "unknown", "transport": "unknown"}),
    ],
)
def test_what_is_reported_of_it(name: str, verdicts: dict[str, str]) -> None:
    outcome = read_output(str(H100 / f"mpirun_{name}.txt"), host="gpu1", subject=name, exit_status=0)
    found = {each.check: each.status for each in judge(outcome, EXPECTED)}
    wanted = {"exit": "ok", "wrong": "ok", "hcas": "not_applicable", **verdicts}
    assert found == {f"collective.{name}": status for name, status in wanted.items()}


@pytest.mark.parametrize(("lacking", "words"), [(0, "mpirun: a process has ended its rank is 1"), (1, "mpirun: a process has ended")])
def test_output_is_read_up_to_its_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: int, words: str) -> None:
    text = "mpirun: a process has ended\nits rank is 1\n"
    (tmp_path / "output").write_text(text + "gpu1:7:8 [0] NCCL INFO Bootstrap: Using eth0\n")
    monkeypatch.setattr(start, "_MOST_BYTES", len(text) - lacking)
    outcome = read_output(str(tmp_path / "output"), host="gpu1", subject="one", exit_status=1)
    assert outcome.launcher == words
    assert outcome.log is not None
