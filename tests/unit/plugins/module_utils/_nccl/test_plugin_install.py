# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A network plugin installed: copied, built, left alone, refused. The sources are stand-ins, make and gcc are real."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed, SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin_install import (
    VERBS_HEADER,
    PluginRequest,
    ensure_plugin,
    lacking,
    make_argv,
)
from tests.unit.builders.fakes import FakeRunner
from tests.unit.builders.net_plugin import elf
from tests.unit.builders.trees import write_tree

OWN = {"x86_64": 62, "aarch64": 183}.get(os.uname().machine, 62)
GOOD = elf(["ncclNetPlugin_v9", "ncclNetPlugin_v8"], ["ibv_open_device"], OWN)
WITHOUT_VERBS = elf(["ncclNetPlugin_v9"], ["socket"], OWN)
#: As the makefile of nccl-mesh-plugin at 679a394: a header of its own hides the system's, and nothing is linked to libibverbs.
SOURCES = {
    "Makefile": "CC = gcc\nCFLAGS = -O1 -fPIC\nCFLAGS += -I. -I./include\nLDFLAGS = -shared -lpthread\nall: libnccl-net.so\n\t"
    "ln -sf libnccl-net.so libnccl-net-mesh.so\nlibnccl-net.so: src/plugin.o\n\t$(CC) $^ -o $@ $(LDFLAGS)\n%.o: %.c\n\t"
    "$(CC) $(CFLAGS) -c $< -o $@\n",
    "include/infiniband/verbs.h": "#ifndef INFINIBAND_VERBS_H\n#define INFINIBAND_VERBS_H\nstruct ibv_device;\n"
    "static inline struct ibv_device **ibv_get_device_list(int *n) { *n = 0; return 0; }\n#endif\n",
    "src/plugin.c": "#include <infiniband/verbs.h>\nint count(void) { int n; return ibv_get_device_list(&n) != 0; }\n"
    'const struct { const char *name; } ncclNetPlugin_v9 = {"mesh"};\n',
}
needs_build = pytest.mark.skipif(not all(Path(path).exists() for path in (VERBS_HEADER, "/usr/bin/make", "/usr/bin/gcc")), reason="no gcc")


def packed(folder: Path, files: dict[str, str] | None = None) -> Path:
    path = folder / "mesh.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, text in (SOURCES if files is None else files).items():
            member = tarfile.TarInfo(f"nccl-mesh-plugin/{name}")
            member.size, member.mode = len(text.encode()), 0o644
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


def request(folder: Path, data: bytes | None = None, **more: Any) -> PluginRequest:
    """A request to copy a library, or without data to build one."""
    file = folder / "libnccl-net.so" if data is not None else packed(folder)
    if data is not None:
        file.write_bytes(data)
    checksum = "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()
    given = {"build": data is None, "verbs": True, "version": "679a394", "root": str(folder / "root"), "work": folder / "work"}
    return PluginRequest("mesh", file, checksum, **{**given, **more})


def installed(folder: Path) -> Path:
    return folder / "root/opt/rdma-cluster/nccl/mesh/libnccl-net-mesh.so"


def ensure(order: PluginRequest, runner: Any = None, *, check_mode: bool = False) -> Any:
    return ensure_plugin(order, runner=runner or FakeRunner([]), sys=SysRoot(), check_mode=check_mode)


def test_a_library_is_copied_once_and_restored(tmp_path: Path) -> None:
    order = request(tmp_path, GOOD)
    planned = ensure(order, check_mode=True)
    assert (planned.changed, planned.after, planned.lacks, installed(tmp_path).exists()) == (True, None, [], False)
    assert planned.diff[0]["before"] == "not installed\n"
    old = os.umask(0o077)
    try:
        first = ensure(order)
    finally:
        os.umask(old)
    assert first.changed
    assert installed(tmp_path).read_bytes() == GOOD
    assert {oct(path.stat().st_mode & 0o777) for path in (installed(tmp_path), installed(tmp_path).parent)} == {"0o755"}
    stamp = json.loads((installed(tmp_path).parent / "plugin.json").read_text())
    assert stamp == {"order": order.order, "sha256": hashlib.sha256(GOOD).hexdigest(), "version": "679a394"}
    order.file.unlink()
    assert not ensure(order).changed
    assert ensure(order).diff == []
    installed(tmp_path).write_bytes(WITHOUT_VERBS)
    order.file.write_bytes(GOOD)
    assert ensure(order).changed
    assert installed(tmp_path).read_bytes() == GOOD
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (WITHOUT_VERBS, "calls no function of libibverbs (ibv_…), so it would send everything over TCP"),
        (elf(["ncclNetPlugin_v9"], ["ibv_open_device"], 8), f"is built for machine 8, but this host is {os.uname().machine}"),
        (elf(["ncclNet_v9"], ["ibv_open_device"], OWN), "has no symbol ncclNetPlugin_vN, so it is no network plugin of NCCL"),
        (b"#!/bin/sh\n", "no 64-bit little-endian ELF file"),
    ],
    ids=["TCP", "machine", "no plugin", "script"],
)
def test_a_library_that_is_of_no_use_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(ApplyError) as error:
        ensure(request(tmp_path, data))
    assert words in str(error.value)
    assert not installed(tmp_path).exists()


def test_another_plugin_needs_no_verbs_and_another_file_is_refused(tmp_path: Path) -> None:
    assert ensure(request(tmp_path, WITHOUT_VERBS, verbs=False)).changed
    order = request(tmp_path, GOOD)
    order.file.write_bytes(WITHOUT_VERBS)
    with pytest.raises(ApplyError, match="its sha256 is"):
        ensure(order)
    assert installed(tmp_path).read_bytes() == WITHOUT_VERBS


@needs_build
def test_make_alone_gives_a_library_for_tcp_and_ours_one_for_rdma(tmp_path: Path) -> None:
    order = request(tmp_path)

    class PlainMake(SubprocessRunner):
        def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
            assert list(argv) == make_argv(argv[argv.index("-C") + 1])
            return super().run([each for each in argv if "=" not in each or each.startswith("--")], timeout_seconds=timeout_seconds)

    with pytest.raises(ApplyError, match="calls no function of libibverbs"):
        ensure(order, PlainMake())
    result = ensure(order, SubprocessRunner())
    assert result.changed
    assert b"ibv_get_device_list" in installed(tmp_path).read_bytes()
    assert list((tmp_path / "work").iterdir()) == []


@needs_build
def test_the_build_runs_without_rights(tmp_path: Path) -> None:
    text = SOURCES["Makefile"].replace("all: libnccl-net.so\n", "all: libnccl-net.so\n\tid -u >&2; exit 3\n")
    order = request(tmp_path)
    packed(tmp_path, {**SOURCES, "Makefile": text})
    changed = PluginRequest(**{**vars(order), "checksum": "sha256:" + hashlib.sha256(order.file.read_bytes()).hexdigest()})
    with pytest.raises(ApplyError) as error:
        ensure(changed, SubprocessRunner())
    assert "failed with 2" in str(error.value)
    assert f"\n{65534 if os.geteuid() == 0 else os.geteuid()}\n" in str(error.value)


class Made(FakeRunner):
    """A make that puts a link to a file of root in the place of the library, or nothing."""

    def __init__(self, target: str = "") -> None:
        super().__init__([])
        self.target = target

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        folder = Path(argv[argv.index("-C") + 1])
        assert list(argv) == make_argv(str(folder))
        if self.target:
            (folder / "libnccl-net.so").symlink_to(self.target)
        return Completed(tuple(argv), 0, "", "")


@pytest.mark.parametrize("target", ["", "/etc/shadow"])
def test_a_build_without_a_library_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setattr("ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin_install.lacking", lambda _request, _sys: [])
    with pytest.raises(ApplyError, match=r"there is no libnccl-net.so or libnccl-net-mesh.so in nccl-mesh-plugin"):
        ensure(request(tmp_path), Made(target))


def test_what_a_build_lacks(tmp_path: Path) -> None:
    order = request(tmp_path)
    host = SysRoot(str(tmp_path / "empty"))
    (tmp_path / "empty").mkdir()
    assert lacking(order, host) == [
        f"no {VERBS_HEADER}: install libibverbs-dev (Debian) or rdma-core-devel", "no /usr/bin/make: install make",
        "no /usr/bin/gcc: install gcc",
    ]  # fmt: skip
    with pytest.raises(ApplyError, match="the plugin mesh cannot be built here: no /usr/include"):
        ensure_plugin(order, runner=FakeRunner([]), sys=host, check_mode=False)
    write_tree(tmp_path / "empty", f"{VERBS_HEADER}: x\n/usr/bin/make: x\n/usr/bin/gcc: x\n")
    assert lacking(order, host) == []
    assert lacking(request(tmp_path, GOOD), host) == []
