# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tools cost: each figure a line of artifacts/bench.jsonl, then a table with the bars; exit status 1 if one is missed.

python -m tests.bench.figures [GROUP …], all groups without a word.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ansible_collections.rdma.cluster.plugins.plugin_utils._run.folder import RunFolder
from tests.bench import fabric_figures, fabric_plan, fleet, hostile, nccl_log, on_node, pair_figures, rerun_figures, tree
from tests.bench.bars import Line, figure, missed, table
from tests.bench.watch import watch

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "artifacts/bench.jsonl"
HOSTS = 1000
GATE = ("python", "-m", "tests.bench.gate", "RUN_FOLDER")
PLAYBOOK = ("ansible-playbook", "--inventory", "inventory.yml", "play.yml")
FACTS_CPU = ("python", "-m", "tests.bench.facts_here", "cpu", "TREE")
FACTS_PLAIN = ("python", "tests/bench/facts_here.py", "plain")


def facts(folder: Path) -> Iterator[Line]:
    """Reading a host: the module's own work on a tree of 16 NICs, and everything on a lab machine against the plain commands."""
    done = subprocess.run(
        [sys.executable, *FACTS_CPU[1:4], str(tree.write(folder / "tree"))], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    yield figure("facts_cpu_ms", json.loads(done.stdout)["cpu_ms"], FACTS_CPU)
    answer: dict[str, float] = {}
    lab, reason = rerun_figures.running_lab()
    if lab is not None:
        outcome = on_node.run(lab, lab.plan.nodes[0], ROOT)
        answer, reason = (json.loads(outcome.stdout), "") if outcome.status == 0 else ({}, (outcome.stderr or "no output").strip()[-200:])
    yield figure("facts_s", answer.get("facts_s"), FACTS_PLAIN, reason, answer.get("plain_s"))
    yield figure("facts_processes", answer.get("processes"), FACTS_PLAIN, reason, answer.get("plain"))
    yield figure("facts_speedup", answer["plain_s"] / answer["same_s"] if answer else None, FACTS_PLAIN, reason, 1.0)
    yield figure("facts_all_speedup", answer["plain_s"] / answer["facts_s"] if answer else None, FACTS_PLAIN, reason, 1.0)


def gate(folder: Path) -> Iterator[Line]:
    """The fleet's part of the gate and its decision, over the files of a run."""
    yield figure("facts_kib_per_host", fleet.write_run(RunFolder(folder / "run"), HOSTS), ("make", "bench"))
    done = subprocess.run([sys.executable, *GATE[1:3], str(folder / "run")], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    answer = json.loads(done.stdout)
    if answer["out"]:
        raise RuntimeError(f"The recorded hosts do not pass the gate, so that something else was measured: {answer['out']}")
    yield figure("gate_fleet_s_1000", answer["seconds"], GATE)
    yield figure("gate_fleet_mib_1000", answer["mib"], GATE)


def controller(folder: Path) -> Iterator[Line]:
    """The preflight stage over recorded hosts, which are this machine; only the reading of the hosts is left out.

    The gate's comparison reads facts from the run's folder; a link lays them there.
    """
    if not (folder / "run").exists():
        fleet.write_run(RunFolder(folder / "run"), HOSTS)
    facts = f"{{{{ lookup('file', '{folder}/run/digests/' ~ inventory_hostname ~ '.json') | from_json }}}}"
    link = {"src": f"{folder}/run/facts", "dest": f"{folder}/artifacts/latest/facts", "state": "link"}
    tasks = [
        {"name": "Read the intent", "rdma.cluster.intent": {"stage": "preflight"}},
        {"name": "Lay recorded facts there", "ansible.builtin.file": link, "run_once": True},
        {"name": "Take recorded facts", "ansible.builtin.set_fact": {"rdma": facts, "cacheable": True}},
        {"name": "Gate", "ansible.builtin.import_tasks": f"{ROOT}/playbooks/tasks/gate.yml"},
    ]
    play = {"hosts": "all", "gather_facts": False, "vars": {"rdma_stage": "preflight"}, "tasks": tasks}
    (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    (folder / "callback_plugins").symlink_to(ROOT / "playbooks/callback_plugins")
    hosts = {fleet.name(number): {"rdma_rails": fleet.rails(number)} for number in range(1, HOSTS + 1)}
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (folder / "inventory.yml").write_text(json.dumps({"all": {"vars": here, "hosts": hosts}}), encoding="utf-8")
    done = watch(PLAYBOOK, folder, folder / "log")
    if done.status != 0:
        raise RuntimeError(f"{' '.join(PLAYBOOK)}: exit status {done.status}\n{done.output[-2000:]}")
    yield figure("controller_mib_1000", done.main_mib, PLAYBOOK)
    yield figure("controller_worker_mib_1000", done.worker_mib, PLAYBOOK)
    yield figure("controller_wall_s_1000", done.seconds, PLAYBOOK)


GROUPS: dict[str, Callable[[Path], Iterator[Line]]] = {
    "facts": facts,
    "gate": gate,
    "controller": controller,
    "rerun": rerun_figures.rerun,
    "pairs": pair_figures.pairs,
    "hostile": hostile.hostile,
    "verdicts": pair_figures.verdicts,
    "fabric": fabric_figures.fabric,
    "plan": fabric_plan.plans,
    "nccl": nccl_log.read,
}


def asked(words: Sequence[str]) -> list[str]:
    """The groups that the words name, once each and in the order of GROUPS; all without words. Exits on a word that names none."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.figures", description="What the tools cost, held against their bars.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"{', '.join(GROUPS)}; all of them unless named")
    groups = parser.parse_args(words).groups
    unknown = [group for group in groups if group not in GROUPS]
    if unknown:
        parser.error(f"no group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    return [group for group in GROUPS if group in groups or not groups]


def kept(file: Path, lines: Sequence[Line]) -> list[Line]:
    """The lines of an earlier measuring whose metrics are not among these, then these."""
    earlier = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    measured = {line["metric"] for line in lines}
    return [*(line for line in earlier if line["metric"] not in measured), *lines]


def main(words: Sequence[str]) -> int:
    """Measure what the words name, everything without words, then hold it against the bars."""
    groups = asked(words)
    lines: list[Line] = []
    OUTPUT.parent.mkdir(exist_ok=True)
    if len(groups) == len(GROUPS):
        OUTPUT.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="rdma-bench-") as name:
        for line in (line for group in groups for line in GROUPS[group](Path(name))):
            lines.append(line)
            OUTPUT.write_text("".join(f"{json.dumps(each)}\n" for each in kept(OUTPUT, lines)), encoding="utf-8")
            print(json.dumps(line), flush=True)
    print(f"\n{table(lines)}")
    return int(any(map(missed, lines)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
