# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of units (systemctl(1), show), the control groups of services (cgroups(7)), and transient units (systemd-run(1))."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError, quoted
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot

#: Where units of ours are installed.
UNITS = "/etc/systemd/system"
#: The folder of the services' control groups; the first is version 2.
SLICES = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice", "/sys/fs/cgroup/unified/system.slice")


@dataclass(frozen=True)
class UnitState:
    """active: it runs, or has run and stays active; enabled: it starts at boot. Both are False for a missing unit."""

    active: bool
    enabled: bool


#: A unit that runs, and starts at boot.
RUNS = UnitState(active=True, enabled=True)


def parse_show(text: str) -> dict[str, UnitState]:
    """Return each unit by its Id: the blocks of `systemctl show --property=Id,ActiveState,UnitFileState`, separated by an empty line."""
    states = {}
    for block in text.strip().split("\n\n"):
        shown = dict(line.partition("=")[::2] for line in block.splitlines())
        if "Id" not in shown:
            raise ParseError(f"systemctl show names no unit in {block!r}")
        states[shown["Id"]] = UnitState(active=shown.get("ActiveState") == "active", enabled=shown.get("UnitFileState") == "enabled")
    return states


def unit_states(runner: Runner, *units: str) -> dict[str, UnitState]:
    """Ask systemd about units. Raises ApplyError if it does not answer."""
    return parse_show(run_checked(runner, "systemctl", "show", "--property=Id,ActiveState,UnitFileState", *units))


def unit_state(runner: Runner, unit: str) -> UnitState:
    """Ask systemd about one unit. Raises ApplyError if it does not answer."""
    return unit_states(runner, unit)[unit]


def enabled_instances(sys: SysRoot, template: str) -> list[str]:
    """Return the enabled instances of a template ("rdma-x@.service"), by the links of `systemctl enable`. No process is started.

    This includes instances whose device is missing, which systemd itself does not know.
    """
    folders = [f"{UNITS}/{name}" for name in sys.list_dir(UNITS) if name.endswith((".wants", ".requires"))]
    prefix, _at, suffix = template.partition("@")
    names = {name for folder in folders for name in sys.list_dir(folder)}
    return sorted(name for name in names - {template} if name.startswith(f"{prefix}@") and name.endswith(suffix))


def service_group(sys: SysRoot, unit: str) -> str | None:
    """Return the control group of a service, which exists while it runs; None if it does not run. No process is started."""
    slice_path = next((folder for folder in SLICES if sys.exists(folder)), None)
    return f"{slice_path}/{unit}" if slice_path is not None and sys.exists(f"{slice_path}/{unit}") else None


def is_running(sys: SysRoot, service: str) -> bool | None:
    """Return whether a service has a control group; None where the tree has no such groups at all."""
    return service_group(sys, service) is not None if any(sys.exists(folder) for folder in SLICES) else None


_PROPERTIES = (
    *("LoadState", "ActiveState", "SubState", "ExecMainCode", "ExecMainStatus", "Result"),
    *("ExecMainStartTimestampMonotonic", "ExecMainExitTimestampMonotonic"),
)
#: The states of a unit whose program is starting or ending, and those of one that has processes.
_BUSY = ("activating", "reloading", "deactivating")
ALIVE = ("active", *_BUSY)
# si_code of waitid(2): the process exited, was killed, was killed and dumped its core.
_EXITED, _SIGNALLED = "1", ("2", "3")
_USEC = 1e6


@dataclass(frozen=True)
class UnitNow:
    """What systemd knows of the unit. rc: its program's exit status, negative for a signal; None while it runs or if it never started.

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
    shown = dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line)
    if not {"LoadState", "ActiveState", "SubState"} <= set(shown):
        raise ParseError(f"systemctl show does not report the state of a unit: {quoted(text)}, expected lines such as 'ActiveState=active'")
    active, code = shown["ActiveState"], shown.get("ExecMainCode", "0")
    there = shown["LoadState"] != "not-found" or active != "inactive"
    running = active in _BUSY or (active == "active" and shown["SubState"] != "exited")
    rc = None
    if there and not running and code in (_EXITED, *_SIGNALLED):
        status = _number(shown, "ExecMainStatus")
        rc = status if code == _EXITED else -status
    begun, ended = (_number(shown, f"ExecMain{each}TimestampMonotonic") for each in ("Start", "Exit"))
    seconds = (ended - begun) / _USEC if 0 < begun <= ended else None
    return UnitNow(there, running, active == "failed", rc, shown.get("Result", ""), seconds)


def _number(shown: Mapping[str, str], name: str) -> int:
    text = shown.get(name) or "0"
    if not text.isascii() or not text.isdigit():
        raise ParseError(f"systemctl show: {name}={quoted(text)} is no number")
    return int(text)


def read_unit(runner: Runner, unit: str) -> UnitNow:
    """Ask systemd about one unit. Raises ApplyError if it does not answer."""
    return parse_unit(run_checked(runner, "systemctl", "show", f"--property={','.join(_PROPERTIES)}", unit))


def transient_command(
    unit: str, properties: Iterable[str], command: Iterable[str], *, options: Iterable[str] = (), environment: Iterable[str] = ()
) -> list[str]:
    """Return the command that starts a program as a transient unit. It returns once the program runs (Type=exec), not when it ends.

    properties: "Name=value" of the unit; options: further ones of systemd-run; environment: "NAME=value".
    """
    given = [f"--property={each}" for each in ("Type=exec", *properties)]
    return ["systemd-run", f"--unit={unit}", *options, *given, *(f"--setenv={each}" for each in environment), *command]


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Exclude a second start on this host, and create the folder. The lock is on the folder itself and leaves nothing behind."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
