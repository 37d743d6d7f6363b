# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the gates would say now: of each host, and of the fleet where no host is in the majority."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.findings import Finding
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.known import known_hosts
from ansible_collections.rdma.cluster.plugins.plugin_utils._gate.now import current_findings
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import FLEET, RunFolder
from tests.unit.builders.hosts import lab_facts, lab_intent

TODAY = date(2026, 11, 27)
SILENCE = {"nccl.alike": {"silenced_by": "ops", "reason": "a test", "until": "2026-12-01"}}


def now(folder: Path, silenced: tuple[int, ...] = ()) -> dict[str, list[Finding]]:
    """The findings of two hosts with different variables of NCCL. silenced: the hosts whose intent silences nccl.alike."""
    run = RunFolder(folder)
    for node, level in ((1, "INFO"), (2, "WARN")):
        more: dict[str, Any] = {"checks": SILENCE} if node in silenced else {}
        run.write_json(run.host_file("intent", f"node{node}"), lab_intent(node, nccl={"variables": {"NCCL_DEBUG": level}}, **more))
        run.write_json(run.host_file("facts", f"node{node}"), lab_facts(node))

    def read_plan(name: str) -> str:
        raise AssertionError(f"no plan is needed, and {name} was asked for")

    return current_findings(["nccl"], run, known_hosts(run, ["node1", "node2"]), read_plan, TODAY)


def test_a_tie_is_a_finding_of_the_fleet(tmp_path: Path) -> None:
    found = now(tmp_path)
    assert list(found) == ["node1", "node2", FLEET]
    (tie,) = found[FLEET]
    assert (tie.check, tie.subject, tie.status, tie.silenced_by) == ("nccl.alike", "NCCL_DEBUG", "error", None)
    assert {each.status for host in ("node1", "node2") for each in found[host] if each.subject == "NCCL_DEBUG"} == {"not_applicable"}


@pytest.mark.parametrize(("silenced", "by"), [((1, 2), "ops until 2026-12-01: a test"), ((1,), None)])
def test_a_rule_of_all_hosts_applies_to_the_fleet(tmp_path: Path, silenced: tuple[int, ...], by: str | None) -> None:
    assert [each.silenced_by for each in now(tmp_path, silenced)[FLEET]] == [by]
