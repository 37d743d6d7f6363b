# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line: what is wrong is one sentence on standard error and a status other than 0."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab import cli


@pytest.fixture(autouse=True)
def lab_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDMA_LAB_DIR", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)


WRONG = [
    (["status"], "There is no lab 'lab'. Make one with: lab up"),
    (["status", "--name", "x"], "There is no lab 'x'. Make one with: lab up --name x"),
    (["up", "--nodes", "0"], "A lab has 1 to 200 nodes; got 0."),
    (["up", "--name", "../etc"], "A lab's name is 1 to 10 lower-case letters and digits, beginning with a letter; got '../etc'."),
    (["cable", "node1", "0"], "Say what to do to the cable: --rate, --loss, --mark, --mtu, --cut, --restore or --swap."),
    (["cable", "--cut"], "Say which cable: lab cable NODE RAIL, for example lab cable node1 0."),
    (["cable", "node1", "0", "--swap", "node1/0", "node1/1"], "Use --swap alone: lab cable --swap node1/0 node1/1."),
    (["cable", "--swap", "node1/0", "node1/1"], "There is no lab 'lab'. Make one with: lab up"),
    (["up", "--mesh", "star"], "--mesh is full, ring, line or a file with cables; there is no file 'star'."),
    (["up", "--mesh", "ring", "--nodes", "2"], "A ring has 3 nodes at least; got 2."),
    (["fabric", "cut", "leaf1"], "There is no fabric 'fabric'. Make one with: lab fabric up --name fabric"),
    (
        ["fabric", "down", "--name", "../etc"],
        "A fabric's name is 1 to 10 lower-case letters and digits, beginning with a letter; got '../etc'.",
    ),
    (["fabric", "up", "--hosts", "1"], "A fabric has 2 hosts at least and 4096 HCAs at most; got 1 hosts of 4 rails."),
    (["fabric", "up", "--set", "lmc"], "--set takes KEY=VALUE; got 'lmc'."),
    (["fabric", "up", "--host", "node9 mlx5_0"], "The fabric has no 'node9 mlx5_0': its nodes are leaf1 … and 'node1 mlx5_0' …."),
    (["fabric", "up", "--lab", "x"], "There is no lab 'x'. Make one with: lab up --name x"),
    (["fabric", "up", "--hosts", "0"], "A fabric has 2 hosts at least and 4096 HCAs at most; got 0 hosts of 4 rails."),
    (["fabric", "run", "--"], "Say what to run, for example: lab fabric run -- ibnetdiscover"),
    (["up", "--fabric", "clos", "--nodes", "3"], "A lab with a routed Clos has an even number of nodes, 2 to 32; got 3."),
    (
        ["up", "--fabric", "clos", "--mesh", "full"],
        "A lab has a mesh of cables or a fabric of switches: give --mesh or --fabric, not both.",
    ),
    (["power", "node1", "off"], "There is no lab 'lab'. Make one with: lab up"),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 1
    assert capsys.readouterr().err == f"lab: {sentence}\n"
