# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check of the host gate on the recorder of changes."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import RUNS, UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.service import TIMER
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue import sources as reads
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import Check, declare

declare(
    {
        "host.recorder": Check(
            "host",
            "whether the recorder of changes runs, and starts at boot, if `rdma_recorder.manage` requests it",
            "`systemctl show rdma-recorder.timer`",
            "`systemctl status rdma-recorder.timer rdma-recorder.service`; `journalctl -u rdma-recorder`",
            sources=(reads.UNITS,),
        ),
    }
)

STAGE, CHECK = "host", "host.recorder"


def check_recorder(host: str, intent: Intent, facts: Facts) -> list[Finding]:
    """Finding `host.recorder`: at most a warning, because RDMA does not need it."""
    recorder = intent["recorder"]
    if not recorder["manage"]:
        return [Finding(STAGE, CHECK, host, "recorder", NOT_APPLICABLE, "rdma_recorder does not manage it", "any")]
    planned = RUNS if recorder["state"] == "present" else UnitState(active=False, enabled=False)
    if facts.units is None or TIMER not in facts.units:
        remedy = f"Run `systemctl show {TIMER}` on {host}, which must answer."
        return [Finding(STAGE, CHECK, host, "recorder", UNKNOWN, "systemd was not read", _words(planned), remedy)]
    seen = facts.units[TIMER]
    remedy = f"1. Run the host stage for {host}. 2. There, see why it ended: `journalctl -u rdma-recorder.service`."
    good = seen == planned
    return [Finding(STAGE, CHECK, host, "recorder", OK if good else WARNING, _words(seen), _words(planned), "" if good else remedy)]


def _words(unit: UnitState) -> str:
    return f"{TIMER} {'active' if unit.active else 'inactive'}, {'enabled' if unit.enabled else 'disabled'}"
