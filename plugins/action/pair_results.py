# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.pair_results; documented in plugins/modules/pair_results.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.answer import Answer
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

MODULE = "perftest_rounds"
#: The number of failures of each host whose raw output is kept.
FAILURES = 32
RETRY_SECONDS = 5.0
#: The most that a host may return in all, and how long after the deadline. Thousands of partners on 8 rails need a tenth of it.
MOST_BYTES = 64 * 2**20
MORE_SECONDS = 60.0


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "sweep": {"type": "str", "required": True},
        "wait_seconds": {"type": "int", "required": True},
        "poll_seconds": {"type": "int", "default": 15},
        "folder": {"type": "str", "default": "pairs"},
        "host": {"type": "str"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        came = Arrivals(self.folder, options["folder"], options["host"] or self.host)
        deadline = time.monotonic() + options["wait_seconds"]
        poll_seconds = max(1, options["poll_seconds"])
        while True:
            left = deadline - time.monotonic()
            wait_seconds = 0 if came.more else max(0, min(poll_seconds, round(left)))
            reply = self._ask_twice(sweep=options["sweep"], wait_seconds=wait_seconds, from_byte=came.next_byte)
            if reply.get("failed"):
                return {**came.summary(), "finished": False, **self._trouble(f"{reply['msg']} ({came.words()})", options["host"])}
            try:
                answer = Answer.of(reply)
            except ParseError as exc:
                words = f"{options['host'] or self.host} returned no valid result of perftest_rounds: {exc} ({came.words()})"
                return {**came.summary(), "finished": False, **self._trouble(words, options["host"])}
            came.take(answer)
            if came.more and (came.bytes > MOST_BYTES or time.monotonic() >= deadline + MORE_SECONDS):
                words = f"{options['host'] or self.host} always answers that it has more results: {came.bytes} bytes without an end"
                return {**came.summary(), "finished": False, **self._trouble(f"{words} ({came.words()})", options["host"])}
            if not came.more and (not answer.running or self._task.check_mode or time.monotonic() >= deadline):
                break
        result = {**came.summary(), "running": answer.running, "finished": answer.finished, "reason": answer.reason}
        return {**result, "warnings": [came.strangers_words(options["host"] or self.host)]} if came.strangers else result

    @staticmethod
    def _trouble(words: str, outside: str | None) -> dict[str, Any]:
        """The result after trouble. A host of the play fails. A host outside it only helps, so a warning is enough."""
        return {"failed": True, "msg": words} if outside is None else {"warnings": [f"{outside}: {words}"]}

    def _ask_twice(self, **arguments: Any) -> dict[str, Any]:
        """The module's result, of a second attempt if the first one fails. An unreachable host has `failed` and `msg` too."""
        reply = self._ask(state="collected", **arguments)
        if reply.get("failed"):
            time.sleep(RETRY_SECONDS)
            reply = self._ask(state="collected", **arguments)
        return reply

    def _ask(self, **arguments: Any) -> dict[str, Any]:
        try:
            reply = self.module(MODULE, **arguments)
        except AnsibleError as exc:
            return {"failed": True, "msg": str(exc)}
        return {**reply, "failed": True} if reply.get("unreachable") else reply


class Arrivals:
    """The results of one host. Each piece is appended to the host's files when it arrives."""

    def __init__(self, folder: RunFolder, name: str, host: str) -> None:
        self._folder = folder
        self._results, self._failures, self._counters, self._end = (
            folder.host_file(name, host, suffix) for suffix in (".jsonl", ".failures.jsonl", ".counters.json", ".end.json")
        )
        self.next_byte = 0
        self.more = False
        self.bytes = self.strangers = 0
        self._begun = False
        self._records = self._evidence = self._unreadable = 0

    def take(self, answer: Answer) -> None:
        """Append a piece. The first piece overwrites the files, because it starts at the first record."""
        if not self._begun:
            self._begun = True
            for name in (self._results, self._failures):
                self._folder.write(name, "")
        self._folder.append_lines(self._results, answer.results)
        failures = answer.failures[: FAILURES - self._evidence]
        self._folder.append_lines(self._failures, failures)
        if answer.seconds is not None:
            end = {"finished": answer.finished, "seconds": answer.seconds, "reason": answer.reason}
            self._folder.write_json(self._end, end)
        if answer.counters is not None:
            self._folder.write_json(self._counters, answer.counters)
        self.next_byte, self.more = answer.next_byte, answer.more
        self.bytes += sum(len(line) + 1 for line in (*answer.results, *answer.failures))
        self.strangers += answer.strangers
        self._records += len(answer.results)
        self._evidence += len(failures)
        self._unreadable += answer.unreadable

    def strangers_words(self, host: str) -> str:
        """The text of a warning about strangers."""
        return (
            f"{host}: another process connected to perftest's ports {self.strangers} times before the partner did. These pairs were "
            f"re-measured. Find the program that scans TCP ports 18515 and above, on {host} or in the monitoring."
        )

    def words(self) -> str:
        """The collected results in words, for a failure."""
        return f"{self._records} results were collected before and are kept" if self._records else "no results were collected before"

    def summary(self) -> dict[str, Any]:
        """The part of the task's result about the stored records."""
        stored = str(self._folder.path / self._results)
        return {"records": self._records, "unreadable": self._unreadable, "stored": stored}
