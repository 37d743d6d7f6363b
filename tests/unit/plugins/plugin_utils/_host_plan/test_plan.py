# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rdma_host_plan: made of every host that can be read, as JSON has it, and made again where something else is allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.errors import ApplyError, CommandError, ParseError
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import all_checks
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._host_plan import stored
from ansible_collections.rdma.cluster.plugins.plugin_utils._host_plan.plan import LINK_TOGGLE, NCCL_CONF, PCIE_MRRS, PERMITS, host_plan
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.read import normalize
from tests.unit.builders.blind_hosts import WAYS, Damage, Host, read
from tests.unit.builders.blind_trees import hosts
from tests.unit.builders.cards import card_facts, card_rails
from tests.unit.builders.hosts import lab_facts, lab_intent, run_with

NONE = dict.fromkeys(PERMITS, False)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Host]:
    return hosts(tmp_path_factory.mktemp("trees"))


@pytest.mark.parametrize("name", ["roce", "dcb", "infiniband"])
def test_a_host_of_which_any_one_source_is_lost_still_has_a_plan(machines: dict[str, Host], name: str) -> None:
    """Else its facts would be refused, and the gates could not say what of them is unknown."""
    host = machines[name]
    intent = normalize(host.variables)
    sources = {source for check in all_checks().values() for source in check.sources}
    for damage in (Damage(source, way) for source in sources for way in {*WAYS.get(source.kind, ())[:1], *WAYS.get(source.kind, ())[-1:]}):
        try:
            facts = read(host, damage).facts
        except (ApplyError, CommandError, OSError, ParseError):
            continue
        plan = host_plan("node1", intent, from_dict(facts), NONE)
        assert json.loads(json.dumps(plan)) == plan


def roce() -> tuple[dict[str, Any], dict[str, Any]]:
    return normalize({"rdma_rails": card_rails(), "rdma_roce": {}}), {**lab_facts(), **card_facts()}


def test_a_permission_makes_the_plan_another_one(tmp_path: Path) -> None:
    """The one of the play is stored; a role that allows more gets its own."""
    intent, facts = roce()
    folder = run_with(tmp_path / "20260101T000000Z-1", intent)
    assert stored.read(folder, "node1", NONE) is None
    folder.write_json("facts/node1.json", facts)
    stored.write(folder, "node1", stored.make("node1", intent, from_dict(facts), NONE))
    kept = stored.read(folder, "node1", NONE)
    assert kept == host_plan("node1", intent, from_dict(facts), NONE)
    allowed = {**NONE, PCIE_MRRS: True}
    other = stored.read(folder, "node1", allowed)
    assert other == host_plan("node1", intent, from_dict(facts), allowed)
    assert other is not None
    assert kept["settings"]["pcie"] != other["settings"]["pcie"]
    assert stored.read(folder, "node1", NONE) == kept


def test_a_stored_plan_holds_for_its_intent_and_its_permissions(tmp_path: Path) -> None:
    intent, facts = roce()
    folder = run_with(tmp_path / "20260101T000000Z-1", intent)
    assert not stored.holds(folder, "node1", intent, NONE)
    stored.write(folder, "node1", stored.make("node1", intent, from_dict(facts), NONE))
    assert stored.holds(folder, "node1", intent, NONE)
    assert not stored.holds(folder, "node1", intent, {**NONE, LINK_TOGGLE: True})
    assert not stored.holds(folder, "node1", lab_intent(), NONE)


def test_permissions_are_read_as_a_role_reads_them() -> None:
    answer = {PCIE_MRRS: "yes", LINK_TOGGLE: "false", NCCL_CONF: "perhaps"}
    assert stored.permits_of(answer.get) == {**NONE, PCIE_MRRS: True}
