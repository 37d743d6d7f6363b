# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What systemd knows of a transient unit that stays after its end (systemctl(1), show, of systemd 240 to 257)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError

_PROPERTIES = (
    *("LoadState", "ActiveState", "SubState", "ExecMainCode", "ExecMainStatus", "Result"),
    *("ExecMainStartTimestampMonotonic", "ExecMainExitTimestampMonotonic"),
)
_BUSY = ("activating", "reloading", "deactivating")
# si_code of waitid(2): the process exited, was killed, was killed and dumped its core.
_EXITED, _SIGNALLED = "1", ("2", "3")
_USEC = 1e6


@dataclass(frozen=True)
class UnitNow:
    """What systemd knows of the unit. rc: its program's exit status, negative for a signal; None while it runs or if it never began.

    result: systemd's word for the end: success, exit-code, signal, core-dump, timeout, oom-kill. seconds: of the program, once ended.
    """

    there: bool
    running: bool
    failed: bool
    rc: int | None
    result: str
    seconds: float | None


def parse_unit(text: str) -> UnitNow:
    """Parse `systemctl show --property=…` of one unit, lines of "Name=value" in any order. Raises ParseError without its states."""
    said = dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line)
    if not {"LoadState", "ActiveState", "SubState"} <= set(said):
        raise ParseError(f"systemctl show does not tell the state of a unit: {text[:200]!r}, expected lines such as 'ActiveState=active'")
    active, code = said["ActiveState"], said.get("ExecMainCode", "0")
    there = said["LoadState"] != "not-found" or active != "inactive"
    running = active in _BUSY or (active == "active" and said["SubState"] != "exited")
    rc = None
    if there and not running and code in (_EXITED, *_SIGNALLED):
        status = _number(said, "ExecMainStatus")
        rc = status if code == _EXITED else -status
    begun, ended = (_number(said, f"ExecMain{each}TimestampMonotonic") for each in ("Start", "Exit"))
    seconds = (ended - begun) / _USEC if 0 < begun <= ended else None
    return UnitNow(there, running, active == "failed", rc, said.get("Result", ""), seconds)


def _number(said: Mapping[str, str], name: str) -> int:
    text = said.get(name) or "0"
    if not text.isascii() or not text.isdigit():
        raise ParseError(f"systemctl show: {name}={text[:200]!r} is no number")
    return int(text)


def read_unit(runner: Runner, unit: str) -> UnitNow:
    """Ask systemd about one unit. Raises ApplyError if it does not answer."""
    return parse_unit(run_checked(runner, "systemctl", "show", f"--property={','.join(_PROPERTIES)}", unit))
