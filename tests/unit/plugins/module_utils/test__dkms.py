# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""DKMS: the lines of its status in both forms, and the tree that it reads them from.

The tree and its status are those of dkms 3.0.10 (Debian 12) with three packages of which one was added, one built and one installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from ansible_collections.rdma.cluster.plugins.module_utils._dkms import DkmsModule, module_names, parse_dkms_status, read_dkms
from ansible_collections.rdma.cluster.plugins.module_utils._errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._sysroot import SysRoot
from tests.unit.garbled import garbled, no_time, read_or_refused
from tests.unit.trees import write_tree

KERNEL = "6.1.0-56-amd64"
STATUS = f"""\
alpha-mod/1.0: added
beta/1.0, {KERNEL}, x86_64: built
gamma/1.0, {KERNEL}, x86_64: installed
"""
TREE = f"""
    /var/lib/dkms/mok.key: x
    /var/lib/dkms/mok.pub: x
    /var/lib/dkms/alpha-mod/1.0/source -> /usr/src/alpha-mod-1.0
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
OFED = DkmsModule("mlnx-ofed-kernel", "24.10.OFED.24.10.1.1.4.1", "5.15.0-105-generic", "x86_64", "installed")
OFED_LINE = "mlnx-ofed-kernel/24.10.OFED.24.10.1.1.4.1, 5.15.0-105-generic, x86_64: installed"
DIFFERENT = "(WARNING! Diff between built and installed module!)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(STATUS, [ALPHA, BETA, GAMMA], id="dkms 3"),
        pytest.param(STATUS.replace("/1.0", ", 1.0"), [ALPHA, BETA, GAMMA], id="dkms 2"),
        pytest.param(STATUS.replace("\n", "\r\n\r\n").rstrip(), [ALPHA, BETA, GAMMA], id="CRLF and blank lines"),
        pytest.param("".join(f"    {line}\n" for line in STATUS.splitlines()), [ALPHA, BETA, GAMMA], id="indented"),
        pytest.param(OFED_LINE, [OFED], id="OFED"),
        pytest.param(OFED_LINE.replace(", ", ",\n").replace(": ", ":\n "), [OFED], id="wrapped"),
        pytest.param("", [], id="nothing added"),
        pytest.param("\n", [], id="nothing added, and a line break"),
        pytest.param(f"Deprecated feature: REMAKE_INITRD (dkms.conf)\n{OFED_LINE}\n", [OFED], id="a warning before"),
        pytest.param(f"# dkms status\n{OFED_LINE}\n#", [OFED], id="with the prompt"),
        pytest.param(
            f"gamma/1.0, {KERNEL}, x86_64: installed (original_module exists) {DIFFERENT}\n",
            [DkmsModule("gamma", "1.0", KERNEL, "x86_64", "installed", f"(original_module exists) {DIFFERENT}")],
            id="notes",
        ),
        pytest.param(
            "snapapi26, 0.7.117, 2.6.32-696.el6.x86_64, x86_64: installed-weak from 2.6.32-695.el6.x86_64\n",
            [DkmsModule("snapapi26", "0.7.117", "2.6.32-696.el6.x86_64", "x86_64", "installed", "weak from 2.6.32-695.el6.x86_64")],
            id="weak",
        ),
        pytest.param(
            "srp/24.10: broken\nError! srp/24.10: Missing the module source directory or the symbolic link pointing to it.\n",
            [DkmsModule("srp", "24.10", None, None, "broken")],
            id="dkms 3.2, broken",
        ),
        pytest.param(
            "nvidia/535.183.01, 6.8.0-1013-nvidia-64k, aarch64: installed (Differences between built and installed modules)",
            [
                DkmsModule(
                    "nvidia",
                    "535.183.01",
                    "6.8.0-1013-nvidia-64k",
                    "aarch64",
                    "installed",
                    "(Differences between built and installed modules)",
                )
            ],
            id="dkms 3.2, notes",
        ),
    ],
)
def test_status(text: str, expected: list[DkmsModule]) -> None:
    assert parse_dkms_status(text) == expected


@pytest.mark.parametrize("text", ["bash: dkms: command not found", "Error! This command requires root.\nfoo", "Module  Size  Used by"])
def test_another_text_is_quoted(text: str) -> None:
    with pytest.raises(ParseError, match="not the output of `dkms status`") as caught:
        parse_dkms_status(text)
    assert repr(text.splitlines()[0]) in str(caught.value)


@pytest.mark.parametrize("end", range(len("mlnx-ofed-kernel/2"), len(OFED_LINE)))
def test_a_line_cut_off_is_quoted(end: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse_dkms_status(STATUS + OFED_LINE[:end])
    assert repr(OFED_LINE[:end].strip()) in str(caught.value)


@pytest.mark.parametrize("state", ["instal", "removed", ""])
def test_a_state_that_dkms_does_not_have_is_quoted(state: str) -> None:
    with pytest.raises(ParseError, match=f"'gamma/1.0, {KERNEL}, x86_64:"):
        parse_dkms_status(f"gamma/1.0, {KERNEL}, x86_64: {state} \n{OFED_LINE}")


@given(text=garbled(STATUS + OFED_LINE))
def test_nothing_but_a_parse_error_escapes(text: str) -> None:
    assert read_or_refused(parse_dkms_status, text)


@pytest.mark.parametrize("text", ["a" * 100_000, "a, " * 50_000, "a/b, " * 30_000, ",\n" * 50_000, "a:\n" * 50_000, " " * 100_000 + "x"])
def test_long_texts_take_no_time(text: str) -> None:
    with no_time(), pytest.raises(ParseError):
        parse_dkms_status(text)


def test_the_tree_says_what_the_command_says(tmp_path: Path) -> None:
    assert read_dkms(SysRoot(str(write_tree(tmp_path, TREE)))) == parse_dkms_status(STATUS)


def test_without_dkms_there_is_nothing(tmp_path: Path) -> None:
    assert read_dkms(SysRoot(str(tmp_path))) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param("/var/lib/dkms/delta/1.0/build/x: x", [ALPHA, BETA, GAMMA], id="no source"),
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
