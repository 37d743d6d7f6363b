# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The site playbook as a person runs it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from lab.cluster import Lab

ROOT = Path(__file__).parents[2]


class Site:
    """Runs the site playbook on the lab and keeps what it printed."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.run_dir = folder / "artifacts"

    def run(self) -> subprocess.CompletedProcess[str]:
        begun = time.monotonic()
        argv = ["ansible-playbook", "-i", str(self.lab.folder.inventory), "playbooks/site.yml", "-e", f"rdma_run_dir={self.run_dir}"]
        done = subprocess.run(
            argv, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False, env={**os.environ, "ANSIBLE_NOCOLOR": "1"}
        )
        print(f"\nsite run: exit status {done.returncode} after {time.monotonic() - begun:.0f} s")
        return done

    @property
    def evidence(self) -> Path:
        return self.run_dir / "latest"
