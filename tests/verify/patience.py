# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What takes its time on machines is waited for, and not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float, what: str, *, pause: float = 0.2) -> None:
    """Returns once the condition holds. Fails, naming what was waited for, where it does not within these seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(pause)
