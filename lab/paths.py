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
