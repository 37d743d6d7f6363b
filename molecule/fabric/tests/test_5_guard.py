# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A live fabric whose master is another opensm: what the role subnet_manager reads before it starts or changes one of its own.

opensm and the tools are real, the fabric is ibsim's, and a port's files of /sys are stand-ins made of what smpquery says of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.sysroot import SysRoot
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager import guard as subnet_manager_guard
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.guard import Fleet, Guard, MasterReading
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.partitions_conf import (
    Partition,
    PartitionPort,
    render_partitions,
)
from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.service import Instance
from lab import fabric
from lab.fabric import Fabric, FabricRequest
from lab.fabric_plan import Shape
from tests.verify.fabric import OnFabric

NAME = "mfabric7"
SHAPE = Shape("leafspine", 4, 1)
#: The inventory does not have node4.
HOSTS = ["node1", "node2", "node3"]


def port(there: Fabric, host: str) -> str:
    return f"{there.plan.guid(f'{host} mlx5_0') + 1:#018x}"


class Simulated(OnFabric):
    """The tools with ibsim's name of the device."""

    def run(self, argv: Any, *, timeout_seconds: float = 30.0) -> Any:
        return super().run(["ibsim0" if word == "mlx5_0" else word for word in argv], timeout_seconds=timeout_seconds)


def sysfs(there: Fabric, host: str, folder: Path) -> SysRoot:
    answer = OnFabric(there, f"{host} mlx5_0").run(["smpquery", "portinfo", "-D", "0", "1"]).stdout
    fields = {line.partition(":")[0]: line.partition(":")[2].strip(".") for line in answer.splitlines()}
    base = folder / "sys/class/infiniband/mlx5_0/ports/1"
    base.mkdir(parents=True, exist_ok=True)
    state = {"Initialize": "2: INIT", "Active": "4: ACTIVE"}[fields["LinkState"]]
    for name, text in (("state", state), ("lid", f"{int(fields['Lid']):#x}"), ("sm_lid", f"{int(fields['SMLid']):#x}")):
        (base / name).write_text(f"{text}\n")
    return SysRoot(str(folder))


def guard(there: Fabric, folder: Path, *partitions: Partition, default: str = "full") -> Guard:
    """Of an opensm that node2 is to run, beside node1 or alone."""
    text = render_partitions("blue", partitions, default)
    instance = Instance("blue", port(there, "node2"), "mlx5_0", "1", 14, "", text, managers={port(there, "node2"): "node2"})
    fleet = Fleet({port(there, host): f"{host} mlx5_0" for host in HOSTS})
    return Guard(instance, fleet, Simulated(there, "node2 mlx5_0"), sysfs(there, "node2", folder))


@pytest.fixture(autouse=True)
def _short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subnet_manager_guard, "NO_MASTER_SECONDS", 1.0)


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Fabric]:
    """opensm of node1 is the master with priority 3; node3 and node4 are in a partition that only it knows."""
    fabric.up(NAME, SHAPE, FabricRequest(own_manager=False))
    there = fabric.load(NAME)
    ports = [PartitionPort(port(there, host), "full") for host in ("node3", "node4")]
    fabric.down(NAME)
    file = tmp_path / "foreign.conf"
    file.write_text(render_partitions("foreign", [Partition("store", 0x0202, ports)]))
    fabric.up(NAME, SHAPE, FabricRequest(options={"sm_priority": "3", "partition_config_file": str(file)}))
    yield fabric.load(NAME)
    fabric.down(NAME)


def test_a_foreign_master_is_named_and_its_partitions_would_be_lost(foreign: Fabric, tmp_path: Path) -> None:
    ours = guard(foreign, tmp_path)
    reading = ours.read_master()
    assert reading.master is not None
    assert (reading.master.guid, reading.master.state, reading.master.priority) == (port(foreign, "node1"), "MASTER", 3)
    (reason,) = ours.takeover_reasons(reading, active=False, ours=False)
    for word in ("node1 mlx5_0", port(foreign, "node1"), "LID 1", "priority 3", "MASTER"):
        assert word in reason
    found = ours.losses_from_tables(reading)
    assert found.words == [
        f"node3 mlx5_0 ({port(foreign, 'node3')}): loses 0x0202 (full)",
        f"{port(foreign, 'node4')} ('node4 mlx5_0', not in the inventory): loses 0x0202 (full)",
    ]
    assert (found.hosts, found.unknown) == (["node3"], [])


def test_a_limited_default_partition_is_a_loss_of_every_port(foreign: Fabric, tmp_path: Path) -> None:
    ours = guard(foreign, tmp_path, default="limited")
    found = ours.losses_between(render_partitions("blue", []))
    assert [each.partition(":")[0].split()[0] for each in found.words] == ["node1", "node3", port(foreign, "node4")]
    assert all(each.endswith("0x7fff full → limited") for each in found.words)
    wider = guard(foreign, tmp_path, Partition("red", 0x0101, [PartitionPort(port(foreign, "node3"), "full")]))
    assert not wider.losses_between(render_partitions("blue", [])).words


def beside_node1(there: Fabric, folder: Path, *unconfigured: str) -> Guard:
    """Where the intent names node1 as well. unconfigured: the hosts without files of this role."""
    ours = guard(there, folder)
    instance = replace(ours.instance, managers={port(there, host): host for host in ("node1", "node2")}, unconfigured=unconfigured)
    return Guard(instance, ours.fleet, Simulated(there, "node2 mlx5_0"), ours.sys)


def test_a_named_master_that_this_role_did_not_configure_is_not_taken_over(foreign: Fabric, tmp_path: Path) -> None:
    """The admin's own opensm on a host that the intent names."""
    named = beside_node1(foreign, tmp_path, "node1", "node2")
    (reason,) = named.takeover_reasons(named.read_master(), active=False, ours=False)
    assert reason.startswith("node1 runs an opensm that this role did not configure: ")


def test_a_named_master_that_this_role_configured_is_no_reason(foreign: Fabric, tmp_path: Path) -> None:
    named = beside_node1(foreign, tmp_path, "node2")
    assert named.takeover_reasons(named.read_master(), active=False, ours=False) == []


def test_a_new_port_on_a_managed_fabric_does_not_start_a_second_master(foreign: Fabric, tmp_path: Path) -> None:
    """Its own port is in INIT without a LID, as before the first sweep of the master that finds it."""
    ours = guard(foreign, tmp_path)
    folder = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    for name, text in (("state", "2: INIT"), ("lid", "0x0"), ("sm_lid", "0x0")):
        (folder / name).write_text(f"{text}\n")
    reading = ours.read_master()
    assert reading.master is None
    assert "this port has no LID, but" in str(reading.why_unknown)
    assert ours.takeover_reasons(reading, active=False, ours=False)


def test_a_master_that_died_is_unknown_unless_it_was_a_named_one(foreign: Fabric, tmp_path: Path) -> None:
    ours = guard(foreign, tmp_path)
    fabric.stop_manager(NAME, 1, kill=True)
    reading = ours.read_master()
    assert (reading.master, reading.why_unknown) == (None, "no subnet manager answers at LID 1")
    assert ours.takeover_reasons(reading, active=False, ours=False)
    named = Guard(Instance(**{**vars(ours.instance), "lids": ["1"]}), ours.fleet, Simulated(foreign, "node2 mlx5_0"), ours.sys)
    assert named.read_master() == MasterReading(None)


def test_a_fabric_without_a_master_is_read_as_such(tmp_path: Path) -> None:
    fabric.up(NAME, SHAPE, FabricRequest(own_manager=False))
    try:
        ours = guard(fabric.load(NAME), tmp_path, default="limited")
        reading = ours.read_master()
        assert reading == MasterReading(None)
        assert ours.takeover_reasons(reading, active=False, ours=False) == []
        # No port has a LID: none of them is in use.
        assert ours.losses_from_tables(reading).words == []
    finally:
        fabric.down(NAME)
