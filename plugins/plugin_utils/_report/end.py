# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a run: its results merged from many files, and its outcome in one word."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import WARNING, Finding, stopping, worst
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs as pairs_proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._report import cost, metrics
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.drift import Difference, drift
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.summary import drift_table, render
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET, PLANE, RunFolder, if_sound, is_group
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.withheld import WithheldGroup, grouped

#: The schema of summary.json.
SCHEMA = 1
CLEAN, DRIFTED, FAILED, UNREACHABLE = "clean", "drifted", "failed", "unreachable"


class RunEnd:
    """One run that has ended. failed, unreachable: hosts, as Ansible counts them."""

    def __init__(self, folder: RunFolder, changes: Sequence[Difference], *, check_mode: bool, unreachable: Sequence[str]) -> None:
        self.folder = folder
        self.check_mode = check_mode
        self.unreachable = list(unreachable)
        self.failed: list[str] = []
        self._changes = list(changes)
        self._ended = time.time()

    @cached_property
    def findings(self) -> list[Finding]:
        found = self.folder.all_findings()
        return sorted(found, key=lambda finding: STAGES.index(finding.stage) if finding.stage in STAGES else len(STAGES))

    @cached_property
    def drift(self) -> list[Difference]:
        """The differences in check mode; empty for a run that changes hosts."""
        return drift(self._changes, self.findings) if self.check_mode else []

    @cached_property
    def withheld(self) -> list[WithheldGroup]:
        """The effects that roles did not apply because they are not allowed."""
        return grouped(self.folder)

    @cached_property
    def gpu_hour(self) -> cost.GpuHour | None:
        """The price of a GPU hour that the gate of a stage recorded, None if none is given."""
        return cost.read_gpu_hour(if_sound(self.folder.path / cost.FILE), self.findings)

    @property
    def outcome(self) -> str:
        """clean, drifted, failed or unreachable: the worst that happened. In check mode a failed gate counts as drift."""
        if self.failed or (stopping(self.findings) and not self.check_mode):
            only_unreachable = {each.host for each in stopping(self.findings)} | set(self.failed) <= set(self.unreachable)
            return UNREACHABLE if self.unreachable and only_unreachable else FAILED
        if self.unreachable:
            return UNREACHABLE
        return DRIFTED if self.drift else CLEAN

    @cached_property
    def text(self) -> str:
        """The run's summary as text."""
        pairs: dict[str, Any] = if_sound(self.folder.path / "pairs/summary.json") or {}
        evidence = str(self.folder.path)
        text = render(self.folder.path.name, STAGES, self.findings, pairs, evidence, withheld=self.withheld, gpu_hour=self.gpu_hour)
        return f"{drift_table([line.to_dict() for line in self.drift])}\n\n{text}" if self.check_mode else text

    def summary(self) -> dict[str, Any]:
        """The content of summary.json."""
        hosts: dict[str, dict[str, list[Finding]]] = {}
        for finding in self.findings:
            hosts.setdefault(finding.host, {}).setdefault(finding.stage, []).append(finding)
        return {
            "schema": SCHEMA,
            "run": self.folder.path.name,
            "outcome": self.outcome,
            "check_mode": self.check_mode,
            "ended": round(self._ended, 3),
            "failed": self.failed,
            "unreachable": self.unreachable,
            "changes": len(self._changes),
            "drift": len(self.drift),
            "warnings": sum(finding.status == WARNING and finding.silenced_by is None for finding in self.findings),
            "withheld": [group.to_dict() for group in self.withheld],
            "costs": self._costs(),
            "hosts": {host: worst_of(stages) for host, stages in hosts.items() if not is_group(host)},
            "planes": {plane: worst_of(stages) for plane, stages in hosts.items() if plane.startswith(PLANE)},
            "fleet": worst_of(hosts.get(FLEET, {})),
        }

    def _costs(self) -> list[dict[str, Any]] | None:
        """What each finding with a rate costs a day, the most expensive first; None without the price of a GPU hour."""
        if self.gpu_hour is None:
            return None
        return [
            {
                "host": finding.host,
                "check": finding.check,
                "subject": finding.subject,
                "rate_ratio": finding.rate_ratio,
                "per_day": round(loss.per_day, 2),
                "currency": self.gpu_hour.currency,
                "at_most": loss.at_most,
                "formula": loss.formula,
            }
            for finding, loss in cost.losses(self.findings, self.gpu_hour)
        ]

    def write(self) -> None:
        """Write findings.jsonl, drift.jsonl (check mode), summary.json, summary.txt and metrics.prom."""
        self.folder.write("findings.jsonl", _lines([finding.to_dict() for finding in self.findings]))
        if self.check_mode:
            self.folder.write("drift.jsonl", _lines([line.to_dict() for line in self.drift]))
        self.folder.write_json("summary.json", self.summary())
        self.folder.write("summary.txt", self.text + "\n")
        self.folder.write(metrics.FILE, self._metrics())

    def _metrics(self) -> str:
        proofs = pairs_proofs.read(self.folder.read_if_there(pairs_proofs.FILE))
        drift_found = self.drift if self.check_mode else None
        return metrics.metrics(self.findings, drift_found, proofs, ended=self._ended, outcome=self.outcome, check_mode=self.check_mode)


def _lines(items: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(item, sort_keys=True) + "\n" for item in items)


def worst_of(stages: Mapping[str, list[Finding]]) -> dict[str, str]:
    """Stage → the worst of its findings."""
    return {stage: worst(found) for stage, found in stages.items()}
