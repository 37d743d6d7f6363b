# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's network plugin: the library's symbols, its record, and the answers of stand-ins that are compiled and loaded here."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.command import SubprocessRunner
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._nccl import plugin
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.plugin import (
    NcclPlugin,
    PluginDevice,
    PluginProbe,
    PluginQuery,
    PluginStamp,
    interfaces,
    parse_plugin_probe,
    parse_plugin_stamp,
    read_plugin,
    render_plugin_stamp,
)
from tests.unit.builders.fakes import Without
from tests.unit.builders.net_plugin import CRASHES, EXITS, FAILS, HANGS, HAS_GCC, build, elf

FIXTURES = Path(__file__).parents[3] / "fixtures/nccl"
needs_gcc = pytest.mark.skipif(not HAS_GCC, reason="gcc builds the stand-in")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In place of /opt/rdma-cluster/nccl; unlike the folders of pytest it is open to nobody."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        monkeypatch.setattr(plugin, "FOLDER", name)
        yield Path(name)


def loaded(folder: Path, version: int = 9, *, nccl: str | None = None, variables: dict[str, str] | None = None, **how: Any) -> NcclPlugin:
    build(folder / "mesh/libnccl-net-mesh.so", version, **how)
    return read_plugin(SysRoot(), SubprocessRunner(), PluginQuery("mesh", variables or {}, nccl), "2.30.7")


@needs_gcc
@pytest.mark.parametrize("version", [6, 7, 8, 9, 10, 11, 12])
def test_a_plugin_of_each_interface_is_loaded_and_asked(folder: Path, version: int) -> None:
    seen = loaded(folder, version, variables={"NCCL_MESH_GID_INDEX": "1"})
    assert seen.library is not None
    assert (seen.library.machine, seen.library.interfaces, seen.library.verbs) == (seen.machine, [version], True)
    devices = [PluginDevice(f"mlx5_{number}", None, 400_000, 1, ["host", "cuda"], 8, 0) for number in range(2)]
    assert seen.probe == PluginProbe(version, "stand-in", 0, devices, ["3: gid=%s"])


@needs_gcc
def test_the_plugin_runs_without_rights_and_with_its_variables(folder: Path) -> None:
    found = folder / "found"
    found.mkdir(mode=0o777)
    found.chmod(0o777)
    init = f'FILE *f = fopen("{found}/ids", "w"); fprintf(f, "%d %s", getuid(), getenv("NCCL_MESH_DEBUG")); fclose(f);'
    assert loaded(folder, variables={"NCCL_MESH_DEBUG": "2"}, init=init).probe
    assert (found / "ids").read_text() == f"{65534 if os.geteuid() == 0 else os.geteuid()} 2"


@needs_gcc
def test_bad_plugins_end_their_own_process_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crashed = loaded(folder, init=CRASHES).probe
    assert crashed is not None
    assert crashed.failed == "it crashed: its process ended by signal 11"
    ended = loaded(folder, init=EXITS).probe
    assert ended is not None
    assert ended.failed is None
    assert ended.unread == ("its process ended with exit code 0 and without an answer; its last line is 'a plugin that prints, gid none'")
    refused = loaded(folder, init="exit(3);").probe
    assert refused is not None
    assert refused.failed is None
    assert (refused.unread or "").startswith("its process ended with exit code 3 and without an answer; its last line is ")
    failed = loaded(folder, init=FAILS).probe
    assert failed is not None
    assert (failed.init, failed.devices) == (2, None)
    none = loaded(folder, count=-1).probe
    assert none is not None
    assert (none.init, none.devices) == (0, [])
    monkeypatch.setattr(plugin, "_PROBE_SECONDS", 1.0)
    hung = loaded(folder, init=HANGS).probe
    assert hung is not None
    assert "did not end within 1 seconds" in (hung.unread or "")


@needs_gcc
def test_a_library_that_cannot_be_loaded(folder: Path) -> None:
    build(folder / "mesh/libnccl-net-mesh.so")
    (folder / "mesh/libfakeverbs.so").unlink()
    seen = read_plugin(SysRoot(), SubprocessRunner(), PluginQuery("mesh", {}), None)
    assert seen.probe is not None
    assert (seen.probe.failed or "").startswith("it cannot be loaded: libfakeverbs.so: cannot open shared object file")


def test_what_is_not_loaded(folder: Path) -> None:
    """No file; no common interface; another machine; no running system."""
    missing = read_plugin(SysRoot(), Without(["setpriv"], []), PluginQuery("mesh", {}), None)
    assert (missing.library, missing.stamp, missing.probe, missing.unread) == (None, None, None, None)
    path = folder / "mesh/libnccl-net-mesh.so"
    path.parent.mkdir()
    own = {"x86_64": 62, "aarch64": 183}.get(os.uname().machine, 62)
    for data, nccl in ((elf(["ncclNetPlugin_v8"], machine=own), "2.19.3"), (elf(["ncclNetPlugin_v8"], machine=8), None)):
        path.write_bytes(data)
        seen = read_plugin(SysRoot(), Without([], []), PluginQuery("mesh", {}, nccl), None)
        assert (seen.library is not None, seen.probe) == (True, None)
    path.write_bytes(elf(["ncclNetPlugin_v8", "ncclNet_v8"], machine=own))
    captured = read_plugin(SysRoot(), None, PluginQuery("mesh", {}), None)
    assert captured.library is not None
    assert (captured.library.interfaces, captured.library.verbs, captured.probe) == ([8], False, None)


def test_no_setpriv_and_damaged_files_are_unread(folder: Path) -> None:
    path = folder / "mesh/libnccl-net-mesh.so"
    path.parent.mkdir()
    path.write_bytes(elf(["ncclNetPlugin_v9"], machine={"x86_64": 62, "aarch64": 183}.get(os.uname().machine, 62)))
    seen = read_plugin(SysRoot(), Without(["setpriv"], []), PluginQuery("mesh", {}), None)
    assert seen.probe is not None
    assert (seen.probe.unread or "").startswith("command not found: setpriv")
    (folder / "mesh/plugin.json").write_text("{}")
    assert "plugin.json: '{}', expected" in (read_plugin(SysRoot(), None, PluginQuery("mesh", {}), None).unread or "")
    (folder / "mesh/plugin.json").unlink()
    path.write_text("no ELF file")
    assert "no 64-bit little-endian ELF file" in (read_plugin(SysRoot(), None, PluginQuery("mesh", {}), None).unread or "")


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        (None, (12, 11, 10, 9, 8, 7, 6)),
        ("2.32.3", (12, 11, 10, 9, 8, 7, 6)),
        ("2.29.7", (11, 10, 9, 8, 7, 6)),
        ("2.26", (10, 9, 8, 7, 6)),
        ("2.25.1", (9, 8, 7, 6, 5)),
        ("2.23.4", (8, 7, 6, 5)),
        ("2.19.4", (7, 6, 5)),
        ("2.18.5", (6, 5, 4)),
        ("2.12.7", ()),
    ],
)
def test_the_interfaces_of_versions(version: str | None, numbers: tuple[int, ...]) -> None:
    assert interfaces(version) == numbers


def test_stamp_and_answer() -> None:
    stamp = PluginStamp("679a394", "0123456789abcdef", 64 * "0")
    assert parse_plugin_stamp(render_plugin_stamp(stamp)) == stamp
    for text in ("", "[]", '{"version": 1, "order": "x", "sha256": "y"}', "[" * 100_000):
        with pytest.raises(ParseError, match="expected"):
            parse_plugin_stamp(text)
    assert parse_plugin_probe('{"interface": 9, "error": "no such file"}').failed == "it cannot be loaded: no such file"
    for text in (
        "",
        "1",
        '{"interface": 9}',
        '{"interface": 9, "name": "x", "init": 0, "devices": [{"a": 1}], "log": []}',
        '{"interface": Infinity}',
    ):
        with pytest.raises(ParseError, match="expected"):
            parse_plugin_probe(text)


@pytest.mark.parametrize(("interface", "speed_mbps", "port", "receives"), [(8, 0, 1084227584, 0), (9, 100_000, 0, 1)])
def test_the_answers_of_the_mesh_plugin(interface: int, speed_mbps: int, port: int, receives: int) -> None:
    """Its table v8 has another layout than NCCL's, so that the values are those of other fields; 5.0 is 1084227584 as an integer."""
    probe = parse_plugin_probe((FIXTURES / f"mesh-679a394-v{interface}.json").read_text(encoding="utf-8"))
    assert (probe.interface, probe.name, probe.init, len(probe.log or [])) == (interface, "Mesh", 0, 8)
    assert probe.devices == [PluginDevice("eth0", "", speed_mbps, port, ["host"], receives, 0)]
