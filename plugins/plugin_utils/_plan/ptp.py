# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PTP as the host stage sets it up: its files and unit, whether a host differs from them, and what runs in their way."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import files_differ
from ansible_collections.rdma.cluster.plugins.module_utils._base.intent import Intent
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import RUNS
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp import (
    CHRONYD,
    PTP4L,
    Ptp4lOptions,
    ask_command,
    largest_offset_ns,
    working_states,
)
from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp_files import REFID, TEMPLATE, PtpRequest, ptp_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.requests import ptp_netdev
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.host import CHRONY_UNITS


def ptp_request(name: str, intent: Intent, facts: Facts) -> PtpRequest | None:
    """Return the planned PTP of a host; None without any, or if its interface is missing. name: the host's in the inventory."""
    ptp, netdev = intent["host"]["time"]["ptp"], ptp_netdev(intent, facts)
    if ptp is None or netdev is None:
        return None
    family = facts.stack.distribution.family if facts.stack is not None else None
    return PtpRequest(
        netdev=netdev,
        pci=facts.netdevs[netdev].pci if netdev in facts.netdevs else None,
        domain=ptp["domain"],
        transport=ptp["transport"],
        is_hardware=ptp["timestamping"] == "hardware",
        is_grandmaster=ptp["grandmaster"] == name,
        chrony_unit=CHRONY_UNITS.get(family or "", CHRONY_UNITS["debian"]),
    )


def ptp_differs(name: str, intent: Intent, facts: Facts) -> bool:
    """False without planned PTP or its interface; else True unless the facts prove that ptp4l runs as planned and chrony has it."""
    request = ptp_request(name, intent, facts)
    if request is None:
        return False
    if files_differ(ptp_files(request), facts.files) or _stale(request, facts):
        return True
    return (facts.units or {}).get(request.unit) != RUNS or _chrony_differs(request, facts)


def _chrony_differs(request: PtpRequest, facts: Facts) -> bool:
    """Return whether the running chrony must be restarted, because it reads its reference clocks only at its start."""
    sources = facts.time.chrony.sources if facts.time and facts.time.chrony else {}
    chrony = [each for each in ptp_files(request) if "chrony" in each.path]
    return (REFID in sources) != request.feeds_chrony or files_differ(chrony, facts.files)


def _stale(request: PtpRequest, facts: Facts) -> list[str]:
    """Return the units of ours for other interfaces, which an earlier plan had."""
    prefix = TEMPLATE.partition("@")[0] + "@"
    return [name for name, unit in (facts.units or {}).items() if name.startswith(prefix) and name != request.unit and unit.enabled]


def ptp_settings(name: str, intent: Intent, facts: Facts) -> dict[str, Any]:
    """Return what the role needs: "files", the "unit", and "stale" units of other interfaces.

    "named": udev names the NIC's clock; "restarts": chrony must be restarted; "follows": chrony follows PTP; "refused": the programs of
    others in the way. "asks": the command that asks ptp4l for its state; "working": the states that its port may have; "offset_ns": how
    far the clock may be from the grandmaster's.
    """
    ptp, request = intent["host"]["time"]["ptp"], ptp_request(name, intent, facts)
    if ptp is None or request is None:
        nothing = {"files": [], "unit": "", "stale": [], "named": False, "restarts": False, "follows": False, "refused": ""}
        return {**nothing, "asks": [], "working": [], "offset_ns": 0}
    files = [{"path": each.path, "content": each.content} for each in ptp_files(request)]
    return {
        "files": files,
        "unit": request.unit,
        "stale": _stale(request, facts),
        "named": request.rule is not None,
        "restarts": _chrony_differs(request, facts),
        "follows": request.feeds_chrony,
        "refused": _obstacles(facts),
        "asks": list(ask_command(Ptp4lOptions(values={"domainNumber": str(request.domain)}))),
        "working": list(working_states(is_grandmaster=request.is_grandmaster, is_software=not request.is_hardware)),
        "offset_ns": largest_offset_ns(ptp),
    }


def _obstacles(facts: Facts) -> str:
    """Return the programs of others that adjust a clock or run PTP, in words; "" if there are none."""
    programs = facts.time.programs if facts.time is not None else []
    others = [each for each in programs if not each.ours and each.name != CHRONYD and (each.name == PTP4L or each.clock != "")]
    return ", ".join(each.words for each in others)
