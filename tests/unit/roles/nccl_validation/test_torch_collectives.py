# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The PyTorch program: its thinking without PyTorch, and where that is installed itself, with four processes over gloo."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import random
import socket
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from roles.nccl_validation.files import torch_collectives as program

PROGRAM = Path(program.__file__)
SLURM_JOB = {"SLURM_PROCID": "0", "SLURM_NTASKS": "16", "SLURM_JOB_NODELIST": "gpu[03-04]"}
SLURM_STEP = {**SLURM_JOB, "SLURM_PROCID": "9", "SLURM_STEP_NUM_TASKS": "16", "SLURM_LOCALID": "1", "SLURM_STEP_NODELIST": "gpu[03-04]"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "2", "MASTER_ADDR": "node1"}
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({**SLURM_STEP, **TORCHRUN}, ("torchrun", 5, 8, 2, "node1"), id="torchrun under srun"),
        pytest.param(SLURM_STEP, ("Slurm", 9, 16, 1, "gpu03"), id="srun"),
        pytest.param({**SLURM_STEP, "MASTER_ADDR": "ib1"}, ("Slurm", 9, 16, 1, "ib1"), id="srun, another address"),
        pytest.param({**SLURM_JOB, **OPEN_MPI}, ("Open MPI", 3, 4, 1, None), id="mpirun within a Slurm job"),
        pytest.param({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, ("Open MPI", 3, 4, 1, "127.0.0.1"), id="mpirun on one host"),
        pytest.param({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, ("Open MPI", 3, 4, 1, None), id="mpirun on two hosts"),
        pytest.param({**SLURM_STEP, "PMI_RANK": "7", "PMI_SIZE": "8", "MPI_LOCALRANKID": "3"}, ("PMI", 7, 8, 3, "gpu03"), id="hydra"),
        pytest.param({**SLURM_STEP, "PMI_RANK": "9", "PMI_SIZE": "16"}, ("PMI", 9, 16, 1, "gpu03"), id="srun --mpi=pmi2"),
    ],
)
def test_place_is_read_from_what_the_launcher_sets(environment: dict[str, str], expected: tuple[Any, ...]) -> None:
    assert tuple(program.place(environment)) == expected


@pytest.mark.parametrize("environment", [{}, SLURM_JOB], ids=["by hand", "a batch script without srun"])
def test_nobody_is_rank_0_of_nothing(environment: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="torchrun, srun or mpirun"):
        program.place(environment)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("node1", "node1"), ("node1,node2", "node1"), ("gpu[03-04,07],login", "gpu03"), ("gpu[7,9]", "gpu7"), ("r[1-2]n[3-4],x", "r1n3")],
)
def test_first_host_of_a_node_list(nodes: str, first: str) -> None:
    assert program.first_host(nodes) == first


def test_percentiles_are_values_however_few() -> None:
    for count in range(1, 200):
        values = [float(number) for number in range(count)]
        assert program.percentile(values, 95) == values[math.ceil(0.95 * count) - 1]
        assert (program.percentile(values, 0), program.percentile(values, 100)) == (values[0], values[-1])
    assert program.summary([3.0]) == {"samples": 1, "median": 3.0, "p95": 3.0, "max": 3.0}


def test_bandwidths_of_a_gigabyte_in_ten_milliseconds() -> None:
    assert program.bandwidths("all_reduce", 10**9, 16, 10_000) == (100.0, pytest.approx(187.5))
    for collective in ("all_gather", "reduce_scatter", "all_to_all"):
        assert program.bandwidths(collective, 10**9, 16, 10_000) == (100.0, pytest.approx(93.75))


@pytest.mark.parametrize("ranks", range(2, 18))
def test_each_pair_meets_once(ranks: int) -> None:
    met = []
    for turn in range(ranks + ranks % 2 - 1):
        others = [program.partner(rank, ranks, turn) for rank in range(ranks)]
        assert others.count(None) == ranks % 2
        assert all(others[other] == rank != other for rank, other in enumerate(others) if other is not None)
        met += [(rank, other) for rank, other in enumerate(others) if other is not None and rank < other]
    assert sorted(met) == list(combinations(range(ranks), 2))


@pytest.mark.parametrize(
    ("lateness", "error", "late"),
    [
        pytest.param([0, 20, 1, 2], 5, [1], id="one"),
        pytest.param([0, 20, 1, 2], 18, [], id="within the error and what the rest differ"),
        pytest.param([0, 25, 8, 16], 0, [], id="the rest differ as much"),
        pytest.param([20, 0, 1, 26], 5, [0, 3], id="two of four, as of one host"),
        pytest.param([20, 0, 21, 22], 5, [], id="one is early"),
        pytest.param([0, 7], 5, [1], id="one of two"),
        pytest.param([5, 5, 5], 0, [], id="all at once"),
    ],
)
def test_late_is_who_stands_apart(lateness: list[float], error: float, late: list[int]) -> None:
    assert program.late_group(lateness, error) == late


def test_chance_is_the_tail_of_the_binomial_distribution() -> None:
    assert program.chance(3, 0, 0.25) == pytest.approx(1)
    assert program.chance(3, 2, 0.25) == pytest.approx(3 * 0.25**2 * 0.75 + 0.25**3)
    assert program.chance(1000, 1000, 0.5) == pytest.approx(0.5**1000)


def noise(chosen: random.Random, steps: int, ranks: int) -> list[list[float]]:
    return [[chosen.expovariate(1.0) ** 2 for _rank in range(ranks)] for _step in range(steps)]


@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 64])
def test_among_equals_hardly_anybody_is_named(ranks: int) -> None:
    """Lateness of heavy tails, 200 runs of 60 steps: 0.2 of them may name somebody at a chance of 0.001."""
    chosen = random.Random(ranks)
    assert sum(bool(program.judge(noise(chosen, 60, ranks), 0, 1e-3)["late"]) for _run in range(200)) <= 1


@pytest.mark.parametrize("ranks", [2, 4, 8, 64])
def test_late_in_each_step_is_named(ranks: int) -> None:
    chosen = random.Random(ranks)
    rows = [[one + 200 * (rank == 1) for rank, one in enumerate(row)] for row in noise(chosen, 60, ranks)]
    assert program.judge(rows, 1, 1e-3)["late"] == [1]
    assert program.judge(rows, 1e6, 1e-3)["late"] == [], "not beyond the error"


def test_late_in_one_half_of_the_run_alone_is_not_named() -> None:
    rows = [[0.0, 0.1, 0.2, 50.0 * (step < 40)] for step in range(60)]
    found = program.judge(rows, 1, 1e-3)
    assert (found["late"], found["late_steps"], found["enough_steps"]) == ([], [0, 0, 0, 40], True)


def test_few_steps_name_nobody_and_say_so() -> None:
    rows = [[0.0, 0.1, 0.2, 50.0]] * 5
    found = program.judge(rows, 1, 1e-3)
    assert (found["late"], found["enough_steps"]) == ([], False)
    assert program.verdict({"clocks": found, "waits": found})["reason"] == "too few steps to tell"


def way(*late: int) -> dict[str, Any]:
    return {"late": list(late), "enough_steps": True}


@pytest.mark.parametrize(
    ("clocks", "waits", "stragglers", "by"),
    [
        ((), (), [], []),
        ((2,), (2,), [2], ["clocks", "waits"]),
        ((2,), (), [2], ["clocks"]),
        ((), (1,), [1], ["waits"]),
        ((2,), (1,), [], []),
        ((1, 2), (2,), [2], ["clocks", "waits"]),
    ],
)
def test_verdict(clocks: tuple[int, ...], waits: tuple[int, ...], stragglers: list[int], by: list[str]) -> None:
    found = program.verdict({"clocks": way(*clocks), "waits": way(*waits)})
    assert (found["stragglers"], found["by"]) == (stragglers, by)
    assert found["reason"].startswith("contradiction") == (clocks == (2,) and waits == (1,))


DRIFTS = (0, 40e-6, -15e-6, 3e-6)  # of each rank's clock against rank 0's
OFFSETS = (0, 5_000_000_000, -7_000_000_000_000, 123_456_789)
ROUND_TRIPS = (0, 100_000, 60_000, 80_000)


def stamp(rank: int, true_ns: float) -> int:
    return round(true_ns * (1 + DRIFTS[rank]) - OFFSETS[rank])


def reading(rank: int, true_ns: int) -> tuple[int, int, int]:
    """As it comes out where rank 0 answered as late within the exchange as half the round trip allows, less a fifth."""
    return stamp(rank, true_ns), true_ns - stamp(rank, true_ns) + round(0.4 * ROUND_TRIPS[rank]), ROUND_TRIPS[rank] // 2


def a_run(late_ns: dict[int, int], steps: int = 60) -> tuple[list[Any], list[Any]]:
    """Steps of 50 ms: all leave at once, work 3 ms and some noise, the late ones longer, and go on when the last has come."""
    chosen = random.Random(1)
    rows: list[Any] = [[] for _rank in range(4)]
    for step in range(steps):
        start = 10**9 + step * 50_000_000
        came = [start + 3_000_000 + chosen.randrange(20_000) + late_ns.get(rank, 0) for rank in range(4)]
        for rank, at in enumerate(came):
            rows[rank].append((stamp(rank, start), stamp(rank, at), 30_000 + chosen.randrange(2_000), max(came) + 30_000 - at))
    return rows, [(reading(rank, 10**9), reading(rank, 10**9 + steps * 50_000_000)) for rank in range(4)]


def test_the_late_rank_is_found_through_clocks_that_differ_and_drift() -> None:
    found = program.skew(*a_run({2: 400_000}), 1e-3)
    assert found["verdict"] == {"stragglers": [2], "by": ["clocks", "waits"], "reason": "late in most steps"}
    assert found["clocks"]["error_usec"] == 90, "the two largest halves of a round trip"
    late = [row["late_usec"]["median"] for row in found["ranks"]]
    assert late[2] == pytest.approx(400, abs=90)
    assert max(late[0], late[1], late[3]) <= 90
    assert [row["clock_error_usec"] for row in found["ranks"]] == [0, 50, 30, 40]
    # The time within the collective, taken for how slow a rank is, would name the three others.
    waited = [row["waited_usec"]["median"] for row in found["ranks"]]
    assert waited[2] == 0
    assert min(waited[0], waited[1], waited[3]) > 350
    assert found["ranks"][2]["work_usec"]["median"] == pytest.approx(3410, abs=20)


def test_nobody_is_late_for_a_clock_that_is_wrong_within_its_error() -> None:
    found = program.skew(*a_run({}), 1e-3)
    assert found["verdict"] == {"stragglers": [], "by": [], "reason": "nobody stands apart from the rest"}


def test_what_is_late_by_less_than_clocks_can_tell_is_found_by_waits() -> None:
    found = program.skew(*a_run({3: 60_000}), 1e-3)
    assert found["clocks"]["late"] == []
    assert found["verdict"]["stragglers"] == [3]
    assert found["verdict"]["by"] == ["waits"]


def member(rank: int, host: str, uuid: str | None) -> dict[str, Any]:
    return {"rank": rank, "host": host, "uuid": uuid}


def test_backend_is_chosen_by_all_ranks() -> None:
    own = [member(0, "node1", "a"), member(1, "node1", "b"), member(2, "node2", "a")]
    none = [member(0, "node1", None), member(1, "node2", None)]
    assert program.chosen_backend(own, "auto") == "nccl"
    assert program.chosen_backend(own, "gloo") == "gloo"
    assert program.chosen_backend(none, "auto") == "gloo"
    with pytest.raises(SystemExit, match=r"ranks \[0, 1\]"):
        program.chosen_backend(none, "nccl")
    with pytest.raises(SystemExit, match=r"ranks \[3\]"):
        program.chosen_backend([*own, member(3, "node2", None)], "auto")
    with pytest.raises(SystemExit, match=r"several ranks on one GPU: \[\('node1', 'b'\)\]"):
        program.chosen_backend([*own, member(3, "node1", "b")], "auto")


def test_window_compares_the_calls_that_all_have() -> None:
    times = [{"grad": dict.fromkeys(range(rank, 60), 100.0 + 20 * (rank != 1))} for rank in range(4)]
    found = [{"times": one, "lost": rank, "ns": 1500.0} for rank, one in enumerate(times)]
    told = program.window(found, 1.0)
    assert [rank["usec"]["samples"] for rank in told["names"]["grad"]["ranks"]] == [57] * 4
    assert told["names"]["grad"]["waits"]["late"] == [1], "who waits least came last"
    assert (told["lost"], told["overhead_usec_per_call"]) == ([0, 1, 2, 3], [1.5] * 4)
    assert program.window(found, None)["names"]["grad"]["waits"] is None, "not calibrated"
    apart = [{"times": {"grad": {rank: 1.0}}, "lost": 0, "ns": 0.0} for rank in range(2)]
    assert program.window(apart, 1.0)["names"] == {}
    assert program.window([{"times": {}, "lost": 0, "ns": 0.0}] * 2, 1.0)["names"] == {}


def test_sizes_hold_a_number_for_each_rank() -> None:
    assert program.sizes(1024, 2**20, 4, 8) == [1024, 4096, 16384, 65536, 262144, 1048576]
    assert program.sizes(4, 5000, 10, 512) == [2048]


@pytest.mark.parametrize("arguments", [["--factor", "1"], ["--iterations", "0"], ["--steps", "1001"], ["--begin", "2e9"]])
def test_options_that_cannot_be(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.options(arguments)
    assert "--steps to 1000" in capsys.readouterr().err


class Stream:
    """A stand-in for PyTorch with one GPU whose stream works behind the host: each launch costs the host 8 us and the GPU 3."""

    def __init__(self, *, holds: bool) -> None:
        self.host_ns = self.free_ns = 0
        self.cuda = SimpleNamespace(set_device=lambda index: None, synchronize=self.synchronize, Event=lambda **_kind: Event(self))
        if holds:
            self.cuda._sleep = self.hold

    def device(self, *name: Any) -> tuple[Any, ...]:
        return name

    def synchronize(self) -> None:
        self.host_ns = max(self.host_ns, self.free_ns)

    def hold(self, cycles: int) -> None:
        self.free_ns = max(self.host_ns, self.free_ns) + cycles // 2

    def launch(self) -> None:
        self.host_ns += 8000
        self.free_ns = max(self.host_ns, self.free_ns) + 3000


class Event:
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.at_ns = 0

    def record(self) -> None:
        self.at_ns = max(self.stream.host_ns, self.stream.free_ns)

    def query(self) -> bool:
        return self.at_ns <= self.stream.host_ns

    def elapsed_time(self, other: Event) -> float:
        return (other.at_ns - self.at_ns) / 1e6


@pytest.mark.parametrize(("holds", "usec"), [(True, 3.0), (False, 8.0)], ids=["queue held", "queue not held"])
def test_launches_are_not_in_the_times_or_it_is_told(monkeypatch: pytest.MonkeyPatch, holds: bool, usec: float) -> None:
    stream = Stream(holds=holds)
    monkeypatch.setattr(program, "load_torch", lambda: (stream, None))
    monkeypatch.setattr(program, "time", SimpleNamespace(monotonic_ns=lambda: stream.host_ns))
    timer = program.Gpu(0)
    assert timer.spans(stream.launch, 50) == pytest.approx([usec] * 50)
    assert timer.hidden is holds
    assert timer.spans(stream.launch, lead=False) == pytest.approx([11.0])
    assert timer.hidden is holds


def alone(stream: Stream) -> SimpleNamespace:
    """A stand-in for torch.distributed with one rank."""
    stream.cuda.is_available, stream.cuda.current_device = lambda: True, lambda: 0

    def gather(own: Any, found: list[Any], group: Any) -> None:
        found[0] = own

    names: dict[str, Any] = {"get_backend": lambda: "nccl", "new_group": lambda backend: backend, "gather_object": gather}
    return SimpleNamespace(get_rank=lambda: 0, get_world_size=lambda: 1, **names)


def test_a_loop_s_times_are_taken_when_they_are_through_and_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(holds=True)
    monkeypatch.setattr(program, "load_torch", lambda: (stream, alone(stream)))
    monkeypatch.setattr(program, "time", SimpleNamespace(monotonic_ns=lambda: stream.host_ns))
    told: list[Any] = []
    times = program.Times(every=2, keep=5, tell=told.append)
    stream.hold(400_000)
    for _call in range(8):
        with program.timed_collective("gradients", times):
            stream.launch()
    assert times.step() is None
    assert (len(times.pending), times.kept, stream.host_ns) == (8, {}, 64_000), "the stream is held, and the host went on"
    stream.synchronize()
    report = times.step()
    assert told == [report]
    assert report is not None
    # Of eight times the last five are kept.
    assert report["names"]["gradients"]["ranks"] == [{"rank": 0, "usec": {"samples": 5, "median": 3.0, "p95": 3.0, "max": 3.0}}]
    assert (report["lost"], len(times.pending), times.kept) == ([0], 0, {})
    stream.hold(2_000_000_000)
    for _call in range(30):
        with program.timed_collective("gradients", times):
            stream.launch()
    assert (len(times.pending), times.lost) == (20, 10), "no more than 4 keep are under way"


def test_without_torch_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit, match="torch is not installed"):
        program.load_torch()


@pytest.mark.parametrize(
    ("environment", "arguments", "message"),
    [
        ({}, [], "torchrun, srun or mpirun"),
        ({"RANK": "0", "WORLD_SIZE": "1"}, [], "1 ranks by torchrun, expected two at least"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, ["--ranks", "16"], "4 ranks by Open MPI, expected 16"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, [], "Open MPI does not tell where rank 0 is"),
    ],
)
def test_a_start_that_cannot_measure_is_refused(environment: dict[str, str], arguments: list[str], message: str) -> None:
    # By the interpreter's own libraries alone: it is refused before PyTorch is looked for.
    run = [sys.executable, "-I", "-S", str(PROGRAM), *arguments]
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
    told = together(launcher, 4, str(PROGRAM), "--ranks", "4", "--end", "65536", "--iterations", "5", "--output", str(output), *late)
    result = json.loads(output.read_text())
    assert list(tmp_path.iterdir()) == [output]
    assert (result["schema"], result["backend"], result["ranks"], result["launch_hidden"]) == (1, "gloo", 4, None)
    assert sorted(pair["ranks"] for pair in result["p2p"]["pairs"]) == [list(pair) for pair in combinations(range(4), 2)]
    assert set(result["collectives"]) == set(program.COLLECTIVES)
    for rows in result["collectives"].values():
        assert [row["bytes"] for row in rows] == [1024, 4096, 16384, 65536]
        assert [(row["wrong"], row["usec"]["samples"]) for row in rows] == [(0, 5)] * 4
        for row in rows:  # also of a machine so busy that it moves kilobytes a second
            expected = program.bandwidths("all_gather", row["bytes"], 4, row["usec"]["median"])
            assert row["algbw_gbytes"] == pytest.approx(expected[0], rel=1e-3)
            assert row["busbw_gbytes"] / row["algbw_gbytes"] in (pytest.approx(0.75, rel=1e-3), pytest.approx(1.5, rel=1e-3))
    named = result["skew"]["verdict"]["stragglers"]
    assert named == ([] if delayed is None else [delayed])
    assert f"stragglers: {named or 'none'}" in told
    if delayed is not None:
        assert result["skew"]["ranks"][delayed]["late_usec"]["median"] > 15_000


@needs_torch
def test_clocks_of_one_host_agree_within_their_error(tmp_path: Path) -> None:
    worker = """
import torch_collectives as program, json, os
job = program.Job(program.place(os.environ), "gloo", 60)
print(json.dumps([clock[1:] for clock in job.everybody(job.read_clocks())]))
"""
    read = json.loads(together(by_torchrun, 3, "-c", worker).splitlines()[-1])
    assert read[0] == [0, 0]
    assert all(abs(offset) <= error for offset, error in read), read


LOOP = """
import json, os, time
import torch, torch.distributed as dist
from torch_collectives import Times, timed_collective
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
