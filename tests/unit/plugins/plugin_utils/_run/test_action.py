# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a module on a host returns, before Ansible prints any of it."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.action import CleanAnswers, clean_answer

ROOT = Path(__file__).parents[5]
ESCAPE = "\x1b]0;owned\x07\x1b[2K\x9b1A\r"


@pytest.mark.parametrize("text", ['{"changed": false, "msg": "all is well"}\n', '{"changed": false, "msg": "a\\nb\\tc"}\r\n', "", "{"])
def test_an_answer_without_control_characters_stays_as_it_is(text: str) -> None:
    assert clean_answer(text) == text


@pytest.mark.parametrize("key", ["msg", "exception", "reason"])
@pytest.mark.parametrize("as_ascii", [True, False])
def test_what_ansible_prints_of_an_answer_is_cleaned(key: str, as_ascii: bool) -> None:
    cleaned = json.loads(clean_answer(json.dumps({key: f"broken{ESCAPE}\nline 2", "rc": 3}, ensure_ascii=as_ascii)))
    assert cleaned == {key: "broken?]0;owned??[2K?1A\nline 2", "rc": 3}


def test_warnings_and_deprecations_are_cleaned_at_any_depth() -> None:
    answer = {"warnings": [f"a{ESCAPE}"], "deprecations": [{"msg": f"b{ESCAPE}", "version": None, "date": 5}]}
    assert json.loads(clean_answer(json.dumps(answer))) == {
        "warnings": ["a?]0;owned??[2K?1A\n"],
        "deprecations": [{"msg": "b?]0;owned??[2K?1A\n", "version": None, "date": 5}],
    }


def test_data_keeps_its_characters() -> None:
    """Outputs of tools are parsed, and files are compared."""
    answer = {"msg": "\x1b", "raw": ["\x1b[1m12.5\x1b[0m\r\n"], "ansible_facts": {"rdma": {"boot": {"hostname": "a\x07"}}}}
    assert json.loads(clean_answer(json.dumps(answer))) == {**answer, "msg": "?"}


def test_keys_that_ansible_removes_with_a_warning_are_removed_before() -> None:
    answer = {"add_host": {"host_name": ESCAPE}, "add_group": ESCAPE, f"_ansible_{ESCAPE}": ESCAPE, "changed": False}
    assert json.loads(clean_answer(json.dumps(answer))) == {"changed": False}


@pytest.mark.parametrize(
    "text", [f"{ESCAPE}{{}}", f"{{}}\n{ESCAPE}", f'{{"n": {"9" * 6000}}}{ESCAPE}', "[" * 100_000 + ESCAPE, f"[1]{ESCAPE}"]
)
def test_what_is_no_answer_is_cleaned_too(text: str) -> None:
    assert clean_answer(text) == text.replace("\x1b", "?").replace("\x07", "?").replace("\x9b", "?").replace("\r", "?")


def test_every_module_has_an_action_that_cleans_its_answer() -> None:
    modules = {path.stem for path in (ROOT / "plugins/modules").glob("*.py")}
    actions = {path.stem for path in (ROOT / "plugins/action").glob("*.py")}
    routed = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["plugin_routing"]["modules"]
    assert set(routed) == modules - actions
    assert all(route == {"action_plugin": "rdma.cluster.managed_files"} for route in routed.values())
    for action in actions:
        module = import_module(f"ansible_collections.rdma.cluster.plugins.action.{action}")
        assert issubclass(module.ActionModule, CleanAnswers), action
