# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times of a stream that works behind the host: a stand-in for a GPU's."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from roles.collectives.files.torch_straggler import timers, training


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
def test_launches_are_not_in_the_times_or_it_is_reported(monkeypatch: pytest.MonkeyPatch, holds: bool, usec: float) -> None:
    stream = Stream(holds=holds)
    monkeypatch.setattr(timers, "load_torch", lambda: (stream, None))
    monkeypatch.setattr(timers, "time", SimpleNamespace(monotonic_ns=lambda: stream.host_ns))
    timer = timers.Gpu(0)
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
    names["all_gather_object"] = lambda found, own, group: gather(own, found, group)
    return SimpleNamespace(get_rank=lambda: 0, get_world_size=lambda: 1, **names)


def test_a_loop_s_times_are_taken_when_they_are_through_and_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(holds=True)
    for module in (timers, training):
        monkeypatch.setattr(module, "load_torch", lambda: (stream, alone(stream)))
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: stream.host_ns))
    reported: list[Any] = []
    times = training.Times(every=2, keep=5, tell=reported.append)
    stream.hold(400_000)
    for _call in range(8):
        with training.timed_collective("gradients", times):
            stream.launch()
    assert times.step() is None
    assert (len(times.pending), times.kept, stream.host_ns) == (8, {}, 64_000), "the stream is held, and the host went on"
    stream.synchronize()
    report = times.step()
    assert reported == [report]
    assert report is not None
    # Of eight times the last five are kept.
    assert report["names"]["gradients"]["ranks"] == [{"rank": 0, "usec": {"samples": 5, "median": 3.0, "p95": 3.0, "max": 3.0}}]
    assert (report["lost"], len(times.pending), sum(map(len, times.kept.values()))) == ([0], 0, 0)
    stream.hold(2_000_000_000)
    for _call in range(30):
        with training.timed_collective("gradients", times):
            stream.launch()
    assert (len(times.pending), times.lost) == (20, 10), "no more than 4 keep are under way"


def test_a_rank_that_runs_ahead_of_its_gpu_is_compared_at_the_next_meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(holds=True)
    both = alone(stream)
    others: list[Any] = []

    def gather(own: Any, found: list[Any], group: Any) -> None:
        found[:] = [own, others.pop(0)]

    both.get_world_size, both.gather_object = lambda: 2, gather
    both.all_gather_object = lambda found, own, group: gather(own, found, group)
    for module in (timers, training):
        monkeypatch.setattr(module, "load_torch", lambda: (stream, both))
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: stream.host_ns))
    reported: list[Any] = []
    times = training.Times(every=1, tell=reported.append)
    stream.hold(1_000_000)
    for reached, through in ((3, {}), (4, dict.fromkeys((1, 2, 3), 1.0))):
        for _call in range(3):
            with training.timed_collective("gradients", times):
                stream.launch()
        others += [{"gradients": reached}, {"times": {"gradients": through}, "lost": 0, "ns": 0.0}]
        times.step()
        stream.synchronize()
    # The host had made three calls when none was through; the second time five are, and on the other rank four.
    assert [each["names"].keys() for each in reported] == [{}.keys(), {"gradients": 0}.keys()]
    assert [rank["usec"]["samples"] for rank in reported[1]["names"]["gradients"]["ranks"]] == [3, 3]
    assert [number for number, _usec in times.kept["gradients"]] == [5]


def test_without_torch_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit, match="torch is not installed"):
        timers.load_torch()


def test_window_compares_the_calls_that_all_have() -> None:
    times = [{"grad": dict.fromkeys(range(rank, 60), 100.0 + 20 * (rank != 1))} for rank in range(4)]
    found = [{"times": one, "lost": rank, "ns": 1500.0} for rank, one in enumerate(times)]
    reported = training.window(found, 1.0)
    assert [rank["usec"]["samples"] for rank in reported["names"]["grad"]["ranks"]] == [57] * 4
    assert reported["names"]["grad"]["waits"]["late"] == [1], "who waits least came last"
    assert (reported["lost"], reported["overhead_usec_per_call"]) == ([0, 1, 2, 3], [1.5] * 4)
    assert training.window(found, None)["names"]["grad"]["waits"] is None, "not calibrated"
    apart = [{"times": {"grad": {rank: 1.0}}, "lost": 0, "ns": 0.0} for rank in range(2)]
    assert training.window(apart, 1.0)["names"] == {}
    assert training.window([{"times": {}, "lost": 0, "ns": 0.0}] * 2, 1.0)["names"] == {}
