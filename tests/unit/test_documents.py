# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands that the documents show exist. molecule/policies runs those that it can."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import OURS, RUN, SECTIONS
from lab.cli import parser
from tests.verify.documents import Shown, shown

ROOT = Path(__file__).parents[2]
SHOWN = shown()
TARGETS = set(re.findall(r"^([a-z%-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
PLAYBOOKS = {path.stem for path in (ROOT / "playbooks").glob("*.yml")}
MODULES = {path.stem for path in (ROOT / "plugins/modules").glob("*.py")}
#: A word that stands for a value of the reader's, in a command within a sentence.
PLACEHOLDER = re.compile(r"[A-Z_]{2,}|…|\.\.\.|<\w+>")


def of(*programs: str) -> list[Shown]:
    return [each for each in SHOWN if each.text.split()[0] in programs]


def test_the_documents_show_commands_of_each_kind() -> None:
    found = {program: len(of(program)) for program in ("make", "lab/lab", "ansible-playbook", "ansible")}
    assert all(found.values()), found
    assert sum(each.block for each in SHOWN) >= 20


@pytest.mark.parametrize("command", of("make"), ids=str)
def test_a_target_of_make_is_there(command: Shown) -> None:
    words = shlex.split(command.text, comments=True)[1:]
    targets = [word for word in words if "=" not in word and not PLACEHOLDER.fullmatch(word)]
    assert {target for target in targets if target not in TARGETS and re.sub(r"-\w+$", "-%", target) not in TARGETS} == set()


@pytest.mark.parametrize("command", of("lab/lab"), ids=str)
def test_a_command_of_the_lab_has_its_arguments(command: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for word in shlex.split(command.text, comments=True)[1:] if not PLACEHOLDER.search(word)]
    if words != shlex.split(command.text, comments=True)[1:]:
        # A sentence names a verb, with words for the reader's values.
        assert words[0] in parser().format_help()
        return
    try:
        parser().parse_args(words)
    except SystemExit:
        # A sentence may name a verb without the arguments that it needs.
        answer = capsys.readouterr().err
        assert not command.block, answer
        assert "the following arguments are required" in answer


def variables(words: list[str]) -> list[str]:
    """The variables that -e sets by name. A file is given as @FILE."""
    given = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-e", "--extra-vars")]
    names: list[str] = []
    for each in given:
        if each.startswith("@"):
            continue
        names += yaml.safe_load(each) if each.startswith("{") else [each.split("=")[0]]
    return names


@pytest.mark.parametrize("command", of("ansible-playbook"), ids=str)
def test_a_playbook_and_its_variables_are_there(command: Shown) -> None:
    words = shlex.split(command.text, comments=True)
    named = [word.removeprefix("@") for word in words[1:] if word.startswith("rdma.cluster.") or word.endswith(".yml")]
    for word in named:
        if word.startswith("rdma.cluster."):
            assert word.removeprefix("rdma.cluster.") in PLAYBOOKS | {"X", "PLAYBOOK", "STAGE"}, word
        elif word.startswith(("playbooks/", "molecule/", "inventories/")):
            assert (ROOT / word).exists(), word
    known = {*RUN, *OURS, *SECTIONS} | {
        name for role in ROOT.glob("roles/*/defaults/main.yml") for name in yaml.safe_load(role.read_text())
    }
    assert [name for name in variables(words) if name not in known and not PLACEHOLDER.search(name)] == []


@pytest.mark.parametrize("command", of("ansible"), ids=str)
def test_an_ad_hoc_module_is_there(command: Shown) -> None:
    words = shlex.split(command.text, comments=True)
    modules = [words[at + 1] for at, word in enumerate(words) if word == "-m"]
    assert [each for each in modules if each.startswith("rdma.cluster.") and each.split(".")[2] not in MODULES] == []


@pytest.mark.parametrize("command", [each for each in of("python", "python3") if " -m " in each.text], ids=str)
def test_a_python_module_is_there(command: Shown) -> None:
    words = shlex.split(command.text, comments=True)
    module = words[words.index("-m") + 1]
    assert importlib.util.find_spec(module) is not None
