# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""DKMS: the tree that its status is read from.

The tree is that of dkms 3.0.10 (Debian 12) with three packages of which one was added, one built and one installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.dkms import DkmsModule, module_names, read_dkms
from tests.unit.builders.trees import write_tree

KERNEL = "6.1.0-56-amd64"
TREE = f"""
    /var/lib/dkms/mok.key: x
    /var/lib/dkms/mok.pub: x
    /var/lib/dkms/alpha-mod/1.0/source -> /usr/src/alpha-mod-1.0
    /usr/src/alpha-mod-1.0/dkms.conf: x
    /var/lib/dkms/alpha-mod/1.0/build/dkms.conf: x
    /var/lib/dkms/beta/1.0/source -> /usr/src/beta-1.0
    /var/lib/dkms/beta/1.0/{KERNEL}/x86_64/log/make.log: x
    /var/lib/dkms/beta/1.0/{KERNEL}/x86_64/module/beta.ko: x
    /var/lib/dkms/gamma/1.0/source -> /usr/src/gamma-1.0
    /var/lib/dkms/gamma/1.0/{KERNEL}/x86_64/log/make.log: x
    /var/lib/dkms/gamma/1.0/{KERNEL}/x86_64/module/gamma.ko: x
    /var/lib/dkms/gamma/kernel-{KERNEL}-x86_64 -> 1.0/{KERNEL}/x86_64
"""
ALPHA = DkmsModule("alpha-mod", "1.0", None, None, "added")
BETA = DkmsModule("beta", "1.0", KERNEL, "x86_64", "built")
GAMMA = DkmsModule("gamma", "1.0", KERNEL, "x86_64", "installed")


def test_the_tree_says_what_the_command_says(tmp_path: Path) -> None:
    assert read_dkms(SysRoot(str(write_tree(tmp_path, TREE)))) == [ALPHA, BETA, GAMMA]


def test_without_dkms_there_is_nothing(tmp_path: Path) -> None:
    assert read_dkms(SysRoot(str(tmp_path))) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param("/var/lib/dkms/delta/1.0/build/x: x", [ALPHA, BETA, GAMMA], id="no source"),
        pytest.param(
            "/var/lib/dkms/delta/1.0/source -> /usr/src/delta-1.0",
            [ALPHA, BETA, DkmsModule("delta", "1.0", None, None, "broken"), GAMMA],
            id="a source that is gone",
        ),
        pytest.param(
            "/var/lib/dkms/delta/1.0/source/dkms.conf: x",
            [ALPHA, BETA, DkmsModule("delta", "1.0", None, None, "added"), GAMMA],
            id="a source that is no link",
        ),
        pytest.param(
            f"/var/lib/dkms/alpha-mod/1.0/{KERNEL}/x86_64/log/make.log: x", [ALPHA, BETA, GAMMA], id="a build that gave no module"
        ),
        pytest.param(
            "/var/lib/dkms/beta/1.0/6.1.0-57-amd64/x86_64/module/beta.ko.xz: x",
            [ALPHA, BETA, DkmsModule("beta", "1.0", "6.1.0-57-amd64", "x86_64", "built"), GAMMA],
            id="a second kernel",
        ),
        pytest.param(
            f"""
            /var/lib/dkms/gamma/2.0/source -> /usr/src/gamma-2.0
            /var/lib/dkms/gamma/2.0/{KERNEL}/x86_64/module/gamma.ko: x
            """,
            [ALPHA, BETA, GAMMA, DkmsModule("gamma", "2.0", KERNEL, "x86_64", "built")],
            id="a second version, of which the first is installed",
        ),
        pytest.param(
            f"/var/lib/dkms/gamma/kernel-{KERNEL}-x86_64 -> 3.0/{KERNEL}/x86_64",
            [ALPHA, BETA, DkmsModule("gamma", "1.0", KERNEL, "x86_64", "built")],
            id="a link to another version",
        ),
        pytest.param("/var/lib/dkms/alpha-mod/1.0/build/x86_64/module/alpha_mod.ko: x", [ALPHA, BETA, GAMMA], id="no kernel"),
        pytest.param("/var/lib/dkms/gamma/original_module/6.1.0/x86_64/gamma.ko: x", [ALPHA, BETA, GAMMA], id="the replaced module"),
    ],
)
def test_changes_of_the_tree(tmp_path: Path, change: str, expected: list[DkmsModule]) -> None:
    assert read_dkms(SysRoot(str(write_tree(tmp_path, TREE + change)))) == expected


def test_the_tree_may_be_a_link(tmp_path: Path) -> None:
    write_tree(tmp_path, TREE)
    (tmp_path / "srv").mkdir()
    (tmp_path / "var/lib/dkms").rename(tmp_path / "srv/dkms")
    (tmp_path / "var/lib/dkms").symlink_to("/srv/dkms")
    assert read_dkms(SysRoot(str(tmp_path))) == [ALPHA, BETA, GAMMA]


OLD, NEW = "5.14.0-427.13.1.el9_4.x86_64", "5.14.0-427.16.1.el9_4.x86_64"
WEAK_TREE = f"""
    /var/lib/dkms/mlnx-ofa_kernel/24.10/source -> /usr/src/mlnx-ofa_kernel-24.10
    /var/lib/dkms/mlnx-ofa_kernel/24.10/{OLD}/x86_64/module/ib_core.ko.xz: x
    /var/lib/dkms/mlnx-ofa_kernel/24.10/{OLD}/x86_64/module/mlx5_core.ko.xz: x
    /var/lib/dkms/mlnx-ofa_kernel/kernel-{OLD}-x86_64 -> 24.10/{OLD}/x86_64
    /lib/modules/{OLD}/extra/ib_core.ko.xz: x
    /lib/modules/{OLD}/extra/mlx5_core.ko.xz: x
    /lib/modules/{NEW}/weak-updates/ib_core.ko.xz -> /lib/modules/{OLD}/extra/ib_core.ko.xz
"""
LINK = f"/lib/modules/{NEW}/weak-updates/mlx5_core.ko.xz -> /lib/modules/{OLD}/extra/mlx5_core.ko.xz"


@pytest.mark.parametrize(
    ("link", "kernels"), [pytest.param("", [OLD], id="one of two modules"), pytest.param(LINK, [OLD, NEW], id="all modules")]
)
def test_what_is_linked_into_weak_updates_is_installed_there(tmp_path: Path, link: str, kernels: list[str]) -> None:
    found = read_dkms(SysRoot(str(write_tree(tmp_path, WEAK_TREE + link))))
    assert found == [DkmsModule("mlnx-ofa_kernel", "24.10", kernel, "x86_64", "installed") for kernel in kernels]


def test_the_modules_that_are_installed(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(tmp_path, TREE + WEAK_TREE)))
    found = read_dkms(sys)
    assert module_names(sys, found, KERNEL) == {"gamma"}
    assert module_names(sys, found, OLD) == {"ib_core", "mlx5_core"}
    assert module_names(sys, found, "6.1.0-1-amd64") == frozenset()


def test_what_is_built_for_one_kernel_and_installed_for_another_is_not_installed_for_both(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(tmp_path, TREE + "/var/lib/dkms/gamma/1.0/6.1.0-57-amd64/x86_64/module/gamma.ko: x")))
    assert module_names(sys, read_dkms(sys), "6.1.0-57-amd64") == frozenset()
