# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that answers with facts of our variables' names, under real Ansible, with and without facts as variables."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.builders.hosts import lab_rails
from tests.unit.plugins.action.test_gate import FACTS, GATE, facts_of, stage

ROOT = Path(__file__).parents[4]
HOSTS = ("node1", "node2", "node3", "node4")
#: The first host of the play: tasks that run once for all hosts run with its variables.
LIAR = "node1"
LIBRARY = """\
#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"said": {"type": "dict"}}, supports_check_mode=True)
module.exit_json(**module.params["said"])
"""


@pytest.fixture(params=["true", "false"], ids=["injected", "not injected"])
def injected(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setenv("ANSIBLE_INJECT_FACT_VARS", request.param)
    return bool(request.param == "true")


def lie(facts: dict[str, Any] | None = None, **answer: Any) -> dict[str, Any]:
    """A task in which a module of LIAR returns this."""
    return {"name": "Ask", "lie": {"said": {"ansible_facts": facts or {}, **answer}}, "when": f"inventory_hostname == '{LIAR}'"}


def play(
    folder: Path,
    plays: list[dict[str, Any]],
    of_host: dict[str, dict[str, Any]] | None = None,
    *,
    words: tuple[str, ...] = (),
    **variables: Any,
) -> tuple[int, str]:
    (folder / "library").mkdir()
    (folder / "library/lie.py").write_text(LIBRARY)
    hosts = {host: {"rdma_rails": lab_rails(number), **(of_host or {}).get(host, {})} for number, host in enumerate(HOSTS, start=1)}
    for host in HOSTS:
        (folder / f"{host}.json").write_text(json.dumps(facts_of(host, "error")))
    shared = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **variables}
    (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"vars": shared, "hosts": hosts}}))
    (folder / "play.yml").write_text(yaml.safe_dump(plays))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "inventory.yml", "play.yml", *words]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment)
    return done.returncode, done.stdout + done.stderr


def decision(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "artifacts/latest/gates/link.json").read_text())
    return read


REPORT = {"policy": "report", "max_failed_percent": None}
QUARANTINE = {"policy": "quarantine", "max_failed_percent": 25}


def test_a_name_of_ours_in_the_facts_fails_that_host_alone(tmp_path: Path, injected: bool) -> None:
    plays = [stage("link", [FACTS, GATE])]
    plays[0]["tasks"].insert(0, lie({"rdma_run_dir": str(tmp_path / "elsewhere"), "pcie_mrrs_allowed": True, "rdma_gate": REPORT}))
    code, answer = play(tmp_path, plays, rdma_gate=QUARANTINE, rdma_run_dir=str(tmp_path / "artifacts"))
    assert "node1: its facts set pcie_mrrs_allowed, rdma_gate, rdma_run_dir. Nothing was done." in answer
    assert not (tmp_path / "elsewhere").exists()
    # node3 has a port that is down: with node1 that is half of the hosts, and a quarter is allowed.
    found = decision(tmp_path)
    assert (sorted(found["out"]), found["policy"], found["stops"], code) == (["node1", "node3"], "quarantine", True, 2)
    assert "its facts set pcie_mrrs_allowed" in found["out"]["node1"]
    (finding,) = json.loads((tmp_path / "artifacts/latest/findings/link/node1.json").read_text())
    assert (finding["check"], finding["status"]) == ("host.facts", "error")
    assert not (tmp_path / "artifacts/latest/intent/node1.json").exists()
    assert (tmp_path / "artifacts/latest/intent/node2.json").exists()


@pytest.mark.parametrize("changed", [True, False])
def test_what_the_first_host_says_later_decides_nothing(tmp_path: Path, injected: bool, changed: bool) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    forged = {"rdma_run_dir": elsewhere, "rdma_gate": REPORT, "rdma_checks": {"link.state": {"severity": "warning"}}}
    intent = {"rdma_intent": {"rails": [], "gate": REPORT, "checks": {}}}
    plays = [stage("link", [FACTS, lie(intent if changed else forged, run_folder=elsewhere, stage="nccl", scope="decide"), GATE])]
    code, answer = play(tmp_path, plays, rdma_run_dir=str(tmp_path / "artifacts"))
    found = decision(tmp_path)
    assert (found["policy"], found["stops"], sorted(found["out"]), code) == ("stop", True, ["node1", "node3"], 2), answer
    assert f"its facts set {'rdma_intent' if changed else 'rdma_checks, rdma_gate, rdma_run_dir'}" in found["out"]["node1"]
    assert not Path(elsewhere).exists()


def test_the_run_folder_of_a_group_is_found_after_the_first_host_has_lied(tmp_path: Path, injected: bool) -> None:
    """No default, no extra variable: only other hosts have it."""
    plays = [stage("link", [FACTS, lie({"rdma_run_dir": "artifacts"}), {**GATE}])]
    play(tmp_path, plays, rdma_run_dir=str(tmp_path / "of_group"))
    assert not (tmp_path / "artifacts").exists()
    assert (tmp_path / "of_group/latest/gates/link.json").exists()


def test_no_policy_is_taken_from_one_host_where_they_differ(tmp_path: Path) -> None:
    code, answer = play(tmp_path, [stage("link", [FACTS, GATE])], {LIAR: {"rdma_gate": REPORT}})
    assert code == 2
    assert "link gate: rdma_gate: policy differ between node1; node2, node3" in answer
    found = decision(tmp_path)
    assert (found["policy"], found["stops"], sorted(found["out"])) == ("stop", True, list(HOSTS))


def send(src: str) -> list[dict[str, Any]]:
    return [{"name": "Send", "rdma.cluster.send_file": {"src": src, "dest": "{{ playbook_dir }}/{{ inventory_hostname }}.got"}}]


def nccl(file: Path, checksum: str) -> dict[str, Any]:
    package = {"version": "2.20.5-1", "source": {"file": str(file)}, "checksum": f"sha256:{checksum}"}
    return {"install": {"kind": "files", "packages": {"libnccl2": package}}}


@pytest.mark.parametrize("right", [True, False])
def test_a_file_goes_only_with_its_checksum(tmp_path: Path, right: bool) -> None:
    file = tmp_path / "libnccl2.deb"
    file.write_text("a package")
    checksum = hashlib.sha256(b"a package" if right else b"another").hexdigest()
    code, answer = play(tmp_path, [stage("nccl", send(str(file)))], rdma_nccl=nccl(file, checksum))
    there = [(tmp_path / f"{host}.got").exists() for host in HOSTS]
    assert (code, set(there)) == ((0, {True}) if right else (2, {False})), answer
    assert right or "nothing was sent" in answer


def test_no_host_gets_a_file_that_its_inventory_does_not_name(tmp_path: Path, injected: bool) -> None:
    secret = tmp_path / "secret"
    secret.write_text("top secret of the control node")
    reported = nccl(secret, hashlib.sha256(secret.read_bytes()).hexdigest())
    facts = {"rdma_nccl": reported, "rdma_intent": {"nccl": reported}}
    for number, tasks in enumerate(([lie(facts), *send(str(secret))], send(str(secret)))):
        folder = tmp_path / str(number)
        folder.mkdir()
        code, answer = play(folder, [stage("nccl", tasks)])
        assert code == 2, answer
        assert not list(folder.glob("*.got"))
        assert ("its facts set rdma_nccl, rdma_intent" in answer) is (number == 0)
        assert f"names no file '{secret}'" in answer


PLAN = {"rdma_host_plan": "{{ lookup('rdma.cluster.plan') }}"}
OBSERVE = {"name": "Read", "rdma.cluster.observe": None}


def asks(name: str, when: str, **task: Any) -> dict[str, Any]:
    """A task as a role has it."""
    return {"name": name, "ansible.builtin.debug": {"msg": f"{{{{ inventory_hostname }}}} {name}"}, "when": when, **task}


@pytest.mark.parametrize("words", [(), ("--check",)], ids=["changes", "check mode"])
def test_no_host_says_by_its_facts_what_is_to_be_done(tmp_path: Path, injected: bool, words: tuple[str, ...]) -> None:
    """This machine lacks the files of the limits, so that there is work; node1 says that there is none."""
    done = {"limits": False, "settings": {"limits": {"open_files": 5}}}
    tasks = [OBSERVE, asks("works", "rdma_host_plan.limits"), lie({"rdma_host_plan": done}), asks("goes on", "rdma_host_plan.limits")]
    code, answer = play(tmp_path, [{**stage("host", tasks), "vars": {"rdma_stage": "host", **PLAN}}], words=words)
    assert code == 2
    assert sorted(host for host in HOSTS if f"{host} works" in answer) == list(HOSTS), answer
    assert sorted(host for host in HOSTS if f"{host} goes on" in answer) == ["node2", "node3", "node4"], answer
    assert "node1: its facts set rdma_host_plan. Nothing was done." in answer


def test_a_changed_intent_is_no_way_to_another_plan(tmp_path: Path, injected: bool) -> None:
    tasks = [OBSERVE, lie({"rdma_intent": {"host": {"open_files": 5}}}), asks("goes on", "rdma_host_plan.limits")]
    code, answer = play(tmp_path, [{**stage("host", tasks), "vars": {"rdma_stage": "host", **PLAN}}])
    assert (code, "node1 goes on" in answer, "node2 goes on" in answer) == (2, False, True), answer
    assert "node1: its facts set rdma_intent. Nothing was done." in answer


def test_the_plan_goes_by_the_intent_and_the_permissions_of_its_play(tmp_path: Path) -> None:
    """Also where the host is not read again, and where one task allows more."""
    limits = "open files: {{ rdma_host_plan.settings.limits.open_files }}"
    report_task = {"name": "Show", "ansible.builtin.debug": {"msg": limits}, "when": "inventory_hostname == 'node2'"}
    allows = "acs: {{ rdma_host_plan.settings.pcie.acs }}"
    acs = {"name": "Show", "ansible.builtin.debug": {"msg": allows}, "when": "inventory_hostname == 'node2'"}
    permit = {"pcie_acs_write_allowed": True}
    first = {**stage("host", [OBSERVE, report_task, acs, {**acs, "vars": permit}]), "vars": {"rdma_stage": "host", **PLAN}}
    second = {**first, "vars": {**first["vars"], "rdma_host": {"open_files": 4096, "pcie": {"acs": "bare_metal"}}}}
    _code, answer = play(tmp_path, [first, second], rdma_host={"open_files": 1024, "pcie": {"acs": "bare_metal"}})
    assert [line.split(": ", 2)[2].strip('"') for line in answer.splitlines() if "open files:" in line] == ["1024", "4096"], answer
    assert [line.split(": ", 2)[2].strip('"') for line in answer.splitlines() if "acs:" in line] == ["leave", "bare_metal"] * 2, answer


def test_a_role_without_a_plan_says_what_is_missing(tmp_path: Path) -> None:
    code, answer = play(tmp_path, [{**stage("host", [asks("works", "rdma_host_plan.limits")]), "vars": {"rdma_stage": "host", **PLAN}}])
    assert code == 2
    assert "node1 has no plan in this run. Call rdma.cluster.intent and rdma.cluster.observe before." in answer
