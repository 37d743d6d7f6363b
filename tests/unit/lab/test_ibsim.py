# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The simulator's console, against a small program that keeps ibsim's protocol: a prompt, a line, an answer, a prompt."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import ibsim, opensm
from lab.errors import LabError
from lab.fabric_plan import Shape, make
from lab.paths import FabricFolder

#: A stand-in for ibsim's console. The answers are ibsim 0.10's own to these lines.
STAND_IN = """
import sys
print("Network simulator ready.\\nsim> ", end="", flush=True)
ANSWERS = {
    'Unlink "leaf1"[9]': '# port 9 at nodeid "leaf1" is not linked\\n',
    "Attached": 'Client 0: pid %d connected at "node1 mlx5_0" port 0xa088c20300000011, lid 1, qp 0 SM\\n'
                'Client 1: pid 4194305 connected at "node1 mlx5_0" port 0xa088c20300000011, lid 1, qp 0 \\n' % __import__("os").getpid(),
    "X 0": "# disconnect client: bad clientid 0\\n",
    "Nonsense": "command 'Nonsense' unknown - skipped\\n",
    'Dump "leaf1"': '# Net status - Sun Nov 22 10:46:12 2026\\n\\n',
}
heard = open(sys.argv[2], "w")
for line in sys.stdin:
    print(line, end="", file=heard, flush=True)
    if line == "Hang\\n":
        continue
    print(ANSWERS.get(line.rstrip(), "") + "sim> ", end="", flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[FabricFolder]:
    folder = FabricFolder(tmp_path / "f")
    home = folder.simulator
    home.mkdir(parents=True)
    os.mkfifo(home / "console")
    stdin = os.open(home / "console", os.O_RDWR)
    argv = [sys.executable, "-c", STAND_IN, str(folder.topology), str(home / "heard")]
    with (home / "out").open("wb") as out, (home / "log").open("wb") as log:
        child = subprocess.Popen(argv, stdin=stdin, stdout=out, stderr=log)
    os.close(stdin)
    (home / "pid").write_text(str(child.pid))
    while not (home / "out").read_text().endswith(ibsim.PROMPT):
        assert child.poll() is None
    yield folder
    child.kill()
    child.wait()


def heard(folder: FabricFolder) -> list[str]:
    return (folder.simulator / "heard").read_text().splitlines()


def test_an_answer_is_what_stands_before_the_next_prompt(folder: FabricFolder) -> None:
    assert ibsim.say(folder, 'Link "leaf1"[1] "spine1"[1]') == ""
    assert ibsim.say(folder, "Attached").startswith("Client 0: pid")
    assert ibsim.say(folder, 'Dump "leaf1"').startswith("# Net status")
    assert heard(folder)[0] == 'Link "leaf1"[1] "spine1"[1]'


REFUSALS = [
    ('Unlink "leaf1"[9]', 'ibsim refused \'Unlink "leaf1"[9]\': port 9 at nodeid "leaf1" is not linked.'),
    ("Nonsense", "ibsim refused 'Nonsense': command 'Nonsense' unknown - skipped."),
    ("x" * 127, f"ibsim's console takes one line of 126 bytes at most; got '{'x' * 127}'."),
    ("Start\nQuit", "ibsim's console takes one line of 126 bytes at most; got 'Start\nQuit'."),
]


@pytest.mark.parametrize(("command", "sentence"), REFUSALS, ids=["not-linked", "unknown", "too-long", "two-lines"])
def test_a_refusal_is_an_error(folder: FabricFolder, command: str, sentence: str) -> None:
    with pytest.raises(LabError) as error:
        ibsim.say(folder, command)
    assert str(error.value) == sentence


def test_no_answer_in_time_is_an_error(folder: FabricFolder) -> None:
    with pytest.raises(LabError, match="ibsim did not answer 'Hang' within 0 s"):
        ibsim.say(folder, "Hang", patience_seconds=0.2)


def test_a_simulator_that_has_ended_is_named_with_its_last_word(folder: FabricFolder) -> None:
    ibsim.stop(folder)
    (folder.simulator / "log").write_text("can't bind socket\n")
    with pytest.raises(LabError, match=r"The simulator of fabric 'f' does not run \(its last word: can't bind socket\)"):
        ibsim.say(folder, "Attached")


def test_places_of_dead_clients_are_freed(folder: FabricFolder) -> None:
    """Of client 0 there is the socket; of client 1 there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as control:
        # ibsim's library binds the whole of sun_path but for the end: zeros follow the name.
        control.bind(f"\0{ibsim.socket_name(folder)}:ctl{(folder.simulator / 'pid').read_text()}\0")
        ibsim.forget_the_dead(folder)
    assert heard(folder) == ["Attached", "X 1"]


def test_a_client_that_ends_meanwhile_needs_no_help_and_another_refusal_is_an_error(
    folder: FabricFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both clients of the answer are without a socket. ibsim has forgotten client 0 since, and does not know "Y"."""
    ibsim.forget_the_dead(folder)
    assert heard(folder) == ["Attached", "X 0", "X 1"]
    monkeypatch.setattr(ibsim, "NO_CLIENT", "another word")
    with pytest.raises(LabError, match="ibsim refused 'X 0': disconnect client: bad clientid 0"):
        ibsim.forget_the_dead(folder)


def test_peers_and_rates_are_read_of_a_dump() -> None:
    # ibsim 0.10's own words; port 0 is the switch's own, port 2 is down.
    dump = (
        '\nSwitch 40 "leaf1"\tnodeguid 506b4b0300000010\tsysimgguid 506b4b0300000010\n'
        '506b4b0300000010\t[0]\t"Sma Port"[0]\t lid 2 lmc 0 smlid 1  4x  2.5G Active/LinkUp\n'
        '506b4b0300000010\t[1]\t"node1 mlx5_0"[1]\t  4x 50G Active/LinkUp\n'
        "506b4b0300000010\t[2]\t\t\t  4x  2.5G Down/Polling\n"
        '506b4b0300000010\t[33]\t"spine1"[1]\t  1x 50G Init/LinkUp\n'
    )
    assert [ibsim.rate(dump, port) for port in (1, 2, 3, 33)] == [(4, "50G"), None, None, (1, "50G")]
    assert ibsim.peers(dump) == {1: ("node1 mlx5_0", 1), 33: ("spine1", 1)}


def test_the_simulator_has_room_for_the_plan() -> None:
    assert ibsim.arguments(make(Shape("rail", 512, 4))) == ["ibsim", "-s", "-N", "2144", "-S", "96", "-P", "8288"]


def test_opensm_writes_into_its_own_folder_and_takes_options(tmp_path: Path) -> None:
    text = opensm.configuration(tmp_path, {"sm_priority": "5", "force_link_width": "255"})
    assert f"log_file {tmp_path}/log\n" in text
    assert "sm_priority 5\n" in text
    assert text.count("force_link_width") == 1
    for key in ("log_file", "daemon", "a b"):
        with pytest.raises(LabError, match="cannot be set"):
            opensm.configuration(tmp_path, {key: "x"})


ROLES = [
    ("", None),
    ("0x80 -> Entering DISCOVERING state", None),
    ("0x80 -> Entering MASTER state\n0x02 -> SUBNET UP", "master"),
    ("0x80 -> Entering STANDBY state", "standby"),
    ("SUBNET UP\nEntering STANDBY state\nEntering MASTER state\nSUBNET UP", "master"),
    ("Entering MASTER state\nSUBNET UP\nEntering STANDBY state", "standby"),
]


@pytest.mark.parametrize(("log", "role"), ROLES, ids=range(len(ROLES)))
def test_the_role_is_the_last_that_the_log_reports(log: str, role: str | None) -> None:
    assert opensm.role_of(log) == role


def test_the_highest_priority_wins_then_the_lowest_guid(tmp_path: Path) -> None:
    plan = make(Shape("leafspine", 4, 1))
    (tmp_path / "node").write_text("node2 mlx5_0")
    (tmp_path / "opensm.conf").write_text(opensm.configuration(tmp_path, {"sm_priority": "5"}))
    guid = plan.guid("node2 mlx5_0")
    assert opensm.rank_of(tmp_path, plan) == (5, -guid)
    assert opensm.rank({"sm_priority": "6"}, guid + 1) > opensm.rank({"sm_priority": "5"}, guid)
    assert opensm.rank({}, guid) > opensm.rank({"sm_priority": "0"}, guid + 1)


def test_a_sweep_counts_only_after_the_last_notice() -> None:
    assert not opensm.has_swept("")
    assert not opensm.has_swept("SUBNET UP\nnum:128 (Link state change)")
    assert opensm.has_swept("num:128 (Link state change)\nSUBNET UP")
