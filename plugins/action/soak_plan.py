# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.soak_plan; documented in plugins/modules/soak_plan.py."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import disagreements, hosts_in_use
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.action import PairAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.fleet import Fleet, measurable_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.schedule import plan_meetings
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak import stored
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.plan import hosts_of_slice, hours_of, plan_of_all, plan_text
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.soak import SLICE, RunningSoak, begin

KINDS = ("earlier", "begin", "slice")
#: Ansible prepares the slices of a batch at once.
BATCH = 30


class ActionModule(PairAction):
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "kind": {"type": "str", "required": True, "choices": list(KINDS)},
        "hours": {"type": "float"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        hours = self.argument(options["hours"], "rdma_soak_hours", default=None)
        try:
            if options["kind"] == "earlier":
                soak = stored.read(self.folder)
                return {"sweep": soak.sweep if soak is not None else ""}
            return self._begin(hours) if options["kind"] == "begin" else self._slice(hours)
        except ParseError as error:
            return {"failed": True, "msg": str(error)}

    def _begin(self, given: float | None) -> dict[str, Any]:
        """Plan the soak, and refuse it if something speaks against it."""
        intents, unread = self.play_intents()
        if unread or not intents:
            return {"failed": True, "msg": unread or "No intent was read in this run. Call rdma.cluster.intent before."}
        self.fleet = Fleet.of(measurable_hosts(self.folder, intents))
        intent = next(iter(intents.values()))
        settings = intent["soak"]
        base = plan_of_all(self.fleet, intent, settings, self.forks)
        unread_hosts = [host for host in self._present() if host not in self.fleet.intents]
        refusals = self.lost_hosts(unread_hosts) + disagreements("rdma_soak", {host: each["soak"] for host, each in intents.items()})
        refusals += hosts_in_use(self.folder, [host for host in self.fleet.facts if not self._load_allowed(host)])
        refusals += ["no two hosts have a port that can be measured on the same rail"] if not plan_meetings(base) else []
        hours, dry = hours_of(settings, given), bool(refusals or self._task.check_mode)
        slices, words = begin(self.folder, base, settings, time.time(), max_age_hours=self.proof_max_age_hours, dry=dry)
        left = max(0.0, hours * 3600 - slices.seconds)
        count = math.ceil(left / settings["slice_seconds"])
        text = f"{words} Slices that are done: {len(slices.ends)}.\n{plan_text(base, settings, left, hours)}"
        answer = {"batches": math.ceil(count / BATCH), "batch": BATCH, "refusals": refusals}
        if not refusals:
            return {**answer, "explained": text}
        why = "\n".join(["The soak is refused, and nothing was measured:", *(f"- {each}" for each in refusals)])
        # In check mode the plan is the result, with what speaks against it.
        return {**answer, "failed": not self._task.check_mode, "msg": why, "explained": f"{text}\n{why}"}

    def _slice(self, given: float | None) -> dict[str, Any]:
        """Plan the next slice."""
        settings = self.intent["soak"]
        soak, now, present = RunningSoak(self.folder, settings, hours_of(settings, given)), time.time(), self._present()
        over = soak.over(present, now)
        if over:
            return {"over": over, "msg": f"The soak ends: {over}."}
        plan, wait_seconds = soak.next_slice(now, present)
        handed = self.hand_out(SLICE, plan, (), f"Slice {soak.number}.")
        more = {"hosts": hosts_of_slice(plan), "queue_pairs": True}
        return {"over": "", "wait_seconds": max(0, round(wait_seconds)), "number": soak.number, **handed, **more}

    def _present(self) -> list[str]:
        return list(self.variables["ansible_play_hosts"])
