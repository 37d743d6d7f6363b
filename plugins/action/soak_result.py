# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of rdma.cluster.soak_result; documented in plugins/modules/soak_result.py."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import OK, STATUSES, Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._explain.text import duration_words
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import RunAction
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.policy import apply_rules
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.findings import STAGE, check_soak
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.plan import FILE as PLAN
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.plan import hours_of
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.soak import RunningSoak
from ansible_collections.rdma.cluster.plugins.plugin_utils._soak.stored import FINISHED

#: The findings that are shown, the worst first; all are in the run folder.
MOST_SHOWN = 20
SEVERITY = {status: place for place, status in enumerate(("error", "unknown", "warning"))}


class ActionModule(RunAction):
    _requires_connection = False
    ARGUMENTS: ClassVar[Mapping[str, Any]] = {
        "kind": {"type": "str", "required": True, "choices": ["slice", "all"]},
        "hours": {"type": "float"},
    }

    def work(self, options: Mapping[str, Any]) -> dict[str, Any]:
        settings = self.intent["soak"]
        hours = self.argument(options["hours"], "rdma_soak_hours", default=None)
        try:
            soak = RunningSoak(self.folder, settings, hours_of(settings, hours))
            return self._slice(soak) if options["kind"] == "slice" else self._all(soak, settings["errors_per_billion_packets"])
        except (ParseError, ValueError) as error:
            return {"failed": True, "msg": f"The soak has no result: {error}"}

    def _slice(self, soak: RunningSoak) -> dict[str, Any]:
        number, stops = soak.number, soak.record(time.time())
        return {"number": number, "stops": stops, "msg": f"Slice {number} is recorded." + (f" The soak stops: {stops}." if stops else "")}

    def _all(self, soak: RunningSoak, limit: float) -> dict[str, Any]:
        """Judge all slices. Fails if a port has too many errors, or if too little is known."""
        found, by_host = soak.tallies(), defaultdict[str, list[Finding]](list)
        soak.write_results(found)
        for finding in check_soak(found, self._planned(), limit, soak.slices.seconds / 3600):
            by_host[finding.host] += self._ruled(finding)
        for host, of_host in by_host.items():
            self.folder.write_findings(STAGE, host, of_host)
        findings = [finding for of_host in by_host.values() for finding in of_host]
        text = "\n".join([*self._head(soak, findings), *_lines(findings)])
        stops = bool(stopping(findings))
        return {
            "failed": stops,
            "explained": text,
            "offenders": [each.to_dict() for each in stopping(findings)],
            **({"msg": text} if stops else {}),
        }

    def _planned(self) -> dict[str, list[str]]:
        """Return host → its rails that the soak measures."""
        base = self.folder.read_json(PLAN)
        return {
            host: [rail["name"] for rail in base["rails"] if rail["addresses"][number] is not None]
            for number, host in enumerate(base["hosts"])
        }

    def _ruled(self, finding: Finding) -> list[Finding]:
        intent = self.intent_of(finding.host)
        return apply_rules([finding], intent["checks"] if intent is not None else {}, datetime.now(UTC).date())

    @staticmethod
    def _head(soak: RunningSoak, findings: list[Finding]) -> list[str]:
        measured = f"{len(soak.slices.ends)} slices in {duration_words(soak.slices.seconds)} of {len(soak.soak.runs)} runs"
        ends = (
            f"Finished: {soak.soak.why}."
            if soak.soak.state == FINISHED
            else f"Not finished: {soak.soak.why or 'it was interrupted'}. Run it again to continue."
        )
        counts = [(status, sum(each.status == status for each in findings)) for status in STATUSES]
        return [
            f"Soak of run {soak.soak.name}: {measured}. {ends}",
            "Ports: " + ", ".join(f"{count} {status}" for status, count in counts if count),
        ]


def _lines(findings: list[Finding]) -> list[str]:
    """Return the findings that are not ok, the worst first, and one that is."""
    bad = sorted((each for each in findings if each.status != OK), key=lambda each: SEVERITY.get(each.status, len(SEVERITY)))
    shown = [*bad[:MOST_SHOWN], *[each for each in findings if each.status == OK][:1]]
    lines = [
        f"{each.status}: {each.host} {each.subject}: {each.observed}" + (f"\n  do: {each.remedy}" if each.remedy else "") for each in shown
    ]
    return [*lines, *([f"and {len(bad) - MOST_SHOWN} more ports"] if len(bad) > MOST_SHOWN else [])]
