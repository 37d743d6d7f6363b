# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which line wins for logins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._host import limits
from ansible_collections.rdma.cluster.plugins.module_utils._host.limits import Rule, parse_limits_conf, read_login_limits

LINES = [
    ("* - memlock unlimited", [Rule("*", ("soft", "hard"), "memlock", "unlimited")]),
    ("root\thard  memlock\t65536  # why", [Rule("root", ("hard",), "memlock", "65536")]),
    ("# * - memlock unlimited", []),
    ("* - nofile 1048576", [Rule("*", ("soft", "hard"), "nofile", "1048576")]),
    ("@hpc - memlock 1", []),
    ("* both memlock 1", []),
    ("* memlock 1", []),
    ("", []),
]


@pytest.mark.parametrize(("text", "expected"), LINES)
def test_lines(text: str, expected: list[Rule]) -> None:
    assert parse_limits_conf(text) == expected


def write(root: Path, **files: str) -> SysRoot:
    folder = root / "etc/security/limits.d"
    folder.mkdir(parents=True)
    (root / "etc/security/limits.conf").write_text(files.pop("first", ""))
    for name, text in files.items():
        (folder / f"{name}.conf").write_text(text)
    (folder / "99-not-read").write_text("* - memlock 1\n")
    return SysRoot(str(root))


def test_our_own_file_gives_everybody_all(tmp_path: Path) -> None:
    requested = limits.LimitsRequest(memlock_unlimited=True, open_files=131072, keep_ipc=True)
    (ours,) = [file for file in limits.files(requested) if "security" in file.path]
    sys = write(tmp_path, first="* - memlock 64\n* - nofile 1024\n", ours=ours.content or "")
    memlock, open_files = read_login_limits(sys, "memlock"), read_login_limits(sys, "nofile")
    assert {who: limit and limit.unlimited for who, limit in memlock.items()} == {"*": True, "root": True}
    # The soft limit binds: the hard one is higher.
    assert {who: limit and limit.value for who, limit in open_files.items()} == {"*": "131072", "root": "131072"}


def test_the_last_file_wins_and_the_smaller_of_both_binds(tmp_path: Path) -> None:
    found = read_login_limits(
        write(tmp_path, a="* - memlock unlimited\nroot - memlock -1\n", b="# site\n* soft memlock 65536\n"), "memlock"
    )
    limit = found["*"]
    assert limit is not None
    assert (limit.unlimited, limit.value, limit.file, limit.line) == (False, "65536", "/etc/security/limits.d/b.conf", 2)
    assert found["root"] is not None
    assert found["root"].unlimited


@pytest.mark.parametrize("text", ["", "* soft memlock unlimited\n"])
def test_what_no_file_says_is_not_known(tmp_path: Path, text: str) -> None:
    assert read_login_limits(write(tmp_path, a=text), "memlock") == {"*": None, "root": None}


def test_of_numbers_the_smaller_binds(tmp_path: Path) -> None:
    found = read_login_limits(
        write(tmp_path, a="* soft nofile 262144\n* hard nofile 65536\nroot soft nofile 9\nroot hard nofile much\n"), "nofile"
    )
    assert {who: limit and limit.value for who, limit in found.items()} == {"*": "65536", "root": "much"}
