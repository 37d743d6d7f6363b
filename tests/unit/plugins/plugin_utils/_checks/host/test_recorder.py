# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recorder in the plan and the gate of the host stage: left as it is unless it is requested, and proven by facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ansible_collections.rdma.cluster.plugins.module_utils._base.files import ManagedFile, described
from ansible_collections.rdma.cluster.plugins.module_utils._recorder.service import recorder_files, removed_files
from ansible_collections.rdma.cluster.plugins.plugin_utils._checks.host.recorder import check_recorder
from ansible_collections.rdma.cluster.plugins.plugin_utils._facts.typed import from_dict
from ansible_collections.rdma.cluster.plugins.plugin_utils._plan.host import recorder_differs, recorder_settings

RUNS = {"rdma-recorder.timer": {"active": True, "enabled": True}}
STOPPED = {"rdma-recorder.timer": {"active": False, "enabled": False}}


def intent(*, manage: bool = True, state: str = "present", size_mib: int = 16) -> Any:
    return {"recorder": {"manage": manage, "state": state, "interfaces": ["bond0.7"], "size_mib": size_mib}}


def facts(files: Sequence[ManagedFile], units: dict[str, Any] | None) -> Any:
    there = {file.path: described(file.content, file.mode) for file in files if file.content is not None}
    return from_dict({"files": there, "units": units})


INSTALLED = recorder_files(["bond0.7"], 16 * 2**20)


@pytest.mark.parametrize(
    ("asked", "seen", "differs"),
    [
        (intent(manage=False), facts([], None), False),
        (intent(manage=False), facts(INSTALLED, STOPPED), False),
        (intent(), facts(INSTALLED, RUNS), False),
        (intent(), facts(INSTALLED, STOPPED), True),
        (intent(), facts(INSTALLED, None), True),
        (intent(), facts([], RUNS), True),
        (intent(size_mib=32), facts(INSTALLED, RUNS), True),
        (intent(state="absent"), facts(INSTALLED, RUNS), True),
        (intent(state="absent"), facts(removed_files(), STOPPED), False),
    ],
)
def test_the_role_has_work_unless_facts_prove_the_opposite(asked: Any, seen: Any, differs: bool) -> None:
    assert recorder_differs(asked, seen) is differs
    assert recorder_settings(asked)["interfaces"] == ["bond0.7"]


@pytest.mark.parametrize(
    ("asked", "units", "status"),
    [
        (intent(manage=False), None, "not_applicable"),
        (intent(), RUNS, "ok"),
        (intent(), STOPPED, "warning"),
        (intent(), None, "unknown"),
        (intent(), {}, "unknown"),
        (intent(state="absent"), RUNS, "warning"),
        (intent(state="absent"), STOPPED, "ok"),
    ],
)
def test_the_gate_warns_of_a_recorder_that_does_not_run(asked: Any, units: dict[str, Any] | None, status: str) -> None:
    (finding,) = check_recorder("node1", asked, facts(INSTALLED, units))
    assert finding.status == status
    assert bool(finding.remedy) is (status in ("warning", "unknown"))
