# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Daemons that speak DCBX for the host, and so set PFC and ETS of its interfaces to what the peer or their own file says.

lldpad (open-lldp) and its forerunner dcbd. Read from files, at the cost of no process. That the firmware speaks it is in DCBX's mode.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._systemd import UnitState, is_running

AGENTS = ("lldpad", "dcbd")
_UNITS = "/etc/systemd/system"


def read_agents(sys: SysRoot) -> dict[str, UnitState]:
    """Those that run, or start at boot, by name."""
    agents = {name: UnitState(active=is_running(sys, f"{name}.service") is True, enabled=_is_enabled(sys, name)) for name in AGENTS}
    return {name: state for name, state in agents.items() if state.active or state.enabled}


def _is_enabled(sys: SysRoot, name: str) -> bool:
    """Whether a target or a socket starts the service; one that is masked starts in no way."""
    if sys.link_target(f"{_UNITS}/{name}.service") == "/dev/null":
        return False
    folders = [entry for entry in sys.list_dir(_UNITS) if entry.endswith((".wants", ".requires"))]
    wanted = {unit for folder in folders for unit in sys.list_dir(f"{_UNITS}/{folder}")}
    return bool(wanted & {f"{name}.service", f"{name}.socket"})
