# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts the stages that touch live rails change in batches."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.action import batch_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.differences import live_rails
from tests.unit.builders.hosts import lab_facts, lab_intent, run_with

QP = {"device": "rxe_rail0", "port": 1, "pid": 4711, "name": "ib_write_bw", "count": 1}


def bare() -> dict[str, Any]:
    """A host whose rails have no addresses yet."""
    facts = lab_facts()
    for name in ("ens1", "ens2"):
        facts["netdevs"][name]["ipv4"] = []
    return facts


def with_load(**load: Any) -> dict[str, Any]:
    facts = bare()
    facts["load"].update(load)
    return facts


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (bare(), ""),
        (lab_facts(), "rail0 has 192.168.100.1/24, rail1 has 192.168.101.1/24"),
        (with_load(qps=[QP]), "1 queue pair of ib_write_bw (pid 4711) on rxe_rail0/1"),
        (with_load(jobs=[{"pid": 9, "name": "slurmstepd"}]), "job process 9 (slurmstepd)"),
        (with_load(gpu_processes=None), "GPU processes cannot be seen"),
        (with_load(qps=None, qps_error="no tool"), "queue pairs cannot be read (no tool)"),
        ({**bare(), "load": None}, "whether it is in use is unknown"),
    ],
)
def test_a_host_is_live_if_a_change_could_harm_somebody(facts: dict[str, Any], why: str) -> None:
    assert live_rails(lab_intent(), from_dict(facts)) == why


class Planned(batch_plan.ActionModule):
    """The action with the host that it is about."""

    def __init__(self, facts: dict[str, Any], folder: Path, *, check_mode: bool = False) -> None:
        self.tree = facts
        self.folder = run_with(folder, lab_intent())
        self.variables = {"inventory_hostname": "node1", "ansible_facts": {}}
        self._task = SimpleNamespace(check_mode=check_mode)

    @property
    def all_facts(self) -> dict[str, Any]:
        return self.tree


def plan(folder: Path, facts: dict[str, Any], *, always: bool = False, check_mode: bool = False) -> dict[str, Any]:
    return Planned(facts, folder, check_mode=check_mode).work({"group": "rdma_network_live", "always": always})


def test_a_live_host_joins_the_group(tmp_path: Path) -> None:
    done = plan(tmp_path, lab_facts())
    assert (done["live"], done["waits"], done["add_group"]) == (True, True, "rdma_network_live")
    # A fact would be a variable of the host, and the intent refuses names that it does not know.
    assert "ansible_facts" not in done
    assert plan(tmp_path, lab_facts())["waits"] is True


def test_a_host_without_a_live_rail_does_not_and_stays_new_for_the_run(tmp_path: Path) -> None:
    """The network stage gives it addresses, and QoS then changes it with the others."""
    first = plan(tmp_path, bare())
    assert (first["live"], first["waits"], "add_group" in first) == (False, False, False)
    assert plan(tmp_path, lab_facts())["waits"] is False


def test_batches_that_the_user_asks_for_are_for_every_host(tmp_path: Path) -> None:
    assert plan(tmp_path, bare(), always=True)["waits"] is True


def test_check_mode_covers_all_hosts_at_once(tmp_path: Path) -> None:
    done = plan(tmp_path, lab_facts(), always=True, check_mode=True)
    assert (done["live"], done["waits"], "add_group" in done) == (True, False, False)
