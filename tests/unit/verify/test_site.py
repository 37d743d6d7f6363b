# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ends a run of a playbook."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.verify.site import Site


def test_a_worker_in_a_session_of_its_own_ends_with_its_run() -> None:
    script = "setsid sleep 60 & echo $!; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        worker = Path(f"/proc/{process.stdout.readline().strip()}/stat")
        assert worker.exists()
        Site.kill(process)
    deadline = time.monotonic() + 10
    while worker.exists() and ") Z " not in worker.read_text():
        assert time.monotonic() < deadline, "the worker is still there"
        time.sleep(0.05)
