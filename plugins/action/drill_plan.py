# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.drill_plan; documented in plugins/modules/drill_plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.drill import Drill
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.host_drill import STAGES, HostDrill
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.hosts import host_steps_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.plan import steps_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutingError
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.now import current_findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "again": {"type": "bool", "default": False},
        "of": {"type": "str", "choices": ["switches", "hosts"], "default": "switches"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        try:
            drill, refusals, text = self._hosts() if options["of"] == "hosts" else self._switches()
        except (RoutingError, ParseError) as error:
            return {"failed": True, "msg": str(error), "steps": [], "refusals": [str(error)]}
        if not drill.intents:
            return {"failed": True, "msg": "No intent was read in this run. Call rdma.cluster.intent before.", "steps": [], "refusals": []}
        answer: dict[str, Any] = {
            "steps": [step.name for step in drill.steps],
            "refusals": refusals,
            "hold_seconds": drill.settings["hold_seconds"],
            "looks": drill.looks if isinstance(drill, HostDrill) else {},
        }
        if not refusals:
            return answer if options["again"] else {**answer, "explained": text}
        words = "\n".join(["The drill is refused, and nothing was changed:", *(f"- {each}" for each in refusals)])
        # In check mode the list of steps is the result, with what speaks against them.
        return {**answer, "failed": not self._task.check_mode, "msg": words, "explained": f"{text}\n{words}"}

    def _switches(self) -> tuple[Drill, list[str], str]:
        """Return the drill of switches, what speaks against it, and its steps as text."""
        drill = Drill(self.folder, self.plan_text)
        if not drill.intents:
            return drill, [], ""
        refusals = [*self.lost_hosts(), *drill.refusals()] if drill.steps or drill.problems else []
        return drill, refusals, steps_text(drill.steps, drill.settings["hold_seconds"])

    def _hosts(self) -> tuple[HostDrill, list[str], str]:
        """Return the same for the drill of hosts. All hosts are judged now, as the gates would judge them."""
        drill = HostDrill(self.folder)
        if not drill.intents:
            return drill, [], ""
        problems, settings = drill.plan(), drill.settings
        findings = current_findings(STAGES, self.folder, drill.known, self.plan_text, datetime.now(UTC).date())
        refusals = [*self.lost_hosts(), *problems, *drill.refusals(findings)] if drill.steps or problems else []
        return drill, refusals, host_steps_text(drill.steps, settings["hold_seconds"], alerts=settings["alerts_url"] is not None)
