# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of the role's tasks: what is read before a subnet manager is started or changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._subnet_manager.ensure import EFFECTS

ROLE = Path(__file__).parents[4] / "roles/subnet_manager"
OBSERVE, PLAN, INCLUDE = "rdma.cluster.observe", "rdma.cluster.subnet_manager_plan", "ansible.builtin.include_tasks"


def tasks(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((ROLE / f"tasks/{name}.yml").read_text())
    return found


def variable(name: str) -> str:
    return str(yaml.safe_load((ROLE / "vars/main.yml").read_text())[name])


def test_every_host_is_read_again_right_before_an_allowed_effect() -> None:
    """The plan takes from the facts which hosts are in use; a job may have started since."""
    _intent, read, run = tasks("main")
    assert (read[OBSERVE], read["when"]) == ({"max_age_seconds": 0}, "__subnet_manager_allowed")
    assert run[INCLUDE] == "opensm.yml"


@pytest.mark.parametrize("effect", EFFECTS)
def test_each_effect_that_is_allowed_makes_the_hosts_be_read_again(effect: str) -> None:
    assert f"subnet_manager_{effect}_allowed" in variable("__subnet_manager_allowed")
    module = next(task["rdma.cluster.subnet_manager"] for task in tasks("run") if "rdma.cluster.subnet_manager" in task)
    assert module[f"{effect}_allowed"] == f"{{{{ subnet_manager_{effect}_allowed | bool }}}}"


def test_an_opensm_that_this_run_has_started_elsewhere_is_known_before_the_plane_is_judged_again() -> None:
    """Otherwise the second host of a plane would take the first one's for an opensm that this role did not configure."""
    changed = next(task for task in tasks("run") if OBSERVE in task)
    assert changed[OBSERVE] == {"max_age_seconds": 0}
    assert changed["when"] == ["not ansible_check_mode", "__subnet_manager_result is changed"]
    again = next(task for task in tasks("opensm") if task.get(INCLUDE) == "again.yml")
    assert "__subnet_manager_others_changed" in again["when"]
    assert "hostvars, ['__subnet_manager_result', 'changed']" in variable("__subnet_manager_others_changed")
    plan, run = tasks("again")
    assert PLAN in plan
    assert run[INCLUDE] == "run.yml"


def test_the_package_is_kept_from_starting_opensm_by_the_distribution_and_not_by_the_stack() -> None:
    names = [next(key for key in task if key.count(".") == 2) for task in tasks("opensm")]
    place = names.index("ansible.builtin.copy")
    assert names.index("ansible.builtin.stat") < place < names.index("ansible.builtin.package")
    conditions = tasks("opensm")[place]["when"]
    assert "__subnet_manager_plan.starts_at_install" in conditions
    assert not any("flavor" in each for each in conditions)
