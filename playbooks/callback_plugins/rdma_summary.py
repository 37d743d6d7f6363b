# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prints the progress and the summary of a run, and writes its evidence. The file is next to the playbooks, so Ansible loads it with
them, also from an installed collection."""

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
short_description: Print the summary of a run and write its evidence
description:
  - At the end of each stage, prints its hosts, duration and results, and every finding with its remedy.
  - If a task takes longer than ten seconds, prints the hosts for which it waits. While pairs are measured, prints how many are done, failed
    and slow so far, and the remaining time.
  - Prints the text of M(rdma.cluster.explain), M(rdma.cluster.roce_plan), M(rdma.cluster.routing_plan), M(rdma.cluster.switch_plan),
    M(rdma.cluster.scheduler_plan), M(rdma.cluster.ring_plan), M(rdma.cluster.mesh_plan), M(rdma.cluster.topology_plan),
    M(rdma.cluster.plan_numbers) and M(rdma.cluster.report) unchanged.
  - After the last play, even if it stopped at a gate, prints a table of hosts and stages and the results of the pairs. The faults with
    their remedies and the path of the evidence follow.
  - Writes C(report.html), the run as one page. If that fails, a warning names the reason, and the run is unaffected.
  - In check mode, writes every difference as a line of C(drift.jsonl).
  - Prints nothing if a program reads the output (a JSON callback). It still writes the evidence.
author: the rdma.cluster authors (@rdma-cluster)
"""

#: The action that returns the results of a sweep.
PAIR_RESULTS = "rdma.cluster.pair_results"
GATE = "gate"
#: The actions whose results name the stage.
STAGE_ACTIONS = ("intent", GATE)
#: The actions that run on the control node; all other modules of the collection run on hosts.
OWN_ACTIONS = frozenset(path.stem for path in (Path(__file__).resolve().parents[2] / "plugins/action").glob("*.py"))
#: Interval at which the thread checks whether a progress line is due.
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
        # Called here first, so that task workers inherit the id.
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
        # The decision to stop is reported on a host that may be healthy.
        if not ignore_errors and not (_own_action(result) == GATE and result.result.get("scope") == "decide"):
            self._failed.add(result.host.get_name())
            remedy = remedy_of_failure(_output(result.result), result.host.get_name())
            self._lost(result, f"task '{result.task.get_name()}' failed: {_first_line(result.result)}", remedy)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._take(result)
        message = str(result.result.get("msg", ""))
        self._lost(result, f"it cannot be reached: {why_unreachable(message)}", remedy_of(message, result.host.get_name()))

    def _take(self, result: Any) -> None:
        """Read the run folder and the stage from the results of the collection's own actions.

        The same keys in a module's result come from a host and are ignored.
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
        """Record the reason why a host that has begun a stage will not reach its gate."""
        host = result.host.get_name()
        if self._folder and self._stage and is_under_way(self._folder.known_findings(self._stage, host)):
            self._folder.write_findings(self._stage, host, [lost(self._stage, host, why, remedy)])

    # The end of a stage, and of the run

    def _end_stage(self, folder: RunFolder, decision: str) -> None:
        names = (*folder.hosts_of(self._stage), *folder.groups_of(self._stage))
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
            return
        # A plan has nothing to report.
        if not (self._folder.path / "findings").is_dir():
            return
        # networkx and jinja2 are loaded only now.
        from ansible_collections.rdma.cluster.plugins.plugin_utils._report.html.report import write_safely

        report, why_not = write_safely(self._folder)
        if report is not None:
            self._say(f"Report: {report}")
        else:
            self._display.warning(f"report.html could not be written: {why_not}. The run is unaffected.")


def _own_action(result: Any) -> str:
    """The name of the collection's action that ran on the control node, such as "gate"; "" for modules and for other collections."""
    collection, _dot, name = str(result.task.resolved_action or result.task.action).rpartition(".")
    return name if collection == "rdma.cluster" and name in OWN_ACTIONS else ""


def _output(result: Any) -> str:
    """A failed task's message, and the output of the host's shell if no module could run."""
    return "\n".join(str(result.get(key, "")) for key in ("msg", "module_stderr", "module_stdout"))


def _first_line(said: Any) -> str:
    return next(iter(str(said.get("msg", "")).strip().splitlines()), "no reason given")
