# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.drill_fault: runs the module of this name on the switch or the host of a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.drill import Drill
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.host_drill import BEFORE, HostDrill
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.record import ENDED, MADE, RESTORED, TIMER_EXTRA_SECONDS
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "step": {"type": "int"},
        "of": {"type": "str", "choices": ["switches", "hosts"], "default": "switches"},
        "state": {"type": "str", "required": True, "choices": ["made", "ended"]},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        number = options["step"]
        if number is None:
            return self.module("drill_fault", state="ended")
        drill = HostDrill(self.folder) if options["of"] == "hosts" else Drill(self.folder, self.plan_text)
        if drill.step(number).place != self.host:
            return {"skipped": True}
        return self._make(drill, number) if options["state"] == "made" else self._end(drill, number)

    def _make(self, drill: Drill | HostDrill, number: int) -> dict[str, Any]:
        if not self._task.check_mode and (missing := self._not_ready(drill, number)):
            return {"failed": True, "msg": f"The fault is not made, because {missing}."}
        seconds, token = drill.settings["hold_seconds"] + TIMER_EXTRA_SECONDS, drill.token(number)
        answer = self.module("drill_fault", state="made", seconds=seconds, token=token, **_what(drill, number))
        if not self._task.check_mode and not answer.get("failed") and not answer.get("unreachable"):
            drill.note(number, MADE, self.host)
        return answer

    def _not_ready(self, drill: Drill | HostDrill, number: int) -> str:
        """Return what is missing before the fault may be made, "" if nothing is."""
        if isinstance(drill, HostDrill):
            return "" if drill.noted(number, BEFORE, self.host) is not None else "the state before it was not recorded"
        silent = drill.not_started(number)
        return f"the streams of {' and '.join(silent)} do not run" if silent else ""

    def _end(self, drill: Drill | HostDrill, number: int) -> dict[str, Any]:
        if self._task.check_mode:
            return {"skipped": True}
        # The time before the fault is ended: what is lost after it was lost by the way back.
        drill.note(number, ENDED, self.host)
        answer = self.module("drill_fault", state="ended")
        if not answer.get("failed") and not answer.get("unreachable"):
            drill.note(number, RESTORED, self.host, by_timer=bool(answer.get("by_timer")))
        return answer


def _what(drill: Drill | HostDrill, number: int) -> dict[str, Any]:
    """Return the arguments of the module that describe a fault."""
    if isinstance(drill, HostDrill):
        rail = drill.step(number)
        return {"fault": rail.kind, "ports": [rail.netdev], "address": rail.address}
    step = drill.step(number)
    return {"fault": step.kind, "ports": step.ports}
