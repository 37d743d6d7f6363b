# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data that the triangle's hosts move through a network plugin of NCCL over Soft-RoCE: by verbs, by TCP, and with a library without verbs.

The plugin is a stand-in (files/verbs_plugin.c). RDMA_MESH_LIBRARY names another library in its place, for a run by hand with a build of
nccl-mesh-plugin.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab import namespace
from lab.cluster import Lab
from lab.mesh import Cable
from tests.unit.builders.plugin_transfers import build_standin
from tests.verify.meshes import Meshes
from tests.verify.nodes import say
from tests.verify.site import Site

SOURCE = Path(__file__).parents[1] / "files/verbs_plugin.c"
HOSTS = ("node1", "node2", "node3")
#: As test_1_triangle.py has built it.
CABLES: list[Cable] = [((1, 0), (2, 0)), ((1, 1), (3, 1)), ((2, 1), (3, 0))]
LIBRARY = "/opt/rdma-cluster/nccl/mesh/libnccl-net-mesh.so"
#: A transfer is 4 MiB, and a packet of Soft-RoCE has at most 4096 bytes.
TRANSFER_BYTES, PACKETS = 4 * 2**20, 1024
#: The time limit of a transfer: an emulated machine takes long to load the plugin.
SECONDS = 180
#: Soft-RoCE has the GID of the IPv4 address behind the one of the link-local address.
GID = {"NCCL_MESH_GID_INDEX": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plugin")


@pytest.fixture(scope="module")
def standin(folder: Path) -> Path:
    path = folder / "libnccl-net-mesh.so"
    argv = ["gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o", str(path), str(SOURCE), "-libverbs"]
    subprocess.run(argv, check=True, timeout=60)
    return path


@pytest.fixture(scope="module")
def library(standin: Path) -> Path:
    given = os.environ.get("RDMA_MESH_LIBRARY")
    return Path(given).resolve() if given else standin


def using(meshes: Meshes, library: Path, variables: dict[str, int]) -> Site:
    """The triangle with a plugin. NCCL itself is not on the hosts: its version decides the plugin's interface."""
    assert meshes.rails is not None, "test_1_triangle.py plans and builds the triangle"
    inventory = meshes.inventory(CABLES)
    checksum = f"sha256:{hashlib.sha256(library.read_bytes()).hexdigest()}"
    plugin = {"kind": "mesh", "file": {"file": str(library)}, "checksum": checksum, "variables": variables, "transfer_seconds": SECONDS}
    inventory["all"]["vars"]["rdma_nccl"] = {"version": "2.28.9", "plugin": plugin}
    return meshes.site(inventory)


def found(site: Site, check: str) -> list[dict[str, str]]:
    """The findings of a check in the last run."""
    return [line for line in site.lines("findings.jsonl") if line["check"] == check]


def transfers(site: Site) -> dict[tuple[str, str], tuple[str, str]]:
    """Host and transfer → status and observed value of the last run."""
    return {(line["host"], line["subject"]): (line["status"], line["observed"]) for line in found(site, "nccl.plugin_transfer")}


def from_nodes(lab: Lab) -> dict[str, Any]:
    return {end: each["from_node_bytes"] for end, each in namespace.counters(lab.plan.namespace).items()}


def test_a_library_without_verbs_is_not_installed(lab: Lab, meshes: Meshes, folder: Path) -> None:
    done = using(meshes, build_standin(folder / "tcp.so", 8), GID).run("nccl")
    assert done.returncode != 0
    assert "calls no function of libibverbs (ibv_…), so it would send everything over TCP" in " ".join(done.stdout.split()), done.stdout
    for name in HOSTS:
        assert say(lab, lab.plan.node(name), f"ls {LIBRARY} 2>/dev/null; grep -c NCCL_NET_PLUGIN /etc/nccl.conf || true").split() == ["0"]


def test_every_pair_of_hosts_moves_data_by_verbs(lab: Lab, meshes: Meshes, library: Path) -> None:
    site, before = using(meshes, library, GID), from_nodes(lab)
    done = site.run("nccl")
    assert done.returncode == 0, done.stdout
    after = from_nodes(lab)
    for host, observed in ((line["host"], line["observed"]) for line in found(site, "nccl.plugin_transfer")):
        print(host, observed)
    seen = transfers(site)
    assert len(seen) == 2 * len(list(itertools.permutations(HOSTS, 2)))
    for (host, subject), (status, observed) in seen.items():
        counted = re.fullmatch(rf"{TRANSFER_BYTES} bytes by verbs: rxe_\S+/1 counted (\d+) packets", observed)
        assert status == "ok", (host, subject, observed)
        assert counted is not None, (host, subject, observed)
        assert int(counted[1]) >= PACKETS
    # Outside of the machines: each end of each cable has sent one transfer.
    sent = {end: after[end] - before[end] for end in after}
    assert {end for end, count in sent.items() if count > TRANSFER_BYTES} == {meshes.rail(end).cable for cable in CABLES for end in cable}
    assert {line["status"] for line in found(site, "nccl.plugin")} == {"ok"}
    for name in HOSTS:
        assert LIBRARY in say(lab, lab.plan.node(name), "grep NCCL_NET_PLUGIN /etc/nccl.conf")
        units = "systemctl --plain --no-legend list-units 'rdma-plugin*'"
        assert say(lab, lab.plan.node(name), f"ls /run/rdma-cluster/plugin-transfer; {units}").strip() == ""


def test_a_second_run_changes_nothing_and_moves_nothing(lab: Lab, meshes: Meshes, library: Path) -> None:
    site, before = using(meshes, library, GID), from_nodes(lab)
    done = site.run("nccl")
    assert done.returncode == 0, done.stdout
    assert site.lines("changes.jsonl") == []
    assert max(count - before[end] for end, count in from_nodes(lab).items()) < TRANSFER_BYTES
    assert {(status, "(proven " in observed) for status, observed in transfers(site).values()} == {("ok", True)}


def test_a_plugin_that_uses_tcp_is_named(meshes: Meshes, standin: Path) -> None:
    """It calls libibverbs and offers the right devices. No check before the transfer can see that it would use TCP."""
    site = using(meshes, standin, {**GID, "NCCL_MESH_DISABLE_RDMA": 1})
    done = site.run("nccl")
    assert done.returncode != 0
    assert {line["status"] for line in found(site, "nccl.plugin")} == {"ok"}
    for (host, subject), (status, observed) in transfers(site).items():
        print(host, subject, observed)
        assert status == "error"
        assert observed.startswith("the plugin moved the data by TCP, not by verbs: "), observed
