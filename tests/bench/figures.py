# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tools cost: each figure a line of artifacts/bench.jsonl, then a table with the bars; exit status 1 if one is missed."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ansible_collections.rdma.cluster.plugins.plugin_utils._run_folder import RunFolder
from lab.cluster import Lab, load
from lab.errors import LabError
from tests.bench import fleet, on_node, tree
from tests.bench.watch import Watched, executions, watch

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "artifacts/bench.jsonl"
MACHINE = f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}"
HOSTS = 1000
#: Metric → unit, and the most that it may be.
TABLE: dict[str, tuple[str, float | None]] = {
    "facts_cpu_ms": ("ms", 60.0),
    "facts_processes": ("per host", None),
    "facts_s": ("s", None),
    "facts_speedup": ("times", None),
    "facts_all_speedup": ("times", None),
    "facts_kib_per_host": ("KiB", None),
    "gate_fleet_s_1000": ("s", 10.0),
    "gate_fleet_mib_1000": ("MiB", None),
    "controller_mib_1000": ("MiB", None),
    "controller_worker_mib_1000": ("MiB", None),
    "controller_wall_s_1000": ("s", None),
    "rerun_remote_executions": ("per host", None),
    "rerun_wall_s_per_host": ("s", None),
}
GATE = ("python", "-m", "tests.bench.gate", "RUN_FOLDER")
PLAYBOOK = ("ansible-playbook", "--inventory", "inventory.yml", "play.yml")
FACTS_CPU = ("python", "-m", "tests.bench.facts_here", "cpu", "TREE")
FACTS_PLAIN = ("python", "tests/bench/facts_here.py", "plain")
SITE = ("env", "ANSIBLE_PIPELINING=1", "tests/tools/site.sh", "-vvv")
Line = dict[str, Any]


def figure(name: str, value: float | None, command: Sequence[str], reason: str = "", baseline: float | None = None) -> Line:
    """One line. baseline: what the value is held against, the bar unless given; reason: why there is no value."""
    unit, most = TABLE[name]
    return {
        "metric": name,
        "value": _rounded(value),
        "unit": unit,
        "baseline": _rounded(baseline if baseline is not None else most),
        "machine": MACHINE,
        "command": " ".join(command),
        "when": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **({"skipped": reason} if reason else {}),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def missed(line: Line) -> bool:
    """Whether a figure is above its bar, or is not there to be held against it."""
    most = TABLE[line["metric"]][1]
    return most is not None and (line["value"] is None or line["value"] > most)


def table(lines: Sequence[Line]) -> str:
    rows = [("metric", "value", "unit", "at most", "")]
    for line in lines:
        value, most = ("-" if number is None else f"{number:g}" for number in (line["value"], TABLE[line["metric"]][1]))
        rows.append((line["metric"], value, line["unit"], most, "MISSED" if missed(line) else _note(line)))
    return "\n".join(f"{row[0]:<28}{row[1]:>8} {row[2]:<9}{row[3]:>8}  {row[4]}".rstrip() for row in rows)


def _note(line: Line) -> str:
    return f"skipped: {line['skipped']}" if "skipped" in line else ""


def facts(folder: Path) -> Iterator[Line]:
    """Reading a host: the module's own work on a tree of 16 NICs, and everything on a lab machine against the plain commands."""
    done = subprocess.run(
        [sys.executable, *FACTS_CPU[1:4], str(tree.write(folder / "tree"))], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    yield figure("facts_cpu_ms", json.loads(done.stdout)["cpu_ms"], FACTS_CPU)
    said: dict[str, float] = {}
    lab, reason = running_lab()
    if lab is not None:
        outcome = on_node.run(lab, lab.plan.nodes[0], ROOT)
        said, reason = (json.loads(outcome.stdout), "") if outcome.status == 0 else ({}, (outcome.stderr or "no output").strip()[-200:])
    yield figure("facts_s", said.get("facts_s"), FACTS_PLAIN, reason, said.get("plain_s"))
    yield figure("facts_processes", said.get("processes"), FACTS_PLAIN, reason, said.get("plain"))
    yield figure("facts_speedup", said["plain_s"] / said["same_s"] if said else None, FACTS_PLAIN, reason, 1.0)
    yield figure("facts_all_speedup", said["plain_s"] / said["facts_s"] if said else None, FACTS_PLAIN, reason, 1.0)


def gate(folder: Path) -> Iterator[Line]:
    """The fleet's part of the gate and its decision, over the files of a run."""
    yield figure("facts_kib_per_host", fleet.write_run(RunFolder(folder / "run"), HOSTS), ("make", "bench"))
    done = subprocess.run([sys.executable, *GATE[1:3], str(folder / "run")], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    said = json.loads(done.stdout)
    if said["out"]:
        raise RuntimeError(f"The recorded hosts do not pass the gate, so that something else was measured: {said['out']}")
    yield figure("gate_fleet_s_1000", said["seconds"], GATE)
    yield figure("gate_fleet_mib_1000", said["mib"], GATE)


def controller(folder: Path) -> Iterator[Line]:
    """The preflight stage over recorded hosts, which are this machine; only the reading of the hosts is left out.

    The gate's comparison reads facts from the run's folder; a link lays them there.
    """
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


def running_lab() -> tuple[Lab | None, str]:
    """The lab named by LAB_NAME, if all of it is up; else None and why."""
    try:
        lab = load(os.environ.get("LAB_NAME", "lab"))
    except LabError as error:
        return None, str(error)
    down = ", ".join(node.name for node in lab.plan.nodes if not lab.is_running(node))
    return (None, f"{down} of lab '{lab.plan.name}' is not running") if down else (lab, "")


def rerun(folder: Path) -> Iterator[Line]:
    """The site playbook once more, on a lab that is converged."""
    lab, reason = running_lab()
    values: tuple[float | None, float | None] = (None, None)
    if lab is not None:
        done = watch(SITE, ROOT, folder / "site.log")
        reason = unfit(done, ROOT / "artifacts/latest/summary.json")
    if lab is not None and not reason:
        values = (executions(done.output) / len(lab.plan.nodes), done.seconds / len(lab.plan.nodes))
    yield figure("rerun_remote_executions", values[0], SITE, reason)
    yield figure("rerun_wall_s_per_host", values[1], SITE, reason)


def unfit(done: Watched, summary: Path) -> str:
    """Why a run says nothing of converged hosts; empty if it does."""
    if done.status != 0:
        return f"the site run ended with exit status {done.status}: {' '.join(done.output[-200:].split())}"
    changes = json.loads(summary.read_text(encoding="utf-8"))["changes"]
    return f"the site run made {changes} changes, so that the hosts were not converged: run again" if changes else ""


def main() -> int:
    """Measure everything, then hold it against the bars."""
    lines = []
    OUTPUT.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rdma-bench-") as name, OUTPUT.open("w", encoding="utf-8") as stream:
        for line in (line for make in (facts, gate, controller, rerun) for line in make(Path(name))):
            print(json.dumps(line), file=stream, flush=True)
            print(json.dumps(line), flush=True)
            lines.append(line)
    print(f"\n{table(lines)}")
    return int(any(map(missed, lines)))


if __name__ == "__main__":
    sys.exit(main())
