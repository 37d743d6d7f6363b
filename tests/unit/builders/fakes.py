# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-ins for the readers of a host: they know in advance what will be asked and fail on anything else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import CommandError, Completed

Call = tuple[Sequence[str], int, str, str]


class FakeRunner:
    """A Runner that plays a script of (argv, rc, stdout, stderr) in order.

    Give it every command that the code under test is to run. A different command, or one too many, fails at once; a command of the script
    that was not run fails the test at its end (tests/conftest.py).
    """

    made: ClassVar[list[FakeRunner]] = []

    def __init__(self, calls: Iterable[Call]) -> None:
        self.made.append(self)
        self._calls = [Completed(tuple(argv), rc, stdout, stderr) for argv, rc, stdout, stderr in calls]
        self.ran: list[tuple[str, ...]] = []
        self.timeouts_seconds: list[float] = []

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        """Return the next scripted result if argv is exactly the next scripted command."""
        assert not isinstance(argv, str), f"a command is a list of arguments, got the string {argv!r}"
        position = len(self.ran)
        assert position < len(self._calls), f"no further command was expected, got {list(argv)}"
        expected = self._calls[position]
        assert tuple(argv) == expected.argv, f"call {position + 1}: got {list(argv)}, expected {list(expected.argv)}"
        self.ran.append(tuple(argv))
        self.timeouts_seconds.append(timeout_seconds)
        return expected

    def assert_done(self) -> None:
        """Fail when part of the script was never run."""
        left = [list(call.argv) for call in self._calls[len(self.ran) :]]
        assert not left, f"these expected commands were not run: {left}"


class Without(FakeRunner):
    """A FakeRunner of a host that lacks some tools."""

    def __init__(self, missing: Sequence[str], calls: list[Call]) -> None:
        super().__init__(calls)
        self.missing = missing

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        if argv[0] in self.missing:
            raise CommandError(f"command not found: {argv[0]} (wanted to run {' '.join(argv)})")
        return super().run(argv, timeout_seconds=timeout_seconds)


class SilentPort:
    """An EthtoolPort whose drivers report nothing."""

    def drvinfo(self, name: str) -> None:
        """Nothing."""

    link = rings = pause = statistics = timestamping = drvinfo

    def has_module(self, name: str) -> bool:
        return False

    def failed(self, name: str) -> dict[str, str]:
        return {}
