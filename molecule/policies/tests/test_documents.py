# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the documents, as a reader types them, on three of the containers.

A container has no NIC, so the gates find errors. What is shown here is that each command is complete, and ends as it must.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lab import cluster
from tests.unit.builders.trees import soft_roce_machine
from tests.verify.documents import ROOT, Shown, shown

PROGRAMS = ("ansible-playbook", "ansible")
#: node17 is the host that a document adds to a cluster.
HOSTS = ("node1", "node2", "node17")
LOG = "node1:100:200 [0] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"
#: Playbook → exit status without NICs, if it is not 0: the build ends at its first gate.
STATUS = {"site": 2, "preflight": 2}
#: Tags of the playbook plan that need the graph of a fabric, which containers without NICs do not have.
NEED_GRAPH = {"scheduler", "rings"}
#: They change no host here. Other scenarios run the playbooks of stages that do.
PLAYBOOKS = ("site", "preflight", "discover", "drift", "diagnose", "explain", "validate", "troubleshoot", "plan")


def playbook_of(words: list[str]) -> str:
    """The playbook of a command, "" for a module."""
    named = [word.removeprefix("rdma.cluster.") for word in words if word.startswith("rdma.cluster.")]
    return named[0] if words[0] == "ansible-playbook" and named else ""


def typed(command: Shown) -> tuple[str, ...]:
    """The words of a command, with our hosts in the place of the reader's."""
    words = shlex.split(command.text)
    for at, word in enumerate(words):
        if at and words[at - 1] == "-l":
            words[at] = ",".join(dict.fromkeys(host if host in HOSTS else HOSTS[0] for host in word.split(",")))
    return tuple(words)


def complete() -> dict[tuple[str, ...], Shown]:
    """Words → the first document that shows them. Of commands that differ only by their hosts, the first one."""
    found: dict[tuple[str, ...], Shown] = {}
    known: set[tuple[str, ...]] = set()
    for each in shown():
        words = typed(each) if each.text.split()[0] in PROGRAMS and (each.block or " -i " in each.text) else ()
        form = tuple(word for at, word in enumerate(words) if word != "-l" and (not at or words[at - 1] != "-l"))
        runs = words and "inventories/" not in each.text and (words[0] == "ansible" or playbook_of(list(words)) in PLAYBOOKS)
        if runs and form not in known:
            known.add(form)
            found[words] = each
    return found


COMMANDS = complete()


def test_the_documents_show_each_of_these_playbooks() -> None:
    assert {playbook_of(list(words)) for words in COMMANDS} == {"", *PLAYBOOKS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's folder: an inventory under the names that the documents use, the log of a job, and a captured tree."""
    made = tmp_path_factory.mktemp("reader")
    inventory = yaml.safe_load(cluster.load("policies").folder.inventory.read_text())
    inventory["all"]["hosts"] = {name: inventory["all"]["hosts"][name] for name in HOSTS}
    for name in ("inventory.yml", "hosts.yml"):
        (made / name).write_text(yaml.safe_dump(inventory))
    (made / "job.log").write_text(LOG)
    soft_roce_machine(made / "capture")
    return made


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_of_a_document_runs(words: tuple[str, ...], folder: Path) -> None:
    argv = [str(Path(sys.executable).parent / words[0]), *(word.replace("/tmp/capture", str(folder / "capture")) for word in words[1:])]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    ended = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    without_graph = NEED_GRAPH.intersection(words)
    expected = 2 if without_graph else STATUS.get(playbook_of(list(words)), 0)
    assert not without_graph or "graph" in ended.stdout + ended.stderr, ended.stdout
    assert ended.returncode == expected, f"{COMMANDS[words]}\n{ended.stdout[-3000:]}{ended.stderr[-2000:]}"
