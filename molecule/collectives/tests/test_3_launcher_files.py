# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role `nccl` writes for launchers, as those launchers hand it on: real Slurm, real Open MPI 4 and 5, a real login."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from lab import nccl_hosts
from lab.cluster import Lab
from tests.verify.site import Site

PROLOG, TUNE = "/etc/rdma-cluster/nccl-task-prolog.sh", "/etc/rdma-cluster/nccl-openmpi.conf"
NCCL = {"launchers": ["profile_d", "slurm", "openmpi"], "variables": {"NCCL_IB_RETRY_CNT": "7", "NCCL_NET": "IB"}}
#: Of all hosts; and of one host, which no environment may take along to another.
REPORTED = {"NCCL_IB_RETRY_CNT": "7", "NCCL_NET": "IB"}
OF_HOST = {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1"}
#: Says the host's name and NCCL's variables, a task in one line.
SAY = "sh -c 'echo $(hostname) $(env | grep ^NCCL_ | sort)'"
MPI = f"--allow-run-as-root --host node1,node2,node3,node4 --map-by node -np 4 --mca btl_tcp_if_include {nccl_hosts.INTERFACE}"


@pytest.fixture(scope="module")
def written(site: Site) -> None:
    done = site.run("nccl", "-e", json.dumps({"rdma_nccl": NCCL}))
    assert done.returncode == 0, done.stdout


def by_host(answer: str) -> dict[str, dict[str, str]]:
    """Lines "host NAME=value …", one of each task."""
    lines = [line.split() for line in answer.splitlines()]
    assert len({words[0] for words in lines}) == len(lines), answer
    return {words[0]: dict(word.split("=", 1) for word in words[1:]) for words in lines}


def everywhere(lab: Lab, variables: dict[str, str]) -> dict[str, dict[str, str]]:
    return {node.name: variables for node in lab.plan.nodes}


@pytest.mark.usefixtures("written", "slurm")
def test_slurm_s_task_prolog_gives_each_task_its_host_s_own(lab: Lab) -> None:
    answer = nccl_hosts.do(lab, lab.plan.nodes[0], f"srun --nodes=4 --task-prolog={PROLOG} {SAY}")
    assert by_host(answer) == everywhere(lab, {**REPORTED, **OF_HOST})


@pytest.mark.usefixtures("written", "slurm")
def test_what_a_job_sets_wins_over_the_task_prolog(lab: Lab) -> None:
    answer = nccl_hosts.do(lab, lab.plan.nodes[0], f"NCCL_NET=Socket srun --nodes=4 --task-prolog={PROLOG} {SAY}")
    assert by_host(answer) == everywhere(lab, {**REPORTED, **OF_HOST, "NCCL_NET": "Socket"})


@pytest.mark.usefixtures("written")
def test_open_mpi_hands_on_what_is_no_host_s_own(lab: Lab, openmpi5: dict[str, Any]) -> None:
    for mpirun in ("mpirun", openmpi5["launcher_program"]):
        answer = nccl_hosts.do(lab, lab.plan.nodes[0], f"{mpirun} {MPI} --tune {TUNE} {SAY}")
        assert by_host(answer) == everywhere(lab, REPORTED), mpirun
        answer = nccl_hosts.do(lab, lab.plan.nodes[0], f"{mpirun} {MPI} --tune {TUNE} -x NCCL_NET=Socket {SAY}")
        assert by_host(answer) == everywhere(lab, {**REPORTED, "NCCL_NET": "Socket"}), mpirun


@pytest.mark.usefixtures("written")
def test_a_login_has_what_is_no_host_s_own(lab: Lab) -> None:
    first = lab.plan.nodes[0]
    assert by_host(nccl_hosts.do(lab, first, f"bash --login -c {shlex.quote(SAY)}")) == {first.name: REPORTED}
    assert by_host(nccl_hosts.do(lab, first, f"NCCL_NET=Socket bash --login -c {shlex.quote(SAY)}")) == {
        first.name: {**REPORTED, "NCCL_NET": "Socket"}
    }
