# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long calls take: on the host, or by events on a GPU's stream."""

from __future__ import annotations

import importlib
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def load_torch() -> tuple[Any, Any]:
    """What follows needs PyTorch, what stands above does not."""
    try:
        return importlib.import_module("torch"), importlib.import_module("torch.distributed")
    except ImportError as error:
        raise SystemExit(f"torch is not installed for {sys.executable} ({error}): pip install torch") from error


class Cpu:
    """Times calls that return when they are done."""

    hidden: bool | None = None

    def __init__(self) -> None:
        self.torch, self.dist = load_torch()
        self.device = self.torch.device("cpu")

    def mark(self) -> Any:
        """Nanoseconds of the clock that nothing slews while we measure."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)

    def usec(self, before: Any, after: Any) -> float:
        return float(after - before) / 1e3

    def done(self, mark: Any) -> bool:
        return bool(mark)

    def finish(self) -> None:
        """Nothing is under way when a call has returned."""

    def lead(self, operation: Callable[[], Any], count: int) -> None:  # noqa: ARG002
        """A call that is not counted brings the ranks together; where calls are queued, the queue is held until count of them are in it."""
        operation()

    def spans(self, operation: Callable[[], Any], count: int = 1, lead: bool = True) -> list[float]:
        """Microseconds of each of count calls, one behind the other."""
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
    """Times by events on the stream, so without the cost of launching where the queue is held; hidden tells whether all of every series
    was queued before the first began."""

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
        # Cycles at about 2 GHz; private to PyTorch, which tests itself with it. Without it `hidden` tells.
        if hasattr(self.torch.cuda, "_sleep"):
            self.torch.cuda._sleep(2 * min(max(2 * launch_ns * (count + 2), 1_000_000), 500_000_000))
        operation()
