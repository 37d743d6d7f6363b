# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that hand variables on to jobs, read back by those who read them: shells here, Slurm's rules, Open MPI's recorded."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import stopping
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.host_checks import HOST_CHECKS
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.nccl import LAUNCHERS as NAMES
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.derive import files_to_write, nccl_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._nccl.launchers import LAUNCHERS, launcher_file, render_tune
from tests.unit.builders.hosts import lab_facts, lab_intent, on_host

SHELLS = [shell for shell in ("sh", "bash", "dash", "ksh") if shutil.which(shell)]
HARD = {"NCCL_A": 'it\'s $HOME `x` "y" \\ %d}', "NCCL_B": "=mlx5_0:1", "NCCL_IB_TC": "106", "NCCL_EMPTY": ""}
PROFILE, PROLOG, TUNE = (LAUNCHERS[name].path for name in NAMES)


def run(argv: list[str], **environment: str) -> dict[str, str]:
    done = subprocess.run(argv, env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True, check=True, timeout=30)
    assert done.stderr == ""
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def test_every_launcher_of_the_schema_has_a_file_of_its_own() -> None:
    assert tuple(LAUNCHERS) == NAMES
    assert len({launcher.path for launcher in LAUNCHERS.values()}) == len(LAUNCHERS)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_login_shell_exports_what_is_not_set_already(shell: str, tmp_path: Path) -> None:
    """With -eu, as careful scripts source it."""
    file = tmp_path / "nccl.sh"
    file.write_text(launcher_file("profile_d", HARD, "/etc/nccl.conf").text)
    read = run([shell, "-euc", f". {file}; env"], NCCL_IB_TC="7")
    assert {name: read[name] for name in HARD} == {**HARD, "NCCL_IB_TC": "7"}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_task_prolog_prints_what_slurm_exports(shell: str, tmp_path: Path) -> None:
    """slurmstepd takes "export NAME=value" up to the end of the line, with the value as it stands."""
    file = tmp_path / "prolog.sh"
    file.write_text(launcher_file("slurm", HARD, "/etc/nccl.conf").text)
    read = run([shell, str(file)], NCCL_IB_TC="7")
    assert read == {f"export {name}": value for name, value in HARD.items() if name != "NCCL_IB_TC"}


def test_a_task_prolog_is_a_program_that_ends_well_whatever_is_set(tmp_path: Path) -> None:
    file = launcher_file("slurm", {"NCCL_DEBUG": "WARN"}, "/etc/nccl.conf")
    path = tmp_path / "prolog.sh"
    path.write_text(file.text)
    path.chmod(file.mode)
    assert run([str(path)], NCCL_DEBUG="INFO") == {}
    assert run([str(path)]) == {"export NCCL_DEBUG": "WARN"}


def test_open_mpi_gets_lines_without_quotes() -> None:
    """Read by `mpirun --tune` of Open MPI 4.1.4: a value that begins with = comes out whole, an empty one is an error of the file."""
    text = render_tune({"NCCL_IB_TC": "106", "NCCL_B": "=a,b:c/^%+@-", "NCCL_EMPTY": ""})
    assert text == "-x NCCL_B==a,b:c/^%+@-\n-x NCCL_IB_TC=106\n"
    with pytest.raises(ValueError, match=r"these NCCL variables contain some: NCCL_A$"):
        render_tune(HARD)


@pytest.mark.parametrize("name", NAMES)
def test_what_breaks_a_line_is_refused_by_every_launcher(name: str) -> None:
    with pytest.raises(ValueError, match="NCCL_A has a line break"):
        launcher_file(name, {"NCCL_A": "1\nNCCL_B=2"}, "/etc/nccl.conf")


def test_what_travels_does_not_name_the_devices_of_one_host() -> None:
    nccl = {"launchers": list(NAMES), "socket_ifname": "eno1", "variables": {"NCCL_IB_TIMEOUT": 22, "UCX_NET_DEVICES": "mlx5_0:1"}}
    written = {file.path: file for file in nccl_files(lab_intent(nccl=nccl), from_dict(lab_facts()))}
    assert list(written) == ["/etc/nccl.conf", "/etc/rdma-cluster/nccl.env", PROFILE, PROLOG, TUNE]
    assert written[PROFILE].text == "# Managed by rdma.cluster\n[ -n \"${NCCL_IB_TIMEOUT+set}\" ] || export NCCL_IB_TIMEOUT='22'\n"
    assert written[TUNE].text == "# Managed by rdma.cluster\n-x NCCL_IB_TIMEOUT=22\n"
    for name in ("NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "UCX_NET_DEVICES"):
        assert name in written[PROLOG].text
    assert (written[PROLOG].mode, written[TUNE].mode) == (0o755, 0o644)


def test_a_conf_file_elsewhere_is_named_to_nccl() -> None:
    nccl = {"launchers": ["openmpi"], "conf_file": "/opt/nccl.conf"}
    written = {file.path: file.text for file in nccl_files(lab_intent(nccl=nccl), from_dict(lab_facts()))}
    assert written[TUNE] == "# Managed by rdma.cluster\n-x NCCL_CONF_FILE=/opt/nccl.conf\n"


def test_a_launcher_that_is_not_wanted_any_more_loses_its_file() -> None:
    before = {**lab_facts(), "files": on_host(nccl_files(lab_intent(nccl={"launchers": ["profile_d", "slurm"]}), from_dict(lab_facts())))}
    wanted: dict[str, Any] = lab_intent(nccl={"launchers": ["slurm"]})
    assert files_to_write(wanted, from_dict(before)) == [{"path": PROFILE, "content": None, "mode": "0644"}]
    (finding,) = stopping(HOST_CHECKS["nccl"]("node1", wanted, from_dict(before)))
    assert (finding.check, finding.subject, finding.observed, finding.expected) == ("nccl.file", PROFILE, "exists", "no file")
    now = {**before, "files": {path: file for path, file in before["files"].items() if path != PROFILE}}
    assert files_to_write(wanted, from_dict(now)) == []
    assert stopping(HOST_CHECKS["nccl"]("node1", wanted, from_dict(now))) == []


def test_a_host_without_rails_for_nccl_loses_them_too() -> None:
    facts = {**lab_facts(), "files": on_host(nccl_files(lab_intent(nccl={"launchers": ["slurm"]}), from_dict(lab_facts())))}
    intent = lab_intent(nccl={"launchers": ["slurm"]})
    for rail in intent["rails"]:
        rail["role"] = "storage"
    assert files_to_write(intent, from_dict(facts)) == [{"path": PROLOG, "content": None, "mode": "0644"}]
    assert [finding.check for finding in stopping(HOST_CHECKS["nccl"]("node1", intent, from_dict(facts)))] == ["nccl.file"]
