# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run says, and what it leaves when it ends. It stands beside the playbooks, so Ansible loads it with them, also from an
installed collection."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.plugins.callback import CallbackBase

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import stopping
from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.watch import PairWatch
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.drift import Difference, differences
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.end import RunEnd
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.progress import Progress, remedy_of, remedy_of_failure, why_unreachable
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.summary import stage_block
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder, RunFolderError, run_id
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import is_under_way, lost

DOCUMENTATION = r"""
name: rdma_summary
type: aggregate
version_added: 0.1.0
short_description: What a run says to a person, and the evidence that it leaves
description:
  - As each stage ends, a line with its hosts, its time and how they fared, and every offender with what to do.
  - While a task takes longer than ten seconds, a line that says for which hosts it waits; while pairs are measured, how many of them are
    done, failed and slow so far, and how long it will take.
  - What M(rdma.cluster.explain) has to say of a host, and M(rdma.cluster.roce_plan) of all, as it is.
  - After the last play, also one that stopped at a gate, hosts × stages, what the pairs measured, what is to be mended and how, and
    where the evidence is; in check mode every difference as a line of C(drift.jsonl).
  - Prints nothing where the terminal belongs to a program (a JSON callback); the evidence is written all the same.
author: the rdma.cluster authors (@rdma-cluster)
"""

#: The action under which the results of a sweep come.
PAIR_RESULTS = "rdma.cluster.pair_results"
GATE = "gate"
#: Those that say which stage it is.
STAGE_ACTIONS = ("intent", GATE)
#: The actions that run on the control node; all other modules of the collection run on hosts.
OWN_ACTIONS = frozenset(path.stem for path in (Path(__file__).resolve().parents[2] / "plugins/action").glob("*.py"))
#: How often the thread looks whether a line of progress is due.
TICK_SECONDS = 1.0


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "rdma_summary"

    def __init__(self) -> None:
        super().__init__()
        self._folder: RunFolder | None = None
        self._stage = ""
        self._begun: dict[str, float] = {}
        self._changes: list[Difference] = []
        self._failed: set[str] = set()
        self._progress = Progress()
        self._ended = threading.Event()
        self._speaks = "json" not in str(constants.DEFAULT_STDOUT_CALLBACK) and constants.DEFAULT_STDOUT_CALLBACK != "null"

    def _say(self, text: str, color: str | None = None) -> None:
        if self._speaks:
            self._display.display(clean(text, len(text), lines=True), color=color)

    # A task under way

    def v2_playbook_on_start(self, playbook: Any) -> None:
        # Asked here first, so that task workers inherit the answer.
        run_id()
        threading.Thread(target=self._tick, name="rdma_summary", daemon=True).start()

    def _tick(self) -> None:
        while not self._ended.wait(TICK_SECONDS):
            line = self._progress.due(time.monotonic())
            if line:
                self._say(line)

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        watch = PairWatch(self._folder).line if self._folder is not None and task.action == PAIR_RESULTS else None
        self._progress.begin(task.get_name(), time.monotonic(), watch)

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        self._progress.begin(task.get_name(), time.monotonic())

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        self._progress.host_begins(host.get_name())

    # A host's result

    def v2_runner_on_ok(self, result: Any) -> None:
        self._take(result)
        if _own_action(result) and result.result.get("explained"):
            self._say(f"\n{result.result['explained']}")
        if self._folder and result.result.get("changed"):
            for change in differences(result.host.get_name(), self._stage, result.result):
                self._changes.append(change)
                self._folder.append("changes.jsonl", change.to_dict())

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._progress.host_ends(result.host.get_name())

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._take(result)
        # The decision to stop is reported on some host that may be well.
        if not ignore_errors and not (_own_action(result) == GATE and result.result.get("scope") == "decide"):
            self._failed.add(result.host.get_name())
            remedy = remedy_of_failure(_output(result.result), result.host.get_name())
            self._lost(result, f"task '{result.task.get_name()}' failed: {_first_line(result.result)}", remedy)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._take(result)
        message = str(result.result.get("msg", ""))
        self._lost(result, f"it cannot be reached: {why_unreachable(message)}", remedy_of(message, result.host.get_name()))

    def _take(self, result: Any) -> None:
        """Every action of ours says where the run's folder is, and the first of a stage which stage it is.

        The same keys in the result of a module are a host's words, and mean nothing.
        """
        said = result.result
        self._progress.host_ends(result.host.get_name())
        action = _own_action(result)
        if action and said.get("run_folder"):
            self._folder = RunFolder(Path(said["run_folder"]))
        if action in STAGE_ACTIONS and said.get("stage") and said["stage"] != self._stage:
            self._stage = said["stage"]
            self._begun.setdefault(self._stage, time.monotonic())
        if action == GATE and said.get("scope") == "decide" and self._folder:
            self._end_stage(self._folder, said["msg"])

    def _lost(self, result: Any, why: str, remedy: str) -> None:
        """A host that has begun a stage and will not come to its gate: the evidence gets the reason."""
        host = result.host.get_name()
        if self._folder and self._stage and is_under_way(self._folder.known_findings(self._stage, host)):
            self._folder.write_findings(self._stage, host, [lost(self._stage, host, why, remedy)])

    # The end of a stage, and of the run

    def _end_stage(self, folder: RunFolder, decision: str) -> None:
        names = (*folder.hosts_of(self._stage), *folder.planes_of(self._stage))
        findings = [finding for name in names for finding in folder.known_findings(self._stage, name)]
        seconds = time.monotonic() - self._begun[self._stage]
        self._say(
            stage_block(self._stage, findings, decision, seconds), color=constants.COLOR_ERROR if stopping(findings) else constants.COLOR_OK
        )

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._ended.set()
        if self._folder is None:
            return
        end = RunEnd(self._folder, self._changes, check_mode=bool(context.CLIARGS.get("check")), unreachable=sorted(stats.dark))
        end.failed = sorted(self._failed)
        if self._speaks:
            self._display.banner("RDMA SUMMARY")
        self._say(end.text)
        try:
            end.write()
        except RunFolderError as error:
            self._say(str(error), color=constants.COLOR_ERROR)


def _own_action(result: Any) -> str:
    """The name of the action of this collection that ran on the control node: "gate"; "" for modules, and for those of others."""
    collection, _dot, name = str(result.task.resolved_action or result.task.action).rpartition(".")
    return name if collection == "rdma.cluster" and name in OWN_ACTIONS else ""


def _output(result: Any) -> str:
    """A failed task's message, and what the host's shell printed where no module could run."""
    return "\n".join(str(result.get(key, "")) for key in ("msg", "module_stderr", "module_stdout"))


def _first_line(said: Any) -> str:
    return next(iter(str(said.get("msg", "")).strip().splitlines()), "no reason given")
