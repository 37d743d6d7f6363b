# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run folder as the report reads it: its end, findings, sweep plan and neighbors. Nothing here fails on a damaged optional file."""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding, stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._report.end import SCHEMA
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RUN_ID, RunFolder, if_sound, is_group, natural
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.stages import COMPLETED

PLAN = "pairs/plan.json"


class ReportError(ValueError):
    """A run that cannot be shown or compared; the message has the run, the reason and the remedy."""


class Run:
    """One run. The folder may be that of a run that was killed: then there is no summary."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        return self.folder.path.name

    @property
    def began(self) -> float:
        """When the run began, in seconds since 1970, from its ID; 0.0 for a folder with another name."""
        if not RUN_ID.fullmatch(self.name):
            return 0.0
        return float(calendar.timegm(time.strptime(self.name.split("-", maxsplit=1)[0], "%Y%m%dT%H%M%SZ")))

    @cached_property
    def summary(self) -> Mapping[str, Any] | None:
        """summary.json; None if the run has not ended. Without a schema it has the first one. Raises ReportError for another one."""
        found: dict[str, Any] | None = if_sound(self.folder.path / "summary.json")
        if found is not None and found.get("schema", SCHEMA) != SCHEMA:
            raise ReportError(
                f"Run {self.name} has a summary of schema {found['schema']!r}, and this version of rdma.cluster reads schema "
                f"{SCHEMA}. Use the version of rdma.cluster that wrote the run."
            )
        return found

    @property
    def outcome(self) -> str:
        """The outcome in one word; "partial" if the run has not ended."""
        return "partial" if self.summary is None else str(self.summary.get("outcome", "partial"))

    @property
    def is_check(self) -> bool:
        return bool(self.summary and self.summary.get("check_mode"))

    @cached_property
    def findings(self) -> list[Finding]:
        """All findings in the order of the stages."""
        order = {stage: number for number, stage in enumerate(STAGES)}
        return sorted(self.folder.all_findings(), key=lambda each: order.get(each.stage, len(order)))

    @cached_property
    def bad(self) -> list[Finding]:
        """The findings that stop a gate."""
        return stopping(self.findings)

    @cached_property
    def hosts(self) -> list[str]:
        """The hosts of all stages, in natural order."""
        return sorted({each.host for each in self.findings if not is_group(each.host)}, key=natural)

    @cached_property
    def stages(self) -> list[str]:
        """The stages that the run began, in order."""
        begun = {each.stage for each in self.findings}
        return [stage for stage in STAGES if stage in begun]

    @property
    def stopped_at(self) -> tuple[str, list[str]]:
        """The last stage that the run began, and the hosts that have not reached its gate."""
        stage = self.stages[-1] if self.stages else ""
        under_way = {each.host for each in self.findings if each.stage == stage and each.check == COMPLETED}
        return stage, sorted(under_way, key=natural)

    def mapping(self, name: str) -> dict[str, Any]:
        """A JSON object of the folder; empty if it is missing or damaged."""
        return if_sound(self.folder.path / name) or {}

    def host_files(self, folder: str, suffix: str = ".json") -> Iterator[tuple[str, Path]]:
        """Yield (host, file) of a folder with a file for each host, in natural order."""
        files = sorted((self.folder.path / folder).glob(f"*{suffix}"), key=lambda file: natural(file.name))
        for file in files:
            yield unquote(file.name.removesuffix(suffix)), file

    def gate(self, stage: str) -> Mapping[str, Any]:
        """The decision of a stage's gate; empty if it did not reach one."""
        return self.mapping(f"gates/{stage}.json")


def run_of(base: Path, name: str) -> Run:
    """Return the run of this name in the folder of all runs. Raises ReportError, with the newest runs, if there is none."""
    path = base / name
    if name == "latest" and path.is_symlink():
        path = path.resolve()
    if not RUN_ID.fullmatch(path.name) or not path.is_dir():
        runs = sorted((each.name for each in base.iterdir() if RUN_ID.fullmatch(each.name)), reverse=True) if base.is_dir() else []
        known = f"The newest runs are {', '.join(runs[:5])}." if runs else "It has no runs."
        raise ReportError(f"{base} has no run {name!r}. {known} Name one of them, or `latest`, in rdma_run or rdma_compare.")
    return Run(RunFolder(path))
