# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a rank stands, from what launchers set."""

from __future__ import annotations

from typing import Any

import pytest

from roles.collectives.files.torch_straggler import place

SLURM_JOB = {"SLURM_PROCID": "0", "SLURM_NTASKS": "16", "SLURM_JOB_NODELIST": "gpu[03-04]"}
SLURM_STEP = {**SLURM_JOB, "SLURM_PROCID": "9", "SLURM_STEP_NUM_TASKS": "16", "SLURM_LOCALID": "1", "SLURM_STEP_NODELIST": "gpu[03-04]"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "2", "MASTER_ADDR": "node1"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({**SLURM_STEP, **TORCHRUN}, ("torchrun", 5, 8, 2, "node1"), id="torchrun under srun"),
        pytest.param(SLURM_STEP, ("Slurm", 9, 16, 1, "gpu03"), id="srun"),
        pytest.param({**SLURM_STEP, "MASTER_ADDR": "ib1"}, ("Slurm", 9, 16, 1, "ib1"), id="srun, another address"),
        pytest.param({**SLURM_JOB, **OPEN_MPI}, ("Open MPI", 3, 4, 1, None), id="mpirun within a Slurm job"),
        pytest.param({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, ("Open MPI", 3, 4, 1, "127.0.0.1"), id="mpirun on one host"),
        pytest.param({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, ("Open MPI", 3, 4, 1, None), id="mpirun on two hosts"),
        pytest.param({**SLURM_STEP, "PMI_RANK": "7", "PMI_SIZE": "8", "MPI_LOCALRANKID": "3"}, ("PMI", 7, 8, 3, "gpu03"), id="hydra"),
        pytest.param({**SLURM_STEP, "PMI_RANK": "9", "PMI_SIZE": "16"}, ("PMI", 9, 16, 1, "gpu03"), id="srun --mpi=pmi2"),
    ],
)
def test_place_is_read_from_what_the_launcher_sets(environment: dict[str, str], expected: tuple[Any, ...]) -> None:
    assert tuple(place.place(environment)) == expected


@pytest.mark.parametrize("environment", [{}, SLURM_JOB], ids=["by hand", "a batch script without srun"])
def test_nobody_is_rank_0_of_nothing(environment: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="torchrun, srun or mpirun"):
        place.place(environment)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("node1", "node1"), ("node1,node2", "node1"), ("gpu[03-04,07],login", "gpu03"), ("gpu[7,9]", "gpu7"), ("r[1-2]n[3-4],x", "r1n3")],
)
def test_first_host_of_a_node_list(nodes: str, first: str) -> None:
    assert place.first_host(nodes) == first
