# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The preflight gate's work on a whole fleet, timed in a process of its own: python -m tests.bench.gate RUN_FOLDER"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ansible_collections.rdma.cluster.plugins.action.gate import ActionModule
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.bench.watch import peak_mib

STAGE = "preflight"
# Prints {"seconds", "mib", "out"}. What each host's gate does between comparing and deciding is done, but not timed.
folder = RunFolder(Path(sys.argv[1]))
hosts = folder.hosts_of(STAGE)
action: Any = ActionModule.__new__(ActionModule)
action._task = SimpleNamespace(check_mode=False)
action.folder = folder
action.variables = {
    "ansible_play_hosts": hosts,
    "ansible_play_hosts_all": hosts,
}
begun = time.monotonic()
action.work({"stage": STAGE, "scope": "fleet"})
seconds = time.monotonic() - begun
for host in hosts:
    folder.write_findings(STAGE, host, folder.read_findings(STAGE, host, of="fleet"))
begun = time.monotonic()
decision = action.work({"stage": STAGE, "scope": "decide", "batch": False})["decision"]
seconds += time.monotonic() - begun
print(json.dumps({"seconds": seconds, "mib": peak_mib("self"), "out": decision["out"]}))
