# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbooks as Ansible reads them, and what they say before they reach a host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.cluster.plugins.module_utils._metrics.catalogue import METRICS
from ansible_collections.rdma.cluster.plugins.plugin_utils._catalogue.checks import STAGES
from ansible_collections.rdma.cluster.plugins.plugin_utils._intent.schema.table import OURS, OURS_PREFIX, RUN, SECTIONS

ROOT = Path(__file__).parents[2]
LAB = ROOT / "inventories/lab/hosts.yml"


def play(folder: Path, playbook: str, *words: str, inventory: Path = LAB) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"), "ANSIBLE_NOCOLOR": "1"}
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(inventory), str(ROOT / f"playbooks/{playbook}.yml"), *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_list_tasks_reads_as_the_story_of_the_build(tmp_path: Path) -> None:
    listed = play(tmp_path, "site", "--list-tasks").stdout
    plays = [name.lower() for name in re.findall(r"^  play #\d+ \(.*?\): (\w+): ", listed, re.M)]
    assert list(dict.fromkeys(plays)) == ["hosts", *STAGES], listed
    by_stage: dict[str, list[str]] = {}
    for words in listed.split("  play #")[1:]:
        stage = re.findall(r"\): (\w+)", words)[0].lower()
        if stage == "hosts":
            continue
        by_stage.setdefault(stage, []).extend(line.split("\t")[0].strip() for line in words.splitlines()[2:] if "TAGS" in line)
    assert list(by_stage) == list(STAGES)
    after = {"collectives": ["Lower NCCL's log level after the collectives have passed"]}
    for stage, names in by_stage.items():
        assert names[:2] == ["Read the intent", "Read the host"]
        gate = [name.split(":")[0] for name in names].index("Gate")
        assert [name.split(":")[0] for name in names[gate : gate + 3]] == ["Gate"] * 3
        assert names[gate + 3 :] == after.get(stage, [])
    assert "rdma.cluster.soft_roce : Create the Soft-RoCE devices of the rails" in by_stage["driver"]
    loads = [
        f"rdma.cluster.{name}"
        for name in ("pairs : Measure these pairs, and re-measure suspects", "pairs_fabric_load : Plan the load across spines")
    ]
    in_order = [
        by_stage["pairs"].index(name)
        for name in (*loads, "rdma.cluster.pairs_qos_load : Plan the load", "Fabric: read it on one host of each plane")
    ]
    assert in_order == sorted(in_order)


def test_no_play_takes_the_strategy_of_somebodys_configuration() -> None:
    for file in (ROOT / "playbooks").glob("*.yml"):
        for entry in yaml.safe_load(file.read_text()):
            assert "import_playbook" in entry or entry["strategy"] == "ansible.builtin.linear", file


def test_validate_has_every_gate_and_no_role_but_those_that_measure(tmp_path: Path) -> None:
    listed = play(tmp_path, "validate", "--list-tasks").stdout
    assert listed.count("Gate: decide whether the build goes on") == len(STAGES)
    assert set(re.findall(r"rdma\.cluster\.(\w+) :", listed)) == {"pairs", "collectives"}


def test_drift_without_check_mode_touches_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    done = play(tmp_path, "drift")
    assert done.returncode == 2
    assert "Run `ansible-playbook rdma.cluster.drift --check`" in done.stdout
    assert "Read the intent" not in done.stdout


@pytest.mark.parametrize("playbook", [*STAGES, "validate"])
def test_every_stage_and_validate_begin_with_the_question_for_hosts(playbook: str) -> None:
    first = yaml.safe_load((ROOT / f"playbooks/{playbook}.yml").read_text())[0]
    assert first["import_playbook"] == "hosts.yml"


@pytest.mark.parametrize(
    ("playbook", "words"),
    [("site", ()), ("site", ("-e", "rdma_hosts=nobody")), *[(each, ("-e", "rdma_hosts=nobody")) for each in ("validate", "pairs", "link")]],
)
def test_no_host_is_an_error_and_not_a_success(tmp_path: Path, playbook: str, words: tuple[str, ...]) -> None:
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("all: {hosts: {}}\n" if not words else LAB.read_text())
    done = play(tmp_path, playbook, *words, inventory=inventory)
    assert done.returncode == 2
    assert f"'{'nobody' if words else 'all'}' names no host of the inventory ({inventory})." in done.stdout, done.stdout


@pytest.mark.parametrize("playbook", ["site", "validate", "fabric"])
def test_a_switch_is_not_a_host_of_a_build(tmp_path: Path, playbook: str) -> None:
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("all: {children: {rdma_switches: {hosts: {leaf1: {}}}, nodes: {hosts: {node1: {}}}}}\n")
    done = play(tmp_path, playbook, "-e", "rdma_hosts=all", inventory=inventory)
    assert done.returncode == 2
    assert "'all' matches switches of the group rdma_switches. Leave them out of `-e rdma_hosts`." in done.stdout


def test_switches_are_in_plays_for_switches_alone(tmp_path: Path) -> None:
    """Also if the inventory has the variable, which Ansible does not read for the hosts of a play."""
    inventory = tmp_path / "hosts.yml"
    switches = "{hosts: {leaf1: {}}}"
    inventory.write_text(
        f"all: {{vars: {{rdma_hosts: all}}, children: {{rdma_switches: {switches}, nodes: {{hosts: {{node1: {{}}}}}}}}}}\n"
    )
    listed = play(tmp_path, "fabric", "--list-hosts", inventory=inventory)
    assert listed.returncode == 0, listed.stderr
    plays = dict(re.findall(r"play #\d+ \(.*?\): (.*?)\tTAGS.*?hosts \(\d+\):\s*(.*?)(?=\n\n|\Z)", listed.stdout, re.DOTALL))
    assert {name: hosts.split() for name, hosts in plays.items()} == {
        "Hosts: check that the run has at least one": ["localhost"],
        "Hosts: read the switches that route": ["leaf1"],
        "Fabric: compare the network between the hosts with the plan": ["node1"],
    }


def test_the_hosts_of_every_play_are_hosts_switches_or_the_control_node() -> None:
    hosts = "{{ rdma_hosts | default('all' ~ (':!rdma_switches' if 'rdma_switches' in groups else '')) }}"
    made = "{{ groups['rdma_%s'] | default([]) }}"
    kinds = {hosts, "localhost", *(made % name for name in ("switches", "driver_restart", "network_live", "qos_live", "drill_members"))}
    for file in (ROOT / "playbooks").glob("*.yml"):
        for entry in yaml.safe_load(file.read_text()):
            assert "import_playbook" in entry or entry["hosts"] in kinds, f"{file.name}: {entry['hosts']}"


def test_an_unreachable_switch_does_not_end_the_run() -> None:
    [switches] = yaml.safe_load((ROOT / "playbooks/switches.yml").read_text())
    assert switches["ignore_unreachable"] is True


def test_discover_needs_no_intent_and_asks_the_fabric_before_it_writes(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("all: {hosts: {node1: {}}}\n")
    listed = play(tmp_path, "discover", "--list-tasks", inventory=inventory).stdout
    tasks = [line.split("\t")[0].strip() for line in listed.splitlines() if "TAGS" in line and "play #" not in line]
    assert tasks == ["Read the host", "Read the fabric of each plane", "Store the discovered fabric", "Show where the results are"]


@pytest.mark.parametrize(("stage", "what"), [("link", "managers"), ("fabric", "graphs")])
def test_a_fabric_is_read_before_its_gate(stage: str, what: str) -> None:
    """Twice: the second time by another host, if need be."""
    *_hosts, of_stage = yaml.safe_load((ROOT / f"playbooks/{stage}.yml").read_text())
    *_hosts, validate = yaml.safe_load((ROOT / "playbooks/validate.yml").read_text())
    for tasks in ([*of_stage.get("tasks", []), *of_stage["post_tasks"]], validate["tasks"]):
        reads = [at for at, task in enumerate(tasks) if task.get("vars", {}).get("__fabric_read_what") == what]
        gates = [at for at, task in enumerate(tasks) if task["name"] in ("Run the gate", f"Run the {stage} gate")]
        assert len(reads) == 1
        assert reads[0] + 1 in gates
    both = yaml.safe_load((ROOT / "playbooks/tasks/fabric_read.yml").read_text())
    assert [task["rdma.cluster.fabric_read"]["what"] for task in both] == ["{{ __fabric_read_what }}"] * 2


@pytest.mark.parametrize(("stage", "role"), [("network", "network"), ("qos", "roce_qos")])
def test_live_rails_change_one_host_first_and_every_batch_is_judged(stage: str, role: str) -> None:
    """Hosts that are not in the group are in no batch: those on which nothing differs, or without a live rail, cost nothing."""
    _hosts, together, batches, gate = yaml.safe_load((ROOT / f"playbooks/{stage}.yml").read_text())
    assert ("serial" in together, "serial" in gate) == (False, False)
    assert together["roles"][0] == {"role": f"rdma.cluster.{role}", "when": f"not (__{stage}_batches.waits | default(true))"}
    # The firewall is no matter of live rails: its rules are only added.
    assert together["roles"][1:] == ([{"role": "rdma.cluster.firewall"}] if stage == "network" else [])
    [planned] = [task for task in together["pre_tasks"] if "rdma.cluster.batch_plan" in task]
    assert planned["rdma.cluster.batch_plan"] == {"group": f"rdma_{stage}_live", "always": "{{ rdma_serial is defined }}"}
    assert planned["when"] == f"rdma_host_plan.{stage}"
    assert batches["hosts"] == f"{{{{ groups['rdma_{stage}_live'] | default([]) }}}}"
    assert batches["serial"] == "{{ rdma_serial | default([1, '10%', '30%']) }}"
    assert [task["ansible.builtin.import_tasks"] for task in batches["post_tasks"]] == ["tasks/batch.yml"]


def roles_of(tasks: Any) -> set[str]:
    """The roles that tasks and the files that they import take in."""
    found: set[str] = set()
    for task in tasks or ():
        for part in ("block", "rescue", "always"):
            found |= roles_of(task.get(part))
        included = task.get("ansible.builtin.include_role") or task.get("ansible.builtin.import_role") or {}
        found |= {included["name"]} if included else set()
        file = task.get("ansible.builtin.import_tasks") or task.get("ansible.builtin.include_tasks")
        file = file["file"] if isinstance(file, dict) else file
        for place in (ROOT / "playbooks", ROOT / "playbooks/tasks"):
            if file and (place / file).is_file():
                found |= roles_of(yaml.safe_load((place / file).read_text()))
    return found


def test_every_play_with_a_role_that_goes_by_the_plan_has_it() -> None:
    """As a variable of the play, which no fact of a host replaces, with facts as variables or without."""
    reads = {f"rdma.cluster.{file.parts[-3]}" for file in ROOT.glob("roles/*/*/*.yml") if "rdma_host_plan." in file.read_text()}
    assert len(reads) > 12
    with_plan = 0
    for file in sorted((ROOT / "playbooks").glob("*.yml")):
        for play in yaml.safe_load(file.read_text()):
            roles = {each["role"] for each in play.get("roles", ())}
            for part in ("pre_tasks", "tasks", "post_tasks"):
                roles |= roles_of([{"ansible.builtin.import_tasks": None, **task} for task in play.get(part, ())])
            roles |= {"rdma.cluster.driver"} if "tasks/restart.yml" in str(play.get("tasks")) else set()
            has = (play.get("vars") or {}).get("rdma_host_plan") == "{{ lookup('rdma.cluster.plan') }}"
            assert has == bool(roles & reads), (file.name, play["name"], roles & reads)
            with_plan += has
    assert with_plan == 12


NOW = {"max_age_seconds": 0}


def test_a_host_is_read_right_before_it_is_reloaded_or_rebooted() -> None:
    """The plan may be an hour old. Of the reboot every user counts, holders of queue pairs too, which the digest does not have."""
    once = yaml.safe_load((ROOT / "playbooks/tasks/restart_once.yml").read_text())
    assert once[0]["rdma.cluster.observe"] == NOW
    assert "when" not in once[0]
    tasks = yaml.safe_load((ROOT / "roles/reboot/tasks/reboot.yml").read_text())
    [read] = [at for at, task in enumerate(tasks) if task.get("rdma.cluster.observe") == NOW]
    [drain] = [at for at, task in enumerate(tasks) if task["name"] == "Drain the host"]
    [reboot] = [at for at, task in enumerate(tasks) if task.get("ansible.builtin.include_tasks") == "idle.yml"]
    assert drain < read < reboot
    assert tasks[read]["register"] == "__reboot_read"
    assert tasks[reboot]["when"] == "__reboot_read.users == ''"
    [withheld] = [task for task in tasks if "rdma.cluster.withheld" in task]
    assert withheld["when"] == "__reboot_read.users != ''"


#: Names that begin as our variables do: a group, a kernel module, tools, modules of the collection, keys of its files, files of metrics.
NO_VARIABLES = {
    "rdma_drill_members",
    "rdma_driver_restart",
    "rdma_network_live",
    "rdma_qos_live",
    "rdma_switches",
    "rdma_cluster",
    "rdma_cluster_",
    "rdma_cm",
    "rdma_ucm",
    "rdma_topo",
    "rdma_rxe",
    "rdma_facts",
    "rdma_percent",
}
#: What stands before it is part of a longer name, of a path or of a fact; what stands after it makes it a file's name.
NAME = re.compile(r"(?<![\w./-])rdma_[a-z0-9_]+\b(?!\.ya?ml|\.py|/)")


def used_in(*patterns: str) -> dict[str, str]:
    """Name → the first file that has it, comments in YAML included: they name variables to users."""
    files = [file for pattern in patterns for file in sorted(ROOT.glob(pattern))]
    return {name: str(file.relative_to(ROOT)) for file in reversed(files) for name in NAME.findall(file.read_text(encoding="utf-8"))}


def test_each_variable_that_playbooks_roles_actions_and_docs_name_is_known() -> None:
    code = used_in("playbooks/**/*.yml", "roles/*/tasks/**/*.yml", "roles/*/vars/*.yml", "roles/*/defaults/*.yml", "roles/*/templates/*")
    docs = used_in("docs/**/*.md", "README.md", "CONTRIBUTING.md", "inventories/**/*.yml", "plugins/action/*.py")
    assert {"rdma_hosts", "rdma_stage", "rdma_job_log", "rdma_job_hosts", "rdma_serial", "rdma_measure"} <= code.keys()
    assert docs.keys() | code.keys() >= NO_VARIABLES, "a name that no page has any more"
    known = {*SECTIONS, *RUN, *OURS, *NO_VARIABLES, *(metric.name for metric in METRICS)}
    unknown = {
        name: file
        for name, file in {**docs, **code}.items()
        if name not in known and not name.startswith(OURS_PREFIX) and name + "_" != OURS_PREFIX
    }
    assert unknown == {}
