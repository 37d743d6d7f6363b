# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate under real Ansible: every cell of policy × failure kind × check mode, seen by who reaches the next stage."""

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

from ansible_collections.rdma.cluster.plugins.action import gate
from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.simulator.actions import act
from tests.unit.builders.hosts import lab_facts, lab_intent, lab_rails

ROOT = Path(__file__).parents[4]
HOSTS = ["node1", "node2", "node3", "node4"]
#: The host that something happens to.
ODD = "node3"
ERROR, UNKNOWN, TASK, UNREACHABLE = "error", "unknown", "task", "unreachable"
STOP = {"policy": "stop"}
WITHIN = {"policy": "quarantine", "max_failed_percent": 25}
BEYOND = {"policy": "quarantine", "max_failed_percent": 24}
REPORT = {"policy": "report"}
REST = [host for host in HOSTS if host != ODD]

#: (policy, what happens to node3, check mode, who reaches the next stage). A task that fails and a host that cannot be reached
#: are out by Ansible's own rules, whatever the policy is.
CELLS = [
    *[(STOP, kind, False, []) for kind in (ERROR, UNKNOWN, TASK, UNREACHABLE)],
    *[(WITHIN, kind, False, REST) for kind in (ERROR, UNKNOWN, TASK, UNREACHABLE)],
    *[(BEYOND, kind, False, []) for kind in (ERROR, UNKNOWN, TASK, UNREACHABLE)],
    *[(REPORT, kind, False, HOSTS) for kind in (ERROR, UNKNOWN)],
    *[(REPORT, kind, False, REST) for kind in (TASK, UNREACHABLE)],
    *[(policy, kind, True, HOSTS) for policy in (STOP, WITHIN, BEYOND, REPORT) for kind in (ERROR, UNKNOWN)],
    *[(policy, kind, True, REST) for policy in (STOP, WITHIN, BEYOND, REPORT) for kind in (TASK, UNREACHABLE)],
]
if os.environ.get("RDMA_TEST_ONCE") == "yes":
    # Each is a start of ansible-playbook. Of what our policy decides, and of what Ansible does, one of either kind.
    CELLS = [cell for cell in CELLS if (cell[1] in (ERROR, UNREACHABLE)) is not cell[2] and cell[1] != TASK]


def facts_of(host: str, kind: str) -> dict[str, Any]:
    facts = lab_facts()
    if host == ODD and kind == ERROR:
        facts["devices"]["rxe_rail0"]["ports"]["1"]["state"] = "DOWN"
    if host == ODD and kind == UNKNOWN:
        facts["devices"] = {}
    return facts


def write_inventory(folder: Path, policy: dict[str, Any], kind: str, **variables: Any) -> None:
    hosts: dict[str, Any] = {}
    for number, host in enumerate(HOSTS, start=1):
        (folder / f"{host}.json").write_text(json.dumps(facts_of(host, kind)))
        hosts[host] = {"rdma_rails": lab_rails(number)}
    if kind == UNREACHABLE:
        hosts[ODD].update({"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1})
    all_vars = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "rdma_gate": policy, **variables}
    (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"vars": all_vars, "hosts": hosts}}))


def stage(name: str, tasks: list[dict[str, Any]], **play: Any) -> dict[str, Any]:
    begin = {"name": "Begin", "rdma.cluster.intent": {"stage": name}}
    return {"name": name, "hosts": "all", "gather_facts": False, "vars": {"rdma_stage": name}, "tasks": [begin, *tasks], **play}


BATCH = {"name": "Batch", "ansible.builtin.import_tasks": str(ROOT / "playbooks/tasks/batch.yml")}
GATE = {"name": "Gate", "ansible.builtin.import_tasks": str(ROOT / "playbooks/tasks/gate.yml")}
FACTS = {
    "name": "Take recorded facts",
    "ansible.builtin.set_fact": {"rdma": "{{ lookup('file', inventory_hostname ~ '.json') | from_json }}", "cacheable": True},
}
MISHAPS = {
    TASK: [{"name": "Fail", "ansible.builtin.fail": {"msg": "no room on the disk"}, "when": f"inventory_hostname == '{ODD}'"}],
    UNREACHABLE: [{"name": "Ask the host", "ansible.builtin.ping": None, "when": f"inventory_hostname == '{ODD}'"}],
}


def run(folder: Path, plays: list[dict[str, Any]], *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "play.yml").write_text(yaml.safe_dump(plays))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "inventory.yml", "play.yml", *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment)


def reached(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "artifacts/latest/findings/network").glob("*.json"))


@pytest.mark.parametrize(("policy", "kind", "check_mode", "expected"), CELLS)
def test_who_goes_on(tmp_path: Path, policy: dict[str, Any], kind: str, check_mode: bool, expected: list[str]) -> None:
    write_inventory(tmp_path, policy, kind)
    plays = [stage("link", [FACTS, *MISHAPS.get(kind, []), GATE]), stage("network", [])]
    done = run(tmp_path, plays, *(["--check"] if check_mode else []))
    assert reached(tmp_path) == expected, done.stdout + done.stderr
    decision = json.loads((tmp_path / "artifacts/latest/gates/link.json").read_text())
    assert list(decision["out"]) == [ODD]
    assert decision["stops"] is (expected == [])
    # In check mode a gate fails nobody; what Ansible itself counts as failed or unreachable stays so.
    gentle = kind in (ERROR, UNKNOWN) and (check_mode or policy is REPORT)
    assert (done.returncode == 0) is gentle, done.stdout
    assert gentle or done.returncode == (4 if kind == UNREACHABLE else 2)


def test_a_silenced_check_lets_its_host_pass_and_stays_in_the_evidence(tmp_path: Path) -> None:
    rule = {"silenced_by": "ada", "reason": "cable ordered", "until": "2999-12-31"}
    write_inventory(tmp_path, STOP, ERROR, rdma_checks={"link.state": rule})
    done = run(tmp_path, [stage("link", [FACTS, GATE]), stage("network", [])])
    assert reached(tmp_path) == HOSTS, done.stdout
    findings = json.loads((tmp_path / f"artifacts/latest/findings/link/{ODD}.json").read_text())
    assert [finding["silenced_by"] for finding in findings if finding["status"] == "error"] == ["ada until 2999-12-31: cable ordered"]


def rolling(batch: int, *tasks: dict[str, Any]) -> list[dict[str, Any]]:
    """A stage as driver.yml has it: hosts changed in batches, and a gate over all of them in a play of its own; then another stage."""
    gate = {"name": "gate", "hosts": "all", "gather_facts": False, "vars": {"rdma_stage": "link"}, "tasks": [GATE]}
    return [stage("link", [FACTS, *tasks, BATCH], serial=batch), gate, stage("network", [])]


def test_a_rolling_stage_stops_at_the_batch_that_fails(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, ERROR)
    done = run(tmp_path, rolling(1))
    begun = sorted(path.stem for path in (tmp_path / "artifacts/latest/findings/link").glob("*.json"))
    assert begun == ["node1", "node2", "node3"], done.stdout
    assert reached(tmp_path) == []


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_a_rolling_stage_goes_on_within_the_limit(tmp_path: Path, batch: int) -> None:
    write_inventory(tmp_path, WITHIN, ERROR)
    done = run(tmp_path, rolling(batch))
    assert reached(tmp_path) == REST, done.stdout
    assert list(json.loads((tmp_path / "artifacts/latest/gates/link.json").read_text())["out"]) == [ODD]


@pytest.mark.parametrize("severity", ["warning", "error"])
def test_what_no_majority_decides_is_the_fleet_s_and_excluding_hosts_cannot_fix_it(tmp_path: Path, severity: str) -> None:
    folder = RunFolder(tmp_path / "20261120T120000Z-1")
    folder.path.mkdir()
    within = {"policy": "quarantine", "max_failed_percent": 75}
    rules = {"alike.names": {"severity": severity, "threshold": None, "silenced_by": None, "reason": None, "until": None}}
    for number, host in enumerate(HOSTS, start=1):
        facts = lab_facts()
        if number <= 2:
            facts["devices"]["rxe_other"] = facts["devices"].pop("rxe_rail0")
        folder.write_json(folder.host_file("facts", host), facts)
        folder.write_json(folder.host_file("intent", host), lab_intent(number, gate=within, checks=rules))
        folder.write_findings("link", host, [])
    act(gate, folder, HOSTS, stage="link", scope="fleet")
    (finding,) = folder.read_findings("link", "the fleet")
    assert (finding.host, finding.check, finding.status) == ("the fleet", "alike.names", severity)
    assert "rxe_other, ens1 on 2 of 4 hosts (node1, node2)" in finding.observed
    decided = act(gate, folder, HOSTS, stage="link", scope="decide", batch=False)
    assert decided["failed"] is (severity == "error")
    assert (decided["decision"]["out"], [*decided["decision"]["planes"]]) == ({}, ["the fleet"] if severity == "error" else [])
    if severity == "error":
        assert decided["msg"] == "link gate: the fleet does not pass; excluding hosts cannot fix that. The build stops."
    # Hosts that are alike again leave nothing of it.
    for host in HOSTS:
        folder.write_json(folder.host_file("facts", host), lab_facts())
    act(gate, folder, HOSTS, stage="link", scope="fleet")
    assert folder.read_findings("link", "the fleet") == []


def test_a_host_that_goes_without_a_word_is_missed(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, "nothing")
    vanish = {"name": "Go", "ansible.builtin.fail": {"msg": "x"}, "when": f"inventory_hostname == '{ODD}'"}
    silent = {"name": "before", "hosts": "all", "gather_facts": False, "tasks": [vanish]}
    done = run(tmp_path, [silent, stage("link", [FACTS, GATE]), stage("network", [])])
    assert reached(tmp_path) == [], done.stdout
    (finding,) = json.loads((tmp_path / f"artifacts/latest/findings/link/{ODD}.json").read_text())
    assert finding["observed"] == "it is no longer in the play, for an unknown reason"


def test_a_template_that_cannot_be_resolved_is_a_finding(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, "nothing", rdma_pairs="{{ nosuch }}")
    done = run(tmp_path, [stage("link", [FACTS, GATE])])
    assert done.returncode == 2
    (finding,) = json.loads((tmp_path / f"artifacts/latest/findings/link/{ODD}.json").read_text())
    assert (finding["check"], finding["subject"]) == ("intent.value", "rdma_pairs")
    assert "'nosuch' is undefined" in finding["observed"]


def test_with_limit_the_hosts_outside_are_not_missed(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, UNREACHABLE)
    done = run(tmp_path, [stage("link", [FACTS, *MISHAPS[UNREACHABLE], GATE]), stage("network", [])], "--limit", f"all:!{ODD}")
    assert done.returncode == 0, done.stdout
    assert reached(tmp_path) == REST


def test_hosts_that_earlier_stages_put_out_count_against_the_limit(tmp_path: Path) -> None:
    write_inventory(tmp_path, {"policy": "quarantine", "max_failed_percent": 49}, ERROR)
    second = {"name": "Fail", "ansible.builtin.fail": {"msg": "x"}, "when": "inventory_hostname == 'node1'"}
    run(tmp_path, [stage("link", [FACTS, GATE]), stage("fabric", [second, GATE]), stage("network", [])])
    decision = json.loads((tmp_path / "artifacts/latest/gates/fabric.json").read_text())
    assert sorted(decision["out"]) == ["node1", "node3"]
    assert decision["stops"]
    assert reached(tmp_path) == []


def test_the_nccl_gate_compares_the_outage_that_a_drill_has_measured(tmp_path: Path) -> None:
    write_inventory(tmp_path, REPORT, TASK, rdma_nccl={"variables": {"NCCL_IB_TIMEOUT": "18"}}, rdma_proof_max_age_hours=10**6)
    # Of a plane without settings.
    basis = hashlib.sha256(b"null").hexdigest()[:16]
    faults = {"silence leaf1 swp1": {"seconds": 12.6, "measured": 1_780_000_000.0, "run": "20260528T202640Z-1"}}
    kept = tmp_path / "artifacts/drill/outages.json"
    kept.parent.mkdir(parents=True)
    planes = {rail.get("plane", "default") for rail in lab_rails(1)}
    kept.write_text(json.dumps({"schema": 1, "planes": {plane: {"basis": basis, "faults": faults} for plane in planes}}))
    done = run(tmp_path, [stage("nccl", [FACTS, GATE])])
    findings = json.loads((tmp_path / "artifacts/latest/findings/nccl/node1.json").read_text())
    [found] = [each for each in findings if each["check"] == "nccl.outage"]
    assert found["status"] == "error", done.stdout
    assert found["observed"].startswith("the fabric needs 12.6 s; NCCL gives up after 7.5 s (NCCL_IB_TIMEOUT=18")
    assert found["expected"] == "NCCL retries for more than 12.6 s (measured on 2026-05-28: silence leaf1 swp1)"


def test_the_price_of_a_gpu_hour_is_recorded(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, "nothing", rdma_plan={"hosts": 4, "gpu_hour": 2.5, "training": {"parameters_billions": 7}})
    done = run(tmp_path, [stage("link", [FACTS, GATE])])
    stored = json.loads((tmp_path / "artifacts/latest/gpu_hour.json").read_text())
    assert stored == {"price": 2.5, "gpus_per_host": 8, "job_hosts": None, "currency": "$", "step": None}, done.stdout


def test_a_wrong_request_shows_no_costs_and_stops_no_build(tmp_path: Path) -> None:
    write_inventory(tmp_path, STOP, "nothing", rdma_plan={"hosts": 4, "gpu_hour": -1})
    done = run(tmp_path, [stage("link", [FACTS, GATE])])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rdma_plan.gpu_hour must be at least 0; got -1" in " ".join((done.stdout + done.stderr).split())
    assert not (tmp_path / "artifacts/latest/gpu_hour.json").exists()
