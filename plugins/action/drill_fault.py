# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.drill_fault: runs the module of this name on the switch of a step, once both streams run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.drill import ENDED, MADE, RESTORED, TIMER_EXTRA_SECONDS, Drill
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "step": {"type": "int"},
        "state": {"type": "str", "required": True, "choices": ["made", "ended"]},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        number = options["step"]
        if number is None:
            return self.module("drill_fault", state="ended")
        drill = Drill(self.folder, self.plan_text)
        step = drill.step(number)
        if step.switch != self.host:
            return {"skipped": True}
        return self._make(drill, number) if options["state"] == "made" else self._end(drill, number)

    def _make(self, drill: Drill, number: int) -> dict[str, Any]:
        step = drill.step(number)
        if not self._task.check_mode and (silent := drill.not_started(number)):
            return {"failed": True, "msg": f"The fault is not made, because the streams of {' and '.join(silent)} do not run."}
        seconds = drill.settings["hold_seconds"] + TIMER_EXTRA_SECONDS
        answer = self.module("drill_fault", state="made", fault=step.kind, ports=step.ports, seconds=seconds, token=drill.token(number))
        if not self._task.check_mode and not answer.get("failed") and not answer.get("unreachable"):
            drill.note(number, MADE, self.host)
        return answer

    def _end(self, drill: Drill, number: int) -> dict[str, Any]:
        if self._task.check_mode:
            return {"skipped": True}
        # The time before the fault is ended: what is lost after it was lost by the way back.
        drill.note(number, ENDED, self.host)
        answer = self.module("drill_fault", state="ended")
        if not answer.get("failed") and not answer.get("unreachable"):
            drill.note(number, RESTORED, self.host)
        return answer
