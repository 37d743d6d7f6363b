# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages and plugins that are given as files: what is compared with its checksum and installed lies in a folder of root's alone."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.install import FOLDER, nccl_install
from tests.unit.builders.hosts import lab_facts, lab_intent

ROOT = Path(__file__).parents[4]
PACKAGE = "libnccl2_2.20.5-1_amd64.deb"
SOURCES = {"host_file": f"/tmp/{PACKAGE}", "file": f"files/{PACKAGE}", "url": f"https://files.example.org/{PACKAGE}"}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_package_is_installed_from_our_own_folder(kind: str) -> None:
    given = {"version": "2.20.5-1", "source": {kind: SOURCES[kind]}, "checksum": f"sha256:{64 * '0'}"}
    intent = lab_intent(nccl={"install": {"kind": "files", "packages": {"libnccl2": given}}})
    (file,) = nccl_install(intent, from_dict(lab_facts()))["files"]
    assert file == {"source": {kind: SOURCES[kind]}, "path": f"{FOLDER}/{PACKAGE}", "checksum": given["checksum"]}


def prepared(folder: Path, files: list[dict[str, Any]], *words: str) -> subprocess.CompletedProcess[str]:
    """Run the tasks of files.yml for a family of packages that has no installer."""
    return play(folder, "files", {"family": "none", "files": files}, *words)


def play(folder: Path, tasks_of: str, install: dict[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
    """Run a file of the role's tasks. install: in place of the plan's nccl_install."""
    playbook = folder / "play.yml"
    tasks = [{"ansible.builtin.include_tasks": str(ROOT / f"roles/nccl/tasks/{tasks_of}.yml")}]
    handlers = [{"name": "Read the host again", "ansible.builtin.debug": {"msg": "read again"}}]
    variables = {"__nccl_install": install, "ansible_python_interpreter": sys.executable}
    whole = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": variables, "tasks": tasks, "handlers": handlers}
    playbook.write_text(json.dumps([whole]))
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", str(playbook), *words]
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(folder / "home")}
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_a_file_of_the_host_is_copied_before_it_is_compared(tmp_path: Path) -> None:
    original, own = tmp_path / "anybody" / PACKAGE, tmp_path / "own" / PACKAGE
    original.parent.mkdir(mode=0o777)
    original.write_bytes(b"the package")
    file = {"source": {"host_file": str(original)}, "path": str(own), "checksum": f"sha256:{hashlib.sha256(b'the package').hexdigest()}"}
    checked = prepared(tmp_path, [file], "--check")
    assert (checked.returncode, own.exists()) == (0, False), checked.stdout
    done = prepared(tmp_path, [file])
    assert done.returncode == 0, done.stdout
    assert own.read_bytes() == b"the package"
    assert (stat.S_IMODE(own.stat().st_mode), stat.S_IMODE(own.parent.stat().st_mode)) == (0o600, 0o700)
    assert stat.S_IMODE(original.parent.stat().st_mode) != 0o700
    original.write_bytes(b"another one")
    refused = prepared(tmp_path, [file])
    assert refused.returncode != 0
    assert "its SHA-256 is not the one in rdma_nccl.install.packages" in refused.stdout


def test_the_tasks_of_a_plugin_have_the_options_of_its_module(tmp_path: Path) -> None:
    """In check mode, which needs no file and changes nothing."""
    plugin = {"kind": "mesh", "source": {"host_file": str(tmp_path / "mesh.tgz")}, "checksum": f"sha256:{64 * '0'}", "name": "checkmode"}
    install = nccl_install(lab_intent(nccl={"plugin": plugin}), from_dict(lab_facts()))
    done = play(tmp_path, "plugin", install, "--check", "--diff")
    assert done.returncode == 0, done.stdout
    assert "after: /opt/rdma-cluster/nccl/checkmode/libnccl-net-checkmode.so" in done.stdout
    assert "read again" in done.stdout
    assert not Path("/opt/rdma-cluster/nccl/checkmode").exists()
