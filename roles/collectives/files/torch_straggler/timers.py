# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Timers of calls, on the host or with events on a GPU's stream."""

from __future__ import annotations

import importlib
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def load_torch() -> tuple[Any, Any]:
    """PyTorch and its distributed package, imported late because some modules work without them."""
    try:
        return importlib.import_module("torch"), importlib.import_module("torch.distributed")
    except ImportError as error:
        raise SystemExit(f"torch is not installed for {sys.executable} ({error}): pip install torch") from error


class Cpu:
    """A timer of calls that return when they are done."""

    hidden: bool | None = None

    def __init__(self) -> None:
        self.torch, self.dist = load_torch()
        self.device = self.torch.device("cpu")

    def mark(self) -> Any:
        """Nanoseconds of a clock that is not slewed during the measurement."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)

    def usec(self, before: Any, after: Any) -> float:
        return float(after - before) / 1e3

    def done(self, mark: Any) -> bool:
        return bool(mark)

    def finish(self) -> None:
        """Do nothing, because the work is done when a call returns."""

    def lead(self, operation: Callable[[], Any], count: int) -> None:  # noqa: ARG002
        """Align the ranks with an uncounted call. If calls are queued, hold the queue until it has count calls."""
        operation()

    def spans(self, operation: Callable[[], Any], count: int = 1, lead: bool = True) -> list[float]:
        """The microseconds of each of count consecutive calls."""
        if lead:
            self.lead(operation, count)
        marks = [self.mark()]
        for _each in range(count):
            operation()
            marks.append(self.mark())
        if lead and self.hidden is not None:
            self.hidden = self.hidden and not self.done(marks[0])
        self.finish()
        return [self.usec(marks[at], marks[at + 1]) for at in range(count)]


class Gpu(Cpu):
    """A timer with events on the stream, which excludes the cost of launching while the queue is held. hidden: whether every series was
    queued completely before its first call began."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.hidden = True
        self.device = self.torch.device("cuda", index)
        self.torch.cuda.set_device(index)

    def mark(self) -> Any:
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def usec(self, before: Any, after: Any) -> float:
        return float(before.elapsed_time(after)) * 1e3

    def done(self, mark: Any) -> bool:
        return bool(mark.query())

    def finish(self) -> None:
        self.torch.cuda.synchronize()

    def lead(self, operation: Callable[[], Any], count: int) -> None:
        operation()
        self.finish()
        before = time.monotonic_ns()
        operation()
        launch_ns = time.monotonic_ns() - before
        self.finish()
        # Cycles at about 2 GHz. _sleep is private to PyTorch, which uses it in its own tests. If it is missing, `hidden` shows whether the
        # queue ran empty.
        if hasattr(self.torch.cuda, "_sleep"):
            self.torch.cuda._sleep(2 * min(max(2 * launch_ns * (count + 2), 1_000_000), 500_000_000))
        operation()
