# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""modules.dep, in lines as depmod of kmod 30 writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.modinfo import parse_modules_dep, read_module_files
from tests.unit.builders.trees import write_tree

STOCK = "kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko"
OTHERS = f"kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko: {STOCK} kernel/drivers/infiniband/core/ib_core.ko\nkernel/fs/not_mlx5_core.ko:\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{STOCK}: kernel/net/tls/tls.ko", STOCK),
        ("updates/dkms/mlx5_core.ko: updates/dkms/mlx_compat.ko", "updates/dkms/mlx5_core.ko"),
        ("extra/mlnx-ofa_kernel/mlx5_core.ko.xz:", "extra/mlnx-ofa_kernel/mlx5_core.ko.xz"),
        ("weak-updates/mlx5-core.ko.zst:", "weak-updates/mlx5-core.ko.zst"),
        ("/opt/drivers/mlx5_core.ko:", "/opt/drivers/mlx5_core.ko"),
        ("kernel/mlx5_core.kox:", None),
        ("", None),
    ],
)
def test_the_line_of_a_module(line: str, expected: str | None) -> None:
    assert parse_modules_dep(f"{OTHERS}{line}\n", "mlx5_core") == expected


def test_each_kernel_is_reported_for_itself(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        """
        /lib/modules/6.1.0-9/modules.dep: updates/dkms/mlx5_core.ko: updates/dkms/mlx_compat.ko
        /lib/modules/6.1.0-10/modules.dep: kernel/fs/x.ko:
        /lib/modules/6.1.0-11/modules.alias: x
        """,
    )
    files = read_module_files(SysRoot(str(tmp_path)), ["6.1.0-9", "6.1.0-10", "6.1.0-11"], "mlx5_core")
    assert files == {"6.1.0-9": "updates/dkms/mlx5_core.ko", "6.1.0-10": None}


def test_this_machine_s_own_files_have_what_find_finds() -> None:
    """Against the files that depmod has written here."""
    folders = {path.parent.name: path.parent for path in Path("/lib/modules").glob("*/modules.dep")}
    if not folders:
        pytest.skip("there is no /lib/modules/*/modules.dep")
    for release, path in read_module_files(SysRoot(), list(folders), "mlx5_core").items():
        there = [str(file.relative_to(folders[release])) for file in folders[release].rglob("mlx5[-_]core.ko*")]
        assert path in there if there else path is None
