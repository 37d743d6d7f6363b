# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the lab keeps things. Everything is below one folder, so that everything can be found and removed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


def base() -> Path:
    """`RDMA_LAB_DIR`, or /var/lib/rdma-cluster-lab."""
    return Path(os.environ.get("RDMA_LAB_DIR") or "/var/lib/rdma-cluster-lab")


def images() -> Path:
    return base() / "images"


def labs() -> Path:
    return base() / "labs"


def fabrics() -> Path:
    return base() / "fabrics"


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
        """Of the containers that are hosts of the fabric, if any are."""
        return self.path / "inventory.yml"

    @property
    def simulator(self) -> Path:
        return self.path / "ibsim"

    @property
    def network(self) -> Path:
        """Names the network namespace that the fabric lives in; not there for this machine's own."""
        return self.path / "network"

    @property
    def enter(self) -> list[str]:
        """The words in front of a command that is to run in the fabric's network namespace."""
        return ["nsenter", f"--net={self.network.read_text()}"] if self.network.exists() else []

    @property
    def clients(self) -> Path:
        """Where the tools run: each leaves a folder of its own here while it works."""
        return self.path / "clients"

    def manager(self, number: int) -> Path:
        """The folder of one subnet manager; the first has number 1."""
        return self.path / f"opensm{number}"


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
