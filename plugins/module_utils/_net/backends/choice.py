# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which manager configures the rails at boot, what files it needs, and the call that makes a host match."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends import netplan, networkd, networkmanager, nm_profiles
from ansible_collections.rdma.cluster.plugins.module_utils._net.backends.change import Change
from ansible_collections.rdma.cluster.plugins.module_utils._net.managers import NETPLAN, NETWORKD_BACKEND, NM_BACKEND
from ansible_collections.rdma.cluster.plugins.module_utils._net.rail_network import (
    NETWORKD_UNIT,
    NM_UNIT,
    NO_SESSION,
    NetworkRail,
    NetworkResult,
    Running,
)
from ansible_collections.rdma.cluster.plugins.module_utils._net.session import Session

CHANGES: dict[str, type[Change]] = {
    NETWORKD_BACKEND: networkd.NetworkdChange,
    NM_BACKEND: networkmanager.NmChange,
    NETPLAN: netplan.NetplanChange,
}
#: The unit that applies the files at boot.
UNITS = {NETWORKD_BACKEND: NETWORKD_UNIT, NM_BACKEND: NM_UNIT, NETPLAN: NETWORKD_UNIT}


def chosen(requested: str, seen: str | None) -> str:
    """Return the manager for the rails. requested: rdma_host.network.backend; seen: that of the host, None if unknown."""
    return (seen or NETWORKD_BACKEND) if requested == "auto" else requested


def files(
    backend: str, rails: Sequence[NetworkRail], present: Sequence[str], planned: Sequence[str], running: Running
) -> list[ManagedFile]:
    """Return the planned files of these rails for a manager: see `Change.files`."""
    return CHANGES[backend].files(rails, present, planned, running)


def source_file(backend: str, rail: str, *, is_infiniband: bool) -> str:
    """Return the path of our file from which `boot_file` is made; mostly the same."""
    is_rendered = backend == NETPLAN and not is_infiniband
    return netplan.path_of(rail) if is_rendered else boot_file(backend, rail, is_infiniband=is_infiniband)


def boot_file(backend: str, rail: str, *, is_infiniband: bool, made: str | None = None) -> str:
    """Return the path of the file by which the manager configures a rail at boot. made: the rail's interface, if it is a VLAN."""
    if backend == NM_BACKEND:
        return nm_profiles.profile_path(rail)
    return netplan.rendered_path(rail, made) if backend == NETPLAN and not is_infiniband else networkd.path_of(rail)


def ensure(
    backend: str,
    rails: Sequence[NetworkRail],
    planned: Sequence[str],
    *,
    runner: Runner,
    sys: SysRoot,
    check_mode: bool,
    change_allowed: bool = False,
    session: Session = NO_SESSION,
) -> NetworkResult:
    """Make files and live state match the rails, and change only what differs. planned: as in `Change.files`.

    The users of a rail are read here and now. Changes that would harm them are withheld unless change_allowed. The rail then keeps its
    file as well, so that a restart of the manager cannot apply them. Changes that would harm our own SSH session are always withheld.
    Raises ApplyError if an interface does not reach the planned state.
    """
    change = CHANGES[backend](rails, planned, runner, sys, allowed=change_allowed, session=session, check_mode=check_mode)
    return change.run()
