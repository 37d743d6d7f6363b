# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""nccl-tests installed: made, copied, left alone, refused."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Completed, SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._collectives import install
from ansible_collections.rdma.cluster.plugins.module_utils._collectives.install import InstallRequest, ensure_tests, lacking, make_argv
from tests.unit.builders.fakes import FakeRunner

HEADER = '#pragma once\n#define NCCL_TESTS_VERSION "2.19.6"\n'
#: A makefile that prints what it was given, in the place of nccl-tests' own.
MAKEFILE = (
    "all:\n\tmkdir -p build\n\techo $(MPI) $(MPI_HOME) $(CUDA_HOME) '$(NVCC_GENCODE)' > build/all_reduce_perf\n\tchmod +x build/*_perf\n"
)
MISSING = [name for name in ("make", "g++") if not Path(f"/usr/bin/{name}").exists()]


def packed(folder: Path, files: dict[str, str], name: str = "nccl-tests.tgz") -> Path:
    path = folder / name
    with tarfile.open(path, "w:gz") as tar:
        for inner, text in files.items():
            member = tarfile.TarInfo(f"nccl-tests-2.19.6/{inner}")
            member.size, member.mode = len(text.encode()), 0o755
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


def request(folder: Path, files: dict[str, str] | None = None, **more: Any) -> InstallRequest:
    """An order; CUDA, MPI and NCCL are there as far as is looked for."""
    archive = packed(folder, files if files is not None else {"Makefile": MAKEFILE, "src/common.h": HEADER})
    for path in ("cuda/bin/nvcc", "mpi/include/mpi.h", "nccl/include/nccl.h"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    homes = {f"{name}_home": str(folder / name) for name in ("cuda", "mpi", "nccl")}
    given = {
        "checksum": "sha256:" + hashlib.sha256(archive.read_bytes()).hexdigest(), "version": "2.19.6", "folder": folder / "opt/nccl-tests",
        "stamp": str(folder / "var/nccl-tests.json"), "work": folder / "work", **homes,
    }  # fmt: skip
    return InstallRequest(archive, **{**given, **more})


class Make(FakeRunner):
    """A make that makes these files below its folder."""

    def __init__(self, calls: Sequence[Any], made: dict[str, int]) -> None:
        super().__init__(calls)
        self.made = made

    def run(self, argv: Sequence[str], *, timeout_seconds: float = 30.0) -> Completed:
        done = super().run(argv, timeout_seconds=timeout_seconds)
        for name, mode in self.made.items():
            path = Path(argv[2]) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("ELF")
            path.chmod(mode)
        return done


def scripted(
    order: InstallRequest, monkeypatch: pytest.MonkeyPatch, rc: int = 0, out: str = "", made: dict[str, int] | None = None
) -> Make:
    monkeypatch.setattr(install, "lacking", lambda _request, _sys: [])
    monkeypatch.setattr(install.os, "cpu_count", lambda: 64)
    argv = make_argv(order, order.work / "unpacked/nccl-tests-2.19.6", 16)
    return Make([(argv, rc, out, "")], {"build/all_reduce_perf": 0o755, "build/all_reduce.o": 0o644} if made is None else made)


def test_made_once_and_then_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = request(tmp_path, timeout_seconds=5.0)
    runner = scripted(order, monkeypatch)
    first = ensure_tests(order, runner=runner, sys=SysRoot(), check_mode=False)
    assert runner.timeouts_seconds == [5.0]
    assert (first.changed, first.before, first.after) == (True, None, order.tests)
    assert first.diff == [
        {
            "before_header": "nccl-tests", "after_header": "nccl-tests", "before": "not installed\n",
            "after": f"2.19.6 in {order.folder}, order {order.tests.order}\n",
        }
    ]  # fmt: skip
    assert sorted(str(path.relative_to(order.folder)) for path in order.folder.rglob("*")) == ["build", "build/all_reduce_perf"]
    assert (order.folder.stat().st_mode & 0o777, (order.folder / "build/all_reduce_perf").stat().st_mode & 0o777) == (0o755, 0o755)
    assert json.loads(Path(order.stamp).read_text()) == {"folder": str(order.folder), "version": "2.19.6", "order": order.tests.order}
    assert list(order.work.iterdir()) == []

    second = ensure_tests(order, runner=FakeRunner([]), sys=SysRoot(), check_mode=False)
    assert (second.changed, second.diff, second.before) == (False, [], order.tests)


def test_the_command_is_that_of_nccl_tests_makefile(tmp_path: Path) -> None:
    order = InstallRequest(tmp_path, "sha256:", "2.19.6", tmp_path, mpi_home="/m", nccl_home="/n", architectures=(80, 90))
    assert make_argv(order, Path("/s"), 4) == [
        "make", "-C", "/s", "-j", "4", "MPI=1", "MPI_HOME=/m", "CUDA_HOME=/usr/local/cuda", "NCCL_HOME=/n",
        "NVCC_GENCODE=-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90",
    ]  # fmt: skip
    plain = dataclasses.replace(order, nccl_home=None, architectures=())
    assert make_argv(plain, Path("/s"), 1) == ["make", "-C", "/s", "-j", "1", "MPI=1", "MPI_HOME=/m", "CUDA_HOME=/usr/local/cuda"]


@pytest.mark.skipif(bool(MISSING), reason=f"not in /usr/bin: {', '.join(MISSING)}")
def test_a_real_make_is_given_all_of_it(tmp_path: Path) -> None:
    """With a makefile of ours; nccl-tests' own needs CUDA."""
    order = request(tmp_path, architectures=(90,))
    ensure_tests(order, runner=SubprocessRunner(), sys=SysRoot(), check_mode=False)
    text = (order.folder / "build/all_reduce_perf").read_text()
    assert text == f"1 {tmp_path}/mpi {tmp_path}/cuda -gencode=arch=compute_90,code=sm_90\n"


def test_another_order_replaces_the_whole_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = request(tmp_path)
    ensure_tests(order, runner=scripted(order, monkeypatch), sys=SysRoot(), check_mode=False)
    (order.folder / "build/old_perf").write_text("ELF")
    other = dataclasses.replace(order, architectures=(90,))
    result = ensure_tests(other, runner=scripted(other, monkeypatch), sys=SysRoot(), check_mode=False)
    assert (result.changed, result.before, result.after) == (True, order.tests, other.tests)
    assert [path.name for path in (order.folder / "build").iterdir()] == ["all_reduce_perf"]


def test_programs_that_are_gone_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = request(tmp_path)
    ensure_tests(order, runner=scripted(order, monkeypatch), sys=SysRoot(), check_mode=False)
    shutil.rmtree(order.folder)
    assert ensure_tests(order, runner=scripted(order, monkeypatch), sys=SysRoot(), check_mode=False).changed


@pytest.mark.parametrize("below", ["build/", ""])
def test_programs_of_an_archive_are_only_copied(tmp_path: Path, below: str) -> None:
    order = request(
        tmp_path, {f"{below}all_reduce_perf": "ELF", f"{below}sendrecv_perf": "ELF", "LICENSE.txt": "x"}, built=True, mpi_home=None
    )
    ensure_tests(order, runner=FakeRunner([]), sys=SysRoot(), check_mode=False)
    assert sorted(path.name for path in (order.folder / "build").iterdir()) == ["all_reduce_perf", "sendrecv_perf"]


def test_check_mode_reports_and_touches_nothing(tmp_path: Path) -> None:
    order = dataclasses.replace(request(tmp_path), archive=tmp_path / "not-there-yet.tgz", cuda_home=str(tmp_path / "none"))
    before = sorted(tmp_path.rglob("*"))
    result = ensure_tests(order, runner=FakeRunner([]), sys=SysRoot(), check_mode=True)
    assert result.changed
    assert result.lacks[0] == f"no {tmp_path}/none/bin/nvcc: install CUDA's compiler (package cuda-nvcc-…), or set another cuda_home"
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_missing_is_reported_at_once(tmp_path: Path) -> None:
    order = InstallRequest(tmp_path / "a.tgz", "sha256:" + "0" * 64, "2.19.6", tmp_path / "opt", mpi_home="/usr/lib/openmpi")
    empty = SysRoot(str(tmp_path))
    assert lacking(order, empty) == [
        "no /usr/local/cuda/bin/nvcc: install CUDA's compiler (package cuda-nvcc-…), or set another cuda_home",
        "no /usr/lib/openmpi/include/mpi.h: install MPI's headers and mpicc (libopenmpi-dev, openmpi-devel), or set another mpi_home",
        "no /usr/include/nccl.h: install NCCL's headers (libnccl-dev, libnccl-devel), or set another nccl_home",
        "no /usr/bin/make: install make",
        "no /usr/bin/g++: install g++",
    ]
    assert lacking(dataclasses.replace(order, built=True), empty) == []
    with pytest.raises(ApplyError, match="nccl-tests cannot be built here: no /usr/local/cuda/bin/nvcc"):
        ensure_tests(order, runner=FakeRunner([]), sys=empty, check_mode=False)


def test_a_build_that_fails_is_quoted_and_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = request(tmp_path)
    runner = scripted(order, monkeypatch, rc=2, out="Compiling x\nnvcc fatal   : Unsupported gpu architecture 'compute_200'\n", made={})
    with pytest.raises(ApplyError, match=r"failed with 2:\nCompiling x\nnvcc fatal   : Unsupported gpu architecture"):
        ensure_tests(order, runner=runner, sys=SysRoot(), check_mode=False)
    assert not order.folder.exists()
    assert not Path(order.stamp).exists()
    assert list(order.work.iterdir()) == []


@pytest.mark.parametrize(
    "made", [{}, {"build/all_reduce_perf": 0o644}, {"build/sendrecv_perf": 0o755}], ids=["none", "no program", "other"]
)
def test_a_build_that_makes_no_program_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: dict[str, int]) -> None:
    order = request(tmp_path)
    with pytest.raises(ApplyError, match="make succeeded, but there is no all_reduce_perf"):
        ensure_tests(order, runner=scripted(order, monkeypatch, made=made), sys=SysRoot(), check_mode=False)
    assert not order.folder.exists()


def test_another_version_or_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = request(tmp_path)
    monkeypatch.setattr(install, "lacking", lambda _request, _sys: [])
    with pytest.raises(ApplyError, match=r"contains nccl-tests 2.19.6 \(src/common.h\), expected 2.18.2"):
        ensure_tests(dataclasses.replace(order, version="2.18.2"), runner=FakeRunner([]), sys=SysRoot(), check_mode=False)
    with pytest.raises(ApplyError, match="its sha256 is"):
        ensure_tests(dataclasses.replace(order, checksum="sha256:" + "0" * 64), runner=FakeRunner([]), sys=SysRoot(), check_mode=False)
    order.archive.write_bytes(b"no tar")
    other = dataclasses.replace(order, checksum="sha256:" + hashlib.sha256(b"no tar").hexdigest())
    with pytest.raises(ApplyError, match="expected an archive of nccl-tests"):
        ensure_tests(other, runner=FakeRunner([]), sys=SysRoot(), check_mode=False)


@pytest.mark.parametrize("check_mode", [True, False])
def test_what_somebody_else_has_put_there_stays(tmp_path: Path, check_mode: bool) -> None:
    order = request(tmp_path, {"build/all_reduce_perf": "ELF"}, built=True)
    order.folder.mkdir(parents=True)
    (order.folder / "mine").touch()
    with pytest.raises(ApplyError, match="was not created by this collection"):
        ensure_tests(order, runner=FakeRunner([]), sys=SysRoot(), check_mode=check_mode)
    assert (order.folder / "mine").exists()
    (order.folder / "mine").unlink()
    assert ensure_tests(order, runner=FakeRunner([]), sys=SysRoot(), check_mode=check_mode).changed
