# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was done to the firmware settings of devices, or would be in check mode, in the shapes that Ansible prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

RESETS = {"mstconfig": "mstfwreset", "mlxconfig": "mlxfwreset"}
#: A setting's values, and what of them is known: {"current": "IB(1)", "next_boot": "ETH(2)"}.
Values = dict[str, Optional[str]]


@dataclass
class DeviceResult:
    """What was done to one device, or would be in check mode. written: {NAME: {"before", "after"}}, both of the next boot.

    pending: wished settings that the next boot changes; pending_others: those that others have set. error: None where all is well.
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
        """What makes the settings hold without a reboot; it takes the card's links down."""
        return f"{RESETS[self.tool]} -d {self.device} -y reset" if self.pending and self.tool in RESETS else None

    def to_dict(self) -> dict[str, Any]:
        """What the module returns of it."""
        names = ("device", "tool", "written", "not_applicable", "pending", "pending_others", "reboot_required", "why", "error")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class MlxconfigResult:
    """All devices, in the order of the wishes; also those that failed."""

    devices: list[DeviceResult]

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
        """What was not as wished for the next boot, in words."""
        return [
            f"{device.device}: {name} is {values['before'] or 'not told'} at the next boot, wished {values['after']}"
            for device in self.devices
            for name, values in device.written.items()
        ]

    @property
    def diffs(self) -> list[dict[str, str]]:
        """In the shape that Ansible's --diff prints."""
        return [_diff(device) for device in self.devices if device.written]


def _diff(device: DeviceResult) -> dict[str, str]:
    def lines(key: str) -> str:
        return "".join(f"{name} = {values[key] if values[key] is not None else '(not told)'}\n" for name, values in device.written.items())

    header = f"firmware settings of {device.device} at the next boot"
    return {"before_header": header, "after_header": header, "before": lines("before"), "after": lines("after")}
