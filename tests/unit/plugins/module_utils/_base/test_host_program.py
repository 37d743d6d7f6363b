# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs made of our own files: they run without Ansible and without this clone, and are the same wherever they are made."""

from __future__ import annotations

import ast
import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base import host_program as base_host_program
from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ParseError
from ansible_collections.rdma.cluster.plugins.module_utils._base.host_program import PACKAGE, _imported, host_program, program_of
from ansible_collections.rdma.cluster.plugins.module_utils._drill import stream_unit
from ansible_collections.rdma.cluster.plugins.module_utils._host import cpu_ensure
from ansible_collections.rdma.cluster.plugins.module_utils._metrics import service as metrics_service
from ansible_collections.rdma.cluster.plugins.module_utils._nccl import plugin_probe
from ansible_collections.rdma.cluster.plugins.module_utils._pairs import folder as pairs_folder
from ansible_collections.rdma.cluster.plugins.module_utils._pcie_tuning import service as pcie_service
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer import child as plugin_transfer_child
from ansible_collections.rdma.cluster.plugins.module_utils._plugin_transfer import unit as plugin_transfer
from ansible_collections.rdma.cluster.plugins.module_utils._qos import service as qos_service
from ansible_collections.rdma.cluster.plugins.module_utils._rdma import soft_links
from ansible_collections.rdma.cluster.plugins.module_utils._recorder import program as recorder_program

ROOT = PACKAGE.replace(".", "/")
HOUSE = Path(base_host_program.__file__).parents[1]
ALONE = {"PATH": os.environ["PATH"]}


def names(program: bytes) -> set[str]:
    found = zipfile.ZipFile(io.BytesIO(program)).namelist()
    assert found == sorted(found)
    return {name[len(ROOT) + 1 :] for name in found if name.startswith(f"{ROOT}/_") and not name.startswith(f"{ROOT}/__init__")}


def test_it_holds_what_is_imported_and_no_more() -> None:
    assert names(host_program("_rdma.soft_links_runner")) == {"_rdma/__init__.py", "_rdma/soft_links_runner.py"}
    # systemd imports command, and that imports errors.
    base = {f"_base/{name}.py" for name in ("__init__", "command", "errors", "sysroot", "systemd")}
    assert names(host_program("_base.systemd")) == base
    # `from ROOM import x` of a file of that room.
    expected = {"_rdma/soft_links_runner.py", "_rdma/soft_links.py", "_base/boot_service.py", "_base/files.py"}
    assert expected <= names(host_program("_rdma.soft_links"))


#: Every program of ours that a unit of a host runs, and those that load NCCL's plugins.
MAINS = [
    stream_unit.stream_program,
    metrics_service.collector,
    pairs_folder.pair_runner,
    plugin_probe.main,
    plugin_transfer.transfer_program,
    recorder_program.main,
    plugin_transfer_child.main,
    *(each.BOOT.main for each in (cpu_ensure, pcie_service, qos_service, soft_links)),
]
PROGRAMS = [
    *("_drill.stream", "_host.cpu_runner", "_metrics.main", "_nccl.plugin_probe", "_pairs.runner.main", "_pcie_tuning.runner"),
    *("_plugin_transfer.child", "_plugin_transfer.main", "_qos.runner", "_rdma.soft_links_runner", "_recorder.program"),
]


def test_every_program_is_listed_here() -> None:
    packed = re.compile(r"program_of\((?!self|main)|BootProgram\(")
    places = {path.relative_to(HOUSE).as_posix() for path in HOUSE.rglob("*.py") if packed.search(path.read_text(encoding="utf-8"))}
    units = {
        "_host/cpu_ensure.py",
        "_metrics/service.py",
        "_pairs/folder.py",
        "_pcie_tuning/service.py",
        "_plugin_transfer/unit.py",
        "_qos/service.py",
        "_rdma/soft_links.py",
        "_recorder/service.py",
    }
    assert places == {*units, "_drill/stream_unit.py", "_nccl/plugin.py", "_plugin_transfer/process.py"}
    assert sorted(main.__module__[len(PACKAGE) + 1 :] for main in MAINS) == PROGRAMS
    assert [program_of(main) for main in MAINS] == [host_program(main.__module__[len(PACKAGE) + 1 :]) for main in MAINS]


def test_the_process_with_a_plugin_has_only_its_own_code() -> None:
    """It starts for each transfer, within the time of the transfer, and Python compiles all of it."""
    rooms = {"_nccl/__init__.py", "_plugin_transfer/__init__.py"}
    own = {"_nccl/plugin_probe.py", "_plugin_transfer/child.py", "_plugin_transfer/interface.py"}
    assert names(program_of(plugin_transfer_child.main)) == rooms | own


def sent_with(start: str) -> set[str]:
    """What Ansible sends along with a file of a module: what it imports, what that imports, and so on."""
    seen, pending = {start}, [start]
    while pending:
        name = pending.pop()
        path = HOUSE / f"{name.replace('.', '/')}.py"
        found = set(_imported(name, path.read_bytes())) if path.exists() else set()
        pending += found - seen
        seen |= found
    return seen


@pytest.mark.parametrize(
    ("installer", "program"),
    [
        ("_drill.stream_unit", "_drill.stream"),
        ("_host.cpu_ensure", "_host.cpu_runner"),
        ("_pairs.folder", "_pairs.runner.main"),
        ("_pcie_tuning.service", "_pcie_tuning.runner"),
        ("_plugin_transfer.unit", "_plugin_transfer.main"),
        ("_plugin_transfer.process", "_plugin_transfer.child"),
        ("_qos.service", "_qos.runner"),
        ("_rdma.soft_links", "_rdma.soft_links_runner"),
    ],
)
def test_ansible_sends_a_program_with_the_file_that_installs_it(installer: str, program: str) -> None:
    """The module packs it on the host, and what no file imports is not there."""
    assert program in sent_with(installer)


def test_a_module_installs_a_program_with_what_ansible_sends(tmp_path: Path) -> None:
    """The payload has only the files that the module reaches by imports, as Ansible makes it."""
    payload, packages = tmp_path / "payload", PACKAGE.split(".")
    names = sent_with("_qos.service") | {name.rpartition(".")[0] for name in sent_with("_qos.service")}
    for name in names:
        for place in (f"{name.replace('.', '/')}.py", f"{name.replace('.', '/')}/__init__.py"):
            if (HOUSE / place).is_file():
                (payload / ROOT / place).parent.mkdir(parents=True, exist_ok=True)
                (payload / ROOT / place).write_bytes((HOUSE / place).read_bytes())
    for end in range(len(packages)):
        (payload / "/".join(packages[: end + 1]) / "__init__.py").touch()
    code = f"import sys; sys.path.insert(0, {str(payload)!r}); from {PACKAGE}._qos.service import service_files; "
    code += "print(len(service_files({}, [{'pci': '0000:3d:00.0'}])))"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, env=ALONE, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("3\n", "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_imports_all_that_it_names(name: str, tmp_path: Path) -> None:
    """By this Python, of which the host units are run by the oldest, with nothing but the unpacked archive and Python itself."""
    zipfile.ZipFile(io.BytesIO(host_program(name))).extractall(tmp_path)
    root = tmp_path / PACKAGE.replace(".", "/")
    files = [path.relative_to(tmp_path).with_suffix("") for path in root.rglob("*.py") if path.name != "__init__.py"]
    modules = [".".join(file.parts) for file in files]
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import importlib; [importlib.import_module(name) for name in {modules!r}]"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, env=ALONE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{PACKAGE}.{name}" in modules


def test_it_runs_without_ansible_and_without_the_clone(tmp_path: Path) -> None:
    (tmp_path / "program.pyz").write_bytes(host_program("_rdma.soft_links_runner"))
    (tmp_path / "links.json").write_text("[]")
    command = [sys.executable, "-I", str(tmp_path / "program.pyz"), "--config", str(tmp_path / "links.json")]
    done = subprocess.run(command, cwd=tmp_path, env=ALONE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_is_the_same_out_of_the_archive_in_which_a_module_is_sent(tmp_path: Path) -> None:
    payload = tmp_path / "payload.zip"
    with zipfile.ZipFile(payload, "w", zipfile.ZIP_DEFLATED) as packed:
        packages = PACKAGE.split(".")
        for end in range(len(packages)):
            packed.writestr(f"{'/'.join(packages[: end + 1])}/__init__.py", "")
        for file in HOUSE.rglob("*.py"):
            packed.writestr(f"{ROOT}/{file.relative_to(HOUSE)}", file.read_bytes())
    code = f"""
import hashlib, sys
sys.path.insert(0, {str(payload)!r})
from {PACKAGE}._base.host_program import host_program
import {PACKAGE}._base.errors as used
assert used.__file__.startswith({str(payload)!r})
print(hashlib.sha256(host_program("_pcie_tuning.runner")).hexdigest())
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, env=ALONE, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{hashlib.sha256(host_program('_pcie_tuning.runner')).hexdigest()}\n", "")


def test_its_bytes_say_nothing_of_when_and_where_it_was_made() -> None:
    program = host_program("_base.systemd")
    # The control node makes it once for all hosts.
    assert host_program("_base.systemd") is program
    host_program.cache_clear()
    assert host_program("_base.systemd") == program
    assert program.startswith(b"#!/usr/bin/python3\n")
    for entry in zipfile.ZipFile(io.BytesIO(program)).infolist():
        reported = (entry.date_time, entry.compress_type, entry.create_system, entry.external_attr >> 16)
        assert reported == ((1980, 1, 1, 0, 0, 0), zipfile.ZIP_STORED, 3, 0o100644)


def test_what_needs_ansible_is_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        base_host_program,
        "_source",
        lambda module: (f"{module}.py", b"def main():\n    from ansible.module_utils.basic import AnsibleModule\n"),
    )
    with pytest.raises(ParseError, match=r"_x imports ansible.module_utils.basic, which a host without Ansible lacks"):
        host_program("_x")


def test_a_module_that_is_none_is_refused() -> None:
    with pytest.raises(ParseError, match=r"the source of .*_no_such_module cannot be read"):
        host_program("_no_such_module")


def test_a_relative_import_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_host_program, "_source", lambda module: (f"{module}.py", b"from .other import main\n"))
    with pytest.raises(ParseError, match=r"_x imports by a relative path"):
        host_program("_x")


@pytest.mark.parametrize("path", sorted(HOUSE.rglob("*.py")), ids=lambda path: str(path.relative_to(HOUSE)))
def test_the_import_statements_are_those_of_the_whole_text(path: Path) -> None:
    def imports(tree: ast.AST) -> list[str]:
        return sorted(ast.unparse(node) for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))

    source = path.read_bytes()
    assert imports(base_host_program._statements(source)) == imports(ast.parse(source))


def test_a_docstring_that_begins_like_an_import_is_none() -> None:
    source = b'"""\nimport it as follows:\n"""\nimport os\n\n\ndef late() -> None:\n    from sys import (\n        argv,\n    )\n'
    found = [
        ast.unparse(node) for node in ast.walk(base_host_program._statements(source)) if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    assert found == ["import os", "from sys import argv"]
