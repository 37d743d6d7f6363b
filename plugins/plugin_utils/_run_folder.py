# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The run folder: what one execution leaves behind on the control node. Every writer owns its file and renames it into place."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._findings import Finding

DEFAULT_FOLDER = "artifacts"


def run_id() -> str:
    """The id of this run, "20261120T120501Z-4711": start and pid of the ansible process that owns it.

    Task workers are children of that process, so that all of them, and the callback in the process itself, find the same
    id without handing it around. Linux only (proc(5), /proc/PID/stat).
    """
    parent = multiprocessing.parent_process()
    pid = parent.pid if parent is not None and parent.pid is not None else os.getpid()
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(_started(pid)))}-{pid}"


def _started(pid: int) -> float:
    ticks = int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[19])
    boot = next(line for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines() if line.startswith("btime"))
    return int(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")


class RunFolder:
    """One run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def current(cls, variables: Mapping[str, Any]) -> RunFolder:
        """The folder of this run, made if it is not there; `rdma_run_dir` says where (default: artifacts/ here)."""
        base = Path(str(variables.get("rdma_run_dir") or DEFAULT_FOLDER)).absolute()
        folder = cls(base / run_id())
        folder.path.mkdir(parents=True, exist_ok=True)
        folder._link_latest()
        return folder

    def _link_latest(self) -> None:
        link = self.path.parent / "latest"
        if link.is_symlink() and os.readlink(link) == self.path.name:
            return
        new = self.path.parent / f".latest.{os.getpid()}"
        new.unlink(missing_ok=True)
        new.symlink_to(self.path.name)
        new.replace(link)

    def write(self, name: str, text: str) -> Path:
        """Write a file as a whole; it is there completely or not at all."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.{os.getpid()}")
        new.write_text(text, encoding="utf-8")
        new.replace(path)
        return path

    def write_json(self, name: str, data: Any) -> Path:
        return self.write(name, json.dumps(data, indent=1, sort_keys=True) + "\n")

    def read_json(self, name: str) -> Any:
        return json.loads((self.path / name).read_text(encoding="utf-8"))

    def write_findings(self, stage: str, host: str, findings: list[Finding]) -> Path:
        return self.write_json(f"findings/{stage}/{host}.json", [finding.to_dict() for finding in findings])

    def read_findings(self, stage: str, host: str) -> list[Finding]:
        """A host's findings of a stage; FileNotFoundError if its gate has not asked yet."""
        return [Finding.from_dict(item) for item in self.read_json(f"findings/{stage}/{host}.json")]

    def all_findings(self) -> list[Finding]:
        files = sorted((self.path / "findings").glob("*/*.json"))
        return [Finding.from_dict(item) for file in files for item in json.loads(file.read_text(encoding="utf-8"))]
