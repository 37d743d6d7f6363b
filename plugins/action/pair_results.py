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
#: The raw output of so many failures is kept of each host.
FAILURES = 32
RETRY_SECONDS = 5.0
#: What a host may answer in all, and for how long it may have more after its time is over: thousands of partners on 8 rails need a tenth.
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
            said = self._ask_twice(sweep=options["sweep"], wait_seconds=wait_seconds, from_byte=came.next_byte)
            if said.get("failed"):
                return {**came.summary(), "finished": False, **self._trouble(f"{said['msg']} ({came.words()})", options["host"])}
            try:
                answer = Answer.of(said)
            except ParseError as exc:
                words = f"the answer of {options['host'] or self.host} is none of perftest_rounds: {exc} ({came.words()})"
                return {**came.summary(), "finished": False, **self._trouble(words, options["host"])}
            came.take(answer)
            if came.more and (came.bytes > MOST_BYTES or time.monotonic() >= deadline + MORE_SECONDS):
                words = f"{options['host'] or self.host} always answers that it has more results: {came.bytes} bytes, and no end"
                return {**came.summary(), "finished": False, **self._trouble(f"{words} ({came.words()})", options["host"])}
            if not came.more and (not answer.running or self._task.check_mode or time.monotonic() >= deadline):
                break
        result = {**came.summary(), "running": answer.running, "finished": answer.finished, "reason": answer.reason}
        return {**result, "warnings": [came.strangers_words(options["host"] or self.host)]} if came.strangers else result

    @staticmethod
    def _trouble(words: str, outside: str | None) -> dict[str, Any]:
        """A host of the play fails; one outside of it only helps, and its partners' results tell what came of it."""
        return {"failed": True, "msg": words} if outside is None else {"warnings": [f"{outside}: {words}"]}

    def _ask_twice(self, **arguments: Any) -> dict[str, Any]:
        """What the module says, at the second attempt if the first one fails; failed and msg also of a host that cannot be reached."""
        said = self._ask(state="collected", **arguments)
        if said.get("failed"):
            time.sleep(RETRY_SECONDS)
            said = self._ask(state="collected", **arguments)
        return said

    def _ask(self, **arguments: Any) -> dict[str, Any]:
        try:
            said = self.module(MODULE, **arguments)
        except AnsibleError as exc:
            return {"failed": True, "msg": str(exc)}
        return {**said, "failed": True} if said.get("unreachable") else said


class Arrivals:
    """What has come from one host, each piece added to its files as it comes."""

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
        """Add a piece. The first one begins the files again: it is from the beginning of the records."""
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
        """For a warning."""
        return (
            f"{host}: another process connected to perftest's ports {self.strangers} times before the partner did. These were measured "
            f"again. Look on {host}, and in the monitoring, for what scans TCP ports 18515 and above."
        )

    def words(self) -> str:
        """What there is when no more comes."""
        return f"{self._records} results had come before and are kept" if self._records else "nothing had come before"

    def summary(self) -> dict[str, Any]:
        """For the result of the task."""
        stored = str(self._folder.path / self._results)
        return {"records": self._records, "unreadable": self._unreadable, "stored": stored}
