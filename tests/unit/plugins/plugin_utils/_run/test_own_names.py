# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names that no host may set: all that the collection's YAML reads, and none of the facts of Ansible and of our own actions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.effects import ALLOWED, EFFECTS, IDLE
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import RUN, SECTIONS
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import without_facts
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.own_names import NOTED, ROLE_VARIABLES, is_own, own_names, refused

ROOT = Path(__file__).parents[5]


def test_every_public_variable_of_a_role_is_known() -> None:
    names = {name for file in ROOT.glob("roles/*/defaults/main.yml") for name in yaml.safe_load(file.read_text()) or {}}
    assert sorted(names) == list(ROLE_VARIABLES)


def test_every_variable_of_the_schema_and_every_private_one_is_our_own() -> None:
    files = [*ROOT.glob("roles/*/*/*.yml"), *ROOT.glob("playbooks/**/*.yml")]
    private = {name for file in files for name in re.findall(r"(?<![\w.])__[a-z][a-z0-9_]+", file.read_text())}
    assert len(private) > 40
    assert [name for name in (*SECTIONS, *RUN, *private) if not is_own(name)] == []
    assert set(NOTED) <= {*RUN, *ROLE_VARIABLES}


def test_the_facts_of_ansible_and_of_our_own_actions_are_admitted() -> None:
    ours = [f"{each.name}_{what}" for each in EFFECTS if each.guard in (IDLE, ALLOWED) for what in ("required", "reason")]
    assert own_names(["rdma", "rdma_intent", "os_family", "kernel", "discovered_interpreter_python", "module_setup", *ours]) == []


def test_a_name_is_reported_in_printable_words() -> None:
    assert refused(["rdma_a", "rdma_\x1b[2K"]) == "its facts set rdma_a, 'rdma_\\x1b[2K'"
    assert refused([f"rdma_{number}" for number in range(1000)]).endswith("rdma_4 and 995 more")
    assert len(refused(["rdma_" + "x" * 10_000])) < 200


@pytest.mark.parametrize(
    "facts", [{"rdma_run_dir": "x", "rdma": {}, "discovered_interpreter_python": "p", "os_family": "x"}, None, "x", []]
)
def test_a_module_s_facts_are_dropped(facts: object) -> None:
    kept = without_facts({"changed": True, "ansible_facts": facts}, "rdma")
    expected = {"rdma": {}, "discovered_interpreter_python": "p"} if isinstance(facts, dict) else None if facts is None else {}
    assert kept == {"changed": True, "ansible_facts": expected}
    assert "rdma" not in (without_facts(kept)["ansible_facts"] or {})
