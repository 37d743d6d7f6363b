# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of effects against the roles: every module that changes a host has a row, and every row has its guard."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.action.driver_plan import EFFECTS as EFFECTS_OF_PLAN
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.effects import (
    ADDS,
    ALLOWED,
    EFFECTS,
    GUARDS,
    IDLE,
    IN_USE,
    LOAD,
    REQUESTED,
    Effect,
)
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import RUN, SECTIONS

COLLECTION = Path(__file__).parents[2]
ROLES = sorted(path.name for path in (COLLECTION / "roles").iterdir() if path.is_dir())
#: Modules that change nothing on a host or a fabric: they decide, read, report, or only bring files to a private folder of ours.
HARMLESS = {
    *(f"ansible.builtin.{name}" for name in ("assert", "debug", "fail", "find", "set_fact", "stat", "meta", "wait_for_connection")),
    *(f"ansible.builtin.{name}" for name in ("include_tasks", "import_tasks", "include_role", "import_role")),
    *(f"rdma.cluster.{name}" for name in ("observe", "withheld", "rails_up", "rdma_facts", "driver_plan", "driver_removal")),
    "rdma.cluster.exporter_plan",
    *(
        f"rdma.cluster.{name}"
        for name in ("pair_plan", "pair_proofs", "pair_proofs_void", "pair_results", "path_mtu", "subnet_manager_plan")
    ),
}
#: How code on the host, or a task on the control node, refuses to touch a host in use.
REFUSALS = re.compile(
    r"\b(refusal|idle_refusal|in_use|in_use_now|busy_words|rail_users|host_users|at_work|refuse_while_used|refuse_unless_safe)\b|_read\.users\b"
)
IMPORT = re.compile(
    r"from ansible_collections\.rdma\.cluster\.plugins\.((?:module_utils|plugin_utils)(?:\.\w+)*) import (?:\(([^)]*)\)|(.*))"
)
GUARDED = [each for each in EFFECTS if each.guard in (ALLOWED, IDLE)]
#: Rows that say that a host in use refuses the effect, whatever their guard.
REFUSED_IN_USE = [each for each in EFFECTS if IN_USE in each.refused_by or each.guard in (ALLOWED, IDLE, LOAD)]
#: They read who uses a host, and refuse nothing by themselves: every action imports the one, every stage has the other.
READERS = [COLLECTION / f"plugins/{name}.py" for name in ("module_utils/_host/load", "plugin_utils/_run/action", "action/observe")]


def files(role: str) -> list[Path]:
    """The files of tasks of a role, and those of other roles that it includes (tasks_from) with all that they import."""
    own = sorted((COLLECTION / "roles" / role / "tasks").glob("*.yml"))
    todo = [
        COLLECTION / "roles" / included["name"].rpartition(".")[2] / "tasks" / included["tasks_from"]
        for path in own
        for task in _tasks(yaml.safe_load(path.read_text()) or [])
        if (included := task.get("ansible.builtin.include_role")) and "tasks_from" in included
    ]
    found = list(own)
    while todo:
        path = todo.pop()
        if path not in found:
            found.append(path)
            found_tasks = _tasks(yaml.safe_load(path.read_text()) or [])
            todo += [path.parent / name for task in found_tasks if (name := task.get("ansible.builtin.import_tasks"))]
    return found


def tasks(role: str) -> Iterator[dict[str, Any]]:
    for path in files(role):
        yield from _tasks(yaml.safe_load(path.read_text()) or [])


def _tasks(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for task in found:
        for part in ("block", "rescue", "always"):
            yield from _tasks(task.get(part, []))
        yield task


def modules(role: str) -> set[str]:
    return {key for task in tasks(role) for key in task if key.count(".") == 2 and key not in HARMLESS}


def text(role: str) -> str:
    return "\n".join(path.read_text() for path in files(role))


def label(effect: Effect) -> str:
    return f"{effect.role}-{effect.allowed_by or effect.guard}"


@pytest.mark.parametrize("role", ROLES)
def test_every_module_that_changes_something_has_a_row(role: str) -> None:
    declared = {module for effect in EFFECTS if effect.role == role for module in effect.modules}
    assert modules(role) == declared


@pytest.mark.parametrize("effect", EFFECTS, ids=label)
def test_a_row_says_what_its_guard_needs(effect: Effect) -> None:
    assert effect.guard in GUARDS
    assert bool(effect.allowed_by) == (effect.guard != ADDS)
    assert effect.guard != ALLOWED or effect.refused_by, "say what refuses it although it is allowed"


@pytest.mark.parametrize("effect", GUARDED, ids=label)
def test_a_guard_is_off_by_default_asked_in_the_tasks_and_reported(effect: Effect) -> None:
    role = COLLECTION / "roles" / effect.role
    assert effect.allowed_by == f"{effect.name}_allowed"
    assert effect.allowed_by.startswith(effect.role)
    assert yaml.safe_load((role / "defaults/main.yml").read_text())[effect.allowed_by] is False
    options = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    assert options[effect.allowed_by]["type"] == "bool"
    assert effect.allowed_by in text(effect.role)
    reported = [task["rdma.cluster.withheld"]["effect"] for task in tasks(effect.role) if "rdma.cluster.withheld" in task]
    reported += EFFECTS_OF_PLAN.values() if effect.role == "driver" else ()
    assert any(re.fullmatch(re.sub(r"\{\{.*?\}\}", "[a-z_]+", name), effect.name) for name in reported)


def sources(role: str, names: Iterable[str]) -> Iterator[str]:
    """The tasks of a role, and the code of its modules and actions with all that they import, but for the readers themselves."""
    yield text(role)
    plans = {key for task in tasks(role) for key in task if key.startswith("rdma.cluster.")}
    todo = [COLLECTION / f"plugins/{kind}/{name.rpartition('.')[2]}.py" for kind in ("modules", "action") for name in {*names, *plans}]
    seen = set(READERS)
    while todo:
        file = todo.pop()
        if file in seen or not file.exists():
            continue
        seen.add(file)
        yield file.read_text()
        for dotted, several, one in IMPORT.findall(file.read_text()):
            place = COLLECTION / "plugins" / dotted.replace(".", "/")
            todo += [place.with_suffix(".py"), *(place / f"{name}.py" for name in re.findall(r"\w+", several or one))]


@pytest.mark.parametrize("effect", [each for each in REFUSED_IN_USE if not each.refused_by.startswith("nothing")], ids=label)
def test_a_guard_refuses_a_host_in_use(effect: Effect) -> None:
    """By the module on the host, by an action, or by the role."""
    assert any(REFUSALS.search(source) for source in sources(effect.role, effect.modules))


@pytest.mark.parametrize("role", ROLES)
def test_a_role_that_asks_facts_whether_the_host_is_in_use_reads_them_right_before(role: str) -> None:
    for path in sorted((COLLECTION / "roles" / role / "tasks").glob("*.yml")):
        found = list(_tasks(yaml.safe_load(path.read_text()) or []))
        asks = [number for number, task in enumerate(found) if "rdma.cluster.in_use" in str(task)]
        fresh = {"max_age_seconds": 0}
        assert not asks or any(task.get("rdma.cluster.observe") == fresh and "when" not in task for task in found[: asks[0]]), path


@pytest.mark.parametrize("role", ROLES)
def test_check_mode_reports_what_would_be_withheld(role: str) -> None:
    reports = [task for task in tasks(role) if "rdma.cluster.withheld" in task]
    assert [task["name"] for task in reports if "check_mode" in str(task.get("when", ""))] == []


def test_every_module_counts_queue_pairs_as_use() -> None:
    """Jobs on CPUs have no GPU process. Without a runner queue pairs are not read.

    A measurement counts GPU processes and jobs, as its plan does: the kernel's storage clients hold queue pairs on an idle host too.
    """
    calls = {
        f"{path.name}: {line.strip()}"
        for path in sorted((COLLECTION / "plugins/modules").glob("*.py"))
        for line in path.read_text().splitlines()
        if re.search(r"\b(idle_refusal|refusal|in_use_now)\(", line)
    }
    assert len(calls) >= len({"cpu_power", "nic_rings", "roce_qos", "soft_links", "sysctl_settings"})
    measuring = ("nccl_test.py", "perftest_rounds.py", "plugin_transfer.py")
    assert {call for call in calls if "unner" not in call and not call.startswith(measuring)} == set()


@pytest.mark.parametrize("role", ROLES)
def test_every_effect_that_a_role_reports_has_a_row(role: str) -> None:
    reported = {task["rdma.cluster.withheld"]["effect"] for task in tasks(role) if "rdma.cluster.withheld" in task}
    rows = {effect.name for effect in EFFECTS if effect.role == role}
    assert {name for name in reported if "{{" not in name} <= rows


@pytest.mark.parametrize("effect", [each for each in EFFECTS if each.guard == LOAD], ids=label)
def test_load_on_hosts_in_use_is_off_by_default(effect: Effect) -> None:
    assert RUN[effect.allowed_by].default is False


def test_a_role_that_loads_the_fabric_has_a_row() -> None:
    """Also one whose load is a task of another role."""
    loads = {"rdma.cluster.pair_start", "rdma.cluster.collectives", "rdma.cluster.plugin_transfer"}
    assert {role for role in ROLES if loads & modules(role)} == {each.role for each in EFFECTS if each.guard == LOAD}


@pytest.mark.parametrize("effect", [each for each in EFFECTS if each.guard == REQUESTED], ids=label)
def test_a_requested_effect_is_a_key_of_the_intent(effect: Effect) -> None:
    name, *inner = effect.allowed_by.split(".")
    key = SECTIONS[name].key if name in SECTIONS else RUN[name]
    for word in inner:
        key = key.keys[word]
    if inner:
        assert key.default in (None, False), "an absent setting leaves the host as it is"
