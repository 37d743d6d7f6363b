# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bed that is one function: what is injected, and an empty folder → the findings."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding

#: Memory where there is some: a run writes many small files.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
Inject = Mapping[str, Any]


@dataclass(frozen=True)
class Scene:
    """judged: (what is injected now, what was injected in the run before this one, an empty folder) → findings. injectors: their keys."""

    judged: Callable[[Inject, Inject, Path], list[Finding]]
    injectors: tuple[str, ...]

    def judge(self, faults: Mapping[str, Sequence[Inject]], earlier: Mapping[str, Sequence[Inject]] | None = None) -> list[Finding]:
        """The findings of all hosts and planes; see tests.faults.score.Bed."""
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            return self.judged(self._merged(faults), self._merged(earlier or {}), Path(folder))

    def _merged(self, faults: Mapping[str, Sequence[Inject]]) -> dict[str, Any]:
        whole: dict[str, Any] = {}
        for inject in (each for injects in faults.values() for each in injects):
            for key, value in inject.items():
                if key not in self.injectors:
                    raise ValueError(f"no injector {key}; those of this bed are {', '.join(self.injectors)}")
                if key in whole and whole[key] == value:
                    continue
                joined = isinstance(value, list) and key in whole
                whole[key] = [*whole[key], *value] if joined else {**whole.get(key, {}), **value} if isinstance(value, dict) else value
        return whole
