# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._rdma.nics import read_nodes
from tests.unit.builders.trees import write_tree


def test_the_nodes_that_are_open_to_all_and_their_modes(tmp_path: Path) -> None:
    names = {"uverbs0": 0o666, "uverbs1": 0o600, "rdma_cm": 0o666, "umad0": 0o600, "issm0": 0o600}
    write_tree(tmp_path, "".join(f"/dev/infiniband/{name}: x\n" for name in names))
    for name, mode in names.items():
        (tmp_path / "dev/infiniband" / name).chmod(mode)
    found = read_nodes(SysRoot(str(tmp_path)))
    assert found == {"/dev/infiniband/rdma_cm": 0o666, "/dev/infiniband/uverbs0": 0o666, "/dev/infiniband/uverbs1": 0o600}


def test_none_are_there(tmp_path: Path) -> None:
    assert read_nodes(SysRoot(str(tmp_path))) == {}
