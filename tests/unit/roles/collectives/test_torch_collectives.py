# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The PyTorch program: what needs no PyTorch, and where that is installed itself, with four processes over gloo.

No target of the Makefile installs it: `pip install torch` into the virtual environment, and run this file by hand.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from roles.collectives.files.torch_straggler import job, measures, program

PROGRAM = Path(job.__file__).parents[1] / "torch_collectives.py"
MPIRUN = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def test_bandwidths_of_a_gigabyte_in_ten_milliseconds() -> None:
    assert measures.bandwidths("all_reduce", 10**9, 16, 10_000) == (100.0, pytest.approx(187.5))
    for collective in ("all_gather", "reduce_scatter", "all_to_all"):
        assert measures.bandwidths(collective, 10**9, 16, 10_000) == (100.0, pytest.approx(93.75))


@pytest.mark.parametrize("ranks", range(2, 18))
def test_each_pair_meets_once(ranks: int) -> None:
    met = []
    for turn in range(ranks + ranks % 2 - 1):
        others = [measures.partner(rank, ranks, turn) for rank in range(ranks)]
        assert others.count(None) == ranks % 2
        assert all(others[other] == rank != other for rank, other in enumerate(others) if other is not None)
        met += [(rank, other) for rank, other in enumerate(others) if other is not None and rank < other]
    assert sorted(met) == list(combinations(range(ranks), 2))


def member(rank: int, host: str, uuid: str | None) -> dict[str, Any]:
    return {"rank": rank, "host": host, "uuid": uuid}


def test_backend_is_chosen_by_all_ranks() -> None:
    own = [member(0, "node1", "a"), member(1, "node1", "b"), member(2, "node2", "a")]
    none = [member(0, "node1", None), member(1, "node2", None)]
    assert job.chosen_backend(own, "auto") == "nccl"
    assert job.chosen_backend(own, "gloo") == "gloo"
    assert job.chosen_backend(none, "auto") == "gloo"
    with pytest.raises(SystemExit, match=r"ranks \[0, 1\]"):
        job.chosen_backend(none, "nccl")
    with pytest.raises(SystemExit, match=r"ranks \[3\]"):
        job.chosen_backend([*own, member(3, "node2", None)], "auto")
    with pytest.raises(SystemExit, match=r"several ranks on one GPU: \[\('node1', 'b'\)\]"):
        job.chosen_backend([*own, member(3, "node1", "b")], "auto")


def test_sizes_hold_a_number_for_each_rank() -> None:
    assert program.sizes(1024, 2**20, 4, 8) == [1024, 4096, 16384, 65536, 262144, 1048576]
    assert program.sizes(4, 5000, 10, 512) == [2048]


@pytest.mark.parametrize("arguments", [["--factor", "1"], ["--iterations", "0"], ["--steps", "1001"], ["--begin", "2e9"]])
def test_options_that_cannot_be(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.options(arguments)
    assert "--steps of at most 1000" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "arguments", "message"),
    [
        ({}, [], "torchrun, srun or mpirun"),
        ({"RANK": "0", "WORLD_SIZE": "1"}, [], "1 ranks by torchrun, expected at least two"),
        (MPIRUN, ["--ranks", "16"], "4 ranks by Open MPI, expected 16"),
        (MPIRUN, [], "Open MPI does not set the address of rank 0"),
    ],
)
def test_a_start_that_cannot_measure_is_refused(environment: dict[str, str], arguments: list[str], message: str) -> None:
    # By the interpreter's own libraries alone: it is refused before PyTorch is looked for.
    run = [sys.executable, "-E", "-s", "-S", str(PROGRAM), *arguments]
    ended = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, message in ended.stderr) == (1, True), ended.stderr


def by_torchrun(rank: int, ranks: int) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1"}


def by_mpirun(rank: int, ranks: int) -> dict[str, str]:
    names = {"RANK": rank, "SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_SIZE": ranks}
    return {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in names.items()}


def by_srun(rank: int, ranks: int) -> dict[str, str]:
    return {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(ranks), "SLURM_LOCALID": str(rank), "SLURM_STEP_NODELIST": "localhost"}


def together(launcher: Any, ranks: int, *command: str) -> str:
    """Starts the ranks as that launcher (for which its variables stand in) would; what rank 0 printed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMI_"))}
    common = {**kept, "MASTER_PORT": port, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": str(PROGRAM.parent)}
    run = [sys.executable, *command]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    started = [subprocess.Popen(run, env={**common, **launcher(rank, ranks)}, **pipes) for rank in range(ranks)]
    try:
        texts = [process.communicate(timeout=240)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * ranks, texts
    return str(texts[0])


@needs_torch
@pytest.mark.parametrize(
    ("launcher", "delayed"), [(by_torchrun, 2), (by_mpirun, 0), (by_srun, None)], ids=["torchrun", "mpirun", "srun, nobody late"]
)
def test_four_processes(tmp_path: Path, launcher: Any, delayed: int | None) -> None:
    output = tmp_path / "result.json"
    late = ["--delay-rank", str(delayed)] if delayed is not None else []
    reported = together(launcher, 4, str(PROGRAM), "--ranks", "4", "--end", "65536", "--iterations", "5", "--output", str(output), *late)
    result = json.loads(output.read_text())
    assert list(tmp_path.iterdir()) == [output]
    assert (result["schema"], result["backend"], result["ranks"], result["launch_hidden"]) == (1, "gloo", 4, None)
    assert sorted(pair["ranks"] for pair in result["p2p"]["pairs"]) == [list(pair) for pair in combinations(range(4), 2)]
    assert set(result["collectives"]) == set(job.COLLECTIVES)
    for rows in result["collectives"].values():
        assert [row["bytes"] for row in rows] == [1024, 4096, 16384, 65536]
        assert [(row["wrong"], row["usec"]["samples"]) for row in rows] == [(0, 5)] * 4
        for row in rows:  # also of a machine so busy that it moves kilobytes a second
            expected = measures.bandwidths("all_gather", row["bytes"], 4, row["usec"]["median"])
            assert row["algbw_gbytes"] == pytest.approx(expected[0], rel=1e-3)
            assert row["busbw_gbytes"] / row["algbw_gbytes"] in (pytest.approx(0.75, rel=1e-3), pytest.approx(1.5, rel=1e-3))
    named = result["skew"]["verdict"]["stragglers"]
    assert named == ([] if delayed is None else [delayed])
    assert f"stragglers: {named or 'none'}" in reported
    if delayed is not None:
        assert result["skew"]["ranks"][delayed]["late_usec"]["median"] > 15_000


@needs_torch
def test_clocks_of_one_host_agree_within_their_error(tmp_path: Path) -> None:
    worker = """
import json, os
from torch_straggler import job, place
job = job.Job(place.place(os.environ), "gloo", 60)
print(json.dumps([clock[1:] for clock in job.everybody(job.read_clocks())]))
job.dist.barrier(group=job.control)
job.dist.destroy_process_group()
"""
    read = json.loads(together(by_torchrun, 3, "-c", worker).splitlines()[-1])
    assert read[0] == [0, 0]
    assert all(abs(offset) <= error for offset, error in read), read


LOOP = """
import json, os, time
import torch, torch.distributed as dist
from torch_straggler import Times, timed_collective
dist.init_process_group("gloo")
reports = []
times = Times(every=30, tell=reports.append)
times.calibrate()
gradients = torch.ones(1000)
for step in range(60):
    time.sleep(0.02 if dist.get_rank() == 1 else 0)
    with timed_collective("gradients", times):
        dist.all_reduce(gradients)
    times.step()
print(json.dumps(reports))
dist.barrier()
dist.destroy_process_group()
"""


@needs_torch
def test_a_training_loop_names_its_late_rank() -> None:
    reports = json.loads(together(by_torchrun, 4, "-c", LOOP).splitlines()[-1])
    assert [report["step"] for report in reports] == [30, 60]
    for report in reports:
        assert [rank["usec"]["samples"] for rank in report["names"]["gradients"]["ranks"]] == [30] * 4
        assert report["names"]["gradients"]["waits"]["late"] == [1]
        assert report["lost"] == [0] * 4
        assert all(0 < usec < 1000 for usec in report["overhead_usec_per_call"])
