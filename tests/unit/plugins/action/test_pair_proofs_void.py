# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The records of one host are removed, those of the others stay, and check mode removes nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.action import pair_proofs_void
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs import proofs
from ansible_collections.rdma.cluster.plugins.plugin_utils._pairs.proofs import Proof
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder

PROOF = Proof({"driver": "1"}, 1_764_000_000.0, "R1", 2, {"bandwidth": 92.0}, 0.99)


def void(folder: RunFolder, host: str, *, check_mode: bool = False) -> tuple[dict[str, Any], set[str]]:
    """What the action returns, and the hosts that have proofs afterwards."""
    action: Any = pair_proofs_void.ActionModule.__new__(pair_proofs_void.ActionModule)
    action.folder, action._task = folder, SimpleNamespace(check_mode=check_mode)
    action.variables = {"inventory_hostname": host}
    return action.work({}), set(proofs.read(folder.read_if_there(proofs.FILE)))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    folder.write_json(proofs.FILE, proofs.write({"node1": {"rail0": PROOF, "rail1": PROOF}, "node2": {"rail0": PROOF}}))
    return folder


def test_only_the_hosts_own_records_go(folder: RunFolder) -> None:
    assert void(folder, "node1", check_mode=True) == ({"rails": ["rail0", "rail1"]}, {"node1", "node2"})
    assert void(folder, "node1") == ({"rails": ["rail0", "rail1"]}, {"node2"})


def test_a_host_without_records_changes_nothing(folder: RunFolder, tmp_path: Path) -> None:
    assert void(folder, "node9") == ({"rails": []}, {"node1", "node2"})
    assert void(RunFolder(tmp_path / "other/run"), "node1") == ({"rails": []}, set())
