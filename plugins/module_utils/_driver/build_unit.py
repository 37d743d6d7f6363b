# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A long build as a transient systemd unit of a host: started once, adopted by whoever asks for the same, looked at, collected.

systemd-run(1) and systemctl(1), systemd 240 to 257. The unit stays after its end until it is collected; what it was and how it ended
is in a small file of state beside its log, so that an end by a power cut is known from one by the program.
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

#: How often systemd is asked while the end is waited for.
LOOK_SECONDS = 1.0
STOP_TIMEOUT_SECONDS = 150.0
NONE, RUNNING, ENDED, COLLECTED, LOST, OTHER = "none", "running", "ended", "collected", "lost", "other"


@dataclass(frozen=True)
class Job:
    """What is to be run. key: by what a second start knows that the same runs already; it goes through JSON.

    argv: the program by its whole path, and its arguments. folder: where the state is kept; directory: where the program is started;
    log: where both its outputs go. timeout_seconds: after that systemd ends it.
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
    """How far a job is. phase: "none" (never started), "running", "ended" (and not collected), "collected", "lost" (started, and neither
    a unit nor an end is there: the host went down meanwhile, or somebody removed the unit), "other" (another job runs in this unit).

    rc, result: as in UnitNow. seconds: since the start, or from start to end; None where that is not known. argv: what runs or ran.
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
    """The id of the running boot (random(4))."""
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
        """Ask systemd and the state. Raises ApplyError if systemd does not answer, and ParseError if it answers something else."""
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
        """Wait for the end, at most so long, and look."""
        deadline = self._clock() + seconds
        look = self.look()
        while look.running and self._clock() < deadline:
            self._sleep(min(LOOK_SECONDS, max(0.0, deadline - self._clock())))
            look = self.look()
        return look

    def start(self) -> None:
        """Start the program, with a new log; the one before is kept as LOG.1. What another job has left of its end is forgotten.

        Raises ApplyError if something runs in the unit, and if systemd cannot start it.
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
        """Write down how it ended, and let systemd forget the unit."""
        if look.phase == ENDED:
            self._write({**self._state(), "rc": look.rc, "result": look.result or "unknown", "seconds": look.seconds, "ended": self._now()})
            self._forget(self._unit())

    def remember(self, failure: Mapping[str, Any] | None) -> None:
        """Write down why it failed (meaning, lines), for whoever asks later; None if it did not."""
        self._write({**self._state(), "failure": dict(failure) if failure is not None else None})

    def started(self) -> float:
        """When the job was started, in seconds since 1970; 0 if that is not known."""
        return float(self._state().get("started") or 0)

    def rebooted(self) -> bool:
        """Whether the host was started again since the start of the job."""
        return bool(self._state().get("boot") != boot_id())

    def _command(self) -> list[str]:
        properties = (
            *("RemainAfterExit=yes", f"RuntimeMaxSec={self.job.timeout_seconds}"),
            *(f"WorkingDirectory={self.job.directory}", f"StandardOutput=append:{self.job.log}", f"StandardError=append:{self.job.log}"),
        )
        environment = ("LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", "HOME=/root")
        # By env, so that under SELinux the program is an ordinary one of a service, wherever its file lies. systemd replaces $NAME.
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
        """What was written; nothing of a file that a power cut has left half."""
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
