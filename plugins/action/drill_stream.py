# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.drill_stream: runs the module of this name on the two hosts that measure a step, and stores the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.drill import (
    INTERVAL_MS,
    PORT,
    STREAM_EXTRA_SECONDS,
    Drill,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.record import RESULT, STARTED
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "step": {"type": "int"},
        "state": {"type": "str", "required": True, "choices": ["started", "collected", "stopped"]},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if options["state"] == "stopped":
            return self.module("drill_stream", state="stopped")
        if options["step"] is None:
            return {"failed": True, "msg": f"drill_stream: state {options['state']} needs step."}
        drill, number = Drill(self.folder, self.plan_text), options["step"]
        ends = drill.step(number).ends
        if self.host not in ends or self._task.check_mode:
            return {"skipped": True}
        if options["state"] == "collected":
            if drill.noted(number, STARTED, self.host) is None:
                return {"skipped": True}
            answer = self.module("drill_stream", state="collected")
            if not answer.get("failed") and not answer.get("unreachable"):
                drill.note(number, RESULT, self.host, result=answer.get("result"))
            return answer
        peer = next(address for host, address in ends.items() if host != self.host)
        answer = self.module(
            "drill_stream",
            state="started",
            address=ends[self.host],
            peer=peer,
            port=PORT,
            flows=drill.step(number).flows,
            interval_ms=INTERVAL_MS,
            seconds=drill.settings["hold_seconds"] + STREAM_EXTRA_SECONDS,
            token=drill.token(number),
        )
        if not answer.get("failed") and not answer.get("unreachable") and not answer.get("withheld"):
            drill.note(number, STARTED, self.host)
        return answer
