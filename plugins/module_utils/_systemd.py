# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What systemd says of a unit (systemctl(1), show)."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._command import Runner, run_checked


@dataclass(frozen=True)
class UnitState:
    """active: it runs, or has run and remains; enabled: it starts at boot. Both False for a unit that is not there."""

    active: bool
    enabled: bool


def unit_state(runner: Runner, unit: str) -> UnitState:
    """Ask systemd about a unit. Raises ApplyError if it does not answer."""
    shown = run_checked(runner, "systemctl", "show", "--property=ActiveState,UnitFileState", unit)
    said = set(shown.split())
    return UnitState(active="ActiveState=active" in said, enabled="UnitFileState=enabled" in said)
