# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the host stage asks of the clock (B79): one that is off breaks certificates, leases, and logs laid side by side."""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._findings import NOT_APPLICABLE, OK, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts

STAGE = "host"
EXPECTED = "kept in step with a time server"


def check_time(host: str, facts: Facts) -> list[Finding]:
    """Finding `host.time` of one host: whether the kernel counts its clock as synchronised."""
    synchronised = (facts.get("time") or {}).get("synchronised")
    if synchronised is None:
        return [Finding(STAGE, "host.time", host, "clock", NOT_APPLICABLE, "the kernel was not asked", EXPECTED)]
    if synchronised:
        return [Finding(STAGE, "host.time", host, "clock", OK, "synchronised", EXPECTED)]
    remedy = f"Run `timedatectl set-ntp true` on {host}, and see `timedatectl timesync-status` or `chronyc tracking` there."
    return [Finding(STAGE, "host.time", host, "clock", WARNING, "not synchronised", EXPECTED, remedy)]
