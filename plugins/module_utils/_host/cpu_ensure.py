# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Set the CPUs' governor and idle states, now and at boot: with tuned if it runs, because it would set both again; else with a unit.

cpupower writes the same files of sysfs and is not needed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ansible_collections.rdma.cluster.plugins.module_utils._base.boot_service import (
    NO_DEVICES,
    PROGRAMS,
    BootProgram,
    ServiceChange,
    hardened,
    run_service,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner, run_checked
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import (
    FileChange,
    ManagedFile,
    ensure_files,
    listed_diff,
    setting_diff,
)
from ansible_collections.rdma.cluster.plugins.module_utils._host import cpu_runner
from ansible_collections.rdma.cluster.plugins.module_utils._host.cpu import OUR_PROFILE, PROFILE_FILE, Cpu, Tuned

CPU_UNIT = "rdma-cpu.service"
PROGRAM = f"{PROGRAMS}/cpu.pyz"
UNIT_TEXT = f"""\
# Managed by rdma.cluster: the CPUs' governor and idle states of {cpu_runner.CONFIG}.
[Unit]
Description=Governor and idle states of the CPUs for RDMA
After=systemd-modules-load.service cpupower.service cpufrequtils.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/python3 {PROGRAM} --config {cpu_runner.CONFIG}
TimeoutStartSec=120
# It stays root without any capability: the files of /sys/devices/system/cpu belong to root.
{hardened(*NO_DEVICES, "CapabilityBoundingSet=", "RestrictAddressFamilies=none")}

[Install]
WantedBy=multi-user.target
"""
BOOT = BootProgram(CPU_UNIT, UNIT_TEXT, cpu_runner.main, cpu_runner.CONFIG, PROGRAM)
SETTLE_SECONDS = 15.0
#: The settings that can differ.
GOVERNOR, IDLE_STATES = "governor of the CPUs", "idle states of the CPUs"


@dataclass(frozen=True)
class CpuRequest:
    """governor, max_cstate_latency_us: None to leave it unchanged."""

    governor: str | None
    max_cstate_latency_us: int | None

    @property
    def is_empty(self) -> bool:
        return self.governor is None and self.max_cstate_latency_us is None


@dataclass(frozen=True)
class CpuResult:
    """The changes, or in check mode the planned ones. live: (name, actual, requested). profile: tuned's file. taken: tuned's next profile.

    withheld: settings that stay unchanged because the host is in use; then nothing is done. Check mode has the differences as well.
    """

    service: ServiceChange
    profile: list[FileChange]
    taken: str | None
    live: list[tuple[str, str, str]]
    withheld: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.service or self.profile or self.taken or self.live)

    @property
    def effects(self) -> tuple[str, ...]:
        """Return the effects of the change on the CPUs, or on the unit or the profile that sets them, in words."""
        settings = [f"{what}: {seen} to {planned}" for what, seen, planned in self.live]
        profile = [f"profile of tuned: {self.taken}"] if self.taken is not None else []
        return (*settings, *profile) or (f"{CPU_UNIT} and its files",)

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the format of Ansible's --diff."""
        files = [file.to_diff() for file in self.profile]
        taken = listed_diff("profile of tuned", [self.taken] if self.taken is not None else [])
        return [*self.service.diffs, *files, *taken, *(setting_diff(*each) for each in self.live)]


def cpu_differences(request: CpuRequest, seen: Cpu) -> list[tuple[str, str, str]]:
    """Return the settings that differ: (name, actual, requested). Settings that this kernel does not have are omitted."""
    found = []
    if request.governor is not None and seen.governors and set(seen.governors) != {request.governor}:
        found.append((GOVERNOR, ", ".join(seen.governors), request.governor))
    deeper = deep_states(request, seen)
    if deeper:
        found.append((IDLE_STATES, f"{', '.join(deeper)} entered", f"at most {request.max_cstate_latency_us} µs to wake up"))
    return found


def deep_states(request: CpuRequest, seen: Cpu) -> list[str]:
    """Return the idle states with a too long wake-up time that are enabled."""
    most_us = request.max_cstate_latency_us
    if most_us is None or (seen.latency_us is not None and seen.latency_us <= most_us):
        return []
    return [name for name, state in seen.idle_states.items() if state.latency_us > most_us and state.disabled < state.cpus]


def cpu_files(request: CpuRequest, tuned: Tuned | None) -> list[ManagedFile]:
    """Return tuned's profile if it runs, else the unit, its program and its file. The others are removed, or all without a request."""
    return [_profile_file(request, tuned), *BOOT.files(None if request.is_empty or tuned is not None else _settings(request))]


def _profile_file(request: CpuRequest, tuned: Tuned | None) -> ManagedFile:
    return ManagedFile(PROFILE_FILE, profile_text(request, tuned) if tuned is not None and not request.is_empty else None)


def _settings(request: CpuRequest) -> str:
    config = {"governor": request.governor, "max_cstate_latency_us": request.max_cstate_latency_us}
    return json.dumps(config, indent=2, sort_keys=True) + "\n"


def profile_text(request: CpuRequest, tuned: Tuned) -> str:
    """Return a profile that includes the currently active one and adds the requested settings (tuned-profiles(7), the plug-in cpu)."""
    lines = ["# Managed by rdma.cluster.", "[main]", "summary=Governor and idle states for RDMA", f"include={tuned.base}", "", "[cpu]"]
    lines += [f"governor={request.governor}"] if request.governor is not None else []
    lines += [f"force_latency={request.max_cstate_latency_us}"] if request.max_cstate_latency_us is not None else []
    return "\n".join(lines) + "\n"


def ensure_cpu(request: CpuRequest, *, runner: Runner, look: Callable[[], Cpu], check_mode: bool, refused: str = "") -> CpuResult:
    """Apply the requested settings now and for the next boot. look: reads the current state of the CPUs.

    Without a request, our files are removed, and values stay until the next boot. refused: the reason why the CPUs must not be changed now,
    "" if they may. With a reason, nothing is done, neither now nor for the next boot. Raises ApplyError if they still differ afterwards.
    """
    seen = look()
    taken, live = _profile_to_take(request, seen), cpu_differences(request, seen)
    if refused:
        planned = ensure_cpu(request, runner=runner, look=lambda: seen, check_mode=True)
        withheld = planned.effects if planned.changed else ()
        return replace(planned, withheld=withheld) if check_mode else CpuResult(BOOT.unchanged, [], None, [], withheld)
    if taken is not None and request.is_empty and not check_mode:
        # Switch the profile while its file still exists.
        _take(taken, runner)
    service = _service(request, seen.tuned, runner, check_mode=check_mode)
    profile = ensure_files([_profile_file(request, seen.tuned)], check_mode=check_mode)
    if not check_mode and not request.is_empty:
        if seen.tuned is None:
            run_service(service, runner=runner, restart=bool(live or service.files))
        elif taken is not None or profile or live:
            _take(OUR_PROFILE, runner)
        _read_back(request, look)
    return CpuResult(service, profile, taken, live)


def _profile_to_take(request: CpuRequest, seen: Cpu) -> str | None:
    """Return the profile for tuned: ours, or without a request the previous one; None if it has the right one, or does not run."""
    if seen.tuned is None or (seen.tuned.profile == OUR_PROFILE) != request.is_empty:
        return None
    return seen.tuned.base if request.is_empty else OUR_PROFILE


def _service(request: CpuRequest, tuned: Tuned | None, runner: Runner, *, check_mode: bool) -> ServiceChange:
    if request.is_empty or tuned is not None:
        return BOOT.remove(runner=runner, check_mode=check_mode)
    return BOOT.install(_settings(request), runner=runner, check_mode=check_mode)


def _take(profile: str, runner: Runner) -> None:
    run_checked(runner, "tuned-adm", "profile", profile)


def _read_back(request: CpuRequest, look: Callable[[], Cpu]) -> None:
    """Wait until the settings are in effect, because tuned returns earlier. Raises ApplyError if they are not in time."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while left := cpu_differences(request, look()):
        if time.monotonic() > deadline:
            words = "; ".join(f"{what}: {seen} instead of {planned}" for what, seen, planned in left)
            raise ApplyError(f"The CPU settings did not take effect: {words}. Run `systemctl status {CPU_UNIT} tuned`.")
        time.sleep(0.3)
