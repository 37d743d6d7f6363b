# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches the run folder for the results of a sweep while they come."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.rdma.cluster.plugins.plugin_utils._pair_progress import Tally
from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder

PLANS = ("pairs/plan.json", "pairs/*/plan.json")


class PairWatch:
    """The sweep that this run has planned last. Of each host's file it reads only what is new."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._tally: Tally | None = None
        self._files: dict[int, Path] = {}
        self._read: dict[int, int] = {}

    def line(self, now: float) -> str | None:
        """Where the sweep is, None if that cannot be told; now: of a monotonic clock, in seconds."""
        try:
            if self._tally is None:
                self._tally = self._begin()
            if self._tally is None:
                return None
            for position, file in self._files.items():
                if file.exists():
                    self._tally.add(position, self._new_lines(position, file))
            return self._tally.line(now) if self._read else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def _begin(self) -> Tally | None:
        plans = [path for pattern in PLANS for path in self._folder.path.glob(pattern)]
        if not plans:
            return None
        name = max(plans, key=lambda path: path.stat().st_mtime).relative_to(self._folder.path)
        plan = self._folder.read_json(str(name))
        for position, host in enumerate(plan["hosts"]):
            self._files[position] = self._folder.path / self._folder.host_file(str(name.parent), host, ".jsonl")
        return Tally(plan)

    def _new_lines(self, position: int, file: Path) -> list[str]:
        """The whole lines that were added; one that is being written comes next time."""
        with file.open("rb") as stream:
            stream.seek(self._read.get(position, 0))
            data = stream.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read[position] = self._read.get(position, 0) + len(whole)
        return whole.decode("utf-8", "replace").splitlines()
