# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a simulated fabric between two commands: its state file, and the lock that allows one command at a time on its console."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lab import fabric_plan, paths
from lab.errors import LabError
from lab.fabric_plan import FabricPlan, Shape
from lab.paths import FabricFolder


@dataclass(frozen=True)
class Fabric:
    """An existing fabric, as recorded in its state file."""

    plan: FabricPlan
    folder: FabricFolder
    manager_node: str
    #: The lab whose containers are its hosts; "" for none.
    lab: str = ""
    #: Whether the lab runs a subnet manager itself, outside of its hosts.
    own_manager: bool = True

    @property
    def patience_seconds(self) -> float:
        """The time limit for simulator and manager: ten times the measured 3 s and 4 s for 2048 HCAs on one busy core."""
        return 20 + len(self.plan.hcas) / 40


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of a fabric's console: only one command at a time may use it."""
    paths.fabrics().mkdir(parents=True, exist_ok=True)
    with (paths.fabrics() / f".{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def checked(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]{0,9}", name):
        raise LabError(f"A fabric's name is 1 to 10 lower-case letters and digits, beginning with a letter; got '{name}'.")
    return name


def load(name: str) -> Fabric:
    """Return the fabric of this name. Raises LabError if there is none, or if its `up` was interrupted."""
    known = state(checked(name))
    if known is None or known["phase"] != "up":
        raise LabError(f"There is no fabric '{name}'. Make one with: lab fabric up --name {name}")
    plan = fabric_plan.make(Shape(**known["shape"]))
    return Fabric(plan, FabricFolder.of(name), known["manager_node"], known["lab"], known["own_manager"])


def state(name: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(FabricFolder.of(name).state.read_text()))
    except FileNotFoundError:
        return None


def write_state(fabric: Fabric, phase: str) -> None:
    settings = {"manager_node": fabric.manager_node, "lab": fabric.lab, "own_manager": fabric.own_manager}
    known = {"phase": phase, "shape": dataclasses.asdict(fabric.plan.shape), **settings}
    new = fabric.folder.state.with_suffix(".new")
    new.write_text(json.dumps(known) + "\n")
    new.rename(fabric.folder.state)


def on_lab(lab: str) -> list[str]:
    """Return the names of the fabrics that use a lab's containers as hosts."""
    names = [path.parent.name for path in paths.fabrics().glob("*/fabric.json")]
    return [name for name in names if (state(name) or {}).get("lab") == lab]
