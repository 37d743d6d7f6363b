# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which NCCL, nccl-tests and Open MPI a host has."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._driver.distribution import read_distribution
from ansible_collections.rdma.cluster.plugins.module_utils._facts.gather import Asked, gather
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.installed import (
    MPI_PACKAGES,
    STAMP,
    NcclHost,
    NcclTests,
    parse_stamp,
    read_nccl_host,
    render_stamp,
    upstream_version,
)
from tests.unit.builders.trees import write_tree

TESTS = NcclTests("/opt/nccl-tests", "2.19.6", "0123456789abcdef")
LIBRARY = "/usr/lib/x86_64-linux-gnu/libnccl.so.2"
STATUS = """\
Package: openmpi-bin
Status: install ok installed
Version: 4.1.4-3+b1

Package: libnccl2
Status: deinstall ok config-files
Version: 2.30.7-1
"""


def read(root: Path) -> NcclHost:
    sys = SysRoot(str(root))
    return read_nccl_host(sys, read_distribution(sys, None, list(MPI_PACKAGES.values())))


def debian(root: Path) -> Path:
    write_tree(root, f"/etc/os-release: ID=debian\n{LIBRARY} -> libnccl.so.2.30.7\n{LIBRARY}.30.7: ELF")
    (root / "var/lib/dpkg").mkdir(parents=True)
    (root / "var/lib/dpkg/status").write_text(STATUS)
    return root


def test_a_host_with_everything(tmp_path: Path) -> None:
    write_tree(debian(tmp_path), "/opt/nccl-tests/build/all_reduce_perf: ELF")
    write_stamp(tmp_path, render_stamp(TESTS))
    assert read(tmp_path) == NcclHost(f"{LIBRARY}.30.7", "2.30.7", TESTS, "4.1.4")


def write_stamp(root: Path, text: str) -> None:
    path = root / STAMP.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_host_with_nothing(tmp_path: Path) -> None:
    assert read(tmp_path) == NcclHost(None, None, None, None)


@pytest.mark.parametrize("file", ["libnccl.so.2", "libnccl.so.2.30", "libnccl.so.2.30.7.1", "libnccl-static"])
def test_a_library_whose_name_has_no_version_is_there_all_the_same(tmp_path: Path, file: str) -> None:
    write_tree(
        tmp_path, f"/usr/lib64/{file}: ELF" if file == "libnccl.so.2" else f"/usr/lib64/libnccl.so.2 -> {file}\n/usr/lib64/{file}: ELF"
    )
    assert read(tmp_path) == NcclHost(f"/usr/lib64/{file}", None, None, None)


@pytest.mark.parametrize("stamp", ["", "{", "[]", '{"folder": 1, "version": "2", "order": "x"}', '{"folder": "/opt/nccl-tests"}', "null"])
def test_a_stamp_of_another_form_is_none(tmp_path: Path, stamp: str) -> None:
    write_tree(tmp_path, "/opt/nccl-tests/build/all_reduce_perf: ELF")
    write_stamp(tmp_path, stamp)
    assert read(tmp_path).tests is None
    if stamp:
        with pytest.raises(ParseError, match=r"nccl-tests\.json"):
            parse_stamp(stamp)


def test_what_only_root_may_read_is_not_reported_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stamp(tmp_path, render_stamp(TESTS))

    def refuse(_sys: SysRoot, path: str, _parser: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(SysRoot, "value", refuse)
    sys = SysRoot(str(tmp_path))
    assert read_nccl_host(sys, read_distribution(sys, None, list(MPI_PACKAGES.values()))).tests is None


def test_programs_that_are_gone_are_not_installed(tmp_path: Path) -> None:
    write_stamp(tmp_path, render_stamp(TESTS))
    assert read(tmp_path).tests is None


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("2.30.7-1+cuda13.0", "2.30.7"),
        ("1:4.1.4-3", "4.1.4"),
        ("5.0.2-3.el9", "5.0.2"),
        ("4.1", "4.1"),
        ("20260101", None),
        ("", None),
        (None, None),
    ],
)
def test_the_version_of_what_a_package_contains(package: str | None, version: str | None) -> None:
    assert upstream_version(package) == version


def test_the_facts_report_packages_that_are_asked_for(tmp_path: Path) -> None:
    facts = gather(SysRoot(str(debian(tmp_path))), asked=Asked(packages=["libnccl2", "nvidia-x"]))
    assert facts.nccl == NcclHost(f"{LIBRARY}.30.7", "2.30.7", None, "4.1.4")
    assert facts.stack is not None
    assert facts.stack.distribution.asked == {"libnccl2": None, "nvidia-x": None, "openmpi": None, "openmpi-bin": "4.1.4-3+b1"}
    assert gather(SysRoot(str(tmp_path)), asked=Asked(frozenset())).nccl is None
