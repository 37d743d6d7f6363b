# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pair runner as a transient systemd unit of a host: started, looked at, collected, removed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils import _pair_runner
from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._files import own_source

PAIRS_FOLDER = Path("/run/rdma-cluster/pairs")
POLL_SECONDS = 1.0
STOP_TIMEOUT_SECONDS = 120.0
_PREFIX, _SUFFIX = "rdma-pairs-", ".service"
_RUNNING = ("active", "activating", "reloading", "deactivating")
_NOT_RUNNING = ("inactive", "failed", "unknown")


class SweepError(RuntimeError):
    """A sweep cannot be started, collected or removed; the message says what to do."""


@dataclass(frozen=True)
class Collected:
    """What a host has of a sweep.

    results: the runner's records, one for each rail and round. finished: the runner came to its end, so they are complete.
    reason: why it is not finished; "" if it is.
    """

    running: bool
    finished: bool
    results: list[dict[str, Any]]
    reason: str


def parse_list_units(text: str) -> dict[str, str]:
    """Parse the output of `systemctl list-units --plain --no-legend`: the unit's name and its active state."""
    units = {}
    for line in text.splitlines():
        cells = line.lstrip("●* ").split()
        if cells:
            if len(cells) < 4:
                raise ParseError(f"not a line of systemctl list-units: {line!r}")
            units[cells[0]] = cells[2]
    return units


def parse_results(text: str) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Parse a results file of the pair runner: its records, and its last line if the runner wrote one.

    A line that is still being written is left out. Raises ParseError.
    """
    records: list[dict[str, Any]] = []
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            try:
                records.append(dict(json.loads(line)))
            except (ValueError, TypeError) as exc:
                raise ParseError(f"not a record of the pair runner: {line[:200]!r}") from exc
    if records and "finished" in records[-1]:
        return records[:-1], records[-1]
    return records, None


class PairUnit:
    """One sweep on this host."""

    def __init__(
        self,
        sweep: str,
        runner: Runner,
        *,
        folder: Path = PAIRS_FOLDER,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if re.fullmatch(r"[A-Za-z0-9-]+", sweep) is None:
            raise SweepError(f"the name of a sweep has letters, digits and hyphens, got {sweep!r}")
        self.sweep = sweep
        self.unit = f"{_PREFIX}{sweep}{_SUFFIX}"
        self.folder = folder / sweep
        self._runner, self._sleep, self._clock = runner, sleep, clock

    def start(self, plan: dict[str, Any], token: str, host: str, *, python: str, runtime_max_seconds: int, check_mode: bool) -> bool:
        """Start the runner unless this sweep runs or has ended here already. Returns whether it was (or would be) started.

        Raises SweepError while another sweep runs, and when the unit does not start.
        """
        if host not in plan.get("hosts", []) or plan.get("sweep") != self.sweep:
            raise SweepError(f"the plan is of sweep {plan.get('sweep')!r} and has to be of {self.sweep!r}, with the host {host!r}")
        with self._alone(check_mode):
            if self._adopts():
                return False
            if not check_mode:
                self._write(plan, token)
                self._launch(host, python, runtime_max_seconds)
        return True

    def collect(self, wait_seconds: float, check_mode: bool) -> Collected:
        """Wait for the end of the unit, at most wait_seconds, and return what there is. A finished sweep is then removed.

        Raises SweepError when this host knows nothing of the sweep; in check mode that is an empty result.
        """
        deadline = self._clock() + wait_seconds
        while (running := self._runs()) and not check_mode and self._clock() < deadline:
            self._sleep(min(POLL_SECONDS, deadline - self._clock()))
        if not self.folder.is_dir() and not running:
            message = f"there is no sweep {self.sweep} on this host: it was never started, or is collected already"
            if check_mode:
                return Collected(running=False, finished=False, results=[], reason=message)
            raise SweepError(message)
        results, last = self._results()
        finished = not running and last is not None and last["finished"] is True
        if finished and not check_mode:
            shutil.rmtree(self.folder)
        return Collected(running, finished, results, "" if finished else self._reason(running, last))

    def remove(self, check_mode: bool) -> bool:
        """Stop the unit and remove the sweep's files. Returns whether there was (and in check mode is) any of these."""
        running, present = self._runs(), self.folder.exists()
        if not check_mode:
            if running:
                self._run("systemctl", "stop", self.unit, timeout_seconds=STOP_TIMEOUT_SECONDS)
            if present:
                shutil.rmtree(self.folder)
        return running or present

    @contextlib.contextmanager
    def _alone(self, check_mode: bool) -> Iterator[None]:
        """Exclude a second start on this host. The lock is on the folder itself and leaves nothing behind."""
        if not check_mode:
            self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.folder.parent.is_dir():
            yield
            return
        descriptor = os.open(self.folder.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _adopts(self) -> bool:
        """Say whether this sweep runs or has ended here. Raises SweepError while another one runs."""
        text = self._run("systemctl", "list-units", "--all", "--full", "--plain", "--no-legend", f"{_PREFIX}*{_SUFFIX}")
        running = [name for name, state in parse_list_units(text).items() if state in _RUNNING]
        others = [name[len(_PREFIX) : -len(_SUFFIX)] for name in running if name != self.unit]
        if others:
            raise SweepError(f"another sweep runs on this host: {', '.join(others)}. Wait for its end, or end it with state=absent.")
        return self.unit in running or self._results()[1] is not None

    def _write(self, plan: dict[str, Any], token: str) -> None:
        if self.folder.exists():
            shutil.rmtree(self.folder)  # of a runner that was killed
        self.folder.mkdir(mode=0o700)
        files = {
            "runner.py": own_source(_pair_runner).encode(),
            "plan.json": json.dumps(plan, sort_keys=True).encode(),
            "token": token.encode(),
        }
        for name, content in files.items():
            with open(os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)

    def _launch(self, host: str, python: str, runtime_max_seconds: int) -> None:
        properties = ("Type=exec", "LimitMEMLOCK=infinity", f"RuntimeMaxSec={runtime_max_seconds}")
        plan, token, results = (str(self.folder / name) for name in ("plan.json", "token", "results.jsonl"))
        command = (python, str(self.folder / "runner.py"), "--plan", plan, "--token-file", token, "--host", host, "--results", results)
        try:
            self._run("systemd-run", f"--unit={self.unit}", "--collect", *(f"--property={each}" for each in properties), *command)
        except BaseException:
            shutil.rmtree(self.folder)
            raise

    def _runs(self) -> bool:
        completed = self._runner.run(["systemctl", "is-active", self.unit], timeout_seconds=30.0)
        state = completed.stdout.strip()
        if state not in _RUNNING + _NOT_RUNNING:
            raise SweepError(f"systemctl is-active {self.unit} does not tell a state: {(completed.stderr or state).strip()!r}")
        return state in _RUNNING

    def _results(self) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        try:
            return parse_results((self.folder / "results.jsonl").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return [], None

    def _reason(self, running: bool, last: dict[str, Any] | None) -> str:
        if running:
            return "the sweep still runs"
        if last is not None:
            return f"the pair runner was stopped: {last['reason']}"
        return f"the pair runner ended without a last word; `journalctl --unit {self.unit}` on this host may have one"

    def _run(self, *argv: str, timeout_seconds: float = 30.0) -> str:
        completed = self._runner.run(list(argv), timeout_seconds=timeout_seconds)
        if completed.rc != 0:
            raise SweepError(f"{' '.join(argv[:2])} failed with exit code {completed.rc}: {completed.stderr.strip()}")
        return completed.stdout
