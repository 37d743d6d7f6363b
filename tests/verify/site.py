# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks as a person runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

ROOT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 900


@dataclass(frozen=True)
class Ended:
    """A run that has ended. evidence: its folder; None if it left none."""

    playbook: str
    status: int
    output: str
    evidence: Path | None


def _descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, those that they have started, and so on."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, file.read_text(encoding="ascii").split()):
                found += [child, *_descendants(child)]
    return found


class Site:
    """Runs playbooks of ours on an inventory and keeps what they print and leave."""

    #: The last run of any site, for the report of a test that fails (failures.py).
    last: ClassVar[Ended | None] = None
    #: All runs since a test began (fault_record.py).
    ended: ClassVar[list[Ended]] = []

    def __init__(self, inventory: Path, folder: Path, words: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        """words: of every command line; environment: more variables of the environment."""
        self.inventory, self.words = inventory, list(words)
        self.environment = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_INJECT_FACT_VARS": "false", **(environment or {})}
        self.run_dir = folder / "artifacts"

    def argv(self, playbook: str, *words: str) -> list[str]:
        """playbook: the name of one of ours, or the path of another."""
        path = playbook if playbook.endswith(".yml") else f"playbooks/{playbook}.yml"
        return ["ansible-playbook", "-i", str(self.inventory), path, "-e", f"rdma_run_dir={self.run_dir}", *self.words, *words]

    def start(self, playbook: str, *words: str) -> subprocess.Popen[str]:
        """Begin a run in a process group of its own."""
        return subprocess.Popen(
            self.argv(playbook, *words), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, **self.environment},
        )  # fmt: skip

    def run(self, playbook: str = "site", *words: str, seconds: float = TIMEOUT_SECONDS) -> subprocess.CompletedProcess[str]:
        begun, before = time.monotonic(), self.evidence
        with self.start(playbook, *words) as process:
            try:
                answer, _nothing = process.communicate(timeout=seconds)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                # Nothing else ends it: it is in a group of its own, and waits until its output is read.
                self.kill(process)
                raise
        Site.last = Ended(playbook, process.returncode, answer, self.evidence if self.evidence != before else None)
        Site.ended.append(Site.last)
        print(f"\n{playbook} run: exit status {process.returncode} after {time.monotonic() - begun:.0f} s")
        return subprocess.CompletedProcess(process.args, process.returncode, answer, "")

    def kill_after(self, seconds: float, playbook: str = "site") -> None:
        """Begin a run and end it, and all that it has started, with SIGKILL."""
        with self.start(playbook) as process:
            time.sleep(seconds)
            assert process.poll() is None, f"the run has ended before it could be killed after {seconds:.1f} s"
            self.kill(process)
            process.communicate()

    @staticmethod
    def kill(process: subprocess.Popen[str]) -> None:
        """End a run with SIGKILL, and its workers too: each has a session of its own, and would wait for ever."""
        for pid in [process.pid, *_descendants(process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def drift(self, *words: str) -> list[dict[str, str]]:
        """The lines of drift.jsonl of a drift run, which must end well whatever it finds, and leave evidence of its own."""
        before = self.evidence
        done = self.run("drift", "--check", *words)
        assert done.returncode == 0, done.stdout
        assert self.evidence != before, f"the run left nothing beside {before}: {done.stdout}"
        return self.lines("drift.jsonl")

    def lines(self, name: str) -> list[dict[str, str]]:
        """Of a file that a run always leaves, or of changes.jsonl, which is begun at its first change."""
        file = self.evidence / name
        if name == "changes.jsonl" and self.evidence.is_dir() and not file.exists():
            return []
        return [json.loads(line) for line in file.read_text().splitlines()]

    def results(self, folder: str = "pairs") -> list[list[Any]]:
        """The lines of every host's results (docs/pairs.md) of the last run."""
        files = sorted((self.evidence / folder).glob("*.jsonl"))
        return [json.loads(line) for file in files if not file.name.endswith(".failures.jsonl") for line in file.read_text().splitlines()]

    def sweeps(self) -> list[tuple[dict[str, Any], list[list[Any]]]]:
        """Plan and results of what the last run measured, and of what it measured again: perftest 6.06 counts nothing now and then."""
        folders = [name for name in ("pairs", "pairs/again") if (self.evidence / name).exists()]
        return [(self.json(f"{name}/plan.json"), self.results(name)) for name in folders]

    def json(self, name: str) -> Any:
        return json.loads((self.evidence / name).read_text())

    @property
    def evidence(self) -> Path:
        """The folder of the last run; before the first one, a path that does not exist."""
        return (self.run_dir / "latest").resolve()
