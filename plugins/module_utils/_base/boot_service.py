# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings that are lost at a reboot, as a service: its files, an enabled unit, and a run now if there is something to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import FileChange, ManagedFile, ensure_files, listed_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import program_of
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UNITS, unit_state

#: Where the units' programs are installed.
PROGRAMS = "/usr/local/lib/rdma-cluster"
_TIMEOUT_SECONDS = 150.0
#: Restrictions for all units of ours. ProtectSystem=strict does not cover /dev, /proc and /sys. A refused call is an error, not the end.
HARDENING = (
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "PrivateTmp=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectProc=invisible",
    "LockPersonality=yes",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "KeyringMode=private",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallErrorNumber=EPERM",
    "UMask=0077",
)
#: In addition, for a unit that opens no device and reads no clock: it writes files of /sys, or uses netlink.
NO_DEVICES = ("ProtectHome=yes", "PrivateDevices=yes", "ProtectClock=yes", "MemoryDenyWriteExecute=yes", "IPAddressDeny=any")


def hardened(*own: str) -> str:
    """Return the [Service] lines that remove what a unit does not need; own: what only this unit gives up, or keeps."""
    return "\n".join((*HARDENING, *own))


@dataclass(frozen=True)
class ServiceChange:
    """The differences between a service and its plan: files, and whether to enable and start the unit.

    removed: the former states of a unit that is removed, of "enabled" and "started".
    """

    unit: str
    files: list[FileChange]
    enabled: bool
    started: bool
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.enabled or self.started or self.removed)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the form that Ansible's --diff prints."""
        states = _states(enabled=self.enabled, started=self.started)
        return [*(file.to_diff() for file in self.files), *listed_diff(self.unit, states, gone=self.removed)]


@dataclass(frozen=True)
class BootProgram:
    """A unit that runs a program of ours at boot, which applies the settings of a file.

    unit: its name; one with "@" has an instance for each interface. text: the content of the unit file. main: the function that the program
    starts with; config: the path of the file of settings; program: where the program is installed.
    """

    unit: str
    text: str
    main: Callable[[], int]
    config: str
    program: str

    @property
    def paths(self) -> list[str]:
        """Return the paths of the settings, the program and the unit."""
        return [self.config, self.program, f"{UNITS}/{self.unit}"]

    def files(self, settings: str | None) -> list[ManagedFile]:
        """Return the planned files. settings: the text of the file of settings; None removes all files."""
        if settings is None:
            return [ManagedFile(path, None) for path in self.paths]
        config, program, unit = self.paths
        return [ManagedFile(config, settings), ManagedFile(program, program_of(self.main), 0o755), ManagedFile(unit, self.text)]

    @property
    def unchanged(self) -> ServiceChange:
        """Return the change of a run that touches neither the files nor the unit."""
        return ServiceChange(self.unit, [], enabled=False, started=False)

    def install(self, settings: str, *, runner: Runner, check_mode: bool) -> ServiceChange:
        """Write the files and read the state of the unit; run_service does the rest."""
        return install_service(self.unit, self.files(settings), runner=runner, check_mode=check_mode)

    def remove(self, *, runner: Runner, check_mode: bool) -> ServiceChange:
        """Disable the unit and remove the files. Settings that the program applied stay until the next boot."""
        return remove_service(self.unit, self.paths, runner=runner, check_mode=check_mode)


def install_service(unit: str, files: Sequence[ManagedFile], *, runner: Runner, check_mode: bool) -> ServiceChange:
    """Write the files of a service, including the unit's, and read the state of the unit; run_service does the rest."""
    written = ensure_files(list(files), check_mode=check_mode)
    state = unit_state(runner, unit)
    return ServiceChange(unit, written, enabled=not state.enabled, started=not state.active)


def run_service(change: ServiceChange, *, runner: Runner, restart: bool = False) -> None:
    """Enable the unit, and start it if it does not run, or if restart is set. Raises ApplyError with systemd's message."""
    if change.enabled:
        # This also reloads systemd.
        _systemctl(runner, "enable", change.unit)
    elif any(PurePosixPath(file.path).name in (change.unit, _template(change.unit)) for file in change.files):
        _systemctl(runner, "daemon-reload")
    if change.started or restart:
        _systemctl(runner, "restart", change.unit)


def remove_service(unit: str, paths: Sequence[str], *, runner: Runner, check_mode: bool) -> ServiceChange:
    """Stop and disable the service while its unit is still known, then remove its files. Its effects stay until the next boot."""
    state = unit_state(runner, unit)
    if (state.active or state.enabled) and not check_mode:
        _systemctl(runner, "disable", "--now", unit)
    files = install_files([ManagedFile(path, None) for path in paths], runner=runner, check_mode=check_mode)
    return ServiceChange(unit, files, enabled=False, started=False, removed=_states(enabled=state.enabled, started=state.active))


def install_files(files: Sequence[ManagedFile], *, runner: Runner, check_mode: bool) -> list[FileChange]:
    """Write or remove the files that several units share, and reload systemd."""
    changes = ensure_files(list(files), check_mode=check_mode)
    if not check_mode and any(change.path.endswith(".service") for change in changes):
        _systemctl(runner, "daemon-reload")
    return changes


def _states(*, enabled: bool, started: bool) -> tuple[str, ...]:
    return (*(("enabled",) if enabled else ()), *(("started",) if started else ()))


def _template(unit: str) -> str:
    """Return the template of an instance: rdma-qos@.service for rdma-qos@ens1.service."""
    return re.sub(r"@.*(?=\.service$)", "@", unit)


def _systemctl(runner: Runner, *words: str) -> None:
    run_checked(runner, "systemctl", *words, timeout_seconds=_TIMEOUT_SECONDS)
