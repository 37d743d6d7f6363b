# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""512 hosts with four rails: a clean fabric has no finding, and each fault exactly the right one, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab import fabric_faults as faults
from lab.fabric import Fabric
from tests.verify.fabric import ATTEMPTS, PLANE, Stage, brief, said

Brief = list[tuple[str, str, str, str]]
SPINES = f"plane {PLANE}"
ERROR, WARNING, UNKNOWN = "error", "warning", "unknown"
NODE20 = [f"node20 mlx5_{rail}" for rail in range(4)]
Do = Callable[[str], object]


def cut(*links: str) -> tuple[Do, Do]:
    return lambda name: [faults.cut(name, link) for link in links], lambda name: [faults.restore(name, link) for link in links]


def degrade(link: str, width: int | None, speed: str | None) -> tuple[Do, Do]:
    return lambda name: faults.degrade(name, link, width, speed), lambda name: faults.restore(name, link)


def swap(one: str, other: str) -> tuple[Do, Do]:
    return (lambda name: faults.swap(name, one, other),) * 2


def count(node: str, port: int, counter: str, value: int) -> tuple[Do, Do]:
    return lambda name: faults.counter(name, node, port, counter, value), lambda name: faults.counter(name, node, port, counter, 0)


def lose(node: str) -> tuple[Do, Do]:
    return lambda name: faults.console(name, f'Error "{node}" 100'), lambda name: faults.console(name, f'Error "{node}" 0')


#: What is done to the fabric, whether there is a plan of its cables, and what is reported of it.
FAULTS: dict[str, tuple[tuple[Do, Do], bool, Brief]] = {
    "a host's cable": (cut("node17 mlx5_3"), True, [("node17", "fabric.cabling", ERROR, "node17 mlx5_3")]),
    "an uplink": (cut("leaf1/40"), True, [(SPINES, "fabric.cabling", ERROR, "leaf1 port 40 to spine8 port 1")]),
    "a spine": (cut("spine2"), True, [(SPINES, "fabric.cabling", ERROR, "spine2")]),
    "a leaf": (cut("leaf3"), True, [(SPINES, "fabric.cabling", ERROR, "leaf3")]),
    "a host": (cut(*NODE20), True, [("node20", "fabric.cabling", ERROR, ", ".join(NODE20))]),
    "a narrow cable": (degrade("node33 mlx5_1", 1, None), True, [("node33", "fabric.link", ERROR, "node33 mlx5_1 to leaf18 port 1")]),
    "a slow uplink": (degrade("leaf2/45", None, "EDR"), True, [(SPINES, "fabric.link", ERROR, "leaf2 port 45 to spine13 port 2")]),
    "two hosts exchanged": (swap("node5 mlx5_0", "node6 mlx5_0"), True, [("node5", "fabric.cabling", WARNING, "node5 and node6")]),
    "two rails exchanged": (swap("node7 mlx5_0", "node7 mlx5_1"), True, [("node7", "fabric.cabling", ERROR, "node7")]),
    "a rail's wrong leaf, without a plan": (
        swap("node7 mlx5_2", "node7 mlx5_3"), False, [("node7", "fabric.rails", ERROR, "node7 mlx5_2, node7 mlx5_3")],
    ),
    "uneven uplinks, without a plan": (cut("leaf4/50"), False, [(SPINES, "fabric.symmetry", ERROR, "leaf4 to spine18")]),
    "two uplinks swapped": (
        swap("leaf5/33", "leaf6/34"), True, [(SPINES, "fabric.cabling", ERROR, "leaf5 and leaf6 and spine1 and spine2")],
    ),
    "symbol errors": (
        count("leaf7", 3, "SymbolErrorCounter", 5000), True, [("node195", "fabric.counters", ERROR, "node195 mlx5_0 to leaf7 port 3")],
    ),
    "congestion": (count("spine3", 9, "PortXmitDiscards", 60000), True, [(SPINES, "fabric.counters", WARNING, "congestion")]),
    "a switch that loses what it is asked": (lose("spine4"), True, [(SPINES, "fabric.graph", UNKNOWN, "discovery")]),
}  # fmt: skip


@pytest.fixture
def name(there: Fabric) -> str:
    return there.folder.path.name


@pytest.mark.parametrize("planned", [True, False], ids=["planned", "unplanned"])
def test_a_clean_fabric_has_no_finding(there: Fabric, tmp_path: Path, planned: bool) -> None:
    stage = of(there, tmp_path, planned)
    assert brief(stage.run()) == []
    found = stage.run()
    assert brief(found) == []
    assert [each.observed for each in found.hosts["node512"]] == [
        "rail0 on leaf16 port 32, rail1 on leaf32 port 32, rail2 on leaf48 port 32, rail3 on leaf64 port 32"
    ]


def of(there: Fabric, folder: Path, planned: bool) -> Stage:
    """The stage over the fabric, with its plan, or with the intent's rails alone."""
    if not planned:
        return Stage(folder, there, {"ratio": 1.0})
    return Stage(folder, there, {"plan": "cabling.yml", "ratio": 1.0}, there.folder.cabling.read_text())


@pytest.mark.fault("faults-of-512-hosts")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_finding(
    there: Fabric, name: str, tmp_path: Path, fault: str, record_property: Callable[[str, object], None]
) -> None:
    (do, undo), planned, expected = FAULTS[fault]
    stage = of(there, tmp_path, planned)
    if planned:
        assert brief(stage.run()) == []
    do(name)
    try:
        found = stage.run(attempts=1 if fault.startswith("a switch that loses") else ATTEMPTS)
        record_property("said", said(found))
        assert brief(found) == expected
    finally:
        undo(name)
