# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the host stage asks of the clock (B79): one that is off breaks certificates, leases, and logs laid side by side."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._findings import NOT_APPLICABLE, OK, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts

STAGE = "host"
EXPECTED = "kept in step with a time server"
#: Logs of several hosts can be laid side by side, and leases hold; chrony keeps a clock to a thousandth of it.
OFFSET_SECONDS = 0.1


def check_time(host: str, facts: Facts, limit_seconds: float | None = None) -> list[Finding]:
    """Finding `host.time` of one host: whether the kernel counts its clock as synchronised, and how far chrony says it is off.

    limit_seconds: another limit than OFFSET_SECONDS.
    """
    time = facts.get("time") or {}
    synchronised, chrony = time.get("synchronised"), time.get("chrony") or {}
    if synchronised is None:
        return [_finding(host, NOT_APPLICABLE, "the kernel was not asked")]
    if not synchronised:
        remedy = f"Run `timedatectl set-ntp true` on {host}, and see `timedatectl timesync-status` or `chronyc tracking` there."
        return [_finding(host, WARNING, _not_synchronised(chrony), remedy)]
    offset_seconds, limit = chrony.get("offset_seconds"), OFFSET_SECONDS if limit_seconds is None else limit_seconds
    if offset_seconds is None:
        return [_finding(host, OK, "synchronised")]
    observed = f"synchronised with {chrony['source']}, {offset_words(offset_seconds)}"
    if abs(offset_seconds) <= limit:
        return [_finding(host, OK, observed)]
    remedy = f"See `chronyc tracking` on {host}; `chronyc makestep` there sets the clock at once, when no job runs."
    return [_finding(host, WARNING, observed, remedy, f"{EXPECTED}, off by {limit:g} s at most")]


def _finding(host: str, status: str, observed: str, remedy: str = "", expected: str = EXPECTED) -> Finding:
    return Finding(STAGE, "host.time", host, "clock", status, observed, expected, remedy)


def offset_words(seconds: float) -> str:
    """How far a clock is ahead (above 0) of the time."""
    return f"{abs(seconds):.6f} s {'ahead' if seconds >= 0 else 'behind'}"


def _not_synchronised(chrony: dict[str, Any]) -> str:
    sources = chrony.get("sources") or {}
    if not chrony:
        return "not synchronised"
    return f"not synchronised; chrony has {', '.join(sources) or 'no server'} and follows none of them"
