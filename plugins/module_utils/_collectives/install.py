# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Install nccl-tests on a host: built with MPI from a source archive, or copied from an archive of programs. No action if it is installed.

Its makefile (nccl-tests 2.19.6) takes MPI=1, MPI_HOME, CUDA_HOME, NCCL_HOME and NVCC_GENCODE, and creates build/*_perf.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.module_utils._base.archive import contents_of, own_copy, read_members, remove_unpacked, unpack
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, ensure_files, setting_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.installed import (
    BUILD,
    PROGRAM,
    STAMP,
    NcclTests,
    parse_stamp,
    render_stamp,
)

#: The values in which two installations differ; the version follows from the archive.
PARTS = ("checksum", "folder", "built", "cuda_home", "mpi_home", "nccl_home", "architectures")
WORK = "/var/lib/rdma-cluster/nccl-tests"
MOST_JOBS = 16
_TAIL_LINES = 15
# #define NCCL_TESTS_VERSION "2.19.6"
_VERSION = re.compile(r'^#define[ \t]+NCCL_TESTS_VERSION[ \t]+"([0-9][0-9.]{0,30})"', re.MULTILINE)


@dataclass(frozen=True)
class InstallRequest:
    """archive: of the source, or (built) of programs; homes: of CUDA, MPI and NCCL; architectures: none: those of the makefile.

    stamp, work: the file that records the installation, and the build folder.
    """

    archive: Path
    checksum: str
    version: str
    folder: Path
    built: bool = False
    cuda_home: str = "/usr/local/cuda"
    mpi_home: str | None = None
    nccl_home: str | None = None
    architectures: Sequence[int] = field(default_factory=tuple)
    timeout_seconds: float = 3600.0
    stamp: str = STAMP
    work: Path = Path(WORK)

    @property
    def tests(self) -> NcclTests:
        options = {name: getattr(self, name) for name in PARTS}
        return NcclTests(str(self.folder), self.version, request_id({**options, "folder": str(self.folder)}))


@dataclass(frozen=True)
class Result:
    """lacks: missing build requirements, only in check mode, which builds nothing; before: the previous installation."""

    changed: bool
    before: NcclTests | None
    after: NcclTests
    lacks: list[str]

    @property
    def diff(self) -> list[dict[str, str]]:
        """Return the changes in the format of Ansible's --diff."""
        return [setting_diff("nccl-tests", _words(self.before), _words(self.after))] if self.changed else []


def _words(tests: NcclTests | None) -> str:
    return "not installed" if tests is None else f"{tests.version} in {tests.folder}, order {tests.order}"


def request_id(options: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that differ if PARTS differ; options: of the intent (rdma_nccl.install.tests), or of the module."""
    parts = {name: list(options[name] or ()) if name == "architectures" else options[name] for name in PARTS}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def make_argv(request: InstallRequest, source: Path, jobs: int) -> list[str]:
    """Return the command that builds the programs in source/build."""
    gencode = " ".join(f"-gencode=arch=compute_{number},code=sm_{number}" for number in request.architectures)
    homes = {"MPI_HOME": request.mpi_home, "CUDA_HOME": request.cuda_home, "NCCL_HOME": request.nccl_home, "NVCC_GENCODE": gencode}
    given = [f"{name}={value}" for name, value in homes.items() if value]
    return ["make", "-C", str(source), "-j", str(jobs), "MPI=1", *given]


def lacking(request: InstallRequest, sys: SysRoot) -> list[str]:
    """Return the missing build requirements of the host, a sentence each; empty if programs are only copied."""
    if request.built:
        return []
    nccl = request.nccl_home or "/usr"
    needed = (
        ((f"{request.cuda_home}/bin/nvcc",), "CUDA's compiler (package cuda-nvcc-…), or set another cuda_home"),
        ((f"{request.mpi_home}/include/mpi.h",), "MPI's headers and mpicc (libopenmpi-dev, openmpi-devel), or set another mpi_home"),
        ((f"{nccl}/include/nccl.h",), "NCCL's headers (libnccl-dev, libnccl-devel), or set another nccl_home"),
        (("/usr/bin/make", "/bin/make"), "make"),
        (("/usr/bin/g++", "/usr/local/bin/g++"), "g++"),
    )
    return [f"no {paths[0]}: install {words}" for paths, words in needed if not any(sys.exists(path) for path in paths)]


def ensure_tests(request: InstallRequest, *, runner: Runner, sys: SysRoot, check_mode: bool) -> Result:
    """Install nccl-tests as requested.

    Raises ApplyError for another archive or version, for a missing build requirement, if the build fails or creates no all_reduce_perf, and
    if the folder has foreign content.
    """
    before, after = _installed(request, sys), request.tests
    if before == after and sys.exists(f"{request.folder}/{BUILD}/{PROGRAM}"):
        return Result(False, before, after, [])
    lacks = lacking(request, sys)
    _refuse_strangers(request, before)
    if check_mode:
        return Result(True, before, after, lacks)
    if lacks:
        raise ApplyError(f"nccl-tests cannot be built here: {'; '.join(lacks)}")
    try:
        with own_copy(request.archive, request.checksum, request.work) as archive:
            _put(_programs(request, _made(replace(request, archive=archive), runner)), request.folder)
    finally:
        remove_unpacked(request.work)
    ensure_files([ManagedFile(request.stamp, render_stamp(after))], check_mode=False)
    return Result(True, before, after, [])


def _installed(request: InstallRequest, sys: SysRoot) -> NcclTests | None:
    try:
        return sys.value(request.stamp, parse_stamp)
    except ValueError:
        return None


def _refuse_strangers(request: InstallRequest, before: NcclTests | None) -> None:
    ours = before is not None and before.folder == str(request.folder)
    if not ours and request.folder.exists() and (not request.folder.is_dir() or any(request.folder.iterdir())):
        raise ApplyError(f"{request.folder} exists and was not created by this collection: move it, or set another folder")


def _made(request: InstallRequest, runner: Runner) -> Path:
    """Return the unpacked archive, after make."""
    contents = contents_of(request.archive, read_members(request.archive, "an archive of nccl-tests"))
    source = unpack(request.archive, contents, request.work)
    _refuse_version(request, source)
    if not request.built:
        argv = make_argv(request, source, min(os.cpu_count() or 1, MOST_JOBS))
        done = runner.run(argv, timeout_seconds=request.timeout_seconds)
        if done.rc:
            tail = "\n".join(f"{done.stdout}\n{done.stderr}".strip().splitlines()[-_TAIL_LINES:])
            raise ApplyError(f"`{' '.join(argv)}` failed with {done.rc}:\n{tail}")
    return source


def _refuse_version(request: InstallRequest, source: Path) -> None:
    """Raise ApplyError for another version. A source before 2.16 does not contain its version."""
    header = source / "src" / "common.h"
    found = _VERSION.search(header.read_text(encoding="utf-8", errors="replace")) if header.is_file() else None
    if found is not None and found[1] != request.version:
        raise ApplyError(f"{request.archive} contains nccl-tests {found[1]} (src/common.h), expected {request.version}")


def _programs(request: InstallRequest, source: Path) -> list[Path]:
    folder = source / BUILD if (source / BUILD).is_dir() else source
    programs = sorted(path for path in folder.glob("*_perf") if path.is_file() and os.access(path, os.X_OK))
    if PROGRAM not in {path.name for path in programs}:
        what = "the archive has" if request.built else "make succeeded, but there is"
        raise ApplyError(f"{what} no {PROGRAM} in {folder.name}")
    return programs


def _put(programs: Sequence[Path], folder: Path) -> None:
    """Replace the whole folder by one with the programs."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        (new / BUILD).mkdir()
        for program in programs:
            shutil.copyfile(program, new / BUILD / program.name)
            (new / BUILD / program.name).chmod(0o755)
        new.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(new, folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
