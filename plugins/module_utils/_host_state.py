# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a host that facts tell beside its RDMA devices: limits, kernel settings, units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._command import CommandError, Runner
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._limits import Memlock, read_service_memlock
from ansible_collections.rdma.cluster.plugins.module_utils._login_limits import LoginMemlock, read_login_memlock
from ansible_collections.rdma.cluster.plugins.module_utils._sysctl import BootValue, boot_values, live_values
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._systemd import UnitState, unit_states

#: Whose state decides whether a role has something to do.
UNITS = ("rdma-soft-links.service", "systemd-networkd.service")


@dataclass(frozen=True)
class Limits:
    """service_memlock: what a service gets, read inside a transient one; None if nobody could be asked.

    login_memlock: what logins get, "*" (everybody but root) and "root"; None where no file says it.
    """

    service_memlock: Memlock | None
    login_memlock: dict[str, LoginMemlock | None]


@dataclass(frozen=True)
class Sysctl:
    """live: key → value now; boot: key → the value that the next boot sets, and the file it comes from; None where there is none."""

    live: dict[str, str | None]
    boot: dict[str, BootValue | None]


def read_limits(sys: SysRoot, runner: Runner | None) -> Limits:
    return Limits(read_service_memlock(runner) if runner is not None else None, read_login_memlock(sys))


def read_sysctl(sys: SysRoot, keys: Sequence[str]) -> Sysctl:
    return Sysctl(live=live_values(sys, keys), boot=boot_values(sys, keys))


def read_units(runner: Runner | None) -> dict[str, UnitState] | None:
    """The units of UNITS, or None on a host whose systemd does not answer."""
    if runner is None:
        return None
    try:
        return unit_states(runner, *UNITS)
    except (ApplyError, CommandError):
        return None
