# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that pass NCCL's variables to jobs, one for each launcher; add others to LAUNCHERS.

A variable in a job's environment overrides nccl.conf. So a file whose variables are passed from the starting host to all others must not
have host-specific ones, such as device names: each host has these in its nccl.conf.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.conf import render_environment
from ansible_collections.rdma.cluster.plugins.module_utils._nccl.variables.model import OF_HOST

HEADER = "# Managed by rdma.cluster\n"
SITE_FILE = "/etc/nccl.conf"


@dataclass(frozen=True)
class Launcher:
    """render: variables → the file's text. travels: whether its settings are passed to other hosts."""

    path: str
    render: Callable[[Mapping[str, str]], str]
    travels: bool
    mode: int = 0o644


def render_login(variables: Mapping[str, str]) -> str:
    """Return lines for /etc/profile.d, which every POSIX shell sources at login. Variables that are already set are unchanged."""
    return "".join(f"{_unless_set(name)} || export {name}={_quoted(value)}\n" for name, value in sorted(variables.items()))


def render_task_prolog(variables: Mapping[str, str]) -> str:
    """Return a program for Slurm's TaskProlog (slurm.conf, or srun --task-prolog): each printed "export NAME=value" sets a task variable.

    slurmstepd runs it on each host, as the user, with the task's environment. Variables that are already set are unchanged.
    """
    lines = (f"{_unless_set(name)} || printf '%s\\n' {_quoted(f'export {name}={value}')}\n" for name, value in sorted(variables.items()))
    return "".join([*lines, "exit 0\n"])


def render_tune(variables: Mapping[str, str]) -> str:
    """Return the lines of a file for Open MPI's `mpirun --tune` (tested with 4.1.4), which passes them to all hosts; a later -x wins.

    Not mca_base_env_list in openmpi-mca-params.conf: with it, Open MPI rejects every `mpirun -x`. The file has no quoting, and an empty
    value, which NCCL treats as unset, is omitted. Raises ValueError for a value that cannot be written.
    """
    wrong = [name for name, value in sorted(variables.items()) if set(value) & set(" \t\"'\\")]
    if wrong:
        raise ValueError(f"Open MPI does not accept blanks or quotes in a tune file; these NCCL variables contain some: {', '.join(wrong)}")
    return "".join(f"-x {name}={value}\n" for name, value in sorted(variables.items()) if value)


def _unless_set(name: str) -> str:
    return f'[ -n "${{{name}+set}}" ]'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _program(render: Callable[[Mapping[str, str]], str]) -> Callable[[Mapping[str, str]], str]:
    return lambda variables: f"#!/bin/sh\n{HEADER}{render(variables)}"


def _text(render: Callable[[Mapping[str, str]], str]) -> Callable[[Mapping[str, str]], str]:
    return lambda variables: HEADER + render(variables)


#: By the name in rdma_nccl.launchers.
LAUNCHERS: dict[str, Launcher] = {
    "profile_d": Launcher("/etc/profile.d/rdma-cluster-nccl.sh", _text(render_login), travels=True),
    "slurm": Launcher("/etc/rdma-cluster/nccl-task-prolog.sh", _program(render_task_prolog), travels=False, mode=0o755),
    "openmpi": Launcher("/etc/rdma-cluster/nccl-openmpi.conf", _text(render_tune), travels=True),
}


def launcher_file(name: str, variables: Mapping[str, str], conf_file: str) -> ManagedFile:
    """Return the file of a launcher. conf_file: the path of nccl.conf, passed to NCCL if it is not the default.

    Raises ValueError for a variable that cannot be written to a file.
    """
    launcher = LAUNCHERS[name]
    render_environment(variables)
    exported = {key: value for key, value in variables.items() if not (launcher.travels and key in OF_HOST)}
    if conf_file != SITE_FILE:
        exported.setdefault("NCCL_CONF_FILE", conf_file)
    return ManagedFile(launcher.path, launcher.render(exported), launcher.mode)
