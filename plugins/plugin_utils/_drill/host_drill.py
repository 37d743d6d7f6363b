# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A drill of hosts in the run folder: its steps, what speaks against them, and what has answered each fault."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.hosts import HostStep, not_ok_before, plan_host_steps
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.record import ENDED, MADE, RESTORED, Record
from ansible_collections.rdma.cluster.plugins.plugin_utils._drill.turned import (
    Alert,
    Answers,
    Verdict,
    added,
    answers_of,
    judge_answers,
    ranks,
    worse,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import Known, disagreements, hosts_in_use, known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

#: The stages whose gates may answer: they read no more than the host.
STAGES = ("link", "network", "qos", "nccl")
STEPS, RESULTS = "drill/host-steps.json", "drill/results.json"
BEFORE, ANSWERS = "before", "answers"
#: How long the gates have, after the end of a fault, to be quiet again; alerts at least as long as the fault.
QUIET_SECONDS = 90
#: The shortest time between two looks.
LOOK_SECONDS = 3.0

#: Returns the alerts that fire now. Raises OSError and ParseError.
ReadAlerts = Callable[[], Sequence[Alert]]


class HostDrill(Record[HostStep]):
    """The drill of hosts of this run. The steps are planned once (`plan`) and then read from the run folder, so that numbers stay."""

    PART = "host-"

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(folder)
        self.steps = [HostStep(**each) for each in folder.read_if_there(STEPS) or ()]

    @cached_property
    def known(self) -> dict[str, Known]:
        return known_hosts(self.folder, self.intents)

    def plan(self) -> list[str]:
        """Plan the steps and keep them. Return the permissions that cannot be used, a sentence each."""
        allowed = {host: intent["drill"]["allow"] for host, intent in self.intents.items()}
        steps, problems = plan_host_steps(next(iter(allowed.values()), []), self.known)
        if self.folder.read_if_there(STEPS) is None:
            self.folder.write_json(STEPS, [asdict(step) for step in steps])
            self.steps = steps
        elif steps != self.steps:
            problems.append("the rails of the hosts are not those with which the drill began")
        return [*problems, *disagreements("rdma_drill", allowed)]

    def refusals(self, findings: Mapping[str, Sequence[Finding]]) -> list[str]:
        """Return what speaks against the steps now, a sentence each. findings: those of now, by host."""
        return [*hosts_in_use(self.folder, dict.fromkeys(step.host for step in self.steps)), *not_ok_before(self.steps, findings)]

    @property
    def looks(self) -> dict[str, int]:
        """Return how many looks cover the longest time of each phase."""
        seconds = {"during": self.settings["hold_seconds"], "after": self.settle_seconds}
        return {phase: int(longest / LOOK_SECONDS) + 2 for phase, longest in seconds.items()}

    @property
    def settle_seconds(self) -> int:
        return max(QUIET_SECONDS, self.settings["hold_seconds"])

    # The looks. findings: those of now, by host. Each of them returns whether no further look of its phase is needed.

    def look_before(self, number: int, findings: Mapping[str, Sequence[Finding]], alerts: ReadAlerts | None) -> bool:
        """Keep the state before a fault."""
        answers = Answers(asked=alerts is not None)
        firing = self._firing(answers, alerts)
        keys = [[*key, rank] for key, rank in ranks(each for found in findings.values() for each in found).items()]
        self.note(number, BEFORE, self.step(number).host, ranks=keys, alerts=[asdict(each) for each in firing])
        self._keep(number, answers)
        return True

    def look_during(self, number: int, findings: Mapping[str, Sequence[Finding]], alerts: ReadAlerts | None) -> bool:
        """Add what has answered since the fault was made."""
        step, answers = self.step(number), self.answers(number)
        before, fired = self._before(number)
        firing, seconds = self._firing(answers, alerts), self.since(number, MADE)
        answers.turned = added(answers.turned, worse(before, _all(findings), seconds))
        have = {each.key for each in [*fired, *answers.alerts]}
        new = [each for each in firing if each.key not in have]
        answers.alerts += [Alert(each.name, each.host, each.rail, round(seconds, 1)) for each in new]
        self._keep(number, answers)
        verdict = judge_answers(step.host, step.rail, step.checks, answers)
        all_answered = verdict.gate is not None and (alerts is None or verdict.alert is not None)
        return all_answered or seconds >= self.settings["hold_seconds"]

    def look_after(self, number: int, findings: Mapping[str, Sequence[Finding]], alerts: ReadAlerts | None) -> bool:
        """Find whether all is quiet again after the end of a fault."""
        answers = self.answers(number)
        before, _fired = self._before(number)
        firing, seconds = self._firing(answers, alerts), self.since(number, ENDED)
        answers.left = worse(before, _all(findings), seconds)
        if not answers.left and answers.quiet is None:
            answers.quiet = round(seconds, 1)
        still = {each.key for each in firing}
        burning = any(each.key in still for each in answers.alerts)
        if answers.alerts and not burning and not answers.problem and answers.resolved is None:
            answers.resolved = round(seconds, 1)
        self._keep(number, answers)
        is_quiet = not answers.left and (not answers.alerts or answers.resolved is not None)
        return is_quiet or seconds >= self.settle_seconds

    def _before(self, number: int) -> tuple[dict[tuple[str, str, str], int], list[Alert]]:
        noted = self.noted(number, BEFORE, self.step(number).host)
        if noted is None:
            raise ParseError(f"The state before step {number} was not recorded.")
        return {(each[0], each[1], each[2]): each[3] for each in noted["ranks"]}, [Alert(**each) for each in noted["alerts"]]

    def _firing(self, answers: Answers, alerts: ReadAlerts | None) -> Sequence[Alert]:
        """Return the alerts that fire now. A source that cannot be read is a problem, which stays with the step."""
        if alerts is None:
            return []
        try:
            return alerts()
        except (OSError, ParseError) as error:
            answers.problem = str(error)[:300]
            return []

    def _keep(self, number: int, answers: Answers) -> None:
        self.note(number, ANSWERS, self.step(number).host, answers=asdict(answers))

    def answers(self, number: int) -> Answers:
        noted = self.noted(number, ANSWERS, self.step(number).host)
        return Answers() if noted is None else answers_of(noted["answers"])

    def since(self, number: int, what: str) -> float:
        """Return the seconds since an event of a step. Raises ParseError if it has not happened."""
        noted = self.noted(number, what, self.step(number).host)
        if noted is None:
            raise ParseError(f"{self.step(number).name}: the event {what!r} was not recorded.")
        return time.time() - float(noted["at"])

    def is_made(self, number: int) -> bool:
        return self.noted(number, MADE, self.step(number).host) is not None

    def verdict(self, number: int) -> Verdict:
        step = self.step(number)
        return judge_answers(step.host, step.rail, step.checks, self.answers(number))

    def not_restored(self, number: int) -> list[str]:
        """Return what is not as before a step, a sentence each."""
        step, answers = self.step(number), self.answers(number)
        unsure = self.is_made(number) and self.noted(number, RESTORED, step.host) is None
        never = self.is_made(number) and answers.quiet is None and not answers.left
        left = [f"{each.check} of {each.host} is {each.status}: {each.subject}" for each in answers.left]
        return [
            *([f"{step.host} did not confirm that the fault has ended"] if unsure else []),
            *(["the hosts were not judged after the end of the fault"] if never else []),
            *left,
        ]

    def done(self) -> list[int]:
        """Return the numbers of the steps whose fault was made."""
        return [number for number in range(1, len(self.steps) + 1) if self.is_made(number)]

    def write_results(self) -> None:
        """Write the record of all steps so far to drill/results.json."""
        kept = self.folder.read_if_there(RESULTS) or {}
        self.folder.write_json(RESULTS, {**kept, "schema": 1, "hosts": [self._result(number) for number in self.done()]})

    def _result(self, number: int) -> dict[str, Any]:
        step, answers, verdict = self.step(number), self.answers(number), self.verdict(number)
        made, ended, restored = (self.noted(number, what, step.host) for what in (MADE, ENDED, RESTORED))
        return {
            "name": step.name,
            **asdict(step),
            "checks": list(step.checks),
            "gate": asdict(verdict.gate) if verdict.gate is not None else None,
            "alert": asdict(verdict.alert) if verdict.alert is not None else None,
            "alerts_asked": answers.asked,
            "alerts_problem": answers.problem,
            "drain": "not asked",
            "false": verdict.false,
            "turned": [asdict(each) for each in answers.turned],
            "lasted_seconds": round(ended["at"] - made["at"], 1) if made and ended else None,
            "ended_by_timer": restored["by_timer"] if restored else None,
            "quiet_after_seconds": answers.quiet,
            "alert_ended_after_seconds": answers.resolved,
            "not_restored": self.not_restored(number),
        }


def _all(findings: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    return [each for found in findings.values() for each in found]
