# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Firmware settings as requested for the next boot: read, compared, written only where they differ, read back.

Nothing here reboots or resets: written values take effect after a reboot of the host, or a reset of the card's firmware.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.cards import (
    Answer,
    RequestedValue,
    argument,
    find,
    is_array,
    is_requested,
    query,
    spelled,
)
from ansible_collections.rdma.cluster.plugins.module_utils._firmware.mlxconfig import Setting, Value

#: Exists if settings were written since the last boot, which removes it: that boot could not apply them.
WRITTEN = "/run/rdma-cluster/firmware-written"
RESETS = {"mstconfig": "mstfwreset", "mlxconfig": "mlxfwreset"}
#: The known values of a setting: {"current": "IB(1)", "next_boot": "ETH(2)"}.
Values = dict[str, Optional[str]]


@dataclass
class DeviceResult:
    """The changes to one device, or those planned in check mode. written: {NAME: {"before", "after"}}, both of the next boot.

    pending: requested settings that the next boot changes; pending_others: those set by others. error: None on success.
    """

    device: str
    tool: str | None = None
    written: dict[str, Values] = field(default_factory=dict)
    not_applicable: list[str] = field(default_factory=list)
    pending: dict[str, Values] = field(default_factory=dict)
    pending_others: dict[str, Values] = field(default_factory=dict)
    why: str = ""
    error: str | None = None

    @property
    def reboot_required(self) -> bool:
        return bool(self.pending)

    @property
    def reset_command(self) -> str | None:
        """Return the command that activates the settings without a reboot; it takes the card's links down."""
        return f"{RESETS[self.tool]} -d {self.device} -y reset" if self.pending and self.tool in RESETS else None

    def to_dict(self) -> dict[str, Any]:
        """Return the module's result for this device."""
        names = ("device", "tool", "written", "not_applicable", "pending", "pending_others", "reboot_required", "why", "error")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class MlxconfigResult:
    """All devices, in the order of the request, including those that failed."""

    devices: list[DeviceResult]

    @property
    def marks(self) -> list[ManagedFile]:
        """The file that records that settings were written."""
        names = [f"{name} of {device.device}" for device in self.devices for name in device.written]
        return [ManagedFile(WRITTEN, f"{', '.join(names)}\n")] if names else []

    @property
    def changed(self) -> bool:
        return any(device.written for device in self.devices)

    @property
    def reboot_required(self) -> bool:
        return any(device.reboot_required for device in self.devices)

    @property
    def errors(self) -> list[str]:
        return [device.error for device in self.devices if device.error is not None]

    @property
    def reset_commands(self) -> list[str]:
        return [device.reset_command for device in self.devices if device.reset_command is not None]

    @property
    def differences(self) -> list[str]:
        """Return the differences from the request for the next boot, in words."""
        return [
            f"{device.device}: {name} is {values['before'] or 'not reported'} at the next boot, requested {values['after']}"
            for device in self.devices
            for name, values in device.written.items()
        ]

    @property
    def diffs(self) -> list[dict[str, str]]:
        """Return the changes in the form that Ansible's --diff prints."""
        return [_diff(device) for device in self.devices if device.written]


def _diff(device: DeviceResult) -> dict[str, str]:
    def lines(key: str) -> str:
        shown = {name: values[key] if values[key] is not None else "(not reported)" for name, values in device.written.items()}
        return "".join(f"{name} = {value}\n" for name, value in shown.items())

    header = f"firmware settings of {device.device} at the next boot"
    return {"before_header": header, "after_header": header, "before": lines("before"), "after": lines("after")}


SET_SECONDS = 120.0
#: What `set` prints if a reboot would not be enough (GenericCommander::loadConfigurationGetStr).
POWER_CYCLE = "power cycle"
#: The settings to write: name → the setting as it is, and the requested value.
Differing = Mapping[str, tuple[Setting, RequestedValue]]


def ensure_settings(requests: Sequence[Mapping[str, Any]], *, runner: Runner, check_mode: bool) -> MlxconfigResult:
    """Give the next boot of each device the requested settings, and change no others.

    requests: [{"device": PCI address, "settings": {NAME: value}}]. If a device cannot be set, its result has the error and nothing is
    written there; the other devices are still set. Raises ApplyError for a device that is named twice, and for an invalid value.
    """
    named = [str(request["device"]) for request in requests]
    twice = sorted({device for device in named if named.count(device) > 1})
    if twice:
        raise ApplyError(f"devices that are named twice, so the requested settings are ambiguous: {', '.join(twice)}")
    odd = [
        f"{name} of {request['device']}"
        for request in requests
        for name, value in request["settings"].items()
        if not isinstance(value, (str, int))
    ]
    if odd:
        raise ApplyError(f"not a number, a text or a boolean: {', '.join(odd)}")
    return MlxconfigResult([_device(str(request["device"]), request["settings"], runner, check_mode=check_mode) for request in requests])


def _device(device: str, settings: Mapping[str, RequestedValue], runner: Runner, *, check_mode: bool) -> DeviceResult:
    answer = query(runner, device)
    result = DeviceResult(device, answer.tool)
    if answer.adapter is None and answer.tool is None and check_mode:
        # The tool is in a package that a check run has not installed.
        result.written = {name: {"before": None, "after": str(request)} for name, request in settings.items()}
        result.why = f"{answer.error}, so that nothing is known of {device}"
        return result
    try:
        if answer.adapter is None:
            raise ApplyError(str(answer.error))
        result.not_applicable = [name for name in settings if _lacks(answer, name)]
        differing = dict(_differing(answer, settings))
        if differing and not check_mode:
            answer = _write(runner, result, differing)
        _report(result, answer, settings, differing)
    except (ApplyError, CommandError) as error:
        result.error = f"{device}: {error}"
    return result


def _lacks(answer: Answer, name: str) -> bool:
    """Return whether a device is known to lack a setting."""
    return answer.adapter is not None and answer.error is None and find(answer.adapter, name) is None


def _differing(answer: Answer, settings: Mapping[str, RequestedValue]) -> Iterator[tuple[str, tuple[Setting, RequestedValue]]]:
    """Yield the settings to write. Raises ApplyError with all that cannot be written or compared."""
    refused = []
    for name, request in settings.items():
        setting = find(answer.adapter, name) if answer.adapter is not None else None
        if _lacks(answer, name):
            continue
        why = _refusal(answer, name, setting, request)
        if why is not None:
            refused.append(why)
        elif setting is not None and setting.next_boot is not None and not is_requested(setting.next_boot, request):
            yield name, (setting, request)
    if refused:
        raise ApplyError("; ".join(dict.fromkeys(refused)))


def _refusal(answer: Answer, name: str, setting: Setting | None, request: RequestedValue) -> str | None:
    """Return why a setting that the device may have cannot be written; None if it can, or already has the requested value."""
    if setting is None:
        return f"{name} could not be read: {answer.error}"
    if is_array(setting.next_boot) or is_array(setting.current):
        return f"{name} is an array ({spelled(setting.next_boot)}), whose elements a query does not report: set it by hand"
    if setting.next_boot is None:
        return f"{name}: {answer.tool} does not report its value (N/A), so it cannot be compared with {request}"
    if setting.read_only and not is_requested(setting.next_boot, request):
        return f"{name} is read-only: it is {spelled(setting.next_boot)}, and cannot be made {request}"
    return None


def _write(runner: Runner, result: DeviceResult, differing: Differing) -> Answer:
    """Write all in one call, and return the device's answer afterwards. Raises ApplyError if it differs from what was written."""
    words = [
        f"{name}={argument(request, setting.next_boot)}" for name, (setting, request) in differing.items() if setting.next_boot is not None
    ]
    argv = (str(result.tool), "-y", "-d", result.device, "set", *words)
    done = runner.run(argv, timeout_seconds=SET_SECONDS)
    if done.rc:
        errors = [line.strip() for line in done.stdout.splitlines() if line.startswith("-E-")] or [done.stderr.strip() or f"exit {done.rc}"]
        raise ApplyError(f"`{' '.join(argv)}` failed: {'; '.join(errors)}")
    result.written = {name: {"before": spelled(setting.next_boot), "after": str(request)} for name, (setting, request) in differing.items()}
    if POWER_CYCLE in done.stdout:
        result.why = f"{result.device} wants a power cycle, a reboot is not enough"
    answer = query(runner, result.device)
    if answer.adapter is None:
        raise ApplyError(f"`{' '.join(argv)}` was run, and cannot be read back: {answer.error}")
    now = {name: found.next_boot if (found := find(answer.adapter, name)) is not None else None for name in differing}
    stuck = [
        f"{name} is {spelled(now[name]) or 'not reported'} after it was set to {request}"
        for name, (_setting, request) in differing.items()
        if not _is(now[name], request)
    ]
    if stuck:
        raise ApplyError(f"did not stick: {'; '.join(stuck)}")
    return answer


def _is(value: Value | None, request: RequestedValue) -> bool:
    return value is not None and is_requested(value, request)


def _report(result: DeviceResult, answer: Answer, settings: Mapping[str, RequestedValue], differing: Differing) -> None:
    """Fill in what was written, and what waits for a reboot. answer: after the write; in check mode, before it."""
    found = answer.adapter.settings if answer.adapter is not None else {}
    for name, (before, request) in differing.items():
        now = found[name].next_boot
        after = spelled(now) if _is(now, request) else str(request)
        result.written[name] = {"before": spelled(before.next_boot), "after": after}
    for name, setting in found.items():
        planned = result.written[name]["after"] if name in result.written else spelled(setting.next_boot)
        values: Values = {"current": spelled(setting.current), "next_boot": planned}
        if name in settings and _waits(setting, planned, written=name in result.written):
            result.pending[name] = values
        elif name not in settings and setting.reboot_pending:
            result.pending_others[name] = values
    words = [
        f"{name} is {each['current'] or 'not reported'} until then, and {each['next_boot']} after it"
        for name, each in result.pending.items()
    ]
    if words:
        waits = f"{result.device} waits for a reboot or a reset: {', '.join(words)}"
        result.why = f"{waits}; {result.why}" if result.why else waits


def _waits(setting: Setting, planned: str | None, *, written: bool) -> bool:
    """Return whether a reboot changes a requested setting; if the current value is unknown, only one just written counts."""
    if setting.current is None or planned is None:
        return written
    return not is_requested(setting.current, planned)
