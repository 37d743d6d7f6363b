# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Use a lab's containers as hosts of collectives: with real Open MPI over real SSH, and a stand-in for all_reduce_perf."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab import remote
from lab.cluster import Lab
from lab.errors import LabError
from lab.plan import Node
from lab.shell import run

STANDIN = Path(__file__).parent / "standins/all_reduce_perf"
#: Paths in a container.
FOLDER, STATE = "opt/lab-nccl-tests", "etc/lab-nccl.json"
PACKAGES = ("openmpi-bin", "python3-mpi4py", "openssh-client")
#: The subnet of the hosts' addresses for each other, and its interface: that of the first rail.
SUBNET, INTERFACE = "10.98.0", "eth1"
INSTALL_SECONDS = 400.0
INSTALL = "apt-get install --yes --quiet --no-install-recommends"
CONFIG = "Host *\\n  StrictHostKeyChecking accept-new\\n  LogLevel ERROR\\n  IdentityFile /root/.ssh/id_lab\\n"


def address(node: Node) -> str:
    return f"{SUBNET}.{node.index}"


def attach(lab: Lab) -> None:
    """Install the requirements of collectives in a lab's containers, and let the containers reach each other."""
    if lab.plan.kind != "container":
        raise LabError(f"Lab '{lab.plan.name}' is made of machines; the stand-in for all_reduce_perf is for containers.")
    packages = offer(lab, "nccl", PACKAGES)
    with ThreadPoolExecutor(max_workers=4) as pool:
        keys = list(pool.map(lambda node: _prepare(lab, node, packages), lab.plan.nodes))
    for node in lab.plan.nodes:
        do(lab, node, f"printf '%s\\n' {' '.join(repr(key) for key in keys)} >> /root/.ssh/authorized_keys")


def offer(lab: Lab, name: str, packages: Sequence[str]) -> str:
    """Copy these packages, with missing dependencies, to one folder in all containers, and return its path.

    This machine's apt downloads them: they are not in the image, and the containers have no network.
    """
    cache = lab.folder.path / f"{name}-packages"
    (cache / "partial").mkdir(parents=True, exist_ok=True)
    status = lab.folder.node(lab.plan.nodes[0].name) / "root/var/lib/dpkg/status"
    options = [f"Dir::State::status={status}", f"Dir::Cache::archives={cache}", "Debug::NoLocking=1"]
    words = ["apt-get", "--quiet", "--yes", "--download-only", "--no-install-recommends"]
    run([*words, *(word for option in options for word in ("-o", option)), "install", *packages], timeout_seconds=INSTALL_SECONDS)
    for node in lab.plan.nodes:
        offered = root_of(lab, node) / "srv" / name
        offered.mkdir(exist_ok=True)
        for package in cache.glob("*.deb"):
            shutil.copy(package, offered / package.name)
    return f"/srv/{name}"


def root_of(lab: Lab, node: Node) -> Path:
    """Return the root folder of a container, as seen from outside."""
    return Path(lab.folder.node(node.name) / "root")


def _prepare(lab: Lab, node: Node, packages: str) -> str:
    """Prepare one container, and return its public key. packages: the folder in it."""
    root = root_of(lab, node)
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    shutil.copy(STANDIN, root / FOLDER / STANDIN.name)
    set_state(lab, node)
    hosts = "".join(f"{address(each)} {each.name}\\n" for each in lab.plan.nodes)
    return do(
        lab, node,
        f"{INSTALL} {packages}/*.deb > /dev/null && "
        f"ip link set {INTERFACE} up && ip address replace {address(node)}/24 dev {INTERFACE} && "
        f"printf '{hosts}' >> /etc/hosts && printf '{CONFIG}' > /root/.ssh/config && "
        "(test -f /root/.ssh/id_lab || ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_lab) && cat /root/.ssh/id_lab.pub",
        INSTALL_SECONDS,
    ).strip()  # fmt: skip


def set_state(lab: Lab, node: Node, **state: Any) -> None:
    """Set the behavior of a host's stand-in (lab/standins/all_reduce_perf); without any state it is healthy."""
    (root_of(lab, node) / STATE).write_text(json.dumps(state))


def do(lab: Lab, node: Node, command: str, timeout_seconds: float = 60.0) -> str:
    """Return the output of a command in a container. Raises LabError if it fails."""
    result = remote.execute(node, lab.folder, command, timeout_seconds=timeout_seconds)
    if result.status:
        raise LabError(f"{node.name} cannot be made a host of collectives: {(result.stderr or result.stdout).strip()[-500:]}")
    return result.stdout
