# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An action that starts a long build on a host and waits for it: shows progress, and fetches the log if it fails."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible.errors import AnsibleError

from ansible_collections.rdma.cluster.plugins.module_utils._driver.build_report import OPTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction

#: The interval of progress lines.
SAY_SECONDS = 30.0
RETRY_SECONDS = 15.0
#: The time to wait for an answer after the host's own limit.
GRACE_SECONDS = 180.0
#: The maximum size of each fetched log.
MOST_CHARACTERS = 16 * 1024 * 1024


class BuildAction(RunAction):
    """Define MODULE, WHAT and, in addition to COMMON, the arguments of the module, which has `collect` and `poll_seconds`."""

    MODULE: ClassVar[str]
    #: The action in words.
    WHAT: ClassVar[str]
    COMMON: ClassVar[Mapping[str, Any]] = {**OPTIONS, "folder": {"type": "str"}}

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        given = {"host": self.host, **{name: value for name, value in options.items() if value is not None}}
        begun = shown_at = time.monotonic()
        first = answer = self._ask_twice(**given)
        while answer.get("running") and not self._task.check_mode:
            now = time.monotonic()
            if now - begun > options["timeout_seconds"] + GRACE_SECONDS:
                return self._failure(answer, f"it is still running {(now - begun) / 60:.0f} minutes after its start, and was not stopped")
            if now - shown_at >= SAY_SECONDS:
                shown_at = now
                self._say(answer, now - begun)
            answer = self._ask_twice(**{**given, "collect": True})
        result = {**answer, "started": bool(first.get("started")), "note": first.get("note")}
        if not answer.get("failed"):
            return result
        return self._failure(result, str(answer.get("msg")), self._bring_log(answer) if answer.get("finished") else None)

    def _say(self, answer: Mapping[str, Any], waited: float) -> None:
        minutes = (answer.get("seconds") or waited) / 60
        self._display.display(f"  … {self.host}: {self.WHAT}, {minutes:.0f} min: {answer.get('progress') or 'no progress reported yet'}")

    def _failure(self, answer: Mapping[str, Any], words: str, stored: str | None = None) -> dict[str, Any]:
        where = f"\nThe full log is {stored} on the control node." if stored else ""
        # Stored text need not be shown too.
        kept = {key: value for key, value in answer.items() if key != "log" or not stored}
        return {**kept, "failed": True, "msg": f"{self.host}: {words}{where}", "stored": stored}

    def _bring_log(self, answer: Mapping[str, Any]) -> str:
        """Store the logs of a failure in the run folder. If one can no longer be read, store the module's excerpt."""
        pieces = {path: self._slurp(path) for path in answer.get("log_files") or []}
        text = "\n".join(f"==== {path}\n{piece}" for path, piece in pieces.items() if piece)
        name = self.folder.host_file("driver", self.host, ".log")
        return str(self.folder.write(name, text or "\n".join([*(answer.get("log") or []), ""])))

    def _slurp(self, path: str) -> str:
        try:
            done = self._run("ansible.builtin.slurp", {"src": path})
            return base64.b64decode(done.get("content") or "").decode("utf-8", "replace")[-MOST_CHARACTERS:]
        except (AnsibleError, ValueError):
            return ""

    def _run(self, module: str, arguments: dict[str, Any]) -> dict[str, Any]:
        done: dict[str, Any] = self._execute_module(module_name=module, module_args=arguments, task_vars=self.variables)
        return done

    def _ask_twice(self, **arguments: Any) -> dict[str, Any]:
        """Return the module's answer; if a host does not answer, that of a second attempt. A failed build is an answer."""
        answer = self._ask(**arguments)
        if answer.get("failed") and not answer.get("finished") and (answer.get("lost") or arguments["collect"]):
            time.sleep(RETRY_SECONDS)
            answer = self._ask(**arguments)
        return answer

    def _ask(self, **arguments: Any) -> dict[str, Any]:
        try:
            answer = self._run(f"rdma.cluster.{self.MODULE}", arguments)
        except AnsibleError as exc:
            return {"failed": True, "lost": True, "msg": str(exc)}
        return {**answer, "failed": True, "lost": True} if answer.get("unreachable") else answer
