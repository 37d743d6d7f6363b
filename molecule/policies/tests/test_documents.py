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
STATUS = {"site": 2}
COMMANDS = list({each.text: each for each in shown() if (each.block or " -i " in each.text) and each.text.split()[0] in PROGRAMS}.values())


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


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_command_of_a_document_runs(command: Shown, folder: Path) -> None:
    words = [str(folder / "capture").join(word.split("/tmp/capture")) for word in shlex.split(command.text)]
    words = [str(ROOT / word) if word.startswith(("playbooks/", "inventories/")) else word for word in words]
    paths = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOST_KEY_CHECKING": "false"}
    program = str(Path(sys.executable).parent / words[0])
    ended = subprocess.run(
        [program, *words[1:]], cwd=folder, env={**os.environ, **paths}, capture_output=True, text=True, timeout=300, check=False
    )
    playbook = next((word.removeprefix("rdma.cluster.") for word in words if word.startswith("rdma.cluster.")), "")
    assert ended.returncode == STATUS.get(playbook, 0), ended.stdout[-3000:] + ended.stderr[-2000:]
