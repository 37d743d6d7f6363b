# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four containers on a simulated fabric that launch collectives on each other."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from lab import cluster, fabric, nccl_hosts, nccl_launchers
from lab.cluster import Lab
from lab.fabric import FabricRequest
from lab.fabric_plan import Shape
from tests.verify.site import Site

NAME = "mcoll"
HOSTS = 4
COLLECTIVES = {
    "gpus": 2,
    "folder": f"/{nccl_hosts.FOLDER}",
    "allow_root": True,
    "interface": nccl_hosts.INTERFACE,
    "address": "{{ inventory_hostname }}",
    "repeats": 2,
    "timeout_seconds": 60,
}


@pytest.fixture
def settings() -> dict[str, Any]:
    return dict(COLLECTIVES)


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The scenario's own; RDMA_TEST_LAB names another one that is up and attached, to try a test by hand."""
    other = os.environ.get("RDMA_TEST_LAB")
    if other:
        yield cluster.load(other)
        return
    cluster.up(NAME, "container", HOSTS, None)
    try:
        fabric.up(NAME, Shape("rail", HOSTS, 2, ports=8), FabricRequest(lab=NAME, own_manager=True))
        nccl_hosts.attach(cluster.load(NAME))
        yield cluster.load(NAME)
    finally:
        fabric.down(NAME)
        cluster.down(NAME)


@pytest.fixture(scope="session")
def site(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    words = ["-e", json.dumps({"rdma_collectives": COLLECTIVES})]
    return Site(fabric.load(lab.plan.name).folder.inventory, tmp_path_factory.mktemp("site"), words)


@pytest.fixture(scope="session")
def slurm(lab: Lab) -> dict[str, Any]:
    nccl_launchers.add_slurm(lab)
    return {"launcher": "srun", "launcher_arguments": ["--mpi=pmix", "--gpus-per-node=2"]}


@pytest.fixture(scope="session")
def openmpi5(lab: Lab) -> dict[str, Any]:
    program = nccl_launchers.add_openmpi5(lab)
    return {"launcher_program": program, "environment": {"PYTHONPATH": nccl_launchers.python_path()}}
