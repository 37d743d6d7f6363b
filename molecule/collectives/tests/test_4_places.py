# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the ranks of torch_collectives stand, by what real launchers set: Slurm by each plugin, Open MPI 4 and 5, alone and in a job."""

from __future__ import annotations

import shlex
import shutil
from typing import Any

import pytest

from lab import nccl_hosts
from lab.cluster import Lab
from tests.verify.site import ROOT

PLACE = ROOT / "roles/collectives/files/torch_straggler/place.py"
FOLDER = "opt/place"
SAY = shlex.quote(
    f"import os, sys; sys.path.append('/{FOLDER}'); from place import place; print('rank', *place(os.environ)[1:], os.uname()[1])"
)
#: Rank, ranks, rank within the host, host: two tasks on each of two hosts, of which none is the launcher's.
PLACES = [(str(rank), "4", str(rank % 2), f"node{2 + rank // 2}") for rank in range(4)]
MPI = f"--allow-run-as-root --map-by ppr:2:node --mca btl_tcp_if_include {nccl_hosts.INTERFACE}"
JOB = "--nodelist=node2,node3 --nodes=2 --ntasks=4 --ntasks-per-node=2"


@pytest.fixture(scope="module")
def installed(lab: Lab) -> None:
    for node in lab.plan.nodes:
        folder = nccl_hosts.root_of(lab, node) / FOLDER
        folder.mkdir(exist_ok=True)
        shutil.copy(PLACE, folder / PLACE.name)


def places(lab: Lab, launch: str) -> list[tuple[str, ...]]:
    """What the tasks say, rank by rank: rank, ranks, rank within the host, address of rank 0, host."""
    answer = nccl_hosts.do(lab, lab.plan.nodes[0], f"{launch} python3 -c {SAY}")
    return sorted(tuple(line.split()[1:]) for line in answer.splitlines() if line.startswith("rank "))


def expected(address: str) -> list[tuple[str, ...]]:
    return [(rank, ranks, local, address, host) for rank, ranks, local, host in PLACES]


@pytest.mark.usefixtures("installed", "slurm")
@pytest.mark.parametrize("plugin", ["none", "pmi2", "pmix"])
def test_tasks_of_slurm(lab: Lab, plugin: str) -> None:
    assert places(lab, f"srun --mpi={plugin} {JOB}") == expected("node2")


@pytest.mark.usefixtures("installed")
def test_processes_of_open_mpi(lab: Lab, openmpi5: dict[str, Any]) -> None:
    for mpirun in ("mpirun", openmpi5["launcher_program"]):
        assert places(lab, f"{mpirun} {MPI} --host node2:2,node3:2 -np 4") == expected("None"), mpirun


@pytest.mark.usefixtures("installed", "slurm")
def test_processes_of_an_open_mpi_in_a_job_of_slurm(lab: Lab) -> None:
    """Each has the variables of the daemon's task around it as well, whose rank is the host's."""
    assert places(lab, f"salloc --quiet {JOB} mpirun {MPI}") == expected("None")
