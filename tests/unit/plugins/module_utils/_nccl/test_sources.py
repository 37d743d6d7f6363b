# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading the sources of NCCL's variables of a host, against trees of its files and a scripted runner."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.environment_file import PROPERTIES
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._nccl import sources as nccl_sources
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import ConfLine
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.lint.precedence import (
    ENVIRONMENT,
    NAMED_FILE,
    SITE_FILE,
    USER_FILE,
    Source,
)
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.sources import Asked, read_host, read_sources
from tests.unit.builders.fakes import Call, FakeRunner
from tests.unit.builders.trees import mlx5_machine, write_tree

#: Files of a test are its own user's.
UID = os.getuid()
ALICE = f"alice:x:{UID}:{UID}:Alice:/home/alice:/bin/bash\n"
SITE = Source(SITE_FILE, "/etc/nccl.conf", "", {"NCCL_IB_TC": "106"})


def passwd(name: str = "alice", line: str = ALICE, rc: int = 0) -> Call:
    return (["getent", "passwd", name], rc, line, "")


def show(unit: str, answer: str) -> Call:
    return (["systemctl", "show", f"--property={PROPERTIES}", "--", unit], 0, f"Id={unit}\nLoadState=loaded\n{answer}", "")


def read(root: Path, calls: Sequence[Call] = (), **asked: Sequence[object]) -> list[Source]:
    runner = FakeRunner(calls)
    return read_sources(SysRoot(str(root)), runner, Asked(**asked))  # type: ignore[arg-type]


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return write_tree(tmp_path, "/etc/nccl.conf: NCCL_IB_TC=106\n/home/alice/.nccl.conf: NCCL_IB_TC=104\n")


def process(root: Path, pid: int, environ: bytes, uid: int = UID) -> None:
    """A process in the host's own files."""
    folder = root / f"proc/{pid}"
    folder.mkdir(parents=True)
    (folder / "environ").write_bytes(environ)
    (folder / "status").write_text(f"Name:\tpython\nUid:\t0\t{uid}\t0\t0\n")
    (folder / "root").symlink_to("/")


def test_the_site_and_a_user(host: Path) -> None:
    assert read(host, [passwd()], users=["alice", "alice"]) == [
        SITE,
        Source(USER_FILE, "/home/alice/.nccl.conf", "alice", {"NCCL_IB_TC": "104"}),
    ]


def test_a_host_without_any(tmp_path: Path) -> None:
    assert read(tmp_path, [passwd()], users=["alice"], files=["/etc/rdma-cluster/nccl.env"]) == []


@pytest.mark.parametrize("call", [passwd("bob", "", 2), passwd("bob", "bob:x\n")])
def test_a_user_that_is_not(host: Path, call: Call) -> None:
    with pytest.raises(ParseError, match="there is no user 'bob'"):
        read(host, [call], users=["bob"])


@pytest.mark.parametrize("name", ["--service=x", "", "a b", "a/b", "a\nb"])
def test_what_is_no_name_of_a_user_is_not_asked_for(host: Path, name: str) -> None:
    with pytest.raises(ParseError, match="is not a user name"):
        read(host, [], users=[name])


def test_a_file_that_others_may_not_read(host: Path) -> None:
    (host / "etc/nccl.conf").chmod(0o600)
    why = "its mode 0600 hides it from jobs of other users, and NCCL does not report that"
    assert read(host) == [replace(SITE, lines=(ConfLine(0, "", why),))]


def test_a_link_to_what_the_user_may_not_read_is_not_reported(host: Path) -> None:
    """The module reads as root; the file of another user stands for /etc/shadow."""
    (host / "etc/shadow").write_text("NCCL_SECRET=root:hash\n")
    (host / "etc/shadow").chmod(0o640)
    (host / "home/alice/.nccl.conf").unlink()
    (host / "home/alice/.nccl.conf").symlink_to("/etc/shadow")
    other = ALICE.replace(f":{UID}:", ":4711:", 1)
    found = read(host, [passwd(line=other)], users=["alice"])[1]
    assert found.variables == {}
    assert [line.why for line in found.lines] == [f"alice may not read it, unless by a group ({UID}:{os.getgid()}, mode 0640)"]


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_not_opened(host: Path, kind: str) -> None:
    path = host / "home/alice/.nccl.conf"
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/tty")
    assert read(host, [passwd()], users=["alice"]) == [SITE]


def test_only_what_may_be_meant_for_nccl_is_reported(host: Path) -> None:
    (host / "etc/nccl.conf").write_text("NCCL_IB_TC=106\nTOKEN=secret\nTOKEN=again\nNCLL_DEBUG=INFO\nexport NCCL_X=1\nhello\n")
    assert read(host) == [
        Source(
            SITE_FILE,
            "/etc/nccl.conf",
            "",
            {"NCCL_IB_TC": "106", "NCLL_DEBUG": "INFO", "export NCCL_X": "1"},
            (ConfLine(6, "hello", "it has no ="),),
        )
    ]


def test_of_a_huge_file_only_the_beginning(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_sources, "MAX_BYTES", 20)
    (host / "etc/nccl.conf").write_bytes(b"NCCL_IB_TC=\xff\n" + b"#" * 100)
    note = ConfLine(0, "", "it is larger than 20 bytes; the rest was not read")
    assert read(host) == [Source(SITE_FILE, "/etc/nccl.conf", "", {"NCCL_IB_TC": "\ufffd"}, (note,))]


def test_a_file_for_launchers(host: Path) -> None:
    write_tree(host, '/etc/rdma-cluster/nccl.env: NCCL_IB_HCA="=mlx5_0:1"\\nPATH=/bin\n')
    path = "/etc/rdma-cluster/nccl.env"
    words = f"environment of programs started with {path}"
    assert read(host, files=[path]) == [SITE, Source(ENVIRONMENT, words, path, {"NCCL_IB_HCA": "=mlx5_0:1"})]


def test_a_service_that_does_not_run_has_what_its_unit_says(host: Path) -> None:
    write_tree(host, "/etc/default/slurmd: NCCL_DEBUG=INFO\n")
    answer = "MainPID=0\nUser=alice\nEnvironment=NCCL_DEBUG=WARN NCCL_IB_SL=0\nEnvironmentFiles=/etc/default/slurmd (ignore_errors=yes)\n"
    assert read(host, [show("slurmd.service", answer), passwd()], services=["slurmd.service"]) == [
        SITE,
        Source(ENVIRONMENT, "environment of slurmd.service", "slurmd.service", {"NCCL_DEBUG": "INFO", "NCCL_IB_SL": "0"}),
        Source(USER_FILE, "/home/alice/.nccl.conf", "slurmd.service", {"NCCL_IB_TC": "104"}),
    ]


def test_a_service_that_runs_has_what_its_process_has(host: Path) -> None:
    process(host, 4711, b"NCCL_DEBUG=WARN\0HOME=/home/alice\0SECRET=x\0")
    assert read(host, [show("slurmd.service", "MainPID=4711\n")], services=["slurmd.service"]) == [
        SITE,
        Source(ENVIRONMENT, "environment of slurmd.service", "slurmd.service", {"NCCL_DEBUG": "WARN"}),
        Source(USER_FILE, "/home/alice/.nccl.conf", "slurmd.service", {"NCCL_IB_TC": "104"}),
    ]


def test_the_file_that_an_environment_names(host: Path) -> None:
    write_tree(host, "/opt/nccl.conf: NCCL_IB_SL=3\n")
    process(host, 7, b"NCCL_CONF_FILE=/opt/nccl.conf\0")
    process(host, 8, b"NCCL_CONF_FILE=/opt/nothing\0")
    process(host, 9, b"NCCL_CONF_FILE=nccl.conf\0")
    named = [source for source in read(host, processes=[7, 8, 9]) if source.kind == NAMED_FILE]
    assert named == [
        Source(NAMED_FILE, "/opt/nccl.conf", "process 7", {"NCCL_IB_SL": "3"}),
        Source(NAMED_FILE, "/opt/nothing", "process 8", {}, (ConfLine(0, "", "NCCL_CONF_FILE names it, but it does not exist"),)),
        Source(
            NAMED_FILE,
            "nccl.conf",
            "process 9",
            {},
            (ConfLine(0, "", "NCCL_CONF_FILE names it, but it is not a full path and was not read"),),
        ),
    ]


@pytest.mark.parametrize(("inside", "variables"), [(None, {}), ("NCCL_DEBUG=INFO\n", {"NCCL_DEBUG": "INFO"})])
def test_a_process_in_a_container_sees_other_files(host: Path, inside: str | None, variables: dict[str, str]) -> None:
    process(host, 7, b"HOME=/root\0")
    (host / "proc/7/root").unlink()
    (host / "proc/7/root/etc").mkdir(parents=True)
    if inside is not None:
        (host / "proc/7/root/etc/nccl.conf").write_text(inside)
    assert read(host, processes=[7]) == [
        SITE,
        Source(ENVIRONMENT, "environment of process 7", "process 7", {}),
        Source(SITE_FILE, "/etc/nccl.conf", "process 7", variables, (), in_container=True),
    ]


def test_a_process_that_is_not(host: Path) -> None:
    with pytest.raises(ParseError, match="there is no process 7"):
        read(host, processes=[7])
    process(host, 7, b"")
    (host / "proc/7/status").write_text("Name:\tx\n")
    with pytest.raises(ParseError, match="no Uid: in the status"):
        read(host, processes=[7])


def test_what_variables_are_compared_with(tmp_path: Path) -> None:
    sys = SysRoot(str(write_tree(mlx5_machine(tmp_path), "/sys/module/nvidia_peermem/refcnt: 0\n")))
    seen = read_host(sys)
    assert sorted(seen) == ["devices", "interfaces", "modules", "netdevs"]
    assert set(seen["netdevs"]) <= set(seen["interfaces"])
    assert "nvidia_peermem" in seen["modules"]
    assert {port["link_layer"] for device in seen["devices"].values() for port in device["ports"].values()}
    shutil.rmtree(tmp_path / "sys")
    assert read_host(SysRoot(str(tmp_path))) == {"devices": {}, "netdevs": {}, "interfaces": None, "modules": []}
