# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The waits after a start of ptp4l, run by Ansible on this machine. pmc and chronyc are stand-ins that print real answers, one a call."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._host.ptp import DATA_SETS, Ptp4lOptions, ask_command, working_states

COLLECTION = Path(__file__).parents[4]
FIXTURES = Path(__file__).parents[2] / "fixtures"
#: Prints the next of its answers, the last one again and again; fails with other arguments.
STAND_IN = """\
#!/bin/sh
[ "$*" = "{arguments}" ] || {{ echo "unexpected: $*" >&2; exit 3; }}
number=$(cat {folder}/{name}.calls 2>/dev/null || echo 0)
echo $((number + 1)) > {folder}/{name}.calls
while [ ! -e {folder}/{name}.$number ]; do number=$((number - 1)); done
cat {folder}/{name}.$number
"""
RETRIES = 3
FOLLOWS = (FIXTURES / "chrony/4.3-ptp.csv").read_text(encoding="ascii")


OFFSET_NS = 1000
#: slave.txt with another offset.
FAR = {"far": 82_125_567, "behind": -OFFSET_NS - 1}


def answer(name: str) -> str:
    real = (FIXTURES / f"ptp/3.1.1-{'slave' if name in FAR else name}.txt").read_text(encoding="ascii")
    return re.sub(r"(master_offset +)\S+", rf"\g<1>{FAR[name]}", real) if name in FAR else real


def waits() -> dict[str, Any]:
    """The block as it is in the role, with less patience."""
    tasks = yaml.safe_load((COLLECTION / "roles/time_sync/tasks/ptp4l.yml").read_text(encoding="utf-8"))
    (block,) = (task for task in tasks if task["name"] == "Wait for PTP")
    for task in block["block"]:
        task.update(retries=RETRIES, delay=0)
    return dict(block)


def stand_in(folder: Path, argv: tuple[str, ...], answers: list[str]) -> None:
    name, *arguments = argv
    for number, answer in enumerate(answers):
        (folder / f"{name}.{number}").write_text(answer, encoding="ascii")
    program = folder / name
    program.write_text(STAND_IN.format(folder=folder, name=name, arguments=" ".join(arguments)), encoding="ascii")
    program.chmod(0o755)


@dataclass(frozen=True)
class Case:
    """A host. answers: the names of what its ptp4l answers, one after the other; calls: how often each program runs."""

    answers: tuple[str, ...]
    is_grandmaster: bool
    calls: dict[str, int]
    works: bool = True


CASES = {
    # pmc is asked for the port, and then for the offset.
    "late": Case(("listening", "slave"), False, {"pmc": 3, "chronyc": 2}),
    "early": Case(("slave",), False, {"pmc": 2, "chronyc": 2}),
    "far": Case(("slave", "far", "behind", "slave"), False, {"pmc": 4, "chronyc": 2}),
    "too-far": Case(("slave", "behind"), False, {"pmc": 1 + RETRIES + 1, "chronyc": 2}, works=False),
    # A grandmaster is no source of its own chrony.
    "grandmaster": Case(("listening", "gm"), True, {"pmc": 2}),
    "lost": Case(("lost",), False, {"pmc": RETRIES + 1}, works=False),
    "master-only": Case(("gm",), False, {"pmc": RETRIES + 1}, works=False),
    "no-master": Case(("slave",), True, {"pmc": RETRIES + 1}, works=False),
}


def play(folder: Path, *options: str) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
    """Run the block on a host for each case. Return Ansible's line on each host, and how often each program ran there."""
    asks = ask_command(Ptp4lOptions(values={"domainNumber": "24"}))
    assert [word.removeprefix("GET ") for word in asks if word.startswith("GET ")] == list(DATA_SETS)
    hosts = {}
    for name, case in CASES.items():
        (folder / name).mkdir()
        stand_in(folder / name, asks, [answer(each) for each in case.answers])
        stand_in(folder / name, ("chronyc", "-N", "-c", "sources"), ["", FOLLOWS])
        working = list(working_states(is_grandmaster=case.is_grandmaster, is_software=True))
        ptp = {"asks": list(asks), "working": working, "follows": not case.is_grandmaster, "offset_ns": OFFSET_NS}
        hosts[name] = {"rdma_host_plan": {"settings": {"ptp": ptp}}, "path": f"{folder / name}:{os.environ['PATH']}"}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
    tasks = [waits(), {"name": "Go on", "ansible.builtin.debug": {"msg": "the role went on"}}]
    given = {"ansible_python_interpreter": sys.executable}
    first = {"hosts": "all", "gather_facts": False, "connection": "local", "environment": {"PATH": "{{ path }}"}}
    (folder / "play.yml").write_text(yaml.safe_dump([{**first, "vars": given, "tasks": tasks}]), encoding="utf-8")
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", "play.yml", *options]
    environment = {**os.environ, "ANSIBLE_HOME": str(folder / "home"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("the role went on") == len(CASES), done.stdout
    recap = dict(re.findall(r"^(\S+) +: (ok=.*)$", done.stdout, re.MULTILINE))
    calls = {name: {each: folder / name / f"{each}.calls" for each in ("pmc", "chronyc")} for name in CASES}
    return recap, {name: {each: int(path.read_text()) for each, path in paths.items() if path.exists()} for name, paths in calls.items()}


def test_the_role_waits_for_port_and_clock_and_leaves_the_rest_to_the_gate(tmp_path: Path) -> None:
    recap, calls = play(tmp_path)
    assert calls == {name: case.calls for name, case in CASES.items()}
    rescued = {name for name, line in recap.items() if "rescued=1" in line}
    assert rescued == {name for name, case in CASES.items() if not case.works}
    assert all("changed=0" in line and "failed=0" in line for line in recap.values()), recap


def test_check_mode_asks_no_program(tmp_path: Path) -> None:
    assert all(not calls for calls in play(tmp_path, "--check")[1].values())
