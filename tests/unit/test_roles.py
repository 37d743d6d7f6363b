# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Roles: what stands in defaults stands in argument_specs, with the same value, and the other way round."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

COLLECTION = Path(__file__).parents[2]
ROLES = sorted(path for path in (COLLECTION / "roles").iterdir() if path.is_dir())


def load(path: Path) -> dict[str, Any]:
    return (yaml.safe_load(path.read_text()) or {}) if path.exists() else {}


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_defaults_are_the_argument_specs(role: Path) -> None:
    options = load(role / "meta/argument_specs.yml")["argument_specs"]["main"].get("options", {})
    defaults = load(role / "defaults/main.yml")
    assert {name: spec.get("default") for name, spec in options.items() if "default" in spec} == defaults


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_private_variables_carry_the_role_s_name(role: Path) -> None:
    for name in load(role / "vars/main.yml"):
        assert name.startswith(f"__{role.name}_")


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_each_file_of_tasks_is_taken_in_somewhere(role: Path) -> None:
    """By its role's tasks and handlers, or by a playbook's tasks_from, which may leave the ending out."""
    takers = [*role.glob("tasks/*.yml"), *role.glob("handlers/*.yml"), *COLLECTION.glob("playbooks/**/*.yml")]
    taken = set(re.findall(r"(?:_tasks|tasks_from): ([\w-]+)(?:\.yml)?$", "\n".join(path.read_text() for path in takers), re.MULTILINE))
    assert {path.stem for path in role.glob("tasks/*.yml")} - {"main"} <= taken
