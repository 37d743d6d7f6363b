# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that hand NCCL's variables on to jobs, one for each way of starting them; LAUNCHERS is the place for others.

Whatever sets a variable in a job's environment wins over nccl.conf. So a file whose variables travel with the job, from the host where it
is started to all others, has none that is one host's own, such as the names of its devices: these each host has in its nccl.conf.
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
    """render: variables → the file's text; travels: whether what it sets goes on to other hosts."""

    path: str
    render: Callable[[Mapping[str, str]], str]
    travels: bool
    mode: int = 0o644


def render_login(variables: Mapping[str, str]) -> str:
    """Lines for /etc/profile.d, which every POSIX shell sources for a login; what is set already stays."""
    return "".join(f"{_unless_set(name)} || export {name}={_quoted(value)}\n" for name, value in sorted(variables.items()))


def render_task_prolog(variables: Mapping[str, str]) -> str:
    """A program for Slurm's TaskProlog (slurm.conf, or srun --task-prolog): of what it prints, "export NAME=value" is set for the task.

    slurmstepd runs it on each host, as the user, with the task's environment: what is set there stays.
    """
    lines = (f"{_unless_set(name)} || printf '%s\\n' {_quoted(f'export {name}={value}')}\n" for name, value in sorted(variables.items()))
    return "".join([*lines, "exit 0\n"])


def render_tune(variables: Mapping[str, str]) -> str:
    """Lines of a file for Open MPI's `mpirun --tune` (4.1.4 read it), which passes them on to all hosts; a later -x wins.

    Not mca_base_env_list in openmpi-mca-params.conf: with it Open MPI refuses every `mpirun -x`. Nothing is quoted there, and an empty
    value, which NCCL takes for none, is no line at all. Raises ValueError for a value that cannot be said.
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


#: By the word in rdma_nccl.launchers.
LAUNCHERS: dict[str, Launcher] = {
    "profile_d": Launcher("/etc/profile.d/rdma-cluster-nccl.sh", _text(render_login), travels=True),
    "slurm": Launcher("/etc/rdma-cluster/nccl-task-prolog.sh", _program(render_task_prolog), travels=False, mode=0o755),
    "openmpi": Launcher("/etc/rdma-cluster/nccl-openmpi.conf", _text(render_tune), travels=True),
}


def launcher_file(name: str, variables: Mapping[str, str], conf_file: str) -> ManagedFile:
    """The file of a launcher. conf_file: where nccl.conf is; NCCL is told if that is not where it looks by itself.

    Raises ValueError for a variable that cannot be written to a file.
    """
    launcher = LAUNCHERS[name]
    render_environment(variables)
    told = {key: value for key, value in variables.items() if not (launcher.travels and key in OF_HOST)}
    if conf_file != SITE_FILE:
        told.setdefault("NCCL_CONF_FILE", conf_file)
    return ManagedFile(launcher.path, launcher.render(told), launcher.mode)
