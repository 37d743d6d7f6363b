# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Install a network plugin of NCCL: a built library, or nccl-mesh-plugin built from an archive of its source.

The makefile of nccl-mesh-plugin at 679a394 links no libibverbs, and its include/ has a stub of infiniband/verbs.h that hides the system's
header: `make` succeeds, and the library sends everything over TCP. The stub has the include guard of the real header, so the compiler is
given the real one first. LDFLAGS is the makefile's only variable for libraries. With 031bc48 the same command builds the same as `make`.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.module_utils._base.archive import contents_of, own_copy, read_members, remove_unpacked, unpack
from ansible_collections.rdma.cluster.plugins.module_utils._base.command import Runner
from ansible_collections.rdma.cluster.plugins.module_utils._base.elf import MAX_BYTES
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, ensure_files, setting_diff
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._base.unprivileged import NOBODY, as_nobody
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import (
    PluginLibrary,
    PluginStamp,
    describe_library,
    library_path,
    parse_plugin_stamp,
    render_plugin_stamp,
    request_id,
    stamp_path,
)

WORK = "/var/lib/rdma-cluster/nccl-plugin"
VERBS_HEADER = "/usr/include/infiniband/verbs.h"
_TAIL_LINES = 15


@dataclass(frozen=True)
class PluginRequest:
    """file: an archive of the source (build), or the library. verbs: whether a library without libibverbs is refused.

    root: the folder in place of /, for tests. work: the folder for the copy of the file.
    """

    name: str
    file: Path
    checksum: str
    version: str = ""
    build: bool = False
    verbs: bool = False
    timeout_seconds: float = 300.0
    root: str = ""
    work: Path = Path(WORK)

    @property
    def order(self) -> str:
        return request_id({"name": self.name, "checksum": self.checksum, "build": self.build, "verbs": self.verbs})

    @property
    def library(self) -> str:
        return f"{self.root}{library_path(self.name)}"

    @property
    def stamp(self) -> str:
        return f"{self.root}{stamp_path(self.name)}"


@dataclass(frozen=True)
class PluginResult:
    """before: the previous installation; after: None in check mode, which builds nothing; lacks: missing build requirements."""

    request: PluginRequest
    changed: bool
    before: PluginStamp | None
    after: PluginStamp | None
    lacks: list[str]

    @property
    def diff(self) -> list[dict[str, str]]:
        """Return the change in the format of Ansible's --diff."""
        planned = f"{self.request.version or 'any version'}, order {self.request.order}"
        was = "not installed" if self.before is None else f"{self.before.version or 'any version'}, order {self.before.order}"
        return [setting_diff(self.request.library, was, planned)] if self.changed else []


def make_argv(source: str) -> list[str]:
    """Return the command that builds the library in a folder, without root's rights."""
    return as_nobody("make", "-C", source, f"CC=gcc -include {VERBS_HEADER}", "LDFLAGS=-shared -libverbs -lpthread")


def lacking(request: PluginRequest, sys: SysRoot) -> list[str]:
    """Return the missing build requirements of the host, a sentence each; empty if a library is only copied."""
    if not request.build:
        return []
    needed = {VERBS_HEADER: "libibverbs-dev (Debian) or rdma-core-devel", "/usr/bin/make": "make", "/usr/bin/gcc": "gcc"}
    return [f"no {path}: install {package}" for path, package in needed.items() if not sys.exists(path)]


def ensure_plugin(request: PluginRequest, *, runner: Runner, sys: SysRoot, check_mode: bool) -> PluginResult:
    """Install the plugin as requested; no action if it is installed.

    Raises ApplyError for another file, a missing build requirement, a failed build, and a library that is no plugin for this host or, if
    verbs is requested, does not call libibverbs.
    """
    before = _installed(request, sys)
    if before is not None and before.order == request.order and _sha256(request, sys) == before.sha256:
        return PluginResult(request, False, before, before, [])
    lacks = lacking(request, sys)
    if check_mode:
        return PluginResult(request, True, before, None, lacks)
    if lacks:
        raise ApplyError(f"the plugin {request.name} cannot be built here: {'; '.join(lacks)}")
    try:
        with own_copy(request.file, request.checksum, request.work) as copy:
            data = _built(request, copy, runner) if request.build else _content(copy)
    finally:
        remove_unpacked(request.work)
    found = _verified(request, data)
    after = PluginStamp(request.version, request.order, found.sha256)
    files = [ManagedFile(request.library, data, 0o755), ManagedFile(request.stamp, render_plugin_stamp(after))]
    _make_folders(Path(request.library).parent)
    ensure_files(files, check_mode=False)
    if _sha256(request, sys) != found.sha256:
        raise ApplyError(f"{request.library} was written, but has other content now")
    return PluginResult(request, True, before, after, [])


def _make_folders(folder: Path) -> None:
    """Create the missing folders, open to the users of jobs whatever the umask is."""
    for path in reversed((folder, *folder.parents)):
        if not path.exists():
            path.mkdir()
            path.chmod(0o755)


def _installed(request: PluginRequest, sys: SysRoot) -> PluginStamp | None:
    try:
        return sys.value(request.stamp, parse_plugin_stamp)
    except ParseError:
        return None


def _sha256(request: PluginRequest, sys: SysRoot) -> str | None:
    found = sys.read_regular(request.library, MAX_BYTES)
    try:
        return describe_library(found[0]).sha256 if found is not None else None
    except ParseError:
        return None


def _verified(request: PluginRequest, data: bytes) -> PluginLibrary:
    """Return the library's properties. Raises ApplyError unless NCCL on this host can use it."""
    what = f"the library of {request.file}"
    try:
        library = describe_library(data)
    except ParseError as error:
        raise ApplyError(f"{what}: {error}") from error
    if library.machine != os.uname().machine:
        raise ApplyError(f"{what} is built for {library.machine}, but this host is {os.uname().machine}")
    if not library.interfaces:
        raise ApplyError(f"{what} has no symbol ncclNetPlugin_vN, so it is no network plugin of NCCL")
    if request.verbs and not library.verbs:
        raise ApplyError(
            f"{what} calls no function of libibverbs (ibv_…), so it would send everything over TCP: build it with the system's "
            f"{VERBS_HEADER} and -libverbs, or give its source to the collection"
        )
    return library


def _built(request: PluginRequest, archive: Path, runner: Runner) -> bytes:
    """Return the bytes of the library that make creates in a copy of the source."""
    contents = contents_of(archive, read_members(archive, "an archive of nccl-mesh-plugin"))
    source = unpack(archive, contents, request.work)
    with _for_nobody(source) as folder:
        argv = make_argv(str(folder))
        done = runner.run(argv, timeout_seconds=request.timeout_seconds)
        if done.rc:
            tail = "\n".join(f"{done.stdout}\n{done.stderr}".strip().splitlines()[-_TAIL_LINES:])
            raise ApplyError(f"`{' '.join(argv)}` failed with {done.rc}:\n{tail}")
        names = ("libnccl-net.so", f"libnccl-net-{request.name}.so")
        found = next((folder / name for name in names if (folder / name).is_file() and not (folder / name).is_symlink()), None)
        if found is None:
            raise ApplyError(f"make succeeded, but there is no {' or '.join(names)} in {contents.top}")
        return _content(found)


@contextmanager
def _for_nobody(source: Path) -> Iterator[Path]:
    """Copy a source tree to a temporary folder that belongs to nobody, yield the copy, and remove it."""
    with tempfile.TemporaryDirectory(prefix="rdma-cluster-") as folder:
        copy = Path(folder) / "source"
        shutil.copytree(source, copy, symlinks=True)
        if os.geteuid() == 0:
            for path in (Path(folder), copy, *copy.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        yield copy


def _content(path: Path) -> bytes:
    """Return a regular file's bytes. The build could have put a link to another file there. Raises ApplyError for anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as handle:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise ApplyError(f"{path.name} is no file of at most {MAX_BYTES} bytes")
        return handle.read(MAX_BYTES)
