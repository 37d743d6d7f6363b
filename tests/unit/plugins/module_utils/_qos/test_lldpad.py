# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who else sets PFC and ETS."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.systemd import UnitState
from ansible_collections.rdma.cluster.plugins.module_utils._qos.state import read_agents
from tests.unit.builders.trees import write_tree

RUNS = "/sys/fs/cgroup/system.slice/lldpad.service/cgroup.procs: 7"
WANTED = "/etc/systemd/system/multi-user.target.wants/lldpad.service -> /lib/systemd/system/lldpad.service"
SOCKET = "/etc/systemd/system/sockets.target.wants/lldpad.socket -> /lib/systemd/system/lldpad.socket"
MASKED = "/etc/systemd/system/lldpad.service -> /dev/null"
OTHERS = "/sys/fs/cgroup/system.slice/lldpd.service/cgroup.procs: 7"


@pytest.mark.parametrize(
    ("tree", "agents"),
    [
        ("", {}),
        (OTHERS, {}),
        (RUNS, {"lldpad": UnitState(active=True, enabled=False)}),
        (f"{OTHERS}\n{WANTED}", {"lldpad": UnitState(active=False, enabled=True)}),
        (f"{RUNS}\n{SOCKET}", {"lldpad": UnitState(active=True, enabled=True)}),
        (f"{OTHERS}\n{WANTED}\n{MASKED}", {}),
        (RUNS.replace("lldpad", "dcbd"), {"dcbd": UnitState(active=True, enabled=False)}),
        (RUNS.replace("/cgroup/", "/cgroup/systemd/"), {"lldpad": UnitState(active=True, enabled=False)}),
    ],
    ids=["empty", "another", "runs", "starts", "socket", "masked", "dcbd", "version 1"],
)
def test_agents(tmp_path: Path, tree: str, agents: dict[str, UnitState]) -> None:
    assert read_agents(SysRoot(str(write_tree(tmp_path, tree)))) == agents
