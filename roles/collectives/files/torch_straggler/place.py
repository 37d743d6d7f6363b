# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rank of a process in its job, from the variables that torchrun, srun and mpirun set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

# Launcher, its variables for rank and number of ranks, and those that may hold the rank within the host. The innermost launcher comes
# first: torchrun runs under srun, and the processes of mpirun inherit the variables of the Slurm job around it.
LAUNCHERS = (
    ("torchrun", "RANK", "WORLD_SIZE", ("LOCAL_RANK",)),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("OMPI_COMM_WORLD_LOCAL_RANK",)),
    ("PMI", "PMI_RANK", "PMI_SIZE", ("MPI_LOCALRANKID", "SLURM_LOCALID")),
    ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_LOCALID",)),
)


class Place(NamedTuple):
    """The rank of a process, and the address of rank 0, which is None if the launcher does not set it."""

    launcher: str
    rank: int
    ranks: int
    local_rank: int
    address: str | None


def place(environment: Mapping[str, str]) -> Place:
    """The place of this process, from the variables of torchrun, Open MPI 4 and 5, hydra (MPICH, Intel) or srun. Raises ValueError."""
    for launcher, rank, ranks, local in LAUNCHERS:
        if rank in environment and ranks in environment:
            within = [environment[name] for name in local if name in environment] or ["0"]
            return Place(launcher, int(environment[rank]), int(environment[ranks]), int(within[0]), _address(environment))
    raise ValueError("no rank in the environment: start this with torchrun, srun or mpirun")


def _address(environment: Mapping[str, str]) -> str | None:
    if "MASTER_ADDR" in environment:
        return environment["MASTER_ADDR"]
    if "OMPI_COMM_WORLD_SIZE" in environment:
        return "127.0.0.1" if environment.get("OMPI_COMM_WORLD_LOCAL_SIZE") == environment["OMPI_COMM_WORLD_SIZE"] else None
    return first_host(environment["SLURM_STEP_NODELIST"]) if "SLURM_STEP_NODELIST" in environment else None


def first_host(nodes: str) -> str:
    """The first of Slurm's node list: `gpu[03-04,07],login` is gpu03."""
    return re.sub(r"\[([^],-]+)[^]]*\]", r"\1", re.split(r",(?![^[]*\])", nodes)[0])
