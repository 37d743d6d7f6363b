# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The labs that molecule's scenarios ask for are labs that can be made, and each is removed again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab import plan

SCENARIOS = sorted(path.parent for path in Path(__file__).parents[3].glob("molecule/*/molecule.yml"))


def names(playbook: Path) -> set[str]:
    return {name for name in re.findall(r"--name, \"?([^\]\",]+)", playbook.read_text(encoding="utf-8")) if "{{" not in name}


def test_every_scenario_is_looked_at() -> None:
    asked = {"collectives", "default", "driver", "driver_keep", "driver_next", "fabric", "hostile", "lockdown", "pairs", "policies", "qos"}
    assert {*asked, "recovery"} <= {folder.name for folder in SCENARIOS}


@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda folder: folder.name)
def test_a_scenarios_lab_can_be_made_and_is_removed(folder: Path) -> None:
    removed = names(folder / "destroy.yml")
    assert removed
    for name in names(folder / "create.yml") | removed:
        plan.make_plan(name, "container", 4, 22000)
    left = names(folder / "create.yml") - removed
    if "{{ item }}" in (folder / "destroy.yml").read_text(encoding="utf-8"):
        listed = re.findall(r"loop: \[([^\]]*)\]", (folder / "destroy.yml").read_text(encoding="utf-8"))
        left -= {name for line in listed for name in line.split(", ")}
    assert not left
