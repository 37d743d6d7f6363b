# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gate of the host stage asks of PCIe: read requests and ACS as planned, now and at the next boot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._checks_rail import NO_DEVICE, RailPort, rail_ports
from ansible_collections.rdma.cluster.plugins.module_utils._files import differs
from ansible_collections.rdma.cluster.plugins.module_utils._findings import ERROR, NOT_APPLICABLE, OK, UNKNOWN, WARNING, Finding
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_acs import AUTO, BARE_METAL, DATADIRECT, NO_GPU, THIS_PLATFORM
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_plan import (
    DRIVER,
    pcie_wish,
    planned_acs,
    planned_mrrs_bytes,
    read_requests,
    redirecting_bridges,
    state_of,
)
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning import VIRTUAL_FUNCTION
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning_service import UNIT, service_files
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_wish import Wish
from ansible_collections.rdma.cluster.plugins.module_utils._rails import Facts
from ansible_collections.rdma.cluster.plugins.module_utils._systemd import UNITS

STAGE, CHECK = "host", "host.pcie"
ACS_SUBJECT, BOOT_SUBJECT = "ACS between GPUs and NICs", "PCIe settings at boot"
ALLOW = "pcie_acs_write_allowed: true"


def check_pcie_tuning(host: str, intent: Mapping[str, Any], facts: Facts) -> list[Finding]:
    """Findings `host.pcie`: of each rail its read requests, of the host ACS, and whether the next boot brings both again."""
    state = state_of(facts)
    ports = rail_ports(STAGE, host, intent["rails"], facts)
    allowed, withheld = (pcie_wish(intent, facts, acs_allowed=each) for each in (True, False))
    return [
        *(_read_requests(port, planned_mrrs_bytes(intent), state) for port in ports),
        _acs(host, intent, facts, allowed),
        _boot(host, facts, allowed, withheld),
    ]


def _read_requests(port: RailPort, wished: int | None, state: Mapping[str, Any]) -> Finding:
    expected = "any" if wished is None else f"read requests of {wished} bytes by every function of the card"
    why_not = _not_tuned(port) if wished is not None else "rdma_host.pcie.mrrs_bytes is leave: they are left as they are"
    if why_not is not None:
        return port.skip(CHECK, why_not, expected)
    found = read_requests(state, port.pci["address"])
    words = ", ".join(f"{address} {size} bytes" for address, size in found.items() if size is not None)
    if not found or None in found.values():
        remedy = f"Read the facts of {port.host} as root; `lspci -vvv -s {port.address}` there shows MaxReadReq."
        return port.finding(CHECK, UNKNOWN, f"not all could be read: {words or 'none'}", expected, remedy)
    if set(found.values()) == {wished}:
        return port.finding(CHECK, OK, words, expected)
    remedy = f"Run the host stage for {port.host}; where the write does not stick, give another rdma_host.pcie.mrrs_bytes, or leave."
    return port.finding(CHECK, ERROR, words, expected, remedy)


def _not_tuned(port: RailPort) -> str | None:
    """Why a rail's card is none that is tuned."""
    if port.software or not port.device:
        return port.no_pci if port.software else NO_DEVICE
    if port.device.get("function") != "pf":
        return VIRTUAL_FUNCTION
    return port.no_pci if port.device.get("driver") == DRIVER else f"asked of mlx5 only, this is {port.device.get('driver')}"


def _acs(host: str, intent: Mapping[str, Any], facts: Facts, wish: Wish) -> Finding:
    state, planned = state_of(facts), planned_acs(intent, facts)
    why_not = _acs_left(intent, facts, wish)
    if why_not is not None:
        return _acs_finding(host, NOT_APPLICABLE, why_not)
    bridges = redirecting_bridges(state, wish)
    words = f"{', '.join(bridges)} redirect" if bridges else "no bridge redirects"
    if planned is None:
        remedy = f"Say in rdma_host.pcie.acs what {host} is: bare_metal, vm, datadirect, or leave."
        return _acs_finding(host, UNKNOWN, f"{words}; {state['acs_why']}", remedy)
    if state["acs_mode"] == DATADIRECT:
        return _acs_finding(host, ERROR, THIS_PLATFORM, f"Set rdma_host.pcie.acs of {host} to auto.")
    return _redirects(host, intent, facts, wish, words) if bridges else _acs_finding(host, OK, words)


def _acs_left(intent: Mapping[str, Any], facts: Facts, wish: Wish) -> str | None:
    """Why ACS is none that is tuned; None where it is, or where that is not known."""
    if not facts.get("gpus"):
        return NO_GPU
    if not wish.nics:
        return "no rail has a card that is tuned"
    given = intent["host"]["pcie"]["acs"]
    if planned_acs(intent, facts) in (BARE_METAL, None):
        return None
    why: str = state_of(facts)["acs_why"]
    return why if given == AUTO else f"rdma_host.pcie.acs is {given}: it is left as it is"


def _redirects(host: str, intent: Mapping[str, Any], facts: Facts, wish: Wish, words: str) -> Finding:
    """Bridges redirect, and shall not: an error where it was planned in so many words, or was allowed; else it waits for leave."""
    if _is_on_host(wish, facts):
        return _acs_finding(host, ERROR, words, f"Run the host stage for {host}.")
    remedy = f"It takes isolation away: allow it with `{ALLOW}` and run the host stage for {host}, or set rdma_host.pcie.acs to leave."
    return _acs_finding(host, WARNING if intent["host"]["pcie"]["acs"] == AUTO else ERROR, words, remedy)


def _acs_finding(host: str, status: str, observed: str, remedy: str = "") -> Finding:
    return Finding(STAGE, CHECK, host, ACS_SUBJECT, status, observed, "no bridge redirects", remedy)


def _is_on_host(wish: Wish, facts: Facts) -> bool:
    """Whether the host's file asks for this."""
    config, *_others = service_files(wish)
    return not differs(config, facts)


def _boot(host: str, facts: Facts, allowed: Wish, withheld: Wish) -> Finding:
    expected = f"{UNIT} applies them"
    # Whether ACS may be switched off is the role's to know: the file with it is as good as the one without.
    wish = allowed if _is_on_host(allowed, facts) else withheld
    units = facts.get("units")
    if not wish:
        left = [file.path for file in service_files(wish) if differs(file, facts)] if facts.get("files") is not None else []
        return _boot_finding(host, ERROR if left else NOT_APPLICABLE, f"there still is {left[0]}" if left else "nothing is wished", "none")
    if units is None or facts.get("files") is None:
        return _boot_finding(host, UNKNOWN, "systemd or the files were not asked", expected)
    unit = units.get(UNIT) or {}
    wrong = [f"{file.path} is another" for file in service_files(wish) if differs(file, facts)]
    wrong += [word for word, good in (("not enabled", unit.get("enabled")), ("did not run well", unit.get("active"))) if not good]
    return _boot_finding(host, ERROR if wrong else OK, "; ".join(wrong) or expected, expected)


def _boot_finding(host: str, status: str, observed: str, expected: str) -> Finding:
    todo = f"Run the host stage for {host}; `journalctl --unit {UNIT}` there says what failed, {UNITS}/{UNIT} what runs."
    return Finding(STAGE, CHECK, host, BOOT_SUBJECT, status, observed, expected, todo if status in (ERROR, UNKNOWN) else "")
