# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files written only when they differ, and compared on the control node by what facts say of them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import (
    BEGIN,
    END,
    ManagedFile,
    described,
    differs,
    ensure_files,
    files_differ,
    listed_diff,
    managed_files,
    others_of,
    shared_files,
    with_block,
)
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._facts.host_state import variables_in
from tests.unit.builders.hosts import described_file
from tests.unit.builders.trees import write_tree


def test_writes_once_and_then_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "new/file.conf"
    file = ManagedFile(str(path), "a\n", 0o640)
    (change,) = ensure_files([file], check_mode=False)
    assert (change.before, change.after) == (None, "a\n")
    assert path.read_text() == "a\n"
    assert path.stat().st_mode & 0o777 == 0o640
    before = path.stat()
    assert ensure_files([file], check_mode=False) == []
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino


def test_check_mode_reports_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old\n")
    (change,) = ensure_files([ManagedFile(str(path), "new\n")], check_mode=True)
    assert change.to_diff() == {
        "before_header": str(path), "after_header": str(path), "before": "old\n", "after": "new\n",
    }  # fmt: skip
    assert path.read_text() == "old\n"


def test_a_wrong_owner_is_a_change_and_fixed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a\n")
    path.chmod(0o644)
    os.chown(path, 65534, 65534)
    (change,) = ensure_files([ManagedFile(str(path), "a\n", 0o644)], check_mode=False)
    assert (change.before, change.after) == ("mode 0644\nowner 65534:65534\n", "mode 0644\nowner 0:0\n")
    assert (path.stat().st_uid, path.stat().st_gid) == (0, 0)


@pytest.mark.parametrize("there", [b"a\r\n", b"caf\xe9\n", b"\xef\xbb\xbfa\n"])
def test_bytes_that_differ_are_a_change_whatever_they_are_as_text(tmp_path: Path, there: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(there)
    assert ensure_files([ManagedFile(str(path), "a\n")], check_mode=False)
    assert path.read_bytes() == b"a\n"
    assert ensure_files([ManagedFile(str(path), "a\n")], check_mode=False) == []


def test_a_wrong_mode_is_a_change(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a\n")
    path.chmod(0o600)
    (change,) = ensure_files([ManagedFile(str(path), "a\n", 0o644)], check_mode=False)
    assert (change.before, change.after) == ("mode 0600\nowner 0:0\n", "mode 0644\nowner 0:0\n")
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_file_that_is_not_planned_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a\n")
    assert len(ensure_files([ManagedFile(str(path), None)], check_mode=False)) == 1
    assert not path.exists()
    assert ensure_files([ManagedFile(str(path), None)], check_mode=False) == []


def test_a_program_is_bytes_and_shown_by_its_sum(tmp_path: Path) -> None:
    path = tmp_path / "program.pyz"
    data = b"#!/usr/bin/python3\nPK\x00\xff\r\n"
    file = ManagedFile(str(path), data, 0o755)
    (change,) = ensure_files([file], check_mode=False)
    assert path.read_bytes() == data
    assert (change.before, change.after) == (None, f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}\n")
    assert ensure_files([file], check_mode=False) == []
    (gone,) = ensure_files([ManagedFile(str(path), None)], check_mode=False)
    assert (gone.before, gone.after) == (change.after, None)
    there = {"sha256": hashlib.sha256(data).hexdigest(), "mode": 0o755, "owner": "0:0"}
    assert not differs(file, {str(path): there})
    assert (file.text, FILE.text, GONE.text) == ("", "NCCL_DEBUG=WARN\n", "")


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    ensure_files([ManagedFile(str(tmp_path / "file"), "a\n")], check_mode=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


FILE = ManagedFile("/etc/nccl.conf", "NCCL_DEBUG=WARN\n")
GONE = ManagedFile("/etc/nccl.conf", None)
SHA256 = hashlib.sha256(b"NCCL_DEBUG=WARN\n").hexdigest()
COMPARISONS = [
    pytest.param(FILE, {"/etc/nccl.conf": {"sha256": SHA256, "mode": 0o644, "owner": "0:0"}}, False, id="the same"),
    pytest.param(FILE, {"/etc/nccl.conf": {"sha256": SHA256, "mode": 0o600, "owner": "0:0"}}, True, id="another mode"),
    pytest.param(FILE, {"/etc/nccl.conf": {"sha256": SHA256, "mode": 0o644, "owner": "65534:0"}}, True, id="another owner"),
    pytest.param(FILE, {"/etc/nccl.conf": {"sha256": "00", "mode": 0o644}}, True, id="another content"),
    pytest.param(FILE, {}, True, id="not there"),
    pytest.param(FILE, None, True, id="nothing known"),
    pytest.param(GONE, {}, False, id="gone as planned"),
    pytest.param(GONE, {"/etc/nccl.conf": {"sha256": SHA256, "mode": 0o644, "owner": "0:0"}}, True, id="still there"),
    pytest.param(GONE, None, True, id="gone or not is not known"),
]


@pytest.mark.parametrize(("file", "there", "expected"), COMPARISONS)
def test_a_file_against_facts(file: ManagedFile, there: Any, expected: bool) -> None:
    assert differs(file, there) is expected
    assert files_differ([file], there) is expected
    right = ManagedFile("/etc/x", None)
    assert files_differ([right, file, right], there) is expected


def test_facts_without_files_prove_nothing() -> None:
    assert differs(FILE, None) is True
    assert files_differ([], None) is False
    assert others_of(None, FILE.path) == {}


def test_the_files_of_a_host_are_those_in_our_places(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        """
        /etc/nccl.conf: NCCL_DEBUG=WARN
        /etc/nccl.conf.d/readme: a folder of this name is no file
        /etc/nccl-topo.xml: not ours
        /etc/rdma-cluster/soft-links.json: []
        /etc/rdma-cluster/folder/file: not looked at
        /etc/sysctl.d/99-sysctl.conf: not ours
        /etc/systemd/network/60-rdma-rail0.network: a
        /etc/systemd/network/70-other.network: not ours
        /etc/systemd/system/ssh.service: not ours
        """,
    )
    (tmp_path / "etc/nccl.conf").chmod(0o640)
    found = managed_files(SysRoot(str(tmp_path)))
    assert sorted(found) == ["/etc/nccl.conf", "/etc/rdma-cluster/soft-links.json", "/etc/systemd/network/60-rdma-rail0.network"]
    assert found["/etc/nccl.conf"] == {"sha256": SHA256, "mode": 0o640, "owner": "0:0"}


def test_a_file_that_is_not_utf_8_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/nccl.conf").write_bytes(b"\xff\x00\r\n")
    assert managed_files(SysRoot(str(tmp_path)))["/etc/nccl.conf"]["sha256"] == hashlib.sha256(b"\xff\x00\r\n").hexdigest()


def test_a_file_that_is_named_and_in_our_places_is_there_once(tmp_path: Path) -> None:
    write_tree(tmp_path, "/etc/nccl.conf: NCCL_DEBUG=WARN")
    assert list(managed_files(SysRoot(str(tmp_path)), ["/etc/nccl.conf"])) == ["/etc/nccl.conf"]


def test_what_is_done_beside_files_is_listed() -> None:
    assert listed_diff("loaded kernel modules", ["ib_core", "rdma_rxe"]) == [
        {"before_header": "loaded kernel modules", "after_header": "loaded kernel modules", "before": "", "after": "ib_core\nrdma_rxe\n"}
    ]
    assert listed_diff("loaded kernel modules", []) == []


def test_a_file_differs_by_its_content_its_mode_and_its_owner() -> None:
    usual, secret = ManagedFile("/etc/nccl.conf", "NCCL_DEBUG=WARN\n"), ManagedFile("/etc/key", "x", 0o600)
    seen = {file.path: described(file.content or "", file.mode) for file in (usual, secret)}
    assert not files_differ([usual, secret], seen)
    for path, reported in seen.items():
        for change in ({"sha256": "0" * 64}, {"mode": 0o640}, {"owner": "1:0"}):
            assert files_differ([usual, secret], {**seen, path: {**reported, **change}})


OTHERS = "# site settings\nNCCL_IB_HCA=mlx5\nNCCL_BUFFSIZE=8388608\n"
OURS = f"{BEGIN}\nNCCL_IB_TC=106\n{END}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", OURS),
        (OTHERS, OTHERS + OURS),
        (OTHERS.rstrip("\n"), OTHERS + OURS),
        (f"{OTHERS}{BEGIN}\nNCCL_IB_TC=1\n{END}\n", OTHERS + OURS),
        (f"{BEGIN}\nNCCL_IB_TC=1\n{END}\n{OTHERS}", OTHERS + OURS),
        # Of an earlier version: the whole file was ours.
        ("# Managed by rdma.cluster\nNCCL_IB_TC=1\n", OURS),
        # Its end is lost: no line is taken for ours.
        (f"{BEGIN}\n{OTHERS}", f"{BEGIN}\n{OTHERS}{OURS}"),
        ("a\x0bb\x85c\r\n", "a\x0bb\x85c\r\n" + OURS),
    ],
    ids=["none", "others", "no newline", "at the end", "at the start", "whole", "cut", "odd bytes"],
)
def test_only_the_block_changes(before: str, after: str) -> None:
    assert with_block(before, "NCCL_IB_TC=106\n") == after
    if not before.startswith(f"{BEGIN}\n#"):
        assert with_block(after, "NCCL_IB_TC=106\n") == after


def test_lines_that_are_replaced_become_comments() -> None:
    text = with_block(OTHERS, "NCCL_IB_HCA==mlx5_0\n", ["NCCL_IB_HCA"])
    assert text.startswith("# site settings\n# replaced by rdma.cluster: NCCL_IB_HCA=mlx5\nNCCL_BUFFSIZE=8388608\n# BEGIN")
    assert with_block(text, "NCCL_IB_HCA==mlx5_0\n", ["NCCL_IB_HCA"]) == text


def test_a_block_keeps_mode_and_owner_and_the_link_to_the_file(tmp_path: Path) -> None:
    real, link = tmp_path / "site.conf", tmp_path / "nccl.conf"
    real.write_bytes(b"NCCL_A=\xff1\n")
    real.chmod(0o640)
    link.symlink_to(real)
    file = ManagedFile(str(link), "NCCL_B=2\n", block=True)
    [change] = ensure_files([file], check_mode=True)
    assert "NCCL_B=2" in (change.after or "")
    assert real.read_bytes() == b"NCCL_A=\xff1\n"
    assert len(ensure_files([file], check_mode=False)) == 1
    assert real.read_bytes() == b"NCCL_A=\xff1\n" + f"{BEGIN}\nNCCL_B=2\n{END}\n".encode()
    assert (link.is_symlink(), real.stat().st_mode & 0o777) == (True, 0o640)
    assert ensure_files([file], check_mode=False) == []


def test_facts_of_a_shared_file_report_the_block_and_the_lines_of_others(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/nccl.conf").write_text(OTHERS + OURS)
    seen = managed_files(SysRoot(str(tmp_path)), [], shared_files(["/etc/rdma-cluster/nccl.env"]), variables_in)
    file = ManagedFile("/etc/nccl.conf", "NCCL_IB_TC=106\n", block=True)
    others = {"NCCL_IB_HCA": "mlx5", "NCCL_BUFFSIZE": "8388608"}
    assert seen["/etc/nccl.conf"]["others"] == others
    assert (others_of(seen, file.path), differs(file, seen)) == (others, False)
    assert differs(replace(file, content="NCCL_IB_TC=1\n"), seen)
    assert differs(replace(file, replaced=("NCCL_IB_HCA",)), seen)
    assert not differs(file, {file.path: described_file(file)})
    assert differs(file, {file.path: described("NCCL_IB_TC=106\n", 0o644)})
