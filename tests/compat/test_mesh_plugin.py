# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real nccl-mesh-plugin, built from archives of its source: `git archive --prefix=nccl-mesh-plugin/ COMMIT | gzip` of two commits.

031bc48 is its first release, 679a394 a later one whose makefile builds a library for TCP only.
"""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._nccl import plugin
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import PluginQuery, read_plugin
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin_install import VERBS_HEADER, PluginRequest, ensure_plugin
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer.plan import RECEIVES, SENDS, TRANSFER_BYTES
from tests.compat.conftest import MESH_PLUGIN
from tests.unit.builders.plugin_transfers import Loopback

FIRST, LATER = "031bc48", "679a394"
needs_sources = pytest.mark.skipif(
    not all((MESH_PLUGIN / f"nccl-mesh-plugin-{commit}.tar.gz").is_file() for commit in (FIRST, LATER)),
    reason=f"no nccl-mesh-plugin-{FIRST}.tar.gz and -{LATER}.tar.gz in {MESH_PLUGIN}: set RDMA_MESH_PLUGIN",
)
needs_verbs = pytest.mark.skipif(not Path(VERBS_HEADER).exists(), reason=f"no {VERBS_HEADER}: install libibverbs-dev")
pytestmark = [needs_sources, pytest.mark.skipif(not Path("/usr/bin/gcc").exists(), reason="gcc builds the plugin")]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is open to nobody, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def request(folder: Path, file: Path, *, build: bool) -> PluginRequest:
    checksum = "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()
    return PluginRequest("mesh", file, checksum, build=build, verbs=True, root=str(folder / "root"), work=folder / "work")


def made(folder: Path) -> Path:
    """The library that `make` alone builds from the later commit."""
    with tarfile.open(MESH_PLUGIN / f"nccl-mesh-plugin-{LATER}.tar.gz") as archive:
        archive.extractall(folder / "source", filter="data")
    source = next((folder / "source").iterdir())
    subprocess.run(["make", "-C", str(source)], check=True, capture_output=True, timeout=120)
    return source / "libnccl-net.so"


def test_the_library_of_make_is_refused(folder: Path) -> None:
    with pytest.raises(ApplyError, match="calls no function of libibverbs"):
        ensure_plugin(request(folder, made(folder), build=False), runner=SubprocessRunner(), sys=SysRoot(), check_mode=False)


@needs_verbs
@pytest.mark.parametrize(("commit", "interfaces"), [(FIRST, [8]), (LATER, [9, 8])])
def test_the_build_of_the_collection_calls_verbs_and_loads(
    folder: Path, monkeypatch: pytest.MonkeyPatch, commit: str, interfaces: list[int]
) -> None:
    archive = MESH_PLUGIN / f"nccl-mesh-plugin-{commit}.tar.gz"
    ensure_plugin(request(folder, archive, build=True), runner=SubprocessRunner(), sys=SysRoot(), check_mode=False)
    monkeypatch.setattr(plugin, "FOLDER", str(folder / "root/opt/rdma-cluster/nccl"))
    seen = read_plugin(SysRoot(), SubprocessRunner(), PluginQuery("mesh", {}), None)
    assert seen.library is not None
    assert (seen.library.interfaces, seen.library.verbs) == (interfaces, True)
    assert seen.probe is not None
    assert (seen.probe.failed, seen.probe.unread) == (None, None)


@pytest.mark.parametrize("interface", [8, 9])
def test_the_library_of_make_moves_the_data_by_tcp(folder: Path, interface: int) -> None:
    """Between two processes of this machine, whose only way is the loopback interface."""
    library = folder / "libnccl-net-mesh.so"
    library.write_bytes(made(folder).read_bytes())
    library.chmod(0o755)
    results = Loopback(folder, library, interface, seconds=40.0).one_way().run()
    for result in (results["node1", SENDS], results["node2", RECEIVES]):
        assert (result.failed, result.mismatch, result.bytes) == ("", "", TRANSFER_BYTES)
        assert result.netdevs["lo"] >= TRANSFER_BYTES
        assert all((port["packets"] or 0) < TRANSFER_BYTES // 4096 for port in result.ports.values())
