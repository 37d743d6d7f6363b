# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pair runner as a transient systemd unit of a host: start it, collect its results, stop it, remove it."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.boot_service import HARDENING
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import ALIVE, alone, transient_command
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.counters import ReadCounters, places_of, read_live
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.files import Harvest, harvest, parse_plan, unpack_plan
from ansible_collections.rdma.cluster.plugins.module_utils._pairs.folder import PROGRAM, SweepFolder

PAIRS_FOLDER = Path("/run/rdma-cluster/pairs")
#: While waiting for the end: how often to look for the last word, and how often to ask systemd whether the runner is alive.
LOOK_SECONDS = 0.5
ASK_SECONDS = 5.0
STOP_TIMEOUT_SECONDS = 120.0
#: The runner stays root, because it owns its folder and must open the verbs devices on every distribution. It keeps only two capabilities:
#: to lock memory, and to probe partners by ICMP echo and ARP. Homes stay readable, because Python may be in one. Devices and writable code
#: stay allowed for verbs and CUDA.
SANDBOX = (
    "ProtectHome=read-only",
    "ProtectKernelTunables=yes",
    "CapabilityBoundingSet=CAP_IPC_LOCK CAP_NET_RAW",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET",
)
_PREFIX, _SUFFIX = "rdma-pairs-", ".service"
_NOT_RUNNING = ("inactive", "failed", "unknown")
_HOW_TO_END = (
    "Wait for its end, or end it with the playbook rdma.cluster.pairs_stop, which stops whichever sweep runs, "
    "or with rdma.cluster.perftest_rounds, its name as sweep, and state=absent."
)


class SweepError(RuntimeError):
    """A sweep cannot be started, collected or removed; the message says how to proceed."""


@dataclass(frozen=True)
class Collected:
    """The results of a sweep on a host, from a byte of its results file on.

    results: compact ones (_pair_result). next_byte: where the next piece begins; more: complete lines follow it already.
    finished: the runner has ended and all results were returned. reason: why it is not finished; "" if it is.
    failures, unreadable, strangers: as in Harvest. counters: rail → increase since the start; None while the runner works, or if not read.
    seconds: how long the runner worked, according to its last word; None before that.
    """

    running: bool
    finished: bool
    reason: str
    next_byte: int
    more: bool
    results: list[list[Any]]
    failures: list[dict[str, Any]]
    unreadable: int
    counters: dict[str, dict[str, Any]] | None
    seconds: float | None = None
    strangers: int = 0


def parse_list_units(text: str) -> dict[str, str]:
    """Parse the output of `systemctl list-units --plain --no-legend`: unit name → active state."""
    units = {}
    for line in text.splitlines():
        cells = line.lstrip("●* ").split()
        if cells:
            if len(cells) < 4:
                raise ParseError(f"not a line of systemctl list-units: {line!r}")
            units[cells[0]] = cells[2]
    return units


def running_sweeps(runner: Runner) -> list[str]:
    """Return the names of the sweeps that run on this host."""
    text = _run(runner, "systemctl", "list-units", "--all", "--full", "--plain", "--no-legend", f"{_PREFIX}*{_SUFFIX}")
    return [name[len(_PREFIX) : -len(_SUFFIX)] for name, state in parse_list_units(text).items() if state in ALIVE]


def _run(runner: Runner, *argv: str, timeout_seconds: float = 30.0) -> str:
    completed = runner.run(list(argv), timeout_seconds=timeout_seconds)
    if completed.rc != 0:
        raise SweepError(f"{' '.join(argv[:2])} failed with exit code {completed.rc}: {completed.stderr.strip()}")
    return completed.stdout


class PairUnit:
    """One sweep on this host. read_counters: a snapshot of the counters of some places, as _pair_counters takes it."""

    def __init__(
        self,
        sweep: str,
        runner: Runner,
        *,
        folder: Path = PAIRS_FOLDER,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        read_counters: ReadCounters = read_live,
    ) -> None:
        if re.fullmatch(r"[A-Za-z0-9-]+", sweep) is None:
            raise SweepError(f"the name of a sweep has letters, digits and hyphens, got {sweep!r}")
        self.sweep = sweep
        self.unit = f"{_PREFIX}{sweep}{_SUFFIX}"
        self.folder = folder / sweep
        self._files = SweepFolder(self.folder, read_counters)
        self._runner, self._sleep, self._clock = runner, sleep, clock

    def start(self, packed: str, token: str, host: str, *, python: str, runtime_max_seconds: int, check_mode: bool) -> bool:
        """Start the runner unless this sweep runs or has ended well here. Returns whether it was (or would be) started.

        packed: the plan, base64 of gzip of JSON. A sweep is resumed if it was stopped, its runner died, or it ended with failures:
        everything without a good result is measured again. Files of another plan do not belong to this sweep and are removed.
        Raises SweepError if another sweep or plan runs, or the unit does not start; ParseError for an invalid plan.
        """
        content = unpack_plan(packed)
        plan = parse_plan(content)
        if host not in plan.get("hosts", []) or plan.get("sweep") != self.sweep:
            raise SweepError(f"the plan is of sweep {plan.get('sweep')!r} and has to be of {self.sweep!r}, with the host {host!r}")
        with self._alone(check_mode):
            if self._adopts(content):
                return False
            if not check_mode:
                self._files.remove_others()
                if not self._files.has_plan(content):
                    self._files.remove()
                resume = self._files.has_results
                self._files.write(content, token, places_of(plan, host), resume=resume)
                self._launch(host, python, runtime_max_seconds, resume=resume)
        return True

    def collect(self, wait_seconds: float, from_byte: int, check_mode: bool) -> Collected:
        """Wait for the end of the unit, at most wait_seconds, and return the results after from_byte. Nothing is removed.

        Raises SweepError if the sweep is unknown on this host; check mode then returns an empty result.
        """
        running = self._runs() if check_mode else self._wait(wait_seconds)
        if not self.folder.is_dir():
            message = f"there is no sweep {self.sweep} on this host: it was never started, or is collected already"
            if check_mode:
                return Collected(running, False, message, 0, False, [], [], 0, None)
            raise SweepError(message)
        start, piece, more = self._files.piece(from_byte)
        found = harvest(piece, self._files.plan()) if piece.next_byte else Harvest([], [], 0)
        finished = not running and not more and piece.last_word is not None and piece.last_word["finished"] is True
        reason = "" if finished else self._reason(running, more, piece.last_word)
        counters = None if running else self._files.counters()
        seconds = None if piece.last_word is None else piece.last_word.get("seconds")
        return Collected(running, finished, reason, start + piece.next_byte, more, **vars(found), counters=counters, seconds=seconds)

    def stop(self, check_mode: bool) -> bool:
        """Stop the unit and keep the sweep's files, so that the sweep can be resumed. Returns whether it ran."""
        running = self._runs()
        if running and not check_mode:
            _run(self._runner, "systemctl", "stop", self.unit, timeout_seconds=STOP_TIMEOUT_SECONDS)
        return running

    def remove(self, check_mode: bool) -> bool:
        """Stop the unit and remove the sweep's files. Returns whether a sweep was (in check mode: would be) lost by it.

        A finished sweep is not lost. Removing its files does not count as a change, just as its start did not.
        """
        running, present = self.stop(check_mode), self.folder.exists()
        last_word = self._files.last_word() if present else None
        if not check_mode:
            self._files.remove()
        return running or (present and (last_word is None or last_word["finished"] is not True))

    def _alone(self, check_mode: bool) -> contextlib.AbstractContextManager[None]:
        """Exclude a second start on this host; check mode does not create the folder for it."""
        folder = self.folder.parent
        return contextlib.nullcontext() if check_mode and not folder.is_dir() else alone(folder)

    def _adopts(self, plan: bytes) -> bool:
        """Return whether this sweep, with this plan, runs here or has ended well. Raises SweepError while another one runs."""
        running = running_sweeps(self._runner)
        others = [sweep for sweep in running if sweep != self.sweep]
        if others:
            raise SweepError(f"another sweep runs on this host: {', '.join(others)}. {_HOW_TO_END}")
        same = self._files.has_plan(plan)
        if self.sweep in running and not same:
            raise SweepError(f"sweep {self.sweep} runs on this host by another plan. {_HOW_TO_END}")
        return self.sweep in running or (same and self._files.ended_well)

    def _launch(self, host: str, python: str, runtime_max_seconds: int, *, resume: bool) -> None:
        own = ("LimitMEMLOCK=infinity", f"RuntimeMaxSec={runtime_max_seconds}", f"ReadWritePaths={self.folder}")
        properties = (*own, *HARDENING, *SANDBOX)
        plan, token, results = (str(self.folder / name) for name in ("plan.json", "token", "results.jsonl"))
        command = [python, str(self.folder / PROGRAM), "--plan", plan, "--token-file", token, "--host", host, "--results", results]
        if resume:
            command.append("--resume")
        try:
            _run(self._runner, *transient_command(self.unit, properties, command, options=["--collect"]))
        except BaseException:
            if not resume:
                self._files.remove()
            raise

    def _wait(self, seconds: float) -> bool:
        """Wait for the end of the unit. The runner's last word is noticed at once, its death at the next query to systemd."""
        running, asked = self._runs(), self._clock()
        deadline = asked + seconds
        while running and self._clock() < deadline:
            self._sleep(min(LOOK_SECONDS, deadline - self._clock()))
            now = self._clock()
            if now - asked >= ASK_SECONDS or now >= deadline or self._files.last_word() is not None:
                running, asked = self._runs(), now
        return running

    def _runs(self) -> bool:
        completed = self._runner.run(["systemctl", "is-active", self.unit], timeout_seconds=30.0)
        state = completed.stdout.strip()
        if state not in ALIVE + _NOT_RUNNING:
            raise SweepError(f"systemctl is-active {self.unit} does not report a state: {(completed.stderr or state).strip()!r}")
        return state in ALIVE

    def _reason(self, running: bool, more: bool, last_word: dict[str, Any] | None) -> str:
        if running:
            return "the sweep still runs"
        if more:
            return "there are more records than one answer takes"
        if last_word is not None:
            return f"the pair runner was stopped: {last_word.get('reason')}"
        return f"the pair runner ended without a last word; `journalctl --unit {self.unit}` on this host may have one"
