# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A long build as a transient systemd unit of a host: started once, adopted by later calls with the same job, checked, collected.

systemd-run(1) and systemctl(1), systemd 240 to 257. The unit stays after its end until it is collected. A small state file next to its log
has the job and its end, so that a power cut can be distinguished from an end of the program.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitNow, read_unit, transient_command

#: The interval of systemd queries during the wait.
LOOK_SECONDS = 1.0
STOP_TIMEOUT_SECONDS = 150.0
NONE, RUNNING, ENDED, COLLECTED, LOST, OTHER = "none", "running", "ended", "collected", "lost", "other"


@dataclass(frozen=True)
class Job:
    """The program to run. key: identifies the same job for a second start; it goes through JSON.

    argv: the full path of the program, and its arguments. folder: of the state; directory: the working directory; log: the file for both
    its outputs. timeout_seconds: after that systemd stops it.
    """

    unit: str
    argv: Sequence[str]
    key: Mapping[str, Any]
    folder: Path
    directory: Path
    log: Path
    timeout_seconds: int


@dataclass(frozen=True)
class Look:
    """The state of a job.

    phase: "none" (never started), "running", "ended" (and not collected), "collected", "lost" (started, but there is neither a unit nor an
    end: the host went down meanwhile, or the unit was removed), "other" (another job runs in this unit).

    rc, result: as in UnitNow. seconds: since the start, or from start to end; None if unknown. argv: the program.
    """

    phase: str
    rc: int | None = None
    result: str = ""
    seconds: float | None = None
    argv: tuple[str, ...] = ()

    @property
    def running(self) -> bool:
        return self.phase == RUNNING


def boot_id() -> str:
    """Return the id of the running boot (random(4))."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


class BuildUnit:
    """One job on this host. now: seconds since 1970; clock: monotonic seconds."""

    def __init__(
        self,
        job: Job,
        runner: Runner,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.job = job
        self._state_file = job.folder / "state.json"
        self._runner, self._sleep, self._clock, self._now = runner, sleep, clock, now

    def look(self) -> Look:
        """Query systemd and the state. Raises ApplyError if systemd does not answer, and ParseError for another answer."""
        unit, state = self._unit(), self._state()
        argv = tuple(str(word) for word in state.get("argv") or ())
        same = state.get("key") == json.loads(json.dumps(dict(self.job.key)))
        if unit.running:
            return Look(RUNNING if same else OTHER, seconds=self._since(state), argv=argv)
        if not same:
            return Look(NONE)
        if state.get("rc") is not None or state.get("result"):
            return Look(COLLECTED, state["rc"], str(state.get("result") or ""), state.get("seconds"), argv)
        if unit.there:
            return Look(ENDED, unit.rc, unit.result, unit.seconds, argv)
        return Look(LOST, argv=argv)

    def wait(self, seconds: float) -> Look:
        """Wait for the end up to the limit, and return the state."""
        deadline = self._clock() + seconds
        look = self.look()
        while look.running and self._clock() < deadline:
            self._sleep(min(LOOK_SECONDS, max(0.0, deadline - self._clock())))
            look = self.look()
        return look

    def start(self) -> None:
        """Start the program, with a new log; the previous one is kept as LOG.1. The recorded end of another job is discarded.

        Raises ApplyError if a program runs in the unit, and if systemd cannot start it.
        """
        unit = self._unit()
        if unit.running:
            raise ApplyError(f"{self.job.unit} is already running: {' '.join(self._state().get('argv') or ['an unknown program'])}")
        self._forget(unit)
        if self.job.log.exists():
            os.replace(self.job.log, f"{self.job.log}.1")
        self._write({"key": dict(self.job.key), "argv": list(self.job.argv), "started": self._now(), "boot": boot_id(), "rc": None})
        try:
            run_checked(self._runner, *self._command())
        except BaseException:
            self._forget(self._unit())
            self._state_file.unlink()
            raise

    def collect(self, look: Look) -> None:
        """Record how it ended, and let systemd remove the unit."""
        if look.phase == ENDED:
            self._write({**self._state(), "rc": look.rc, "result": look.result or "unknown", "seconds": look.seconds, "ended": self._now()})
            self._forget(self._unit())

    def remember(self, failure: Mapping[str, Any] | None) -> None:
        """Record why it failed (meaning, lines), for later queries; None if it did not."""
        self._write({**self._state(), "failure": dict(failure) if failure is not None else None})

    def started(self) -> float:
        """Return when the job was started, in seconds since 1970; 0 if unknown."""
        return float(self._state().get("started") or 0)

    def rebooted(self) -> bool:
        """Return whether the host was rebooted since the start of the job."""
        return bool(self._state().get("boot") != boot_id())

    def _command(self) -> list[str]:
        properties = (
            *("RemainAfterExit=yes", f"RuntimeMaxSec={self.job.timeout_seconds}"),
            *(f"WorkingDirectory={self.job.directory}", f"StandardOutput=append:{self.job.log}", f"StandardError=append:{self.job.log}"),
        )
        environment = ("LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", "HOME=/root")
        # Started by env, so that under SELinux the program is an ordinary one of a service, wherever its file is. systemd replaces $NAME.
        words = [word.replace("$", "$$") for word in self.job.argv]
        command = ("/usr/bin/env", *words)
        return transient_command(self.job.unit, properties, command, options=["--quiet"], environment=environment)

    def _unit(self) -> UnitNow:
        return read_unit(self._runner, self.job.unit)

    def _forget(self, unit: UnitNow) -> None:
        if unit.there:
            word = "reset-failed" if unit.failed else "stop"
            run_checked(self._runner, "systemctl", word, self.job.unit, timeout_seconds=STOP_TIMEOUT_SECONDS)

    def _since(self, state: Mapping[str, Any]) -> float | None:
        started = state.get("started")
        return max(0.0, self._now() - started) if isinstance(started, (int, float)) else None

    def _state(self) -> dict[str, Any]:
        """Return the recorded state; empty for a file that a power cut has truncated."""
        try:
            state = json.loads(self._state_file.read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            return {}
        return state if isinstance(state, dict) else {}

    def _write(self, state: Mapping[str, Any]) -> None:
        self.job.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._state_file.with_name(".state.json.new")
        with open(new, "w", encoding="utf-8") as handle:
            json.dump(state, handle, indent=1, sort_keys=True)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(new, self._state_file)
