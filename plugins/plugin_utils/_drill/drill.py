# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A drill in the run folder: its steps and what speaks against them now, the times and the results of each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import OK
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.judge import Outage, Received, judge_step, parse_result
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.plan import Step, plan_steps
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.record import ENDED, MADE, RESTORED, RESULT, STARTED, Record
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.model import RoutedPlane
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.planes import routed_planes
from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.routing.stored import routing_findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import disagreements, hosts_in_use
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

#: The UDP port of the receiver; the flows have the ports after it as their source.
PORT, INTERVAL_MS = 47100, 10
#: A stream that is not collected ends by itself so long after the fault.
STREAM_EXTRA_SECONDS = 180


class Drill(Record[Step]):
    """The drill of this run. read_plan: returns the text of a cabling plan, or raises ParseError.

    Raises RoutingError and ParseError if the planes cannot be planned.
    """

    def __init__(self, folder: RunFolder, read_plan: Callable[[str], str]) -> None:
        super().__init__(folder)
        self.planes: list[RoutedPlane] = routed_planes(self.intents, read_plan)
        allowed = {host: intent["drill"]["allow"] for host, intent in self.intents.items()}
        self.steps, self.problems = plan_steps(next(iter(allowed.values()), []), self.planes, list(self.intents))
        self.problems += disagreements("rdma_drill", allowed)

    def refusals(self) -> list[str]:
        """Return what speaks against the drill now, a sentence each: permissions, hosts in use, a fabric that is not as planned."""
        return [*self.problems, *hosts_in_use(self.folder, self.intents), *self.not_as_planned()]

    def not_as_planned(self) -> list[str]:
        """Return the findings fabric.bgp of the planes of the steps that are not ok, a sentence each."""
        used = {step.plane for step in self.steps}
        return [
            f"fabric.bgp of plane {plane.name}: {each.subject}: {each.observed}"
            for plane in self.planes
            if plane.name in used
            # The drill reads the switches alone. Sessions of hosts are judged by their leaves.
            for each in routing_findings(self.folder, plane, self.planes, self.intents, hosts=())
            if each.status != OK
        ]

    def not_started(self, number: int) -> list[str]:
        """Return the hosts of a step whose stream does not run."""
        return [host for host in self.step(number).ends if self.noted(number, STARTED, host) is None]

    def not_restored(self, number: int) -> list[str]:
        """Return what is not as before a step, a sentence each."""
        switch = self.step(number).switch
        unsure = self.noted(number, MADE, switch) is not None and self.noted(number, RESTORED, switch) is None
        return [*([f"{switch} did not confirm that the fault has ended"] if unsure else []), *self.not_as_planned()]

    def outage(self, number: int) -> Outage:
        """Return the outage of a step that has ended."""
        step = self.step(number)
        made, ended = self.noted(number, MADE, step.switch), self.noted(number, ENDED, step.switch)
        if made is None or ended is None:
            return Outage("the fault was not made" if made is None else "the fault was not ended by the drill")
        started = [noted["at"] for host in step.ends if (noted := self.noted(number, STARTED, host)) is not None]
        received = {host: self._received(number, host) for host in step.ends}
        return judge_step(received, (ended["at"] - made["at"]) * 1000, (ended["at"] - max(started, default=0)) * 1000, step.flows)

    def _received(self, number: int, host: str) -> Received | str:
        noted = self.noted(number, RESULT, host)
        if noted is None:
            return "its stream has no result"
        try:
            return parse_result(noted["result"])
        except (ParseError, KeyError) as error:
            return str(error)

    def record(self) -> list[dict[str, Any]]:
        """Return the record of all steps so far, for drill/results.json."""
        done = [number for number in range(1, len(self.steps) + 1) if self.noted(number, ENDED, self.step(number).switch) is not None]
        return [{"name": self.step(number).name, **asdict(self.step(number)), **_fields(self.outage(number))} for number in done]


def _fields(outage: Outage) -> Mapping[str, Any]:
    return asdict(outage)
