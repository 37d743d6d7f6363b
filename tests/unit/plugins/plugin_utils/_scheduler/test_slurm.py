# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files for Slurm, read by a real slurmctld, with its nodes in the cloud: they are scheduled, and nothing is started."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible_collections.rdma.cluster.plugins.plugin_utils._fabric.view import View
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.files import tree_conf
from ansible_collections.rdma.cluster.plugins.plugin_utils._scheduler.tree import Tree, tree_of
from tests.unit.builders.small_fabrics import fabric

PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
PROGRAMS = ("slurmctld", "scontrol", "sbatch", "squeue")
MISSING = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; tests/packages.txt names the packages")
HOSTS = 512
PATIENCE_SECONDS = 60
CONF = """
ClusterName=test
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmdPort={port}
SlurmUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
ProctrackType=proctrack/pgid
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
TopologyPlugin={plugin}
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=3600
ResumeTimeout=600
NodeName=node[1-{hosts}] State=CLOUD CPUs=8
PartitionName=all Nodes=ALL Default=YES State=UP
"""


class Slurm:
    """A private slurmctld without munge, slurmd and state of earlier runs."""

    def __init__(self, folder: Path) -> None:
        self.environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf")}

    def __call__(self, *words: str, text: str | None = None) -> str:
        done = subprocess.run(words, env=self.environment, input=text, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def nodes_of_job(self, count: int) -> str:
        """The nodes that a job of this many whole nodes gets."""
        job = self("sbatch", "--exclusive", f"--nodes={count}", "--parsable", text="#!/bin/sh\ntrue\n").strip()
        return until(lambda: self("squeue", "--noheader", f"--jobs={job}", "--format=%N").strip())


def until(ask: object) -> str:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if found := ask():  # type: ignore[operator]
            return str(found)
        time.sleep(0.2)
    raise AssertionError("slurmctld has not answered in time")


@contextmanager
def slurm(folder: Path, topology: str | None) -> Iterator[Slurm]:
    (folder / "state").mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    plugin = "topology/none" if topology is None else "topology/tree"
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    (folder / "slurm.conf").write_text(CONF.format(port=port, folder=folder, plugin=plugin, hosts=HOSTS, user=user))
    if topology is not None:
        (folder / "topology.conf").write_text(topology)
    of = Slurm(folder)
    with (folder / "log").open("w") as log, subprocess.Popen(["slurmctld", "-D"], env=of.environment, stdout=log, stderr=log) as program:
        try:
            until(lambda: "Running as primary controller" in (folder / "log").read_text() or program.poll() is not None)
            assert program.poll() is None, (folder / "log").read_text()
            yield of
        finally:
            program.terminate()


@pytest.fixture(scope="module")
def tree() -> Tree:
    return tree_of(View(fabric(HOSTS, rails=2, per_leaf=32, spines=2)), [f"node{number}" for number in range(1, HOSTS + 1)])


def test_slurm_has_the_planned_tree(tree: Tree, tmp_path: Path) -> None:
    names = {host: host for host in tree.hosts}
    with slurm(tmp_path, tree_conf(tree, names)) as of:
        shown = of("scontrol", "show", "topology")
        log = (tmp_path / "log").read_text()
        assert not re.search(r"topology.*(error|warn)|(error|warn).*(topology|switch)", log, re.IGNORECASE), log
        found = {match[1]: (match[2], match[3]) for match in re.finditer(r"SwitchName=(\S+) Level=(\d) LinkSpeed=1 (.*)", shown)}
        planned = {each.name: ("0", f"Nodes=node[{32 * at + 1}-{32 * at + 32}]") for at, each in enumerate(tree.groups)}
        below = ",".join(str(2 * at) for at in range(16))
        assert found == {**planned, "spine0": ("1", f"Nodes=node[1-512] Switches=leaf[{below}]")}
        one = of("scontrol", "show", "topology", "node40").splitlines()
        assert [line.split()[0] for line in one] == ["SwitchName=leaf2", "SwitchName=spine0"]


def test_a_job_gets_the_nodes_of_one_leaf(tree: Tree, tmp_path: Path) -> None:
    """Only two nodes of each of the first leaves are free. Without a topology, Slurm takes these four neighbors, on two leaves."""
    names = {host: host for host in tree.hosts}
    got = {}
    for name, topology in (("tree", tree_conf(tree, names)), ("none", None)):
        with slurm(tmp_path / name, topology) as of:
            of("scontrol", "update", "NodeName=node[1-30,35-64]", "State=DRAIN", "Reason=test")
            got[name] = of.nodes_of_job(4)
    assert got == {"tree": "node[65-68]", "none": "node[31-34]"}


def test_a_host_alone_runs_jobs_of_one_host_and_no_job_across_hosts(tree: Tree, tmp_path: Path) -> None:
    names = {f"node{number}": f"node{number}" for number in range(1, HOSTS + 1)}
    small = tree_of(View(fabric(HOSTS, rails=2, per_leaf=32, spines=2)), list(tree.hosts[:-2]))
    with slurm(tmp_path, tree_conf(small, names, tree.hosts[-2:])) as of:
        assert not re.search(r"switches lack access", (tmp_path / "log").read_text())
        of("scontrol", "update", "NodeName=node[1-510]", "State=DRAIN", "Reason=test")
        pair = of("sbatch", "--exclusive", "--nodes=2", "--parsable", text="#!/bin/sh\ntrue\n").strip()
        assert {of.nodes_of_job(1), of.nodes_of_job(1)} == {"node511", "node512"}
        of("scontrol", "update", "NodeName=node[1-2]", "State=RESUME")
        # Two hosts alone are free at first, and the job of two waits for two hosts of a leaf.
        assert until(lambda: of("squeue", "--noheader", f"--jobs={pair}", "--format=%N").strip()) == "node[1-2]"


def test_slurm_starts_no_job_on_a_host_that_is_missing(tree: Tree, tmp_path: Path) -> None:
    names = {host: host for host in tree.hosts}
    small = tree_of(View(fabric(HOSTS, rails=2, per_leaf=32, spines=2)), list(tree.hosts[:-1]))
    with slurm(tmp_path, tree_conf(small, names)) as of:
        with pytest.raises(AssertionError, match="Requested node configuration is not available"):
            of("sbatch", "--nodes=1", "--nodelist=node512", "--parsable", text="#!/bin/sh\ntrue\n")
        assert "switches lack access to 1 nodes" in (tmp_path / "log").read_text()
