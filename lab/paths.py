# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths of the lab's files. All are below one folder, so that they are easy to find and remove."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


def base() -> Path:
    """Return the lab's folder: `RDMA_LAB_DIR`, or /var/lib/rdma-cluster-lab."""
    return Path(os.environ.get("RDMA_LAB_DIR") or "/var/lib/rdma-cluster-lab")


def images() -> Path:
    return base() / "images"


def labs() -> Path:
    return base() / "labs"


def fabrics() -> Path:
    return base() / "fabrics"


def closes() -> Path:
    return base() / "clos"


@dataclass(frozen=True)
class FabricFolder:
    """The folder of one simulated fabric; removed by `fabric down`."""

    path: Path

    @classmethod
    def of(cls, name: str) -> FabricFolder:
        return cls(fabrics() / name)

    @property
    def state(self) -> Path:
        return self.path / "fabric.json"

    @property
    def topology(self) -> Path:
        return self.path / "topology"

    @property
    def cabling(self) -> Path:
        return self.path / "cabling.yml"

    @property
    def name_map(self) -> Path:
        return self.path / "node-name-map"

    @property
    def inventory(self) -> Path:
        """The inventory of the containers that are hosts of the fabric, if there are any."""
        return self.path / "inventory.yml"

    @property
    def simulator(self) -> Path:
        return self.path / "ibsim"

    @property
    def network(self) -> Path:
        """The file with the path of the fabric's network namespace; missing if that is this machine's own."""
        return self.path / "network"

    @property
    def enter(self) -> list[str]:
        """The words before a command that make it run in the fabric's network namespace."""
        return ["nsenter", f"--net={self.network.read_text()}"] if self.network.exists() else []

    @property
    def clients(self) -> Path:
        """The working folder of the tools: each creates its own folder here while it runs."""
        return self.path / "clients"

    def manager(self, number: int) -> Path:
        """Return the folder of one subnet manager; the first has number 1."""
        return self.path / f"opensm{number}"


@dataclass(frozen=True)
class ClosFolder:
    """The folder of one routed Clos network; removed by `clos down`."""

    path: Path

    @classmethod
    def of(cls, name: str) -> ClosFolder:
        return cls(closes() / name)

    @property
    def state(self) -> Path:
        """Written when the network is complete."""
        return self.path / "clos.json"

    @property
    def cabling(self) -> Path:
        return self.path / "cabling.yml"

    def node(self, name: str) -> Path:
        """Return the folder of a node: `etc` is its /etc/frr, `system` its /run, `run` its /run/frr, `sysctl` its /etc/sysctl.d."""
        return self.path / "nodes" / name

    def python(self, name: str) -> Path:
        """Return the program that runs Python inside a switch of a lab."""
        return self.node(name) / "python"


@dataclass(frozen=True)
class LabFolder:
    """The folder of one lab; removed by `down`."""

    path: Path

    @classmethod
    def of(cls, name: str) -> LabFolder:
        return cls(labs() / name)

    @property
    def state(self) -> Path:
        return self.path / "lab.json"

    @property
    def inventory(self) -> Path:
        return self.path / "inventory.yml"

    @property
    def key(self) -> Path:
        return self.path / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.path / "known_hosts"

    def node(self, name: str) -> Path:
        return self.path / name
